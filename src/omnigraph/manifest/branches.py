"""Branch records: small objects that say which ref of the manifest carries each branch.

A ref's name is never used twice (docs/decisions/0007), and people use a branch's name again: so a
ref is named by an id, and the branch's name is an object that can be created, in one atomic step,
exactly once. A branch that was deleted leaves a record of its ref, because other branches may have
merged its commits (docs/decisions/0008). Branches of older graphs have no record: there the ref
itself has the branch's name.
"""

from __future__ import annotations

import difflib
import json
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
from omnigraph.limits import LEASE_SECONDS
from omnigraph.manifest.layout import BRANCHES, MANIFEST, RETIRED
from omnigraph.manifest.rows import corrupted
from omnigraph.model.ids import CommitId
from omnigraph.model.names import MAIN, BranchName
from omnigraph.storage.objects import StoredObject
from omnigraph.storage.store import Store

_SUFFIX: Final = ".json"
_SLASH: Final = "="
"""What stands for the slash of a branch's name in the name of a file; no branch's name has it."""
_BEFORE_REF: Final = "@"
_CHANGES_MAX: Final = 5


@dataclass(frozen=True, slots=True)
class Branch:
    """A branch and where it came from.

    Attributes:
        ref: The ref of the manifest that carries it; also what the refs of its own tables start
            with.
        source_ref: The ref it was created from; None is main's.
        source_commit: The commit it started at; None where that was not recorded.
        ending_since: When somebody began to delete it: from then on it is neither written to nor
            branched from.
        ending_head: The commit that it must be at for that; None if it is deleted in any case.
    """

    name: BranchName
    ref: str
    source_ref: str | None = None
    source_commit: CommitId | None = None
    created_at: datetime | None = None
    ending_since: datetime | None = None
    ending_head: CommitId | None = None

    @property
    def is_legacy(self) -> bool:
        """Whether an older release created it: then the ref has the name, and is the authority."""
        return self.ref == self.name

    @property
    def is_ending(self) -> bool:
        """Whether it is being deleted."""
        return self.ending_since is not None

    def is_abandoned(self, now: datetime) -> bool:
        """Whether whoever began to delete it had the time to finish, and did not."""
        lease = timedelta(seconds=LEASE_SECONDS)
        return self.ending_since is not None and now - self.ending_since > lease

    def owns(self, table_ref: str | None) -> bool:
        """Whether a table's ref was made for this branch."""
        if table_ref is None:
            return False
        # Older releases gave every table's ref the branch's name.
        return table_ref == self.ref or table_ref.startswith(f"{self.ref}/")


@dataclass(frozen=True, slots=True)
class RetiredBranch:
    """The ref of a branch that was deleted.

    Attributes:
        retired_at: When; None if its record was not read, or cannot be.
        source_ref: The ref it was created from; None is main's.
        head: The commit that it was deleted at; None if it was deleted wherever it was.
    """

    name: BranchName
    ref: str
    retired_at: datetime | None = None
    source_ref: str | None = None
    head: CommitId | None = None

    def owns(self, table_ref: str | None) -> bool:
        """Whether a table's ref was made for this branch."""
        return Branch(self.name, self.ref).owns(table_ref)


@dataclass(frozen=True, slots=True)
class Survey:
    """Every branch but main, as far as their records can be read.

    Attributes:
        unreadable: By name, what is wrong with the records of the others.
    """

    branches: tuple[Branch, ...]
    unreadable: Mapping[BranchName, StorageError]


@dataclass(frozen=True, slots=True)
class _Held:
    """A branch's record, and where it lies."""

    path: str
    stored: StoredObject
    branch: Branch


class Branches:
    """The branch records of one graph."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._has_legacy = True

    def names(self) -> tuple[BranchName, ...]:
        """Every branch people can name, main first."""
        found = sorted({*self._listed(), *self._unregistered()})
        return (MAIN, *map(BranchName, found))

    def taken_names(self) -> tuple[BranchName, ...]:
        """Like `names`, for who creates another: older branches are looked for but once.

        Graphs that can be written have the newest format, and releases that created branches
        without registering them cannot write those.
        """
        return self.names() if self._has_legacy else (MAIN, *sorted(self._listed()))

    def _listed(self) -> Iterator[BranchName]:
        for path in self._store.objects.list(BRANCHES):
            if (name := branch_of(path)) is not None:
                yield name

    def ref_of(self, name: BranchName) -> str | None:
        """The ref of the manifest that carries a branch; Lance spells its own main as None.

        Raises:
            BranchNotFoundError: the graph has no such branch.
        """
        found = self.find(name)
        return None if found is None else found.ref

    def refs_of(self, name: BranchName) -> tuple[str | None, ...]:
        """The ref of the branch that has this name, and those of retired ones that had it."""
        if name.is_main:
            return (None,)
        refs: list[str | None] = [each.ref for each in self.retired_refs() if each.name == name]
        with suppress(BranchNotFoundError):
            refs.insert(0, self.ref_of(name))
        return tuple(refs)

    def find(self, name: BranchName) -> Branch | None:
        """A branch by its name; None is main, which was never created.

        Raises:
            BranchNotFoundError: the graph has no such branch.
        """
        if name.is_main:
            return None
        if (held := self._held(name)) is not None:
            return held.branch
        if name in self._unregistered():
            return Branch(name, str(name))
        raise self._missing(name)

    def _missing(self, name: BranchName) -> BranchNotFoundError:
        known = self.names()
        message = f"the graph {self._store.root.uri} has no branch {name}"
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"it has {', '.join(known)}"
        return BranchNotFoundError(message, hint=hint)

    def survey(self) -> Survey:
        """Every branch but main; reads each record."""
        found: list[Branch] = []
        unreadable: dict[BranchName, StorageError] = {}
        for name in self.names():
            try:
                branch = self.find(name)
            except BranchNotFoundError:
                # It was deleted while we looked.
                continue
            except StorageError as failure:
                unreadable[name] = failure
                continue
            if branch is not None:
                found.append(branch)
        return Survey(tuple(found), unreadable)

    def register(self, branch: Branch) -> None:
        """Give a branch its name: from then on it exists.

        Raises:
            AlreadyExistsError: the name is taken. What holds it is untouched.
            ConflictError: somebody is taking the name from another branch.
        """
        assert branch.created_at is not None, "branches that are registered have it"
        for _ in range(_CHANGES_MAX):
            if self._store.objects.put_if_absent(record_path(branch.name), _encode(branch)):
                return
            # The answer may have been lost, and the request repeated: what counts is what is there.
            held = self._held(branch.name)
            if held is not None and held.branch.ref != branch.ref:
                raise self.taken(branch.name)
            if held is not None:
                return
            self.clear_tombstone(branch.name, branch.created_at)
        raise _busy(branch.name)

    def is_ended(self, name: BranchName) -> bool:
        """Whether a record is but what its deleter left in its last step."""
        stored = self._store.objects.read(record_path(name))
        return stored is not None and _is_tombstone(stored.data)

    def clear_tombstone(self, name: BranchName, now: datetime) -> None:
        """Remove what is left of a name whose deleter was killed in its last step."""
        stored = self._store.objects.read(record_path(name))
        if stored is not None and _is_old_tombstone(stored.data, now):
            self._store.objects.delete(record_path(name))

    def taken(self, name: BranchName) -> AlreadyExistsError:
        """What to raise where a name is asked for that another branch has."""
        message = f"the graph {self._store.root.uri} already has a branch {name}"
        hint = "choose another name, or delete that branch first"
        return AlreadyExistsError(message, hint=hint, code=ErrorCode.BRANCH_EXISTS)

    def mark(self, branch: Branch, now: datetime, *, head: CommitId | None = None) -> None:
        """Record that a branch is being deleted; its name stays meanwhile.

        A mark that is there already stays as it is.

        Args:
            head: The commit that it must be at; None if it is deleted in any case.

        Raises:
            BranchNotFoundError: it is gone. Another that has its name is untouched.
            ConflictError: others kept changing it.
        """
        self._change(branch, lambda held: replace(held, ending_since=now, ending_head=head))

    def withdraw(self, branch: Branch) -> None:
        """Take back the mark of a deletion that does not happen.

        Raises:
            BranchNotFoundError: it is gone. Another that has its name is untouched.
            ConflictError: others kept changing it.
        """
        self._change(branch, lambda held: replace(held, ending_since=None, ending_head=None))
        self.forget(RetiredBranch(branch.name, branch.ref))

    def _change(self, branch: Branch, change: Callable[[Branch], Branch]) -> None:
        for _ in range(_CHANGES_MAX):
            held = self._require_held(branch)
            changed = change(held.branch)
            if held.branch.is_ending == changed.is_ending:
                return
            if self._replace(held, _encode(changed)):
                return
        raise _busy(branch.name)

    def _replace(self, held: _Held, data: bytes) -> bool:
        return self._store.objects.update(held.path, data, expecting=held.stored.tag)

    def retire(self, branch: Branch, now: datetime, *, head: CommitId | None = None) -> None:
        """Delete a branch: it has no name from then on, and its ref stays for who merged it.

        May be called again for a branch that is half retired.

        Args:
            head: The commit that it must be at; None if it is deleted in any case.

        Raises:
            BranchNotFoundError: it is gone. Another that has its name is untouched.
        """
        if not branch.is_legacy:
            self._require_held(branch)
        record = {
            "format": 1,
            "retired_at": now.isoformat(),
            "source_ref": branch.source_ref,
            "head": head,
        }
        data = json.dumps(record, indent=1).encode()
        self._store.objects.put(_retired_path(branch.name, branch.ref), data)
        hit(Failpoint.BRANCH_AFTER_RETIRE)
        if not branch.is_legacy:
            self.unregister(branch, now)

    def reinstate(self, branch: Branch) -> None:
        """Give a branch that was just retired its name back.

        Raises:
            AlreadyExistsError: the name was taken meanwhile.
        """
        self.forget(RetiredBranch(branch.name, branch.ref))
        if not branch.is_legacy:
            self.register(replace(branch, ending_since=None, ending_head=None))

    def users_of(self, branch: Branch) -> tuple[BranchName, ...]:
        """The branches that were created from one, as far as their records can be read."""
        users = (each.name for each in self.survey().branches if each.source_ref == branch.ref)
        return tuple(sorted(users))

    def unregister(self, branch: Branch, now: datetime) -> None:
        """Take a branch's name away: from then on it does not exist.

        Raises:
            BranchNotFoundError: it is gone. Another that has its name is untouched.
            ConflictError: others kept changing it.
        """
        for _ in range(_CHANGES_MAX):
            held = self._require_held(branch)
            # An object cannot be deleted on a condition, but it can be replaced on one. Until it is
            # deleted, nobody can register the name.
            if self._replace(held, _tombstone(now)):
                self._store.objects.delete(held.path)
                return
        raise _busy(branch.name)

    def retired_refs(self) -> tuple[RetiredBranch, ...]:
        """The branches that were deleted, without when; one request."""
        found = map(_retired_of, self._store.objects.list(RETIRED))
        return tuple(each for each in found if each is not None)

    def retired(self) -> tuple[RetiredBranch, ...]:
        """The branches that were deleted; reads each record."""
        return tuple(map(self._read_retired, self.retired_refs()))

    def forget(self, retired: RetiredBranch) -> None:
        """Remove the record of a branch that was deleted."""
        self._store.objects.delete(_retired_path(retired.name, retired.ref))

    def _read_retired(self, retired: RetiredBranch) -> RetiredBranch:
        stored = self._store.objects.read(_retired_path(retired.name, retired.ref))
        try:
            record: dict[str, Any] = {} if stored is None else json.loads(stored.data)
            retired_at = datetime.fromisoformat(record["retired_at"]).astimezone(UTC)
            head = None if record.get("head") is None else CommitId.parse(record["head"])
            source_ref = record["source_ref"]
            return replace(retired, retired_at=retired_at, source_ref=source_ref, head=head)
        except (ValueError, KeyError, TypeError):
            # Nobody knows when: it stays for as long as its record is like that.
            return retired

    def _require_held(self, branch: Branch) -> _Held:
        held = self._held(branch.name)
        if held is None or held.branch.ref != branch.ref:
            raise self._missing(branch.name)
        return held

    def _held(self, name: BranchName) -> _Held | None:
        for path in dict.fromkeys((record_path(name), _nested_path(name))):
            stored = self._store.objects.read(path)
            if stored is not None and not _is_tombstone(stored.data):
                return _Held(path, stored, _decode(name, path, stored.data))
        return None

    def _unregistered(self) -> tuple[str, ...]:
        """Branches of older graphs, by the refs that carry them."""
        refs = self._store.refs.list(MANIFEST)
        found = [ref for ref in refs if not ref.startswith("__") and not is_ulid(ref)]
        self._has_legacy = bool(found)
        if found:
            retired = {each.ref for each in self.retired_refs()}
            found = [ref for ref in found if ref not in retired]
        return tuple(found)


def branch_of(path: str) -> BranchName | None:
    """The branch whose record lies at a path below `BRANCHES`; None for what is no record.

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
    """Where the record of a branch lies, below the graph's root."""
    # Folders of names would collide with names that end in the suffix, and outlive their branches.
    return f"{BRANCHES}/{name.replace('/', _SLASH)}{_SUFFIX}"


def _nested_path(name: BranchName) -> str:
    """Where earlier releases put the record of a branch."""
    return f"{BRANCHES}/{name}{_SUFFIX}"


def _retired_path(name: BranchName, ref: str) -> str:
    own = "" if ref == name else ref
    return f"{RETIRED}/{name.replace('/', _SLASH)}{_BEFORE_REF}{own}{_SUFFIX}"


def _retired_of(path: str) -> RetiredBranch | None:
    name, found, ref = path.removeprefix(f"{RETIRED}/").removesuffix(_SUFFIX).partition(_BEFORE_REF)
    if not found or not path.endswith(_SUFFIX) or not (is_ulid(ref) or not ref):
        return None
    with suppress(InvalidNameError):
        branch = BranchName.parse(name.replace(_SLASH, "/"))
        return RetiredBranch(branch, ref or str(branch))
    return None


def _busy(name: BranchName) -> ConflictError:
    message = f"the branch {name} is being deleted by others"
    return ConflictError(message, hint="look whether it is still there, then try again")


def _tombstone(now: datetime) -> bytes:
    return json.dumps({"format": 1, "ref": None, "deleted_at": now.isoformat()}).encode()


def _deleted_at(data: bytes) -> datetime | None:
    """When a tombstone was written; None if it is none."""
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
    assert branch.created_at is not None, "branches that are created now have it"
    record = {
        "format": 1,
        "ref": branch.ref,
        "source_ref": branch.source_ref,
        "source_commit": branch.source_commit,
        "created_at": branch.created_at.isoformat(),
        # Earlier releases look at this one alone.
        "is_ending": branch.is_ending,
        "ending_since": None if branch.ending_since is None else branch.ending_since.isoformat(),
        "ending_head": branch.ending_head,
    }
    return json.dumps(record, indent=1).encode()


def _decode(name: BranchName, path: str, data: bytes) -> Branch:
    try:
        record = json.loads(data)
        created_at = datetime.fromisoformat(record["created_at"])
        # Earlier releases went on writing to a branch that they had marked, and did not record when
        # they did: such a mark says nothing any more.
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
        raise corrupted(message) from cause
