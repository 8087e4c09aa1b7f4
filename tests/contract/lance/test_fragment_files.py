"""What the metadata of fragments says of their files, and what reading them asks for."""

from typing import Any

import pyarrow as pa
from lance import LanceDataset, LanceOperation
from lance.fragment import write_fragments

from tests.contract.lance.builders import append, commit, create, keys_of

NESTED = pa.schema(
    [
        pa.field("key", pa.string(), nullable=False),
        pa.field("tags", pa.list_(pa.string())),
        pa.field("point", pa.list_(pa.float32(), 2)),
    ]
)


def reads(dataset: LanceDataset) -> int:
    return int(dataset.io_stats_incremental().read_iops)


def opened(uri: str) -> LanceDataset:
    import lance

    # With a session of its own: another handle of this process may have cached the files.
    dataset = lance.dataset(uri, session=lance.Session())  # type: ignore[attr-defined]
    reads(dataset)
    return dataset


def delete(dataset: LanceDataset, fragment: int, offsets: list[int]) -> LanceDataset:
    left = dataset.get_fragments()[fragment].delete_rows(offsets)
    assert left is not None
    operation = LanceOperation.Update(
        removed_fragment_ids=[],
        updated_fragments=[left],
        new_fragments=[],
        fields_modified=[],
        fields_for_preserving_frag_bitmap=[],
        update_mode="rewrite_rows",
    )
    return commit(dataset, operation)


def test_a_files_path_is_a_text_beside_the_property_that_builds_a_class(uri):
    (fragment,) = create(uri, "a").get_fragments()
    (file,) = fragment.metadata.files
    assert file._path == str(file.path)
    assert type(file._path) is str
    assert type(file.path) is not type(file.path)


def test_a_file_names_the_fields_that_have_none_below_them(uri):
    dataset = LanceDataset.commit(
        uri, LanceOperation.Overwrite(NESTED, []), enable_stable_row_ids=True
    )
    rows = pa.table({"key": ["a"], "tags": [["x"]], "point": [[1.0, 2.0]]}, schema=NESTED)
    (fragment,) = write_fragments(rows, dataset, mode="append")
    numbers: dict[str, Any] = {
        field.name(): (field.id(), [child.id() for child in field.children()])
        for field in dataset.lance_schema.fields()
    }
    (key, none), (tags, (item,)), (point, nothing) = numbers.values()
    assert (none, nothing) == ([], [])
    assert set(fragment.files[0].fields) == {key, item, point}
    assert tags not in fragment.files[0].fields


def test_a_small_file_costs_one_read_whatever_columns_are_wanted(s3_bucket):
    uri = f"s3://{s3_bucket}/table"
    dataset = create(uri, "a")
    commit(dataset, append(dataset, "b"))
    for columns in (["key"], ["key", "value"]):
        dataset = opened(uri)
        dataset.to_table(columns=columns)
        assert reads(dataset) == 2


def test_the_addresses_of_rows_are_told_by_the_deletion_file_alone(s3_bucket):
    uri = f"s3://{s3_bucket}/table"
    dataset = create(uri, "a", "b", "c")
    delete(commit(dataset, append(dataset, "d")), 0, [1])
    dataset = opened(uri)
    addresses = dataset.to_table(columns=["_rowaddr"])["_rowaddr"].to_pylist()
    assert [address & 0xFFFF_FFFF for address in addresses] == [0, 2, 0]
    assert reads(dataset) == 1


def test_a_scan_of_chosen_fragments_reads_one_after_the_other(uri):
    dataset = create(uri, "a", "b")
    for keys in (("c", "d"), ("e",)):
        dataset = commit(dataset, append(dataset, *keys))
    dataset = delete(dataset, 1, [0])
    fragments = dataset.get_fragments()
    chosen = dataset.scanner(columns=["key", "_rowaddr"], fragments=[fragments[1], fragments[2]])
    table = chosen.to_table()
    assert table["key"].to_pylist() == ["d", "e"]
    assert [address >> 32 for address in table["_rowaddr"].to_pylist()] == [
        fragments[1].fragment_id,
        fragments[2].fragment_id,
    ]
    assert keys_of(dataset) == ["a", "b", "d", "e"]


def test_a_deletion_file_is_another_one_after_each_deletion(uri):
    dataset = create(uri, "a", "b", "c")
    seen = []
    for offset in (0, 1):
        dataset = delete(dataset, 0, [offset])
        file = dataset.get_fragments()[0].metadata.deletion_file
        assert file is not None
        seen.append((file.read_version, file.id))
    assert seen[0] != seen[1]
