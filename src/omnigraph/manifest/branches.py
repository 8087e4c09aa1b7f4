"""Branch records: small objects that say which ref of the manifest carries each branch.

A ref's name is never reused (docs/decisions/0007), but users reuse branch names: so a ref is named
by an id, and the branch's name is an object that can be created, in one atomic step, exactly once.
A deleted branch leaves a record of its ref, because other branches may have merged its commits
(docs/decisions/0008).
"""

from __future__ import annotations

import difflib
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from omnigraph.clock import is_ulid
from omnigraph.errors import (
    AlreadyExistsError,
    BranchNotFoundError,
    ConflictError,
    ErrorCode,
    InvalidNameError,
    StorageError,
)
from omnigraph.failpoints import Failpoint, hit
from omnigraph.limits import LEASE_SECONDS, MANIFEST_STATES_MAX
from omnigraph.manifest.layout import BRANCHES, RETIRED
from omnigraph.manifest.rows import corruption_error
from omnigraph.model.ids import CommitId
from omnigraph.model.names import MAIN, BranchName
from omnigraph.storage.objects import StoredObject
from omnigraph.storage.store import Store

_SUFFIX: Final = ".json"
_SLASH: Final = "="
"""Replaces the slash of a branch's name in a file name; no branch's name contains it."""
_BEFORE_REF: Final = "@"
_CHANGES_MAX: Final = 5


@dataclass(frozen=True, slots=True)
class Branch:
    """A branch and its origin.

    Attributes:
        ref: The ref of the manifest that carries it; also the prefix of its own tables' refs.
        source_ref: The ref it was created from; None is main's.
        source_commit: The commit it started at; None where that was not recorded.
        ending_since: When its deletion began: from then on no writer branches from it, or begins to
            write to it.
        ending_head: The commit it must be at to be deleted; None if it is deleted in any case.
    """

    name: BranchName
    ref: str
    source_ref: str | None = None
    source_commit: CommitId | None = None
    created_at: datetime | None = None
    ending_since: datetime | None = None
    ending_head: CommitId | None = None

    @property
    def is_ending(self) -> bool:
        """Whether it is being deleted."""
        return self.ending_since is not None

    def is_abandoned(self, now: datetime) -> bool:
        """Whether its deletion began longer ago than a lease lasts, and did not finish."""
        lease = timedelta(seconds=LEASE_SECONDS)
        return self.ending_since is not None and now - self.ending_since > lease

    def owns(self, table_ref: str | None) -> bool:
        """Whether a table's ref was created for this branch."""
        return table_ref is not None and table_ref.startswith(f"{self.ref}/")


@dataclass(frozen=True, slots=True)
class RetiredBranch:
    """The ref of a deleted branch.

    Attributes:
        retired_at: When it was deleted; None if its record was not read, or cannot be.
        source_ref: The ref it was created from; None is main's.
        head: The commit it had to be at to be deleted; None if it was deleted in any case.
    """

    name: BranchName
    ref: str
    retired_at: datetime | None = None
    source_ref: str | None = None
    head: CommitId | None = None

    def owns(self, table_ref: str | None) -> bool:
        """Whether a table's ref was created for this branch."""
        return Branch(self.name, self.ref).owns(table_ref)


@dataclass(frozen=True, slots=True)
class Survey:
    """Every branch but main whose record can be read.

    Attributes:
        unreadable: By name, the errors of the records that cannot be read.
    """

    branches: tuple[Branch, ...]
    unreadable: Mapping[BranchName, StorageError]


@dataclass(frozen=True, slots=True)
class _StoredRecord:
    """A branch's record and its path."""

    path: str
    stored: StoredObject
    branch: Branch


@dataclass(frozen=True, slots=True)
class TakenNames:
    """The names of all branches at one moment.

    Attributes:
        tags: By path, the tags of the records, where the listing has them.
    """

    names: tuple[BranchName, ...]
    tags: Mapping[str, str | None]


class Branches:
    """The branch records of one graph."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._last_read: dict[BranchName, _StoredRecord] = {}
        self._lock = threading.Lock()

    def names(self) -> tuple[BranchName, ...]:
        """The names of all branches, main first."""
        return (MAIN, *sorted(self._list_names()))

    def taken_names(self) -> TakenNames:
        """The names of all branches, for creators of branches."""
        tags = self._store.objects.tags(BRANCHES)
        named = [name for path in tags if (name := branch_of(path)) is not None]
        return TakenNames((MAIN, *sorted(named)), tags)

    def _list_names(self) -> Iterator[BranchName]:
        for path in self._store.objects.list(BRANCHES):
            if (name := branch_of(path)) is not None:
                yield name

    def ref_of(self, name: BranchName) -> str | None:
        """The ref of the manifest that carries a branch; Lance's own main is None."""
        branch = self.find(name)
        return None if branch is None else branch.ref

    def refs_of(self, name: BranchName) -> tuple[str | None, ...]:
        """The ref of the branch that has this name, then those of retired branches that had it."""
        if name.is_main:
            return (None,)
        retired = (branch for branch in self.retired_refs() if branch.name == name)
        refs: list[str | None] = [branch.ref for branch in retired]
        with suppress(BranchNotFoundError):
            refs.insert(0, self.ref_of(name))
        return tuple(refs)

    def find(self, name: BranchName, *, taken: TakenNames | None = None) -> Branch | None:
        """A branch by its name; None is main, which was never created.

        Args:
            taken: A fresh listing: a record that is the same in it as when it was read before is
                not read again.
        """
        if name.is_main:
            return None
        with self._lock:
            read = self._last_read.get(name)
        if taken is not None and read is not None and read.stored.tag == taken.tags.get(read.path):
            return read.branch
        if (record := self._read_record(name)) is None:
            raise self._not_found(name)
        return record.branch

    def _not_found(self, name: BranchName) -> BranchNotFoundError:
        known = self.names()
        message = f"the graph {self._store.root.uri} has no branch {name}"
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"it has {', '.join(known)}"
        return BranchNotFoundError(message, hint=hint)

    def survey(self) -> Survey:
        """Every branch but main; reads each record."""
        branches: list[Branch] = []
        unreadable: dict[BranchName, StorageError] = {}
        for name in self.names():
            try:
                branch = self.find(name)
            except BranchNotFoundError:
                # It was deleted after `names` listed it.
                continue
            except StorageError as failure:
                unreadable[name] = failure
                continue
            if branch is not None:
                branches.append(branch)
        return Survey(tuple(branches), unreadable)

    def register(self, branch: Branch) -> None:
        """Give a branch its name: from then on it exists."""
        assert branch.created_at is not None, "branches that are registered have it"
        for _ in range(_CHANGES_MAX):
            if self._store.objects.put_if_absent(record_path(branch.name), _encode(branch)):
                return
            # A lost response may have been retried, so the stored record decides.
            record = self._read_record(branch.name)
            if record is not None and record.branch.ref != branch.ref:
                raise self.name_taken_error(branch.name)
            if record is not None:
                return
            self.clear_tombstone(branch.name, branch.created_at)
        raise _busy_error(branch.name)

    def clear_tombstone(self, name: BranchName, now: datetime) -> None:
        """Delete the tombstone of a name whose deletion was killed before its last step."""
        stored = self._store.objects.read(record_path(name))
        if stored is not None and _is_old_tombstone(stored.data, now):
            self._store.objects.delete(record_path(name))

    def name_taken_error(self, name: BranchName) -> AlreadyExistsError:
        """The error for a name that another branch has."""
        message = f"the graph {self._store.root.uri} already has a branch {name}"
        hint = "choose another name, or delete that branch first"
        return AlreadyExistsError(message, hint=hint, code=ErrorCode.BRANCH_EXISTS)

    def mark(self, branch: Branch, now: datetime, *, head: CommitId | None = None) -> None:
        """Mark a branch as being deleted; it keeps its name meanwhile.

        An existing mark is not changed.

        Args:
            head: The commit that it must be at; None if it is deleted in any case.
        """
        self._change(branch, lambda record: replace(record, ending_since=now, ending_head=head))

    def withdraw(self, branch: Branch) -> None:
        """Remove the mark of a deletion that will not happen."""
        self._change(branch, lambda record: replace(record, ending_since=None, ending_head=None))
        self.forget(RetiredBranch(branch.name, branch.ref))

    def _change(self, branch: Branch, change: Callable[[Branch], Branch]) -> None:
        for _ in range(_CHANGES_MAX):
            record = self._require_record(branch)
            changed = change(record.branch)
            if record.branch.is_ending == changed.is_ending:
                return
            if self._replace(record, _encode(changed)):
                return
        raise _busy_error(branch.name)

    def _replace(self, record: _StoredRecord, data: bytes) -> bool:
        return self._store.objects.update(record.path, data, expecting=record.stored.tag)

    def retire(self, branch: Branch, now: datetime, *, head: CommitId | None = None) -> None:
        """Delete a branch: it loses its name, and its ref is kept for branches that merged it.

        May be called again for a half-retired branch.

        Args:
            head: The commit that it must be at; None if it is deleted in any case.
        """
        self._require_record(branch)
        self._store.objects.put(*encode_retired(branch, now, head=head))
        hit(Failpoint.BRANCH_AFTER_RETIRE)
        self.unregister(branch, now)

    def read_stored(self, branch: Branch) -> dict[str, bytes]:
        """The record of a branch as it is stored, by its path."""
        record = self._require_record(branch)
        return {record.path: record.stored.data}

    def users_of(self, branch: Branch) -> tuple[BranchName, ...]:
        """The branches created from this one whose records can be read."""
        others = self.survey().branches
        return tuple(sorted(other.name for other in others if other.source_ref == branch.ref))

    def unregister(self, branch: Branch, now: datetime) -> None:
        """Remove a branch's name: from then on the branch does not exist."""
        for _ in range(_CHANGES_MAX):
            record = self._require_record(branch)
            # There is no conditional delete, but there is a conditional update. While the tombstone
            # exists, the name cannot be registered.
            if self._replace(record, _tombstone(now)):
                self._store.objects.delete(record.path)
                return
        raise _busy_error(branch.name)

    def retired_refs(self) -> tuple[RetiredBranch, ...]:
        """The deleted branches without the contents of their records; one request."""
        branches = map(_parse_retired_path, self._store.objects.list(RETIRED))
        return tuple(branch for branch in branches if branch is not None)

    def retired_branches(self) -> tuple[RetiredBranch, ...]:
        """The deleted branches; reads each record."""
        return tuple(map(self._read_retired, self.retired_refs()))

    def forget(self, retired: RetiredBranch) -> None:
        """Delete the record of a deleted branch."""
        self._store.objects.delete(retired_path(retired.name, retired.ref))

    def _read_retired(self, retired: RetiredBranch) -> RetiredBranch:
        stored = self._store.objects.read(retired_path(retired.name, retired.ref))
        try:
            record: dict[str, Any] = {} if stored is None else json.loads(stored.data)
            retired_at = datetime.fromisoformat(record["retired_at"]).astimezone(UTC)
            head = None if record.get("head") is None else CommitId.parse(record["head"])
            source_ref = record["source_ref"]
            return replace(retired, retired_at=retired_at, source_ref=source_ref, head=head)
        except (ValueError, KeyError, TypeError):
            # Without a time it is never cleaned up, as long as its record is unreadable.
            return retired

    def _require_record(self, branch: Branch) -> _StoredRecord:
        record = self._read_record(branch.name)
        if record is None or record.branch.ref != branch.ref:
            raise self._not_found(branch.name)
        return record

    def _read_record(self, name: BranchName) -> _StoredRecord | None:
        path = record_path(name)
        stored = self._store.objects.read(path)
        if stored is None or _is_tombstone(stored.data):
            return None
        record = _StoredRecord(path, stored, _decode(name, path, stored.data))
        with self._lock:
            self._last_read.pop(name, None)
            while len(self._last_read) >= MANIFEST_STATES_MAX:
                del self._last_read[next(iter(self._last_read))]
            self._last_read[name] = record
        return record


def encode_retired(
    branch: Branch, now: datetime, *, head: CommitId | None = None
) -> tuple[str, bytes]:
    """The record of a deleted branch, with its path."""
    record = {
        "format": 1,
        "retired_at": now.isoformat(),
        "source_ref": branch.source_ref,
        "head": head,
    }
    return retired_path(branch.name, branch.ref), json.dumps(record, indent=1).encode()


def branch_of(path: str) -> BranchName | None:
    """The branch whose record is at a path below `BRANCHES`; None if it is no record.

    >>> branch_of("__branches/review=1.json"), branch_of("__branches/.DS_Store")
    ('review/1', None)
    """
    stem = path.removeprefix(f"{BRANCHES}/").removesuffix(_SUFFIX)
    if not path.endswith(_SUFFIX):
        return None
    with suppress(InvalidNameError):
        return BranchName.parse(stem.replace(_SLASH, "/"))
    return None


def record_path(name: BranchName) -> str:
    """The path of a branch's record below the graph's root."""
    # Nested folders would collide with names that end in the suffix, and outlive their branches.
    return f"{BRANCHES}/{name.replace('/', _SLASH)}{_SUFFIX}"


def retired_path(name: BranchName, ref: str) -> str:
    """The path of the record of a deleted branch below the graph's root."""
    return f"{RETIRED}/{name.replace('/', _SLASH)}{_BEFORE_REF}{ref}{_SUFFIX}"


def _parse_retired_path(path: str) -> RetiredBranch | None:
    stem = path.removeprefix(f"{RETIRED}/").removesuffix(_SUFFIX)
    name, separator, ref = stem.partition(_BEFORE_REF)
    if not separator or not path.endswith(_SUFFIX) or not is_ulid(ref):
        return None
    with suppress(InvalidNameError):
        return RetiredBranch(BranchName.parse(name.replace(_SLASH, "/")), ref)
    return None


def _busy_error(name: BranchName) -> ConflictError:
    message = f"branch {name} is being deleted by another process"
    return ConflictError(message, hint="check whether it still exists, then try again")


def _tombstone(now: datetime) -> bytes:
    return json.dumps({"format": 1, "ref": None, "deleted_at": now.isoformat()}).encode()


def _deleted_at(data: bytes) -> datetime | None:
    """When a tombstone was written; None if the data is not a tombstone."""
    try:
        record = json.loads(data)
        if record["ref"] is not None:
            return None
        return datetime.fromisoformat(record["deleted_at"]).astimezone(UTC)
    except (ValueError, KeyError, TypeError):
        return None


def _is_tombstone(data: bytes) -> bool:
    return _deleted_at(data) is not None


def _is_old_tombstone(data: bytes, now: datetime) -> bool:
    deleted_at = _deleted_at(data)
    return deleted_at is not None and now - deleted_at > timedelta(seconds=LEASE_SECONDS)


def _encode(branch: Branch) -> bytes:
    assert branch.created_at is not None, "this release records it for every branch"
    record = {
        "format": 1,
        "ref": branch.ref,
        "source_ref": branch.source_ref,
        "source_commit": branch.source_commit,
        "created_at": branch.created_at.isoformat(),
        "ending_since": None if branch.ending_since is None else branch.ending_since.isoformat(),
        "ending_head": branch.ending_head,
    }
    return json.dumps(record, indent=1).encode()


def _decode(name: BranchName, path: str, data: bytes) -> Branch:
    try:
        record = json.loads(data)
        created_at = datetime.fromisoformat(record["created_at"])
        since, head = record.get("ending_since"), record.get("ending_head")
        return Branch(
            name,
            ref=str(record["ref"]),
            source_ref=record["source_ref"],
            source_commit=CommitId.parse(record["source_commit"]),
            created_at=created_at,
            ending_since=None if since is None else datetime.fromisoformat(since).astimezone(UTC),
            ending_head=None if head is None else CommitId.parse(head),
        )
    except (ValueError, KeyError, TypeError) as cause:
        message = f"the record of branch {name}, {path}, cannot be read"
        raise corruption_error(message) from cause
