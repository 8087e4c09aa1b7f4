"""Other columns over the same files: numbers of our own, Project, Merge, detached versions."""

import dataclasses
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance import LanceDataset, LanceOperation
from lance.dataset import Transaction
from lance.fragment import DataFile, DeletionFile, RowIdSequence, write_fragments
from lance.schema import LanceSchema

from omnigraph.storage.fields import read_columns, with_columns
from omnigraph.storage.lance_messages import FieldMessage
from tests.contract.lance.builders import commit, fragments_of

COLUMNS = {"a": ["a1", "a2"], "b": ["b1", "b2"], "c": ["c1", "c2"]}
NEW = pa.field("d", pa.string())
ROWS = ["_rowid", "_row_created_at_version", "_row_last_updated_at_version"]


@pytest.fixture
def table(uri: str) -> LanceDataset:
    """Two rows in fragment 0, an indexed text column numbered 0, 1 and 2 for each of a, b and c."""
    table = lance.write_dataset(pa.table(COLUMNS), uri, enable_stable_row_ids=True)
    for column in COLUMNS:
        table.create_scalar_index(column, "BTREE", name=f"index of {column}")
    return table


def schema_of(table: LanceDataset, columns: dict[str, str | int], **nullable: bool) -> LanceSchema:
    """The columns by their new names: one of the table's, or a new one with this number."""
    current = read_columns(table.lance_schema)
    [new] = read_columns(LanceSchema.from_pyarrow(pa.schema([NEW]))).values()
    made = [
        (new.renumbered(source) if isinstance(source, int) else current[source]).renamed(
            name, nullable=nullable.get(name, True)
        )
        for name, source in columns.items()
    ]
    return with_columns(table.lance_schema, made)


def column_file(table: LanceDataset, number: int, values: list[str]) -> DataFile:
    """A file of one column, with this number."""
    rows = pa.table({"d": values}, schema=pa.schema([NEW]))
    [fragment] = write_fragments(rows, table, mode="overwrite", max_rows_per_file=len(values))
    [file] = fragment.files
    assert file.fields == [0]
    return DataFile(
        file.path,
        [number],
        file.column_indices,
        file.file_major_version,
        file.file_minor_version,
        file.file_size_bytes,
    )


def with_file(table: LanceDataset, file: DataFile) -> list[Any]:
    [fragment] = fragments_of(table)
    return [dataclasses.replace(fragment, files=[*fragment.files, file])]


def indexes(table: LanceDataset) -> dict[str, list[str]]:
    return {each.name: each.field_names for each in table.describe_indices()}


def test_a_pickled_schema_is_metadata_and_a_message_for_each_field_before_its_parts(uri):
    nested = pa.schema(
        [pa.field("l", pa.list_(pa.int32())), pa.field("s", pa.string(), nullable=False)]
    )
    table = lance.write_dataset(nested.with_metadata({"k": "v"}).empty_table(), uri)
    reduced: Any = table.lance_schema.__reduce__()
    make, (metadata, *messages) = reduced
    fields = [FieldMessage.parse(each) for each in messages]

    assert [(each.name, each.id, each.parent, each.is_nullable) for each in fields] == [
        ("l", 0, None, True),
        ("item", 1, 0, True),
        ("s", 2, None, False),
    ]
    again = make(metadata, *(each.serialize() for each in fields))
    assert again.to_pyarrow() == table.schema
    assert again.to_pyarrow().metadata == {b"k": b"v"}


def test_the_largest_number_counts_those_in_files(table):
    landed = commit(table, LanceOperation.Project(schema_of(table, {"a": "a", "b": "b"})))

    assert (table.max_field_id, landed.max_field_id) == (2, 2)


def test_a_project_exchanges_names_and_nullability_drops_and_adds_nulls(table):
    schema = schema_of(table, {"b": "a", "d": 7, "a": "b"}, b=False)
    landed = commit(table, LanceOperation.Project(schema))

    assert landed.to_table().to_pydict() == {"b": ["a1", "a2"], "d": [None] * 2, "a": ["b1", "b2"]}
    assert [each.nullable for each in landed.schema] == [False, True, True]
    assert indexes(landed) == {"index of a": ["b"], "index of b": ["a"]}
    assert landed.to_table(filter="a = 'b2'", columns=["b"]).to_pydict() == {"b": ["a2"]}
    assert landed.stats.index_stats("index of a")["num_unindexed_rows"] == 0
    assert landed.to_table(columns=ROWS) == table.to_table(columns=ROWS)
    assert landed.checkout_version(table.version).to_table().to_pydict() == COLUMNS


def test_a_merge_adds_values_as_one_more_file_of_a_fragment(table):
    schema = schema_of(table, {"d": 7, "z": "a", "c": "c"})
    files = with_file(table, column_file(table, 7, ["d1", "d2"]))
    landed = commit(table, LanceOperation.Merge(files, schema))

    assert landed.to_table().to_pydict() == {
        "d": ["d1", "d2"],
        "z": COLUMNS["a"],
        "c": COLUMNS["c"],
    }
    assert indexes(landed) == {"index of a": ["z"], "index of c": ["c"]}
    assert landed.stats.index_stats("index of a")["num_unindexed_rows"] == 0
    assert landed.to_table(columns=ROWS[:2]) == table.to_table(columns=ROWS[:2])
    assert set(landed.to_table(columns=ROWS[2:])[ROWS[2]].to_pylist()) == {landed.version}
    restored = commit(landed, LanceOperation.Restore(table.version))
    assert restored.to_table().to_pydict() == COLUMNS


def test_a_project_forgets_files_of_which_no_column_is_left(table):
    schema = schema_of(table, {"a": "a", "d": 7})
    files = with_file(table, column_file(table, 7, ["d1", "d2"]))
    added = commit(table, LanceOperation.Merge(files, schema))
    landed = commit(added, LanceOperation.Project(schema_of(added, {"a": "a"})))

    assert [len(fragments_of(each)[0].files) for each in (added, landed)] == [2, 1]
    assert landed.max_field_id == 2


@pytest.fixture
def with_null(uri: str) -> LanceDataset:
    """A column with a value and a null."""
    return lance.write_dataset(pa.table({"k": [1, 2], "a": ["x", None]}), uri)


def test_nulls_of_a_column_that_may_not_have_them_are_neither_read_nor_found(with_null):
    schema = schema_of(with_null, {"k": "k", "a": "a"}, a=False)
    landed = commit(with_null, LanceOperation.Project(schema))

    assert landed.count_rows("a IS NULL") == 0
    with pytest.raises(
        pa.ArrowInvalid, match='unmasked nulls for non-nullable StructArray field "a"'
    ):
        landed.to_table()


def test_nulls_of_deleted_rows_do_no_harm_to_such_a_column(with_null):
    with_null.delete("k = 2")
    schema = schema_of(with_null, {"k": "k", "a": "a"}, a=False)
    landed = commit(with_null, LanceOperation.Project(schema))

    assert landed.to_table().to_pydict() == {"k": [1], "a": ["x"]}
    assert landed.to_table(filter="a > 'a'", columns=["k"]).to_pydict() == {"k": [1]}


REJECTED: dict[str, tuple[dict[str, str | int], dict[str, bool], str]] = {
    "name of another": ({"a": "b"}, {}, "remaps field id 1"),
    "names exchanged": ({"a": "b", "b": "a"}, {}, "remaps field id"),
    "nullability": ({"a": "a"}, {"a": False}, "nullable true -> false"),
    "new one without values": ({"a": 7, "b": "b"}, {}, "must materialize the new field id"),
}


@pytest.mark.parametrize(("columns", "nullable", "reason"), REJECTED.values(), ids=REJECTED.keys())
def test_a_merge_rejects_what_a_project_does(table, columns, nullable, reason):
    schema = schema_of(table, columns, **nullable)

    with pytest.raises(OSError, match=reason):
        commit(table, LanceOperation.Merge(fragments_of(table), schema))
    assert commit(table, LanceOperation.Project(schema)).schema.names == list(columns)


def test_a_merge_accepts_a_new_column_of_an_old_name_with_values_everywhere(table):
    files = with_file(table, column_file(table, 7, ["d1", "d2"]))
    schema = schema_of(table, {"a": 7, "z": "a"})
    landed = commit(table, LanceOperation.Merge(files, schema))

    assert landed.to_table().to_pydict() == {"a": ["d1", "d2"], "z": COLUMNS["a"]}
    assert indexes(landed) == {"index of a": ["z"]}


def grown(table: LanceDataset, *keys: str) -> LanceDataset:
    rows = pa.table({each: list(keys) for each in COLUMNS})
    return commit(table, LanceOperation.Append(write_fragments(rows, table, mode="append")))


def new_fragment(table: LanceDataset, key: str, **changed: Any) -> Any:
    rows = pa.table({each: [key] for each in COLUMNS})
    [fragment] = write_fragments(rows, table, mode="append")
    return dataclasses.replace(fragment, **changed)


@pytest.fixture
def holed(table: LanceDataset) -> LanceDataset:
    """The same, with an index over fragments 0, 1 and 2, of which 2 is gone."""
    table = grown(grown(table, "x"), "y")
    table.create_scalar_index("a", "BTREE", name="index of a", replace=True)
    table.delete("a = 'y'")
    assert [each.fragment_id for each in table.get_fragments()] == [0, 1]
    return table


def test_a_merge_gives_new_fragments_ids_and_rows_ids_that_were_never_used(holed):
    fragments = [*fragments_of(holed), new_fragment(holed, "new")]
    landed = commit(holed, LanceOperation.Merge(fragments, holed.lance_schema))

    assert [each.fragment_id for each in landed.get_fragments()] == [0, 1, 3]
    assert landed.to_table(filter="a = 'new'", columns=["_rowid"])["_rowid"].to_pylist() == [4]
    later = grown(landed, "later")
    assert [each.fragment_id for each in later.get_fragments()] == [0, 1, 3, 4]
    assert later.to_table(columns=["_rowid"])["_rowid"].to_pylist() == [0, 1, 2, 4, 5]


def test_a_new_fragment_with_an_id_that_an_index_covered_is_not_found_by_it(holed):
    fragments = [*fragments_of(holed), new_fragment(holed, "new", id=2)]
    landed = commit(holed, LanceOperation.Merge(fragments, holed.lance_schema))

    # Known wrong answer: the index is thought to know all rows of fragment 2.
    assert landed.count_rows() == 4
    assert landed.to_table(filter="a = 'new'").num_rows == 0


def test_a_merge_rejects_given_row_ids(holed):
    ids = RowIdSequence([1]).to_inline_metadata()
    fragments = [*fragments_of(holed), new_fragment(holed, "new", row_id_meta=ids)]

    with pytest.raises(OSError, match="row"):
        commit(holed, LanceOperation.Merge(fragments, holed.lance_schema))


def test_a_merge_must_list_every_fragment_and_drops_those_with_no_row_left(holed):
    first, second = fragments_of(holed)
    with pytest.raises(OSError, match="Merge operations should only add columns"):
        commit(holed, LanceOperation.Merge([first], holed.lance_schema))
    # The count is enough: the file does not exist.
    gone = DeletionFile(0, 0, "array", second.physical_rows, None)
    fragments = [first, dataclasses.replace(second, deletion_file=gone)]
    landed = commit(holed, LanceOperation.Merge(fragments, holed.lance_schema))

    assert [each.fragment_id for each in landed.get_fragments()] == [0]
    assert landed.to_table()["a"].to_pylist() == ["a1", "a2"]
    assert landed.to_table(filter="a = 'x'").num_rows == 0
    landed.validate()


def test_the_limit_of_rows_of_a_file_is_taken_modulo_two_to_the_32(table):
    def rows() -> pa.RecordBatchReader:
        batches = pa.table({"d": ["1", "2", "3"]}, schema=pa.schema([NEW])).to_batches(1)
        return pa.RecordBatchReader.from_batches(pa.schema([NEW]), batches)

    def count(limit: int) -> int:
        return len(write_fragments(rows(), table, mode="overwrite", max_rows_per_file=limit))

    assert [count(1 << 32), count(1 << 31), count(3)] == [3, 1, 1]


def test_an_index_name_is_not_given_to_another_column(table):
    landed = commit(table, LanceOperation.Project(schema_of(table, {"z": "a", "a": 7})))

    with pytest.raises(RuntimeError, match="already exists with different fields"):
        landed.create_index_uncommitted(
            "a", "BTREE", name="index of a", replace=True, fragment_ids=[0]
        )


def test_a_table_created_without_rows_stores_blobs_in_another_way(tmp_path):
    blob = pa.field("blob", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    empty = pa.table({"blob": pa.array([], pa.large_binary())}, schema=pa.schema([blob]))
    full = pa.table({"blob": pa.array([b"x"], pa.large_binary())}, schema=pa.schema([blob]))
    operation = LanceOperation.Overwrite(empty.schema, [])
    first = LanceDataset.commit(str(tmp_path / "empty"), operation, read_version=0)
    second = lance.write_dataset(full, str(tmp_path / "full"))

    assert [
        [field.name for field in read_columns(each.lance_schema)["blob"].fields]
        for each in (first, second)
    ] == [["blob"], ["blob", "data", "uri"]]


def without(table: LanceDataset) -> Any:
    """Fragment 0 without its first row."""
    fragment = table.get_fragment(0)
    assert fragment is not None
    return fragment.delete_rows([0])


def detached(table: LanceDataset, operation: LanceOperation.BaseOperation) -> LanceDataset:
    transaction = Transaction(table.version, operation)
    return LanceDataset.commit(table, transaction, max_retries=1, detached=True)


@pytest.mark.parametrize("branch", [None, "draft"])
def test_a_detached_version_is_opened_by_its_number_and_no_head_shows_it(table, branch):
    head = table if branch is None else table.create_branch(branch, table.version)
    schema = schema_of(head, {"z": "a", "d": 7})
    shown = detached(head, LanceOperation.Project(schema))
    opened = lance.dataset(table.uri).checkout_version((branch, shown.version))

    assert opened.to_table().to_pydict() == {"z": ["a1", "a2"], "d": [None, None]}
    assert shown.version >= 1 << 63
    assert head.latest_version == head.version
    assert shown.version not in [each["version"] for each in head.versions()]


@pytest.mark.parametrize("branch", [None, "draft"])
def test_what_is_written_through_a_detached_version_is_committed_to_the_head(table, branch):
    head = table if branch is None else table.create_branch(branch, table.version)
    schema = schema_of(head, {"z": "a", "d": 7})
    shown = detached(head, LanceOperation.Project(schema))
    new = write_fragments(pa.table({"d": ["d3"], "z": ["a3"]}), shown, mode="append")
    left = without(shown)
    landed = commit(head, LanceOperation.Merge([left, *new], schema))

    assert landed.version == head.version + 1
    assert landed.to_table().to_pydict() == {"z": ["a2", "a3"], "d": [None, "d3"]}
    assert landed.to_table(filter="z = 'a3'").num_rows == 1
    landed.validate()


def test_a_detached_commit_needs_an_attempt(table):
    transaction = Transaction(table.version, LanceOperation.Project(table.lance_schema))

    with pytest.raises(OSError, match="random u64 after 0 retries"):
        LanceDataset.commit(table, transaction, max_retries=0, detached=True)
