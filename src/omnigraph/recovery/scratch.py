"""Scratch folders of loads: one per load below the graph's root, and which process owns it.

A load clears its folder when it ends. A killed load leaves it, and nothing refers to it.
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
from omnigraph.recovery.owners import Owner, is_at_work, this_process, track_operation
from omnigraph.storage.objects import Objects

SCRATCH: Final = "__staging"
"""The folder of all scratch folders."""

_OWNER: Final = "owner.json"


@dataclass(frozen=True, slots=True)
class ScratchFolder:
    """A load's folder; `written_at` is when its newest file was written."""

    load_id: str
    written_at: datetime

    @property
    def folder(self) -> str:
        """Its path below the root."""
        return scratch_folder(self.load_id)


def scratch_folder(load_id: str) -> str:
    """The folder below the root for files that the later stages of a load need."""
    return f"{SCRATCH}/{load_id}"


@contextmanager
def hold_scratch(objects: Objects, load_id: str) -> Iterator[None]:
    """Record that this process runs the load during the block, and clear its folder afterwards."""
    with track_operation(OperationId(load_id)):
        try:
            if (owner := this_process()) is not None:
                data = json.dumps(asdict(owner)).encode()
                objects.put(f"{scratch_folder(load_id)}/{_OWNER}", data)
            yield
        finally:
            objects.clear(scratch_folder(load_id))


def find_scratch(objects: Objects) -> list[ScratchFolder]:
    """The existing folders, the oldest load first."""
    newest: dict[str, datetime] = {}
    for path, written_at in objects.times(SCRATCH).items():
        if is_scratch_path(path):
            load_id = _load_id(path)
            newest[load_id] = max(written_at, newest.get(load_id, written_at))
    return [ScratchFolder(load_id, newest[load_id]) for load_id in sorted(newest)]


def is_scratch_path(path: str) -> bool:
    """Whether a path below `SCRATCH` is in a load's folder.

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
    """Whether a process of this machine runs the load; other machines cannot be checked."""
    stored = objects.read(f"{scratch_folder(load_id)}/{_OWNER}")
    if stored is None:
        return False
    try:
        owner = Owner(**json.loads(stored.data))
    except (ValueError, TypeError):
        return False
    try:
        return is_at_work(owner, OperationId(load_id))
    except OSError:
        # Nothing is known of processes now, and what is in use must not be deleted.
        return True
