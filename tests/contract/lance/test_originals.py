"""What the import of graphs of the Rust releases relies on (storage/originals.py)."""

from dataclasses import replace
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from lance import DatasetBasePath, LanceDataset, LanceOperation
from lance.fragment import DataFile, DeletionFile

from tests.support.originals import RELEASES, unpack

PERSON = "nodes/40d76f1f51639ec0"
PAPER = "nodes/da89d00e1b71df59"
KNOWS = "edges/602a25a3bd0b455b"


@pytest.fixture(params=RELEASES)
def root(request, tmp_path):
    return unpack(f"{request.param}/graph", tmp_path)


def branch(root: Path, location: str, ref: str) -> LanceDataset:
    return lance.dataset(str(root / location)).checkout_version((ref, None))


def rebased(handle: LanceDataset, root: Path, location: str, ref: str):
    """The fragments of a branch with their files in folders below this root, and those folders."""
    folders: dict[int | None, str] = {None: f"{location}/tree/{ref}"}
    folders |= {
        number: location + base.path.rpartition(f"/{location}")[2]
        for number, base in handle.base_paths().items()
    }
    numbers = {number: place for place, number in enumerate(folders, 1)}
    bases = [
        DatasetBasePath(str(root / folder), None, True, numbers[number])  # noqa: FBT003
        for number, folder in folders.items()
    ]
    fragments = [_moved(fragment.metadata, numbers) for fragment in handle.get_fragments()]
    return fragments, bases


def _moved(fragment, numbers):
    files = [
        DataFile(
            file.path,
            file.fields,
            file.column_indices,
            file.file_major_version,
            file.file_minor_version,
            file.file_size_bytes,
            numbers[file.base_id],
        )
        for file in fragment.files
    ]
    deletions = fragment.deletion_file
    if deletions is not None:
        deletions = DeletionFile(
            read_version=deletions.read_version,
            id=deletions.id,
            file_type=deletions.file_type,
            num_deleted_rows=deletions.num_deleted_rows,
            base_id=numbers[deletions.base_id],
        )
    return replace(fragment, files=files, deletion_file=deletions)


def without_ids(fragment):
    return replace(
        fragment,
        row_id_meta=None,
        created_at_version_meta=None,
        last_updated_at_version_meta=None,
    )


def described(handle, root, location, ref, scratch):
    fragments, bases = rebased(handle, root, location, ref)
    create = LanceOperation.Overwrite(handle.lance_schema, [], initial_bases=bases)
    made = LanceDataset.commit(str(scratch), create)
    operation = LanceOperation.Merge(list(map(without_ids, fragments)), handle.lance_schema)
    return LanceDataset.commit(made, operation, read_version=made.version)


def test_a_branch_names_the_folder_where_it_was_made(root):
    handle = branch(root, PERSON, "draft")
    [base] = handle.base_paths().values()
    assert base.path.startswith("/srv/omnigraph/")
    assert base.path.endswith(f"/graph.omni/{PERSON}")
    assert base.is_dataset_root


def test_a_moved_branch_is_opened_and_its_rows_are_not_found(root):
    handle = branch(root, PERSON, "draft")
    assert handle.count_rows() == 42
    with pytest.raises(Exception, match=r"(?i)not found"):
        handle.to_table()


def test_a_version_described_again_has_its_rows_and_fragment_numbers(root, tmp_path):
    handle = branch(root, KNOWS, "review/1")
    assert any(fragment.metadata.deletion_file for fragment in handle.get_fragments())
    again = described(handle, root, KNOWS, "review/1", tmp_path / "scratch")
    assert again.count_rows() == again.to_table().num_rows == handle.count_rows()
    numbers = [fragment.fragment_id for fragment in handle.get_fragments()]
    assert [fragment.fragment_id for fragment in again.get_fragments()] == numbers


def test_a_version_described_again_keeps_the_numbers_of_columns(root, tmp_path):
    """A list has a number of its own and one of its items, so numbers have gaps."""
    handle = branch(root, PERSON, "draft")
    again = described(handle, root, PERSON, "draft", tmp_path / "scratch")
    tags = {row["id"]: row["tags"] for row in again.to_table().to_pylist()}
    assert tags["p00"] == []
    assert tags["Ann"] is None
    assert any(tags.values())


def test_an_overwrite_refuses_fragments_with_deletions(root, tmp_path):
    handle = branch(root, KNOWS, "review/1")
    fragments, bases = rebased(handle, root, KNOWS, "review/1")
    whole = list(map(without_ids, fragments))
    operation = LanceOperation.Overwrite(handle.lance_schema, whole, initial_bases=bases)
    with pytest.raises(OSError, match="deletion"):
        LanceDataset.commit(str(tmp_path / "scratch"), operation)


def test_a_merge_refuses_new_fragments_with_row_ids(root, tmp_path):
    handle = branch(root, PERSON, "draft")
    fragments, bases = rebased(handle, root, PERSON, "draft")
    create = LanceOperation.Overwrite(handle.lance_schema, [], initial_bases=bases)
    made = LanceDataset.commit(str(tmp_path / "scratch"), create, enable_stable_row_ids=True)
    operation = LanceOperation.Merge(fragments, handle.lance_schema)
    with pytest.raises(OSError, match="row id"):
        LanceDataset.commit(made, operation, read_version=made.version)


def test_a_datetime_of_a_rust_release_is_milliseconds_in_a_type_for_days(root):
    rows = lance.dataset(str(root / PAPER)).to_table(filter="id = '10.1/0'")
    assert rows.schema.field("seen").type == pa.date64()
    milliseconds = rows["seen"].cast(pa.int64())[0].as_py()
    assert milliseconds % 86_400_000 == 10 * 3_600_000
