"""What a schema change costs: metadata for most steps, and for others the columns in question."""

from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pytest

import omnigraph
from omnigraph.schema.arrow import table_schema
from omnigraph.storage.meter import IOCount
from tests.support.counting import Counted
from tests.support.graphs import add_rows

SCHEMA: Final = "node Person { name: String @key  age: I32?  city: String  bio: String }"
RENAMED: Final = SCHEMA.replace("age: I32?", 'years: I32? @rename_from("age")')
METADATA_STEPS: Final = {
    "rename": RENAMED,
    "add": RENAMED.replace("city:", "note: String?  city:"),
    "drop": SCHEMA.replace("age: I32?", ""),
}
"""Each from the one before."""

ROWS: Final = 40_000
CITY_BYTES: Final = 12
BIO_BYTES: Final = 200
FILE_BYTES: Final = 64 << 10
"""For what does not depend on the rows: manifests, transactions, the ends of files."""


def texts(count: int, length: int, seed: int) -> pa.Array:
    """Texts of one length that nothing compresses much."""
    letters = np.random.default_rng(seed).integers(97, 123, size=(count, length), dtype=np.uint8)
    return pa.array(letters.view(f"S{length}").ravel().astype(str))


def people(root: str | Path, rows: int, *, bio_bytes: int = BIO_BYTES) -> omnigraph.Graph:
    graph = omnigraph.init(root, SCHEMA)
    names = pa.array([f"n{number:07}" for number in range(rows)])
    columns = {
        "id": names,
        "name": names,
        "age": pa.array(np.arange(rows) % 90, pa.int32()),
        "city": texts(rows, CITY_BYTES, 1),
        "bio": texts(rows, bio_bytes, 2),
    }
    schema = table_schema(graph.schema.show().catalog.type_named("Person"))
    add_rows(graph, {"Person": pa.table(columns).cast(schema)})
    return graph


def metadata_costs(root: str, asked: Counted, rows: int) -> dict[str, list[str]]:
    """The requests of each step, without the names that differ from graph to graph."""
    people(root, rows, bio_bytes=4)
    costs = {}
    for step, schema in METADATA_STEPS.items():
        graph = omnigraph.open(root)
        asked.take()
        graph.schema.apply(schema)
        written = [each for each in asked.requests if each.startswith("PUT") and "/data/" in each]
        assert [each for each in written if "/nodes/" in each] == [], step
        costs[step] = sorted(each.partition(" ")[0] for each in asked.requests)
    return costs


def test_a_step_of_metadata_costs_the_same_in_a_small_graph_and_in_a_large_one(
    root: str, asked: Counted
) -> None:
    small = metadata_costs(f"{root}/small", asked, 1_000)
    large = metadata_costs(f"{root}/large", asked, 1_000_000)

    assert large == small
    assert max(map(len, small.values())) <= 40


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> omnigraph.Graph:
    return people(tmp_path_factory.mktemp("cost") / "graph", ROWS)


def cost(graph: omnigraph.Graph, name: str, schema: str, fill: str | None = None) -> IOCount:
    """What a change reads and writes, on a branch of its own and through a new handle."""
    graph.branches.create(name)
    fresh = omnigraph.open(graph.uri)
    fresh._store.meter.take()
    fresh.schema.apply(schema, branch=name, fill=fill)
    return fresh._store.meter.take()


def test_a_default_is_written_without_reading_a_row(graph: omnigraph.Graph) -> None:
    schema = SCHEMA.replace("bio:", "level: I64 @default(7)  bio:")

    counted = cost(graph, "default", schema)

    assert counted.bytes_read <= FILE_BYTES
    assert counted.bytes_written <= 1.2 * 8 * ROWS + FILE_BYTES


def test_a_fill_reads_its_own_columns_and_writes_one(graph: omnigraph.Graph) -> None:
    schema = SCHEMA.replace("bio:", "home: String  bio:")

    counted = cost(graph, "fill", schema, fill="Person.home=upper(city)")

    column = CITY_BYTES * ROWS
    assert column / 2 <= counted.bytes_read <= 1.2 * column + FILE_BYTES
    assert column / 2 <= counted.bytes_written <= 1.2 * column + FILE_BYTES


@pytest.mark.parametrize(
    ("name", "schema"),
    {
        "required": SCHEMA.replace("I32?", "I32"),
        "range": SCHEMA.replace("city:", "@range(age, 0..200)  city:"),
    }.items(),
)
def test_a_new_rule_reads_the_column_that_it_is_about(
    graph: omnigraph.Graph, name: str, schema: str
) -> None:
    counted = cost(graph, name, schema)

    # Lance packs these numbers into seven bits each.
    assert 7 / 8 * ROWS <= counted.bytes_read <= 1.2 * 4 * ROWS + FILE_BYTES
    assert counted.bytes_written <= FILE_BYTES
