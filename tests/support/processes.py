"""Functions that child processes run in storage tests, at module level so that they pickle."""

import os
import resource
from collections.abc import Callable
from hashlib import sha256
from typing import Any, Final

from omnigraph.errors import OmnigraphError
from omnigraph.storage import staging
from omnigraph.storage.store import Store
from omnigraph.storage.tables import TableAddress
from tests.support.tables import LOCATION, applied, create, numbers, rows

UNPRIVILEGED: Final = 65_534


def contend_for_objects(barrier: Any, uri: str, mark: str, rounds: int) -> list[bool]:
    """Put the same objects if absent as the others, one per round; return which were ours."""
    objects = Store.open(uri).objects
    won = []
    for turn in range(rounds):
        barrier.wait(60)
        won.append(objects.put_if_absent(f"race/{turn}.json", mark.encode()))
    return won


def count_up(barrier: Any, uri: str, path: str, times: int) -> int:
    """Add one to a counter `times` times by conditional update; return the number of attempts."""
    objects = Store.open(uri).objects
    barrier.wait(60)
    return increment(objects, path, times)


def increment(objects: Any, path: str, times: int) -> int:
    """Like `count_up`, with the caller's own handle."""
    attempts = done = 0
    while done < times:
        attempts += 1
        assert attempts < 10_000, "updates starve"
        counter = objects.read(path)
        done += objects.update(path, str(int(counter.data) + 1).encode(), expecting=counter.tag)
    return attempts


def numbers_at(barrier: Any, address: TableAddress) -> dict[str, int | None]:
    """The content of the table at an address, read in this process."""
    barrier.wait(60)
    store = Store.open(address.root.uri)
    assert store.root == address.root
    table = store.tables.open(address.location, ref=address.ref, version=address.version)
    return numbers(table)


def attempts_without_rights(barrier: Any, practice_uri: str, uri: str) -> dict[str, str]:
    """Try all operations below `uri` as a user who owns no files; return how each ended.

    The same is done first below `practice_uri`, with all rights, because this user may not be able
    to read modules that Python imports late.
    """
    barrier.wait(60)
    _attempts(Store.open(practice_uri))
    if os.getuid() == 0:
        os.setgroups([])
        os.setgid(UNPRIVILEGED)
        os.setuid(UNPRIVILEGED)
    return _attempts(Store.open(uri))


def attempts_with_small_files_only(barrier: Any, uri: str, bytes_max: int) -> dict[str, str]:
    """Try all operations below `uri` with files limited to `bytes_max`."""
    barrier.wait(60)
    resource.setrlimit(resource.RLIMIT_FSIZE, (bytes_max, bytes_max))
    return _attempts(Store.open(uri))


def _attempts(store: Store) -> dict[str, str]:
    def append() -> None:
        table = store.tables.open_latest(LOCATION, ref=None)
        applied(staging.stage_append(table, rows(str(each) for each in range(10_000))))

    attempts: dict[str, Callable[[], object]] = {
        "read a table": lambda: store.tables.open_latest(LOCATION, ref=None).read(),
        "read an object": lambda: store.objects.read("objects/a"),
        "list": lambda: store.objects.list(""),
        "put": lambda: store.objects.put("objects/b", b"b" * 100_000),
        "put if absent": lambda: store.objects.put_if_absent("objects/c", b"c" * 100_000),
        "update": lambda: store.objects.update("objects/a", b"b" * 100_000, expecting=tag_of(b"a")),
        "append": append,
        "create a table": lambda: create(store, "xyz", location="nodes/2"),
        "create a ref": lambda: store.refs.create(LOCATION, "draft", source=None, version=1),
        "delete an object": lambda: store.objects.delete("objects/a"),
    }
    return {name: _ending(attempt) for name, attempt in attempts.items()}


def _ending(attempt: Callable[[], object]) -> str:
    try:
        attempt()
    except OmnigraphError as error:
        return f"{type(error).__name__} {error.code}"
    return "done"


def tag_of(data: bytes) -> str:
    """The tag of an object on a disk."""
    return sha256(data).hexdigest()
