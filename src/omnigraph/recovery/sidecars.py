"""Sidecars: the objects that hold intents, one for each write between its first effect and its end.

A writer puts its own before it looks for those of others (docs/decisions/0006), so of two that
overlap at least one sees the other.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from omnigraph.clock import Clock, is_ulid
from omnigraph.errors import RecoveryNeededError
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
from omnigraph.storage.objects import Objects

_SUFFIX: Final = ".json"


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A sidecar that nobody may act on.

    Attributes:
        is_newer: Whether a newer release wrote it; otherwise it is damaged.
    """

    path: str
    reason: str
    is_newer: bool = False

    @property
    def next_step(self) -> str:
        """What to do about it."""
        if self.is_newer:
            return "open the graph with the release that wrote it"
        return "restore the file from a backup, or follow docs/recovery.md before you move it"

    def refusal(self, more: int = 0) -> RecoveryNeededError:
        """The error of who would have to act on it, and on so many others."""
        others = f", and {more} more" if more else ""
        message = f"the recovery file {self.path} cannot be acted on: {self.reason}{others}"
        hint = f"{self.next_step}; reading still works, read-only"
        return RecoveryNeededError(message, hint=hint, path=self.path)


@dataclass(frozen=True, slots=True)
class Found:
    """Every sidecar there was when we looked."""

    intents: tuple[Intent, ...]
    unreadable: tuple[Unreadable, ...] = ()

    def require_readable(self) -> tuple[Intent, ...]:
        """The intents.

        Raises:
            RecoveryNeededError: a sidecar cannot be read. It stays, and writes wait for a person.
        """
        if not self.unreadable:
            return self.intents
        first, *others = self.unreadable
        raise first.refusal(more=len(others))

    def holds(self, operation_id: OperationId | None) -> bool:
        """Whether the operation's sidecar is among them."""
        return any(each.operation_id == operation_id for each in self.intents)


@dataclass(frozen=True, slots=True)
class Pending:
    """The writes that have not come to their ends.

    Attributes:
        live: Somebody is at work on these, or may be until their leases run out.
        interrupted: Nobody is; whoever writes next brings them to an end.
        unreadable: Nobody may act on these.
    """

    live: tuple[Intent, ...]
    interrupted: tuple[Intent, ...]
    unreadable: tuple[Unreadable, ...]


class Sidecars:
    """The sidecars of one graph."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    def put(self, intent: Intent) -> None:
        """Write an intent down, or write it anew."""
        self._objects.put(sidecar_path(intent.operation_id), encode(intent))

    def find(self, known: Iterable[Intent] = ()) -> Found:
        """Every sidecar there is now; one that goes while we read is left out.

        Files of other names are not ours, and hold nobody up.

        Args:
            known: Intents whose sidecars need not be read again, such as the caller's own.
        """
        at_hand = {sidecar_path(each.operation_id): each for each in known}
        intents, unreadable = [], []
        for path in filter(is_sidecar_path, self._objects.list(RECOVERY)):
            if path in at_hand:
                intents.append(at_hand[path])
                continue
            stored = self._objects.read(path)
            if stored is None:
                continue
            try:
                intents.append(_named(path, decode(stored.data)))
            except UnreadableIntentError as refusal:
                is_newer = isinstance(refusal, NewerIntentError)
                unreadable.append(Unreadable(path, str(refusal), is_newer=is_newer))
        return Found(tuple(intents), tuple(unreadable))

    def pending(self, clock: Clock) -> Pending:
        """Every write that is on its way now, with whether anybody is at work on it.

        An owner that is gone may have come to its end since its sidecar was read: it was
        interrupted only if the sidecar is still there.
        """
        found = self.find()
        live = tuple(each for each in found.intents if is_live(each, clock.now()))
        ownerless = [each for each in found.intents if each not in live]
        still = self.find(found.intents) if ownerless else found
        interrupted = tuple(each for each in ownerless if still.holds(each.operation_id))
        return Pending(live, interrupted, found.unreadable)

    def delete(self, operation_id: OperationId) -> None:
        """Remove an operation's sidecar; one that is not there is as good as removed."""
        self._objects.delete(sidecar_path(operation_id))


def is_sidecar_path(path: str) -> bool:
    """Whether a path in the folder of sidecars is one's: they are named by their operations.

    >>> is_sidecar_path("__recovery/01ARZ3NDEKTSV4RRFFQ69G5FAV.json")
    True
    >>> is_sidecar_path("__recovery/notes.txt")
    False
    """
    operation_id = path.removeprefix(f"{RECOVERY}/").removesuffix(_SUFFIX)
    return is_ulid(operation_id) and path == sidecar_path(OperationId(operation_id))


def is_live(intent: Intent, now: datetime) -> bool:
    """Whether its owner may still be at work, so that nobody else may touch what it claims."""
    if intent.lease_until is None or intent.lease_until <= now:
        return False
    return not is_gone(intent.owner, intent.operation_id)


def _named(path: str, intent: Intent) -> Intent:
    if path != sidecar_path(intent.operation_id):
        message = f"it holds the operation {intent.operation_id}"
        raise UnreadableIntentError(message)
    return intent


def sidecar_path(operation_id: OperationId) -> str:
    """Where an operation's sidecar lies below the root."""
    return f"{RECOVERY}/{operation_id}{_SUFFIX}"
