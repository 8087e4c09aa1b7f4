"""Native refs: what a branch of a table shares, what it does not, and where the traps are."""

import pickle
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Final

import lance
import pyarrow as pa
import pytest
from lance import LanceDataset, LanceOperation
from lance.dataset import Transaction
from lance.fragment import write_fragments

from omnigraph.storage.lance_messages import parse_message, serialize_part
from tests.contract.lance.builders import (
    append,
    commit,
    create,
    create_index,
    delete,
    fragments_of,
    keys_of,
    overwrite,
    rows,
    staged,
    upsert,
)

RACERS: Final = 4
BASE_PATHS: Final = 18
PATH: Final = 4


def versions_of(dataset: LanceDataset) -> list[int]:
    return [each["version"] for each in dataset.versions()]


def branch_of(uri: str, name: str = "draft") -> LanceDataset:
    return lance.dataset(uri).checkout_version((name, None))


def shared_paths(dataset: LanceDataset) -> list[str]:
    return sorted(each.path for each in dataset.base_paths().values())


def test_a_branch_starts_at_the_version_number_of_its_source(anywhere):
    main = create(anywhere, "a")
    for key in ("b", "c"):
        main = commit(main, append(main, key))

    branch = main.create_branch("draft", 2)

    assert (branch.version, keys_of(branch)) == (2, ["a", "b"])
    assert versions_of(branch) == [2]


def test_creating_a_branch_copies_no_data(uri):
    create(uri, "a").create_branch("draft", 1)

    assert not (Path(uri) / "tree" / "draft" / "data").exists()


def test_a_branch_and_main_move_apart(anywhere):
    main = create(anywhere, "a")
    branch = main.create_branch("draft", 1)
    commit(branch, append(branch, "theirs"))
    commit(main, append(main, "ours"))

    assert keys_of(lance.dataset(anywhere)) == ["a", "ours"]
    assert keys_of(branch_of(anywhere)) == ["a", "theirs"]


def test_a_branch_may_start_from_another_branch(anywhere):
    branch = create(anywhere, "a").create_branch("draft", 1)
    branch = commit(branch, append(branch, "b"))

    lance.dataset(anywhere).create_branch("second", ("draft", 2))

    assert keys_of(branch_of(anywhere, "second")) == ["a", "b"]


def test_a_number_checks_out_a_version_of_the_handles_own_branch(uri):
    main = create(uri, "a")
    branch = main.create_branch("draft", 1)
    branch = commit(branch, append(branch, "theirs"))
    commit(main, append(main, "ours"))

    assert keys_of(branch.checkout_version(2)) == ["a", "theirs"]


def test_the_latest_version_is_that_of_the_handles_own_branch(uri):
    main = create(uri, "a")
    branch = main.create_branch("draft", 1)
    commit(branch, append(branch, "b"))

    assert branch.latest_version == 2
    assert main.latest_version == 1


def test_listing_branches_tells_parent_and_version(uri):
    main = create(uri, "a")
    main = commit(main, append(main, "b"))
    main.create_branch("draft", 1)
    main.create_branch("second", ("draft", 1))

    listed = lance.dataset(uri).branches.list()

    assert sorted(listed) == ["draft", "second"]
    assert (listed["draft"]["parent_branch"], listed["draft"]["parent_version"]) == (None, 1)
    assert listed["second"]["parent_branch"] == "draft"


def test_a_branch_is_not_opened_by_name_but_by_checkout(uri):
    create(uri, "a").create_branch("draft", 1)

    with pytest.raises(OSError, match="version must be an integer or a string"):
        lance.dataset(uri, version=("draft", 1))  # type: ignore[arg-type]


def test_inherited_rows_can_be_updated_and_deleted_on_a_branch(anywhere):
    branch = create(anywhere, "a", "b", "c").create_branch("draft", 1)
    branch = commit(branch, upsert(branch, "a", value=7))
    branch = commit(branch, delete(branch, "b"))

    changed = branch_of(anywhere).to_table(columns=["key", "value"]).to_pylist()

    assert changed == [{"key": "c", "value": 0}, {"key": "a", "value": 7}]
    assert lance.dataset(anywhere).to_table()["value"].to_pylist() == [0, 0, 0]


def test_an_inherited_index_answers_rightly_after_changes_on_a_branch(anywhere):
    main = create(anywhere, "a", "b", "c")
    main = commit(main, create_index(main))
    branch = main.create_branch("draft", 2)
    branch = commit(branch, upsert(branch, "a", value=7))

    found = branch_of(anywhere).to_table(filter="key = 'a'").to_pylist()

    assert found == [{"key": "a", "value": 7}]


# Names.


@pytest.mark.parametrize("name", ["draft", "review/x", "a.b-c_d", "ünï", "HEAD", "-dash"])
def test_a_branch_may_be_called(uri, name):
    create(uri, "a").create_branch(name, 1)

    assert keys_of(branch_of(uri, name)) == ["a"]


@pytest.mark.parametrize(
    "name",
    ["", "main", "a b", "a@b", "a..b", "a\\b", "/a", "a/", "a//b", "a.lock"],
)
def test_a_branch_may_not_be_called(uri, name):
    with pytest.raises(OSError, match="Ref is invalid"):
        create(uri, "a").create_branch(name, 1)


# Refusals.


def test_creating_an_existing_branch_is_an_oserror_that_does_not_say_so(anywhere):
    main = create(anywhere, "a")
    main.create_branch("draft", 1)

    with pytest.raises(OSError, match="Clone operation should not enter build_manifest"):
        main.create_branch("draft", 1)


def test_creating_an_existing_branch_from_another_version_claims_the_version_is_missing(uri):
    main = create(uri, "a")
    main = commit(main, append(main, "b"))
    main.create_branch("draft", 2)

    with pytest.raises(OSError, match=r"tree/draft/_versions/1\.manifest was not found"):
        main.create_branch("draft", 1)


def test_a_failed_creation_leaves_the_existing_branch_as_it_was(uri):
    branch = create(uri, "a").create_branch("draft", 1)
    commit(branch, append(branch, "b"))

    with pytest.raises(OSError, match="Clone operation"):
        lance.dataset(uri).create_branch("draft", 1)
    assert keys_of(branch_of(uri)) == ["a", "b"]


def test_racing_creators_of_a_branch_have_exactly_one_winner(anywhere):
    create(anywhere, "a")
    start = Barrier(RACERS)

    def contend(_number: int) -> bool:
        main = lance.dataset(anywhere)
        start.wait()
        try:
            main.create_branch("draft", 1)
        except OSError:
            return False
        return True

    with ThreadPoolExecutor(RACERS) as threads:
        assert sum(threads.map(contend, range(RACERS))) == 1
    assert keys_of(branch_of(anywhere)) == ["a"]


def test_creating_a_branch_at_a_missing_version_is_an_oserror(uri):
    main = create(uri, "a")

    with pytest.raises(OSError, match="was not found"):
        main.create_branch("draft", 99)
    assert main.branches.list() == {}


def test_deleting_a_missing_branch_is_a_valueerror(uri):
    with pytest.raises(ValueError, match="Ref not found error: Branch draft does not exist"):
        create(uri, "a").branches.delete("draft")


def test_deleting_main_is_refused(uri):
    with pytest.raises(OSError, match='"main" is reserved'):
        create(uri, "a").branches.delete("main")


def test_deleting_a_branch_that_another_builds_on_is_refused(uri):
    main = create(uri, "a")
    main.create_branch("draft", 1)
    main.create_branch("second", ("draft", 1))

    with pytest.raises(OSError, match="Ref conflict error: Branch draft is referenced by"):
        main.branches.delete("draft")


def test_checking_out_a_missing_branch_is_a_valueerror(anywhere):
    with pytest.raises(ValueError, match=r"Not found: .*tree/draft/_versions"):
        create(anywhere, "a").checkout_version(("draft", None))


def test_checking_out_a_version_of_a_missing_branch_is_an_oserror(anywhere):
    with pytest.raises(OSError, match="was not found"):
        create(anywhere, "a").checkout_version(("draft", 1))


# Traps.


def test_a_checked_out_branch_reports_the_uri_of_main(uri):
    created = create(uri, "a").create_branch("draft", 1)

    assert created.uri == f"{uri}/tree/draft"
    assert branch_of(uri).uri == uri


def test_fragments_written_through_a_branch_handle_land_in_the_branch(uri):
    create(uri, "a").create_branch("draft", 1)

    [fragment] = staged(branch_of(uri), "b")

    assert (Path(uri) / "tree" / "draft" / "data" / fragment.files[0].path).exists()


def test_fragments_written_to_a_checked_out_branchs_uri_land_in_main(uri):
    create(uri, "a").create_branch("draft", 1)

    [fragment] = write_fragments(rows("b"), branch_of(uri).uri, mode="append")

    assert (Path(uri) / "data" / fragment.files[0].path).exists()


def test_a_pickled_branch_handle_looks_for_the_branchs_files_in_main(uri):
    branch = create(uri, "a").create_branch("draft", 1)
    commit(branch, append(branch, "b"))

    back = pickle.loads(pickle.dumps(branch_of(uri)))

    assert back.uri == uri
    with pytest.raises(pa.ArrowInvalid, match="Not found"):
        keys_of(back)


def test_deleting_a_branch_leaves_a_zombie_while_a_longer_name_exists(uri):
    main = create(uri, "a")
    main.create_branch("review", 1)
    main.create_branch("review/x", 1)
    main.branches.delete("review")

    assert sorted(main.branches.list()) == ["review/x"]
    assert keys_of(branch_of(uri, "review")) == ["a"]
    with pytest.raises(OSError, match="Clone operation"):
        main.create_branch("review", 1)


def test_a_zombie_goes_with_the_longer_name(uri):
    main = create(uri, "a")
    main.create_branch("review", 1)
    main.create_branch("review/x", 1)
    main.branches.delete("review")
    main.branches.delete("review/x")

    assert keys_of(main.create_branch("review", 1)) == ["a"]


def test_a_branch_knows_the_whole_paths_of_the_tables_it_shares_files_with(anywhere):
    main = create(anywhere, "a")
    draft = main.create_branch("draft", 1)
    draft = commit(draft, append(draft, "b"))
    second = draft.create_branch("second", draft.version)

    assert shared_paths(main) == []
    assert shared_paths(draft) == [anywhere]
    assert shared_paths(second) == [anywhere, f"{anywhere}/tree/draft"]


def test_a_moved_table_loses_its_branches_but_not_main(uri, tmp_path):
    create(uri, "a").create_branch("draft", 1)
    Path(uri).rename(tmp_path / "moved")

    moved = lance.dataset(str(tmp_path / "moved"))

    assert keys_of(moved) == ["a"]
    with pytest.raises(pa.ArrowInvalid, match="Not found"):
        keys_of(moved.checkout_version(("draft", None)))


def test_a_branch_of_a_copied_table_reads_the_files_of_the_original(uri, tmp_path):
    create(uri, "a").create_branch("draft", 1)
    copy = shutil.copytree(uri, tmp_path / "copy")
    shutil.rmtree(copy / "data")

    assert keys_of(branch_of(str(copy))) == ["a"]


def moved_paths(manifest: bytes, before: str, after: str) -> bytes:
    """The message of a manifest, with other base paths."""

    def moved(number: int, value: int | bytes, paths: int) -> bytes:
        if isinstance(value, bytes) and number == paths:
            value = (
                value.replace(before.encode(), after.encode())
                if paths == PATH
                else b"".join(moved(*part, PATH) for part in parse_message(value))
            )
        return serialize_part((number, value))

    return b"".join(moved(*part, BASE_PATHS) for part in parse_message(manifest))


@pytest.fixture
def carried(uri: str, tmp_path: Path) -> tuple[str, LanceDataset]:
    """A table that was moved, and a handle of its second branch, which has a new manifest."""
    main = create(uri, "a", "b", "c")
    main = commit(main, create_index(main))
    main = commit(main, delete(main, "c"))
    first = cloned(uri, "first", main.version)
    first = commit(first, append(first, "d"))
    cloned(uri, "second", first.version, source="first")
    there = str(Path(uri).rename(tmp_path / "moved"))
    stored = lance.dataset(f"{there}/tree/second")
    message = stored.__reduce__()[1][3]
    assert moved_paths(message, there, there) == message
    handle = LanceDataset(
        f"{there}/tree/second",
        serialized_manifest=moved_paths(message, uri, there),
        session=stored.session(),
    )
    return there, handle


def test_a_handle_is_made_of_a_manifest_with_other_base_paths(carried):
    there, handle = carried

    assert shared_paths(handle) == [there, f"{there}/tree/first"]
    assert handle.version == lance.dataset(f"{there}/tree/second").version
    assert keys_of(handle) == ["a", "b", "d"]
    assert keys_of_filter(handle, "key = 'b'") == ["b"]
    assert keys_of_filter(handle, "key = 'c'") == []


def test_commits_through_a_handle_with_other_base_paths_store_them(carried):
    there, handle = carried
    handle = commit(handle, upsert(handle, "a", value=7, inserting="x"))
    handle = commit(handle, delete(handle, "d"))

    stored = lance.dataset(f"{there}/tree/second")
    assert shared_paths(stored) == [there, f"{there}/tree/first"]
    assert keys_of(stored) == keys_of(handle) == ["b", "a", "x"]


def test_a_checkout_and_a_restore_bring_the_stored_base_paths_back(carried, uri):
    _, handle = carried
    first = handle.version
    grown = commit(handle, append(handle, "x"))

    restored = commit(grown, LanceOperation.Restore(first))

    stored = [uri, f"{uri}/tree/first"]
    assert shared_paths(restored) == shared_paths(grown.checkout_version(first)) == stored


# A ref name used twice: why a writer asleep across a delete is dangerous.


def test_a_deleted_branch_can_be_created_again_with_other_rows(anywhere):
    main = create(anywhere, "a")
    branch = main.create_branch("draft", 1)
    commit(branch, append(branch, "old"))
    main.branches.delete("draft")
    main = commit(main, append(main, "b"))

    main.create_branch("draft", 2)

    assert keys_of(branch_of(anywhere)) == ["a", "b"]


def test_a_branch_created_again_has_another_identifier(uri):
    main = create(uri, "a")
    main.create_branch("draft", 1)
    before = main.branches.list()["draft"]["branch_identifier"]
    main.branches.delete("draft")
    main.create_branch("draft", 1)

    assert main.branches.list()["draft"]["branch_identifier"] != before


def test_a_commit_through_the_handle_of_a_deleted_branch_is_accepted(anywhere):
    main = create(anywhere, "a")
    branch = main.create_branch("draft", 1)
    main.branches.delete("draft")

    commit(branch, overwrite(branch, "ghost"))

    assert main.branches.list() == {}
    assert keys_of(branch_of(anywhere)) == ["ghost"]


def test_a_commit_after_a_branch_was_deleted_blocks_its_name_for_good(anywhere):
    main = create(anywhere, "a")
    branch = main.create_branch("draft", 1)
    main.branches.delete("draft")
    commit(branch, overwrite(branch, "ghost"))

    with pytest.raises(OSError, match="was not found"):
        main.create_branch("draft", 1)
    with pytest.raises(ValueError, match="does not exist"):
        main.branches.delete("draft")


def test_a_strict_overwrite_does_not_notice_that_its_branch_was_created_again(anywhere):
    main = create(anywhere, "a")
    branch = main.create_branch("draft", 1)
    branch = commit(branch, append(branch, "old"))
    other = main.create_branch("other", 1)
    commit(other, append(other, "precious"))
    main.branches.delete("draft")
    main.create_branch("draft", ("other", 2))

    commit(branch, overwrite(branch, "late"))

    assert keys_of(branch_of(anywhere)) == ["late"]


def test_work_staged_before_a_branch_was_created_again_makes_it_unreadable(anywhere):
    main = create(anywhere, "a")
    branch = main.create_branch("draft", 1)
    operation = append(branch, "late")
    main.branches.delete("draft")
    main.create_branch("draft", 1)

    commit(branch, operation)

    with pytest.raises(pa.ArrowInvalid, match="Not found"):
        keys_of(branch_of(anywhere))


def cloned(
    uri: str, name: str, version: int, *, source: str | None = None, path: str | None = None
) -> LanceDataset:
    """A branch that is committed as a clone, and that Lance does not register."""
    operation = LanceOperation.Clone(
        is_shallow=True,
        ref_name=source,
        ref_version=version,
        ref_path=path or (uri if source is None else f"{uri}/tree/{source}"),
        branch_name=name,
    )
    return LanceDataset.commit(
        f"{uri}/tree/{name}",
        Transaction(version, operation),
        max_retries=0,
        enable_stable_row_ids=True,
    )


def described(branch: LanceDataset) -> dict[str, object]:
    """All that distinguishes one branch of a version from another, apart from its name."""
    return {
        "version": branch.version,
        "versions": versions_of(branch),
        "rows": branch.to_table(columns=["key", "value", "_rowid"]).to_pylist(),
        "files": [[file.path for file in each.files] for each in fragments_of(branch)],
        "shared": shared_paths(branch),
        "indexes": sorted(each.name for each in branch.describe_indices()),
        "indexed": keys_of_filter(branch, "key = 'b'"),
        "storage": branch.data_storage_version,
    }


def keys_of_filter(branch: LanceDataset, text: str) -> list[str]:
    found: list[str] = branch.to_table(columns=["key"], filter=text)["key"].to_pylist()
    return found


def test_a_clone_committed_under_a_branchs_name_is_like_a_created_branch(anywhere):
    main = create(anywhere, "a", "b", "c")
    main = commit(main, create_index(main))
    main = commit(main, delete(main, "c"))
    main.create_branch("draft", main.version)

    cloned(anywhere, "clone", main.version)

    assert described(branch_of(anywhere, "clone")) == described(branch_of(anywhere))
    changed = branch_of(anywhere, "clone")
    changed = commit(changed, upsert(changed, "a", value=7, inserting="x"))
    assert keys_of(branch_of(anywhere, "clone")) == ["b", "a", "x"]
    assert keys_of(lance.dataset(anywhere)) == ["a", "b"]


def test_a_clone_may_start_from_a_clone_and_from_a_created_branch(anywhere):
    created = create(anywhere, "a").create_branch("draft", 1)
    commit(created, append(created, "b"))

    one = cloned(anywhere, "one", 2, source="draft")
    commit(one, append(one, "c"))
    two = cloned(anywhere, "two", 3, source="one")

    assert keys_of(branch_of(anywhere, "two")) == ["a", "b", "c"]
    commit(two, append(two, "d"))
    assert keys_of(branch_of(anywhere, "two")) == ["a", "b", "c", "d"]
    assert keys_of(branch_of(anywhere, "one")) == ["a", "b", "c"]


def test_files_written_through_a_clones_handle_belong_to_the_clone(uri):
    create(uri, "a")
    clone = cloned(uri, "clone", 1)
    commit(clone, append(clone, "b"))

    assert len(list((Path(uri) / "tree" / "clone" / "data").iterdir())) == 1
    assert len(list((Path(uri) / "data").iterdir())) == 1


@pytest.mark.parametrize(("source", "version"), [(None, 99), ("nowhere", 1)])
def test_a_clone_of_a_missing_version_is_an_oserror(uri, source, version):
    create(uri, "a")

    with pytest.raises(OSError, match="not found"):
        cloned(uri, "clone", version, source=source)
    with pytest.raises((OSError, ValueError)):
        branch_of(uri, "clone")


def test_a_clone_under_a_taken_name_is_refused(uri):
    branch = create(uri, "a").create_branch("draft", 1)
    commit(branch, append(branch, "b"))

    with pytest.raises(OSError, match="Clone operation should not enter build_manifest"):
        cloned(uri, "draft", 1)
    assert keys_of(branch_of(uri)) == ["a", "b"]


def test_a_clone_is_not_registered(uri):
    main = create(uri, "a")
    cloned(uri, "clone", 1)

    assert main.branches.list() == {}
    with pytest.raises(OSError, match="does not exist"):
        main.create_branch("second", ("clone", 1))
    with pytest.raises(ValueError, match="does not exist"):
        main.branches.delete("clone")


def test_a_branch_opened_in_its_own_folder_is_the_branch(anywhere):
    main = create(anywhere, "a")
    branch = main.create_branch("draft", 1)
    commit(branch, append(branch, "b"))
    commit(main, append(main, "c"))

    for version in (None, 2):
        opened = lance.dataset(f"{anywhere}/tree/draft", version=version)
        assert (opened.version, opened.latest_version, keys_of(opened)) == (2, 2, ["a", "b"])
    first = lance.dataset(f"{anywhere}/tree/draft", version=1)
    assert keys_of(first) == ["a"]
    # Others are checked out from it, of the branch and of main.
    assert keys_of(first.checkout_version(("draft", 2))) == ["a", "b"]
    assert keys_of(first.checkout_version((None, 2))) == ["a", "c"]
    grown = commit(opened, append(opened, "d"))
    assert (grown.version, keys_of(branch_of(anywhere))) == (3, ["a", "b", "d"])
