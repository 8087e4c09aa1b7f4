"""Which filters reach Lance's indexes, and what a filter costs by the form it is given in."""

import time
from functools import reduce
from operator import or_

import duckdb
import lance
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from lance import LanceDataset

ROWS = 100_000
FEW_BYTES = 200_000


@pytest.fixture
def dataset(uri: str) -> LanceDataset:
    """A table with an index on its keys, and far more bytes than a lookup needs."""
    keys = [f"{number:08}" for number in range(ROWS)]
    dataset = lance.write_dataset(pa.table({"key": keys, "value": range(ROWS)}), uri)
    dataset.create_scalar_index("key", "BTREE")
    return lance.dataset(uri)


def bytes_read_by_duckdb(dataset: LanceDataset, condition: str) -> int:
    with duckdb.connect() as connection:
        connection.register("rows", dataset)
        connection.execute(f"SELECT value FROM rows WHERE {condition}").fetchall()
    return int(dataset.io_stats_incremental().read_bytes)


def test_duckdb_pushes_an_equality_into_a_scan(dataset):
    assert bytes_read_by_duckdb(dataset, "key = '00000007'") < FEW_BYTES


def test_duckdb_pushes_no_in_list_into_a_scan(dataset):
    condition = "key IN ('00000007', '00000014')"

    assert bytes_read_by_duckdb(dataset, condition) > FEW_BYTES

    dataset.to_table(columns=["value"], filter=condition)
    assert dataset.io_stats_incremental().read_bytes < FEW_BYTES


def test_a_long_or_chain_costs_far_more_as_a_pyarrow_expression_than_as_text(dataset):
    keys = [f"{number:08}" for number in range(14)]
    text = " OR ".join(f"key = '{key}'" for key in keys)
    expression = reduce(or_, (pc.field("key") == key for key in keys))

    by_text = min(seconds_to_read(dataset, text) for _ in range(3))

    assert seconds_to_read(dataset, expression) > 10 * by_text


def seconds_to_read(dataset: LanceDataset, condition: str | pc.Expression) -> float:
    start = time.perf_counter()
    assert dataset.to_table(filter=condition).num_rows == 14
    return time.perf_counter() - start


@pytest.mark.parametrize("kind", [pa.uint32(), pa.uint64()], ids=str)
def test_a_pyarrow_filter_fails_beside_a_list_of_unsigned_integers(uri, kind):
    rows = pa.table({"key": ["a", "b"], "list": pa.array([[1], None], pa.list_(kind))})
    dataset = lance.write_dataset(rows, uri)

    with pytest.raises(ValueError, match="Substrait"):
        dataset.to_table(columns=["key"], filter=pc.field("key") == "a")

    assert dataset.to_table(columns=["key"], filter="key = 'a'").num_rows == 1
