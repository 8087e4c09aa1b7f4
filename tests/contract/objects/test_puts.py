"""Writing, conditionally writing and removing one object."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Final

import obstore
import pytest
from obstore.exceptions import AlreadyExistsError, GenericError, PreconditionError

RACERS: Final = 8
ROUNDS: Final = 5


def content(store, path: str) -> bytes:
    return bytes(obstore.get(store, path).bytes())


# Put if absent.


def test_a_put_to_a_free_name_creates_it(store):
    obstore.put(store, "a/b", b"one", mode="create")

    assert content(store, "a/b") == b"one"


def test_a_put_if_absent_to_a_taken_name_is_refused_and_changes_nothing(store):
    obstore.put(store, "a/b", b"one", mode="create")

    with pytest.raises(AlreadyExistsError):
        obstore.put(store, "a/b", b"two", mode="create")
    assert content(store, "a/b") == b"one"


def test_racing_puts_if_absent_have_exactly_one_winner(store):
    start = Barrier(RACERS)

    def contend(path: str, number: int) -> int | None:
        start.wait()
        try:
            obstore.put(store, path, str(number).encode(), mode="create")
        except AlreadyExistsError:
            return None
        return number

    with ThreadPoolExecutor(RACERS) as threads:
        for turn in range(ROUNDS):
            path = f"race/{turn}"
            outcomes = threads.map(contend, [path] * RACERS, range(RACERS))
            winners = [each for each in outcomes if each is not None]
            assert [content(store, path)] == [str(each).encode() for each in winners]


def test_a_removed_name_is_free_again(store):
    obstore.put(store, "a", b"one", mode="create")
    obstore.delete(store, "a")
    obstore.put(store, "a", b"two", mode="create")

    assert content(store, "a") == b"two"


def test_a_plain_put_replaces(store):
    obstore.put(store, "a", b"one")
    obstore.put(store, "a", b"two")

    assert content(store, "a") == b"two"


def test_an_empty_object_is_an_object(store):
    obstore.put(store, "a", b"", mode="create")

    assert content(store, "a") == b""


def test_an_object_may_not_be_named_like_a_directory_on_disk(local):
    obstore.put(local, "a/b", b"")

    with pytest.raises(GenericError, match="Is a directory"):
        obstore.put(local, "a", b"")


# Update by etag.


def test_an_update_with_the_current_etag_lands(conditional):
    first = obstore.put(conditional, "a", b"one")
    assert first["e_tag"] is not None

    obstore.put(conditional, "a", b"two", mode={"e_tag": first["e_tag"]})

    assert content(conditional, "a") == b"two"


def test_an_update_with_a_stale_etag_is_refused_and_changes_nothing(conditional):
    first = obstore.put(conditional, "a", b"one")
    obstore.put(conditional, "a", b"two")
    assert first["e_tag"] is not None

    with pytest.raises(PreconditionError):
        obstore.put(conditional, "a", b"three", mode={"e_tag": first["e_tag"]})
    assert content(conditional, "a") == b"two"


def test_an_update_of_a_removed_object_is_refused(conditional):
    first = obstore.put(conditional, "a", b"one")
    obstore.delete(conditional, "a")
    assert first["e_tag"] is not None

    with pytest.raises(PreconditionError):
        obstore.put(conditional, "a", b"two", mode={"e_tag": first["e_tag"]})


def test_an_update_by_etag_is_not_implemented_on_disk(local):
    first = obstore.put(local, "a", b"one")
    assert first["e_tag"] is not None

    with pytest.raises(NotImplementedError, match=r"PutMode::Update"):
        obstore.put(local, "a", b"two", mode={"e_tag": first["e_tag"]})


def test_the_answer_of_a_put_cannot_be_passed_back_whole(store):
    answer = obstore.put(store, "a", b"one")

    # It holds `version: None`, which an update mode may not.
    with pytest.raises(TypeError, match="'None' is not an instance of 'str'"):
        obstore.put(store, "a", b"two", mode=answer)  # type: ignore[arg-type]


def test_the_same_content_has_the_same_etag_on_s3(s3):
    first = obstore.put(s3, "a", b"one")
    obstore.put(s3, "a", b"two")
    again = obstore.put(s3, "a", b"one")

    # So an etag cannot tell "unchanged" from "changed and changed back".
    assert again["e_tag"] == first["e_tag"]


# Read and remove.


def test_reading_a_missing_object_is_a_filenotfounderror(store):
    with pytest.raises(FileNotFoundError):
        obstore.get(store, "a")


def test_asking_about_a_missing_object_is_a_filenotfounderror(store):
    with pytest.raises(FileNotFoundError):
        obstore.head(store, "a")


def test_removing_a_missing_object_on_disk_is_a_filenotfounderror(local):
    with pytest.raises(FileNotFoundError):
        obstore.delete(local, "a")


def test_removing_a_missing_object_on_s3_or_in_memory_is_silent(conditional):
    obstore.delete(conditional, "a")


# Copy and rename.


@pytest.mark.parametrize("move", [obstore.copy, obstore.rename])
def test_copy_and_rename_can_spare_a_taken_name_on_disk_and_in_memory(renaming, move):
    obstore.put(renaming, "source", b"one")
    obstore.put(renaming, "target", b"two")

    with pytest.raises(AlreadyExistsError):
        move(renaming, "source", "target", overwrite=False)
    assert (content(renaming, "source"), content(renaming, "target")) == (b"one", b"two")


@pytest.mark.parametrize("move", [obstore.copy, obstore.rename])
def test_copy_and_rename_to_a_free_name_work_on_disk_and_in_memory(renaming, move):
    obstore.put(renaming, "source", b"one")

    move(renaming, "source", "target", overwrite=False)

    assert content(renaming, "target") == b"one"


@pytest.mark.parametrize("move", [obstore.copy, obstore.rename])
def test_copy_and_rename_cannot_spare_a_taken_name_on_s3(s3, move):
    obstore.put(s3, "source", b"one")

    with pytest.raises(obstore.exceptions.NotSupportedError, match="copy-if-not-exists"):
        move(s3, "source", "target", overwrite=False)


@pytest.mark.parametrize("move", [obstore.copy, obstore.rename])
def test_copy_and_rename_replace_by_default(store, move):
    obstore.put(store, "source", b"one")
    obstore.put(store, "target", b"two")

    move(store, "source", "target")

    assert content(store, "target") == b"one"


@pytest.mark.parametrize("move", [obstore.copy, obstore.rename])
def test_copy_and_rename_of_a_missing_object_are_a_filenotfounderror(store, move):
    with pytest.raises(FileNotFoundError):
        move(store, "source", "target")
