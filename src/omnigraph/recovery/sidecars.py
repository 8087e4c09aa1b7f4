"""Sidecars: the objects that hold intents, one for each write between its first effect and its end.

A writer writes its own before it lists the others (docs/decisions/0006), so of two that overlap at
least one sees the other.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from omnigraph.clock import Clock, is_ulid
from omnigraph.manifest.layout import RECOVERY
from omnigraph.model.ids import OperationId
from omnigraph.recovery.intents import (
    Intent,
    NewerIntentError,
    UnreadableIntentError,
    decode,
    encode,
)
from omnigraph.recovery.owners import is_gone
from omnigraph.recovery.pending import Pending, PendingWrite, Unreadable
from omnigraph.storage.objects import Objects

_SUFFIX: Final = ".json"


@dataclass(frozen=True, slots=True)
class SidecarSet:
    """Every sidecar at one moment."""

    intents: tuple[Intent, ...]
    unreadable: tuple[Unreadable, ...] = ()

    def require_readable(self) -> tuple[Intent, ...]:
        """The intents.

        Raises:
            RecoveryNeededError: a sidecar cannot be read. It is kept, and blocks writes until an
                operator resolves it.
        """
        if not self.unreadable:
            return self.intents
        first, *others = self.unreadable
        raise first.refusal(more=len(others))

    def holds(self, operation_id: OperationId | None) -> bool:
        """Whether the operation's sidecar is among them."""
        return any(intent.operation_id == operation_id for intent in self.intents)


class Sidecars:
    """The sidecars of one graph."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    def put(self, intent: Intent) -> None:
        """Write an intent's sidecar, replacing an earlier one."""
        self._objects.put(sidecar_path(intent.operation_id), encode(intent))

    def find(self, known: Iterable[Intent] = ()) -> SidecarSet:
        """Every current sidecar; one that is deleted during the call is left out.

        Files with other names are not ours, and are ignored.

        Args:
            known: Intents whose sidecars need not be read again, such as the caller's own.
        """
        known_by_path = {sidecar_path(intent.operation_id): intent for intent in known}
        intents, unreadable = [], []
        for path in filter(is_sidecar_path, self._objects.list(RECOVERY)):
            if path in known_by_path:
                intents.append(known_by_path[path])
                continue
            stored = self._objects.read(path)
            if stored is None:
                continue
            try:
                intents.append(_require_name(path, decode(stored.data)))
            except UnreadableIntentError as refusal:
                is_newer = isinstance(refusal, NewerIntentError)
                unreadable.append(Unreadable(path, str(refusal), is_newer=is_newer))
        return SidecarSet(tuple(intents), tuple(unreadable))

    def pending(self, clock: Clock) -> Pending:
        """Every unfinished write, and whether a process works on it.

        An owner that is gone may have finished after its sidecar was read: the write was
        interrupted only if the sidecar still exists.
        """
        sidecars = self.find()
        live = [intent for intent in sidecars.intents if is_live(intent, clock.now())]
        ownerless = [intent for intent in sidecars.intents if intent not in live]
        later = self.find(sidecars.intents) if ownerless else sidecars
        interrupted = (intent for intent in ownerless if later.holds(intent.operation_id))
        return Pending(
            tuple(map(PendingWrite.of, live)),
            tuple(map(PendingWrite.of, interrupted)),
            sidecars.unreadable,
        )

    def delete(self, operation_id: OperationId) -> None:
        """Delete an operation's sidecar; it need not exist."""
        self._objects.delete(sidecar_path(operation_id))


def is_sidecar_path(path: str) -> bool:
    """Whether a path is that of a sidecar: sidecars are named by their operations.

    >>> is_sidecar_path("__recovery/01ARZ3NDEKTSV4RRFFQ69G5FAV.json")
    True
    >>> is_sidecar_path("__recovery/notes.txt")
    False
    """
    operation_id = path.removeprefix(f"{RECOVERY}/").removesuffix(_SUFFIX)
    return is_ulid(operation_id) and path == sidecar_path(OperationId(operation_id))


def is_live(intent: Intent, now: datetime) -> bool:
    """Whether its owner may still be running, so that its tables must not be touched."""
    if intent.lease_until is None or intent.lease_until <= now:
        return False
    return not is_gone(intent.owner, intent.operation_id)


def _require_name(path: str, intent: Intent) -> Intent:
    if path != sidecar_path(intent.operation_id):
        message = f"it holds the operation {intent.operation_id}"
        raise UnreadableIntentError(message)
    return intent


def sidecar_path(operation_id: OperationId) -> str:
    """The path of an operation's sidecar below the root."""
    return f"{RECOVERY}/{operation_id}{_SUFFIX}"
