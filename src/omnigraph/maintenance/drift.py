"""Heads of tables compared with their pins, and the reason where they differ."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto

from omnigraph.manifest.reader import Manifest
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.model.ids import OperationId
from omnigraph.model.tables import TablePin
from omnigraph.recovery.sweep import Recovery


class HeadState(Enum):
    """Where a head is relative to its pin, and why."""

    AT_PIN = auto()
    """At its pin, possibly that of a write that landed during the check."""
    CLAIMED = auto()
    """Beyond its pin, moved by a write that has not ended."""
    STRAY = auto()
    """Beyond its pin, by restores of a delayed recovery, which change no rows."""
    DRIFTED = auto()
    """Beyond its pin, and no write or recovery explains it."""
    BEHIND = auto()
    """Below its pin, which no writer of ours can cause."""


@dataclass(frozen=True, slots=True)
class Head:
    """The head of one table on the ref where its branch pins it.

    Attributes:
        version: The newest version.
        claimed_by: The write that moved it, if that write has not ended.
    """

    pin: TablePin
    version: int
    state: HeadState
    claimed_by: OperationId | None = None


def heads_of(manifest: Manifest, recovery: Recovery, snapshot: Snapshot) -> Iterator[Head]:
    """The heads of the tables that only this branch moves."""
    for pin in snapshot.pins.values():
        if snapshot.owns(pin):
            yield head_of(manifest, recovery, snapshot, pin)


def head_of(manifest: Manifest, recovery: Recovery, snapshot: Snapshot, pin: TablePin) -> Head:
    """The head of one table that the branch owns. Others may write during this call."""
    version = manifest.store.tables.head_version(pin.location, ref=pin.ref)
    if version == pin.version:
        return Head(pin, version, HeadState.AT_PIN)
    if version < pin.version:
        return Head(pin, version, HeadState.BEHIND)
    claimed_by = _claim(recovery, pin)
    # Read after the sidecars: a writer publishes before it removes its sidecar, so a version with
    # neither a sidecar nor a pin by now belongs to no writer.
    for current in manifest.current(snapshot.branch).pins.values():
        # Not by its key: its type may have been renamed meanwhile.
        if (current.location, current.ref) == (pin.location, pin.ref):
            pin = current
    if pin.version >= version:
        return Head(pin, version, HeadState.AT_PIN)
    if claimed_by is not None:
        return Head(pin, version, HeadState.CLAIMED, claimed_by)
    is_stray = recovery.is_stray(pin, version)
    return Head(pin, version, HeadState.STRAY if is_stray else HeadState.DRIFTED)


def _claim(recovery: Recovery, pin: TablePin) -> OperationId | None:
    """The write whose sidecar names the table's head."""
    for intent in recovery.sidecars.find().intents:
        if any((table.location, table.ref) == (pin.location, pin.ref) for table in intent.tables):
            return intent.operation_id
    return None
