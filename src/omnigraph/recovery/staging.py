"""Scratch of loads: a folder for each below the graph's root, and whose it is.

A load clears its folder at its end. One that was killed leaves it, and nothing refers to it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Final

from omnigraph.clock import is_ulid
from omnigraph.model.ids import OperationId
from omnigraph.recovery.owners import Owner, is_at_work, this_process, working
from omnigraph.storage.objects import Objects

SCRATCH: Final = "__staging"
"""Where the folders lie."""

_OWNER: Final = "owner.json"


@dataclass(frozen=True, slots=True)
class Scratched:
    """A load's folder as it was found; `written_at` is when its newest file was written."""

    load_id: str
    written_at: datetime

    @property
    def folder(self) -> str:
        """Its path below the root."""
        return scratch_folder(self.load_id)


def scratch_folder(load_id: str) -> str:
    """Where a load leaves what its later stages need, below the root."""
    return f"{SCRATCH}/{load_id}"


@contextmanager
def holding_scratch(objects: Objects, load_id: str) -> Iterator[None]:
    """Say that this process is at work on the load in this block, and clear its folder after."""
    with working(OperationId(load_id)):
        try:
            if (owner := this_process()) is not None:
                data = json.dumps(asdict(owner)).encode()
                objects.put(f"{scratch_folder(load_id)}/{_OWNER}", data)
            yield
        finally:
            objects.clear(scratch_folder(load_id))


def find_scratch(objects: Objects) -> list[Scratched]:
    """The folders that are there, the oldest load first."""
    newest: dict[str, datetime] = {}
    for path, written_at in objects.times(SCRATCH).items():
        if is_scratch_path(path):
            load_id = _load_id(path)
            newest[load_id] = max(written_at, newest.get(load_id, written_at))
    return [Scratched(load_id, newest[load_id]) for load_id in sorted(newest)]


def is_scratch_path(path: str) -> bool:
    """Whether a path below `SCRATCH` lies in a load's folder.

    >>> is_scratch_path("__staging/01ARZ3NDEKTSV4RRFFQ69G5FAV/owner.json")
    True
    >>> is_scratch_path("__staging/notes.txt")
    False
    """
    load_id = _load_id(path)
    return is_ulid(load_id) and path.startswith(f"{scratch_folder(load_id)}/")


def _load_id(path: str) -> str:
    return path.removeprefix(f"{SCRATCH}/").partition("/")[0]


def is_held(objects: Objects, load_id: str) -> bool:
    """Whether a process of this machine is at work on the load; elsewhere nobody can tell."""
    found = objects.read(f"{scratch_folder(load_id)}/{_OWNER}")
    if found is None:
        return False
    try:
        owner = Owner(**json.loads(found.data))
    except (ValueError, TypeError):
        return False
    return is_at_work(owner, OperationId(load_id))
