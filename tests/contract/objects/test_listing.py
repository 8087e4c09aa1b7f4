"""What a listing shows, and what it never shows."""

from pathlib import Path

import obstore
import pytest
from obstore.exceptions import GenericError
from obstore.store import LocalStore, from_url


def listed(store, prefix: str | None = None) -> list[str]:
    return sorted(each["path"] for batch in obstore.list(store, prefix) for each in batch)


def fill(store, *paths: str) -> None:
    for each in paths:
        obstore.put(store, each, b"x")


def test_a_listing_shows_every_object_below_the_store(store):
    fill(store, "a", "b/c", "b/d/e")

    assert listed(store) == ["a", "b/c", "b/d/e"]


def test_a_prefix_is_a_directory_not_the_beginning_of_a_name(store):
    fill(store, "b/c", "b/d/e", "bc")

    assert listed(store, "b") == listed(store, "b/") == ["b/c", "b/d/e"]


def test_the_beginning_of_a_name_lists_nothing(store):
    fill(store, "b/cat")

    assert listed(store, "b/c") == []


def test_an_object_is_not_listed_under_its_own_name(store):
    fill(store, "b/c")

    assert listed(store, "b/c") == []


def test_a_missing_prefix_lists_nothing(store):
    assert listed(store, "missing") == []


def test_listed_paths_can_be_read_back(store):
    fill(store, "with space/ü %2F#?.json")

    [path] = listed(store, "with space")

    assert bytes(obstore.get(store, path).bytes()) == b"x"


def test_a_put_is_listed_at_once(store):
    fill(store, "a/1")
    before = listed(store, "a")
    fill(store, "a/2")

    assert (before, listed(store, "a")) == (["a/1"], ["a/1", "a/2"])


def test_a_removed_object_is_not_listed(store):
    fill(store, "a/1", "a/2")
    obstore.delete(store, "a/1")

    assert listed(store, "a") == ["a/2"]


def test_listing_one_level_tells_directories_from_objects(store):
    fill(store, "a/1", "a/b/2")

    found = obstore.list_with_delimiter(store, "a")

    assert [each["path"] for each in found["objects"]] == ["a/1"]
    assert list(found["common_prefixes"]) == ["a/b"]


def test_a_listing_of_several_batches_is_complete(store):
    names = [f"a/{number:03}" for number in range(60)]
    fill(store, *reversed(names))

    assert len(list(obstore.list(store, "a"))) > 1
    assert listed(store, "a") == names


def test_a_half_written_object_on_disk_is_not_listed(local, tmp_path):
    # obstore writes "<name>#<number>" and renames.
    (tmp_path / "objects" / "sidecar.json#1").write_text("half")

    assert listed(local) == []


def test_empty_directories_on_disk_are_not_objects(local, tmp_path):
    (tmp_path / "objects" / "empty").mkdir()

    assert listed(local) == []


def test_a_store_on_disk_needs_its_directory_or_leave_to_make_it(tmp_path):
    with pytest.raises(GenericError, match="Unable to canonicalize filesystem root"):
        LocalStore(tmp_path / "missing")
    assert isinstance(LocalStore(tmp_path / "made", mkdir=True), LocalStore)
    assert Path(tmp_path / "made").is_dir()


def test_listing_a_missing_bucket_is_an_error_not_an_empty_list(s3_bucket):
    with pytest.raises(GenericError, match="NoSuchBucket"):
        listed(from_url(f"s3://{s3_bucket}-missing"))


def test_reading_from_a_missing_bucket_looks_like_a_missing_object(s3_bucket):
    with pytest.raises(FileNotFoundError, match="NoSuchBucket"):
        obstore.get(from_url(f"s3://{s3_bucket}-missing"), "a")


def test_obstores_own_errors_are_not_oserrors():
    assert not issubclass(obstore.exceptions.BaseError, OSError)
