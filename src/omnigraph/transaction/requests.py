"""Requests with keys: writes that happen at most once, however often they are repeated.

A key names one request for a day. Right before its first effect, while a write holds its tables, it
records the id of its commit and its result under the key. A repetition looks for that commit: if
it has landed, the recorded result is the answer. If not, the repetition runs with the same commit
id, and a claim excludes others with that id. So of all attempts, in all processes, one lands
(docs/decisions/0025).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any, Final, Protocol, Self, TypeVar

from omnigraph.clock import Clock
from omnigraph.errors import (
    BranchNotFoundError,
    ConflictError,
    ErrorCode,
    InvalidInputError,
    InvalidParameterError,
    OmnigraphError,
    OutcomeUnknownError,
    StorageError,
)
from omnigraph.manifest.layout import REQUESTS
from omnigraph.manifest.reader import Manifest
from omnigraph.model.arguments import require_text
from omnigraph.model.ids import CommitId
from omnigraph.model.names import MAIN, BranchName
from omnigraph.transaction.writes import KeyedAttempt, WriteOutcome, WriteRequest

REQUEST_KEPT_SECONDS: Final = 24 * 3_600.0
"""How long the key of a request stands for its result. Records are deleted once they are twice as
old."""

REQUEST_ATTEMPTS_MAX: Final = 5
"""Times that a request with a key is tried while other processes carry out the same one."""

REQUEST_KEY_LENGTH_MAX: Final = 255


_FORMAT: Final = 1


class WriteResult(Protocol):
    """What a write with a key returns: its commit, and itself as JSON."""

    @property
    def commit_id(self) -> str | None:
        """The commit that it made; None if nothing changed."""
        ...

    def to_json(self) -> dict[str, Any]:
        """The result as plain values that JSON can represent."""
        ...


Result = TypeVar("Result", bound=WriteResult)


@dataclass(frozen=True, slots=True)
class RequestKey:
    """The key of a request.

    Attributes:
        fingerprint: A digest of all that is requested: a key stands for one request.
    """

    text: str
    fingerprint: str

    @classmethod
    def parse(cls, text: str, *requested: object) -> Self:
        """Validate a key from outside, for a request that is described by these values.

        Raises:
            InvalidParameterError: it is not a text, is empty, too long or not printable.
        """
        if not require_text(text, "key") or not text.isprintable():
            message = f"the key {text[:100]!r} is empty, or has a character that cannot be printed"
            raise InvalidParameterError(message, hint="use a random id", name="key")
        if len(text) > REQUEST_KEY_LENGTH_MAX:
            message = f"the key has {len(text)} characters; the limit is {REQUEST_KEY_LENGTH_MAX}"
            raise InvalidParameterError(message, hint="use a random id", name="key")
        described = json.dumps(requested, sort_keys=True, default=repr)
        return cls(text, sha256(described.encode()).hexdigest())

    def path(self, actor: str | None) -> str:
        """The path of its record: actors have keys of their own."""
        own = json.dumps([actor, self.text])
        return f"{REQUESTS}/{sha256(own.encode()).hexdigest()}.json"


@dataclass(frozen=True, slots=True)
class _Record:
    """What was recorded under a key.

    Attributes:
        commit_id: The commit of every attempt; None if the request changed nothing.
        result: What the newest attempt returns if it lands.
        tag: The version of the object that holds the record.
    """

    fingerprint: str
    commit_id: CommitId | None
    branch: BranchName
    created_at: datetime
    result: Mapping[str, Any]
    tag: str = ""


class Requests:
    """Runs writes with keys on one graph."""

    def __init__(self, manifest: Manifest, clock: Clock) -> None:
        self._manifest = manifest
        self._objects = manifest.store.objects
        self._clock = clock

    def run(
        self,
        request: WriteRequest,
        key: RequestKey,
        execute: Callable[[WriteRequest], Result],
        *,
        read: Callable[[Mapping[str, Any]], Result],
        preview: Callable[[WriteOutcome[Any]], Result],
    ) -> Result:
        """Run a write unless it was run under its key; its result in either case.

        Args:
            execute: Runs the write.
            read: The result from what `to_json` made of it.
            preview: The result of a transaction that is about to land.

        Raises:
            InvalidInputError: the key was used for another request. Nothing changed.
            ConflictError: others kept carrying out the same request. Nothing is known of it yet.
            OutcomeUnknownError: each attempt failed where it may have landed.
        """
        unknown: OutcomeUnknownError | None = None
        for _ in range(REQUEST_ATTEMPTS_MAX):
            record = self._find(request.actor, key)
            if record is not None and self._is_done(record):
                return read(record.result)
            try:
                result = execute(
                    replace(request, attempt=self._attempt(request, key, record, preview))
                )
            except OmnigraphError as failure:
                # What failed may be a repetition of what has landed meanwhile.
                now = self._find(request.actor, key)
                if now is not None and self._is_done(now):
                    return read(now.result)
                if isinstance(failure, OutcomeUnknownError):
                    # The next attempt has the same commit id: it resolves this one, or replaces it.
                    unknown = failure
                elif failure.code is not ErrorCode.REQUEST_TAKEN:
                    raise
            else:
                if result.commit_id is None:
                    now = self._find(request.actor, key)
                    if now is not None and self._is_done(now):
                        # There was nothing to change because a concurrent attempt had landed.
                        return read(now.result)
                    self._keep(request, key, record, None, result.to_json())
                return result
        raise unknown or _taken_error(key)

    def landed(self, key: RequestKey, actor: str | None) -> Mapping[str, Any] | None:
        """The result of a request that was carried out; None if it was not.

        Raises:
            InvalidInputError: the key was used for another request.
        """
        record = self._find(actor, key)
        return record.result if record is not None and self._is_done(record) else None

    def forget_old(self) -> int:
        """Delete the records that no repetition can use any more, and return how many."""
        limit = self._clock.now() - timedelta(seconds=2 * REQUEST_KEPT_SECONDS)
        old = [path for path, written in self._objects.times(REQUESTS).items() if written < limit]
        for path in old:
            self._objects.delete(path)
        return len(old)

    def _attempt(
        self,
        request: WriteRequest,
        key: RequestKey,
        record: _Record | None,
        preview: Callable[[WriteOutcome[Any]], Result],
    ) -> KeyedAttempt:
        repeated = None if record is None or self._is_expired(record) else record.commit_id

        def keep(landing: WriteOutcome[Any], commit_id: CommitId) -> None:
            result = {**preview(landing).to_json(), "commit_id": commit_id}
            self._keep(request, key, record, commit_id, result)

        return KeyedAttempt(keep, repeated)

    def _is_expired(self, record: _Record) -> bool:
        age = self._clock.now() - record.created_at
        return age > timedelta(seconds=REQUEST_KEPT_SECONDS)

    def _is_done(self, record: _Record) -> bool:
        """Whether the request of a record was carried out, less than a day ago."""
        if self._is_expired(record):
            return False
        if record.commit_id is None:
            return True
        try:
            return self._has(record.branch, record.commit_id)
        except BranchNotFoundError:
            # It was merged and deleted, as branches are: what it had is in the history of main.
            if record.branch.is_main or not self._has(MAIN, record.commit_id):
                raise
            return True

    def _has(self, branch: BranchName, commit_id: CommitId) -> bool:
        opened = self._manifest.open(branch)
        return self._manifest.lookup(opened, commit_id) is not None

    def _find(self, actor: str | None, key: RequestKey) -> _Record | None:
        path = key.path(actor)
        stored = self._objects.read(path)
        if stored is None:
            return None
        record = _decode(path, stored.data, stored.tag)
        if record.fingerprint != key.fingerprint and not self._is_expired(record):
            message = f"the key {key.text!r} was used for another request"
            hint = "use a new key for each request, and the same one to repeat it as it was"
            raise InvalidInputError(message, hint=hint, code=ErrorCode.REQUEST_MISMATCH)
        return record

    def _keep(
        self,
        request: WriteRequest,
        key: RequestKey,
        before: _Record | None,
        commit_id: CommitId | None,
        result: Mapping[str, Any],
    ) -> None:
        """Record a result, unless another process has recorded one since."""
        first = before is None or self._is_expired(before)
        created_at = self._clock.now() if before is None or first else before.created_at
        record = _Record(key.fingerprint, commit_id, request.branch, created_at, result)
        path, data = key.path(request.actor), _encode(record)
        if before is None:
            kept = self._objects.put_if_absent(path, data)
        else:
            kept = self._objects.update(path, data, expecting=before.tag)
        if not kept and commit_id is not None:
            raise _taken_error(key)


def _taken_error(key: RequestKey) -> ConflictError:
    message = f"another process carries out the request with the key {key.text!r}"
    return ConflictError(message, hint="repeat it with its key", code=ErrorCode.REQUEST_TAKEN)


def _encode(record: _Record) -> bytes:
    fields = {
        "format": _FORMAT,
        "fingerprint": record.fingerprint,
        "commit_id": record.commit_id,
        "branch": record.branch,
        "created_at": record.created_at.isoformat(),
        "result": record.result,
    }
    return json.dumps(fields, indent=1).encode()


def _decode(path: str, data: bytes, tag: str) -> _Record:
    try:
        fields = json.loads(data)
        commit_id = fields["commit_id"]
        return _Record(
            fingerprint=str(fields["fingerprint"]),
            commit_id=None if commit_id is None else CommitId.parse(commit_id),
            branch=BranchName.parse(fields["branch"]),
            created_at=datetime.fromisoformat(fields["created_at"]).astimezone(UTC),
            result=fields["result"],
            tag=tag,
        )
    except (ValueError, KeyError, TypeError) as cause:
        message = f"the record of a request, {path}, cannot be read"
        hint = "look whether its commit has landed; then delete the file, or use another key"
        raise StorageError(message, hint=hint, code=ErrorCode.CORRUPTED) from cause
