"""Records of proposals: one object each, made under the next number and changed on condition."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

from omnigraph.clock import Clock, back_off
from omnigraph.errors import (
    ConflictError,
    ErrorCode,
    FormatError,
    ProposalNotFoundError,
    StorageError,
)
from omnigraph.limits import SETTINGS_ATTEMPTS_MAX, SETTINGS_BACKOFF_SECONDS_MAX
from omnigraph.manifest.layout import PROPOSALS
from omnigraph.model.proposals import Proposal
from omnigraph.storage.objects import StoredObject
from omnigraph.storage.store import Store

_FORMAT: Final = 1
_SUFFIX: Final = ".json"


class ProposalRecords:
    """The records of one graph's proposals."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def numbers(self) -> tuple[int, ...]:
        """The numbers of all proposals, the newest first; one request."""
        return tuple(sorted(self._list_numbers(), reverse=True))

    def _list_numbers(self) -> Iterator[int]:
        for path in self._store.objects.list(PROPOSALS):
            stem = path.removeprefix(f"{PROPOSALS}/").removesuffix(_SUFFIX)
            if stem.isdecimal() and path.endswith(_SUFFIX):
                yield int(stem)

    def find(self, number: int) -> Proposal:
        """A proposal by its number; one request if it exists."""
        return _decode(number, self._read(number))

    def _read(self, number: int) -> StoredObject:
        stored = self._store.objects.read(_path(number))
        if stored is None:
            message = f"the graph {self._store.root.uri} has no proposal {number}"
            raise ProposalNotFoundError(message, hint="see 'omnigraph proposal list'")
        return stored

    def create(self, proposal: Proposal) -> Proposal:
        """Store a proposal under the next free number."""
        for attempt in range(SETTINGS_ATTEMPTS_MAX):
            numbered = replace(proposal, number=max(self._list_numbers(), default=0) + 1)
            data, path = _encode(numbered), _path(numbered.number)
            if self._store.objects.put_if_absent(path, data):
                return numbered
            # A lost response may have been retried, so the stored record decides.
            stored = self._store.objects.read(path)
            if stored is not None and stored.data == data:
                return numbered
            back_off(self._clock, attempt, seconds_max=SETTINGS_BACKOFF_SECONDS_MAX)
        message = "other processes kept creating proposals"
        raise ConflictError(message, hint="try again", code=ErrorCode.OBJECT_CHANGED)

    def change(self, number: int, change: Callable[[Proposal], Proposal]) -> Proposal:
        """Replace a proposal by what the function makes of it, by compare-and-swap.

        Args:
            change: Called again on what others made of the proposal. What it raises ends the
                change, and nothing is stored.
        """
        for attempt in range(SETTINGS_ATTEMPTS_MAX):
            stored = self._read(number)
            before = _decode(number, stored)
            after = change(before)
            data = _encode(after)
            if after == before or self._store.objects.update(
                _path(number), data, expecting=stored.tag
            ):
                return after
            back_off(self._clock, attempt, seconds_max=SETTINGS_BACKOFF_SECONDS_MAX)
        message = f"other processes kept changing proposal {number}"
        raise ConflictError(message, hint="try again", code=ErrorCode.OBJECT_CHANGED)


def _path(number: int) -> str:
    return f"{PROPOSALS}/{number}{_SUFFIX}"


def _encode(proposal: Proposal) -> bytes:
    record = {"format": _FORMAT, "source_ref": proposal.source_ref, **proposal.to_json()}
    return json.dumps(record, indent=1).encode()


def _decode(number: int, stored: StoredObject) -> Proposal:
    path = _path(number)
    try:
        record = json.loads(stored.data)
        found = int(record["format"])
        if found <= _FORMAT:
            return Proposal.from_json(record, record["source_ref"])
    except (ValueError, KeyError, TypeError) as cause:
        message = f"the record of proposal {number}, {path}, cannot be read"
        hint = "restore it from a backup, or delete it and propose the branch again"
        raise StorageError(message, hint=hint, code=ErrorCode.CORRUPTED) from cause
    message = f"proposal {number}, {path}, has format {found}, and this release reads {_FORMAT}"
    raise FormatError(
        message,
        hint="upgrade omnigraph",
        code=ErrorCode.FORMAT_TOO_NEW,
        found=found,
        supported=_FORMAT,
    )
