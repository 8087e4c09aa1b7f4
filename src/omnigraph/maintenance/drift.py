"""Where the heads of tables stand against their pins, and who answers for it if they differ."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto

from omnigraph.manifest.reader import Manifest
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.model.ids import OperationId
from omnigraph.model.tables import TablePin
from omnigraph.recovery.sweep import Recovery


class Standing(Enum):
    """Where a head is, and why."""

    AT_PIN = auto()
    """Where it is pinned, now or by a write that landed while we looked."""
    CLAIMED = auto()
    """Beyond its pin, moved by a write that has not come to its end."""
    STRAY = auto()
    """Beyond its pin, by restores of a recovery that slept: they carry no rows."""
    DRIFTED = auto()
    """Beyond its pin, and nobody answers for that."""
    BEHIND = auto()
    """Below its pin, which no writer of ours can bring about."""


@dataclass(frozen=True, slots=True)
class Head:
    """The head of one table on the ref that its branch pins it on.

    Attributes:
        version: The newest version there is.
        claimed_by: The write that moved it, if that has not come to its end.
    """

    pin: TablePin
    version: int
    standing: Standing
    claimed_by: OperationId | None = None


def heads_of(manifest: Manifest, recovery: Recovery, snapshot: Snapshot) -> Iterator[Head]:
    """The heads of the tables that only this branch moves."""
    for pin in snapshot.pins.values():
        if snapshot.owns(pin):
            yield head_of(manifest, recovery, snapshot, pin)


def head_of(manifest: Manifest, recovery: Recovery, snapshot: Snapshot, pin: TablePin) -> Head:
    """The head of one table that the branch owns. Others may write meanwhile.

    Raises:
        StorageError: the table, or the manifest, cannot be read.
        BranchNotFoundError: the branch is gone.
    """
    version = manifest.store.tables.head_version(pin.location, ref=pin.ref)
    if version == pin.version:
        return Head(pin, version, Standing.AT_PIN)
    if version < pin.version:
        return Head(pin, version, Standing.BEHIND)
    claimed_by = _claim(recovery, pin)
    # Looked at after the sidecars: a writer publishes before it removes its own, so what has
    # neither a sidecar nor a pin by now is nobody's.
    now = manifest.current(snapshot.branch).pins.get(pin.key)
    if now is not None and (now.location, now.ref) == (pin.location, pin.ref):
        pin = now
    if pin.version >= version:
        return Head(pin, version, Standing.AT_PIN)
    if claimed_by is not None:
        return Head(pin, version, Standing.CLAIMED, claimed_by)
    is_stray = recovery.is_stray(pin, version)
    return Head(pin, version, Standing.STRAY if is_stray else Standing.DRIFTED)


def _claim(recovery: Recovery, pin: TablePin) -> OperationId | None:
    """The write whose sidecar names the table's head."""
    for intent in recovery.sidecars.find().intents:
        if any((each.location, each.ref) == (pin.location, pin.ref) for each in intent.tables):
            return intent.operation_id
    return None
