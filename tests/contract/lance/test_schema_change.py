"""Columns are numbered, not named: which changes keep the numbers, and which silently do not."""

import lance
import pyarrow as pa
import pytest
from lance import LanceDataset, LanceOperation
from lance.fragment import write_fragments
from lance.schema import LanceSchema

from tests.contract.lance.builders import (
    add_column,
    commit,
    create,
    create_index,
    fragments_of,
)

COLUMNS = {"a": [1, 2], "b": [10, 20], "c": [100, 200]}


@pytest.fixture
def table(uri: str) -> LanceDataset:
    """Columns a, b and c, numbered 0, 1 and 2."""
    return lance.write_dataset(pa.table(COLUMNS), uri, enable_stable_row_ids=True)


@pytest.fixture
def dropped(table: LanceDataset) -> LanceDataset:
    """The same without b: columns a and c, numbered 0 and 2."""
    table.drop_columns(["b"])
    return table


def numbers(schema: LanceSchema) -> dict[str, int]:
    return {each.name(): each.id() for each in schema.fields()}


def sevens(batch: pa.RecordBatch) -> pa.RecordBatch:
    return pa.record_batch({"d": pa.array([7] * batch.num_rows)})


def test_an_all_null_column_is_added_without_touching_data(uri):
    base = create(uri, "a")

    landed = commit(base, add_column(base))

    assert landed.to_table().to_pydict() == {"key": ["a"], "value": [0], "extra": [None]}
    assert fragments_of(landed)[0].files == fragments_of(base)[0].files


def test_adding_a_column_keeps_indexes(uri):
    base = create(uri, "a", "b")
    base = commit(base, create_index(base))

    landed = commit(base, add_column(base))

    assert [each.name for each in landed.describe_indices()] == ["key_index"]
    assert landed.stats.index_stats("key_index")["num_indexed_rows"] == 2


def test_adding_a_column_keeps_row_ids_and_row_versions(uri):
    base = create(uri, "a", "b")
    columns = ["key", "_rowid", "_row_created_at_version", "_row_last_updated_at_version"]

    landed = commit(base, add_column(base))

    assert landed.to_table(columns=columns) == base.to_table(columns=columns)


def test_a_filled_column_is_staged_per_fragment(dropped):
    staged = [each.merge_columns(sevens, columns=["a"]) for each in dropped.get_fragments()]
    fragments = [fragment for fragment, _ in staged]
    _, schema = staged[0]

    landed = commit(dropped, LanceOperation.Merge(fragments, schema))

    assert numbers(schema) == {"a": 0, "c": 2, "d": 3}
    assert landed.to_table().to_pydict() == {"a": [1, 2], "c": [100, 200], "d": [7, 7]}


def test_merging_with_a_renumbered_schema_is_refused(dropped):
    schema = LanceSchema.from_pyarrow(dropped.schema.append(pa.field("d", pa.int64())))

    with pytest.raises(OSError, match='Merge operation assigns id 1 to new field "c"'):
        commit(dropped, LanceOperation.Merge(fragments_of(dropped), schema))


def test_a_pyarrow_schema_for_merge_is_deprecated(table):
    with pytest.warns(DeprecationWarning, match="Please use a LanceSchema"):
        LanceOperation.Merge(fragments_of(table), table.schema)


def test_projecting_with_a_renumbered_schema_reads_another_columns_data(table):
    schema = pa.schema([table.schema.field("a"), table.schema.field("c")])

    landed = commit(table, LanceOperation.Project(LanceSchema.from_pyarrow(schema)))

    # Known corruption: c is read from where b was.
    assert landed.to_table().to_pydict() == {"a": [1, 2], "c": [10, 20]}


def test_projecting_with_the_schema_of_a_scratch_branch_is_safe(table):
    scratch = table.create_branch("scratch", table.version)
    scratch.drop_columns(["b"])

    landed = commit(table, LanceOperation.Project(scratch.lance_schema))

    assert landed.to_table().to_pydict() == {"a": [1, 2], "c": [100, 200]}


def test_adding_a_null_column_with_the_schema_of_a_scratch_branch_is_safe(dropped):
    scratch = dropped.create_branch("scratch", dropped.version)
    scratch.add_columns(pa.schema([pa.field("d", pa.int64())]))
    operation = LanceOperation.Merge(
        fragments_of(dropped), scratch.lance_schema, preserves_nullability=True
    )

    landed = commit(dropped, operation)

    assert landed.to_table().to_pydict() == {"a": [1, 2], "c": [100, 200], "d": [None, None]}


def test_carrying_fragments_under_a_pyarrow_schema_reads_another_columns_data(dropped):
    landed = commit(dropped, LanceOperation.Overwrite(dropped.schema, fragments_of(dropped)))

    # Known corruption, as with Project: a pyarrow schema is numbered from 0 again.
    assert landed.to_table().to_pydict() == {"a": [1, 2], "c": [10, 20]}


def test_carrying_fragments_under_the_tables_own_lance_schema_is_safe(dropped):
    operation = LanceOperation.Overwrite(dropped.lance_schema, fragments_of(dropped))

    assert commit(dropped, operation).to_table().to_pydict() == {"a": [1, 2], "c": [100, 200]}


def test_rows_are_matched_to_columns_by_name(dropped):
    rows = pa.table({"c": [300], "a": [3]})
    fragments = write_fragments(rows, dropped, mode="append")

    landed = commit(dropped, LanceOperation.Append(fragments))

    assert landed.to_table().to_pydict() == {"a": [1, 2, 3], "c": [100, 200, 300]}


def test_a_column_left_out_of_new_rows_reads_null(table):
    fragments = write_fragments(pa.table({"a": [3]}), table, mode="append")

    landed = commit(table, LanceOperation.Append(fragments))

    assert landed.to_table()["c"].to_pylist() == [100, 200, None]


def test_a_column_the_table_does_not_have_is_refused(table):
    with pytest.raises(OSError, match=r"Append with different schema: .*unexpected=\[z\]"):
        write_fragments(pa.table({"z": [1]}), table, mode="append")
