"""Which files versions name, and what becomes of a table when old versions are removed."""

from pathlib import Path

import lance
import pyarrow as pa
import pytest
from lance import LanceDataset, LanceOperation
from lance.dataset import Transaction
from lance.fragment import write_fragments

from tests.contract.lance.builders import SCHEMA, commit, create, keys_of, rows


@pytest.fixture
def uri(tmp_path: Path) -> str:
    return str(tmp_path / "table.lance")


def version_file(uri: str, version: int) -> Path:
    return Path(uri, "_versions", f"{(1 << 64) - 1 - version:020}.manifest")


def append(dataset: LanceDataset, *keys: str) -> LanceDataset:
    return commit(
        dataset, LanceOperation.Append(write_fragments(rows(*keys), dataset, mode="append"))
    )


def overwrite(dataset: LanceDataset, *keys: str) -> LanceDataset:
    fragments = write_fragments(rows(*keys), dataset, mode="append")
    return commit(dataset, LanceOperation.Overwrite(SCHEMA, fragments))


def tracked(dataset: LanceDataset) -> dict[int, set[str]]:
    """By version, the paths of the files that it names."""
    found: dict[int, set[str]] = {}
    for row in dataset.tracked_files().read_all().to_pylist():
        found.setdefault(row["version"], set()).add(f"{row['base_uri']}/{row['path']}")
    return found


def stored(uri: str) -> set[str]:
    """The files of a table, without the hints for the newest version and the names of branches."""
    every = {str(path) for path in Path(uri).rglob("*") if path.is_file()}
    return {path for path in every if "hint" not in path and "/_refs/" not in path}


def test_the_files_of_all_versions_of_main_are_listed(uri: str) -> None:
    table = append(create(uri, "a", "b"), "c")
    table.create_scalar_index("key", "BTREE")
    table = lance.dataset(uri)
    table.delete("key = 'a'")
    table = lance.dataset(uri)
    listed = tracked(table)
    assert sorted(listed) == [1, 2, 3, 4]
    assert set().union(*listed.values()) == stored(uri)
    assert any("_deletions" in path for path in listed[4] - listed[3])
    assert any("_indices" in path for path in listed[3] - listed[2])


def test_a_branch_lists_the_files_that_it_shares_where_they_are(uri: str) -> None:
    table = create(uri, "a", "b")
    table.delete("key = 'a'")
    table = lance.dataset(uri)
    table.create_branch("draft", (None, table.version))
    draft = append(lance.dataset(uri).checkout_version(("draft", None)), "c")
    shared = {path for path in tracked(draft)[draft.version] if "/tree/" not in path}
    main = tracked(lance.dataset(uri))[table.version]
    assert shared == {path for path in main if "/data/" in path or "/_deletions/" in path}


def test_indexes_that_a_branch_shares_are_left_out_of_its_files(uri: str) -> None:
    table = create(uri, "a", "b")
    table.create_scalar_index("key", "BTREE")
    table = lance.dataset(uri)
    table.create_branch("draft", (None, table.version))
    draft = lance.dataset(uri).checkout_version(("draft", None))
    assert not any("_indices" in path for path in tracked(draft)[draft.version])
    (index,) = draft.describe_indices()
    (segment,) = index.segments
    assert segment.base_id is not None
    assert draft.base_paths()[segment.base_id].path == uri
    assert Path(uri, "_indices", segment.uuid).is_dir()


def test_a_detached_version_is_a_file_of_its_own_kind_and_its_files_are_not_listed(
    uri: str,
) -> None:
    table = create(uri, "a")
    fragments = write_fragments(rows("b"), table, mode="append")
    transaction = Transaction(table.version, LanceOperation.Append(fragments))
    detached = LanceDataset.commit(table, transaction, detached=True)
    assert Path(uri, "_versions", f"d{detached.version}.manifest").is_file()
    assert list(tracked(lance.dataset(uri))) == [1]
    assert list(tracked(detached)) == [1]


def test_large_values_lie_in_a_folder_that_has_the_name_of_their_data_file(uri: str) -> None:
    schema = pa.schema([pa.field("key", pa.string()), lance.blob_field("value")])
    table = pa.table([pa.array(["a"]), lance.blob_array([b"x" * 300_000])], schema=schema)
    lance.write_dataset(table, uri, enable_stable_row_ids=True, data_storage_version="2.2")
    (data,) = Path(uri, "data").glob("*.lance")
    (blob,) = Path(uri, "data").glob("*/*.blob")
    assert blob.parent == data.with_suffix("")
    assert not any("blob" in path for path in tracked(lance.dataset(uri))[1])


def test_other_versions_stay_readable_when_some_are_removed(uri: str) -> None:
    table = create(uri, "a")
    for key in "bcde":
        table = append(table, key)
    for version in (1, 3, 4):
        version_file(uri, version).unlink()
    assert keys_of(lance.dataset(uri)) == ["a", "b", "c", "d", "e"]
    assert keys_of(lance.dataset(uri, version=2)) == ["a", "b"]
    assert sorted(tracked(lance.dataset(uri))) == [2, 5]
    assert keys_of(append(lance.dataset(uri), "f"))[-1] == "f"
    with pytest.raises(ValueError, match="was not found"):
        lance.dataset(uri, version=3)


def test_a_branch_needs_neither_the_version_it_started_from_nor_its_own_first_one(
    uri: str,
) -> None:
    table = append(create(uri, "a"), "b")
    table.create_branch("draft", (None, 2))
    draft = append(lance.dataset(uri).checkout_version(("draft", None)), "c")
    append(lance.dataset(uri), "d")
    version_file(uri, 2).unlink()
    version_file(f"{uri}/tree/draft", 2).unlink()
    main = lance.dataset(uri)
    draft = main.checkout_version(("draft", None))
    assert keys_of(draft) == ["a", "b", "c"]
    assert keys_of(append(draft, "e")) == ["a", "b", "c", "e"]
    main.create_branch("second", ("draft", 3))
    assert keys_of(lance.dataset(uri).checkout_version(("second", None))) == ["a", "b", "c"]
    lance.dataset(uri).branches.delete("second")
    lance.dataset(uri).branches.delete("draft")
    assert keys_of(lance.dataset(uri)) == ["a", "b", "d"]


def test_an_overwrite_takes_the_number_of_a_version_that_was_removed(uri: str) -> None:
    stale = create(uri, "a")
    table = overwrite(stale, "b")
    table = overwrite(table, "c")
    version_file(uri, 2).unlink()
    assert overwrite(stale, "late").version == 2
    assert keys_of(lance.dataset(uri)) == ["c"]


def test_a_stale_append_lands_on_the_newest_version_whatever_was_removed(uri: str) -> None:
    stale = create(uri, "a")
    table = append(append(stale, "b"), "c")
    version_file(uri, 2).unlink()
    assert append(stale, "late").version == table.version + 1


def test_restoring_a_version_needs_only_that_one(uri: str) -> None:
    table = append(append(create(uri, "a"), "b"), "c")
    version_file(uri, 1).unlink()
    restored = commit(table, LanceOperation.Restore(2))
    assert keys_of(restored) == ["a", "b"]
