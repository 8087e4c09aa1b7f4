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
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
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
_MARKS_MAX: Final = 5


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
    """

    name: BranchName
    ref: str
    source_ref: str | None = None
    source_commit: CommitId | None = None
    created_at: datetime | None = None
    ending_since: datetime | None = None

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
    """

    name: BranchName
    ref: str
    retired_at: datetime | None = None
    source_ref: str | None = None

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
        """
        # The first answer may be lost and the request repeated, so what counts is what is there.
        if self._store.objects.put_if_absent(record_path(branch.name), _encode(branch)):
            return
        held = self._held(branch.name)
        if held is None or held.branch.ref != branch.ref:
            raise self.taken(branch.name)

    def taken(self, name: BranchName) -> AlreadyExistsError:
        """What to raise where a name is asked for that another branch has."""
        message = f"the graph {self._store.root.uri} already has a branch {name}"
        hint = "choose another name, or delete that branch first"
        return AlreadyExistsError(message, hint=hint, code=ErrorCode.BRANCH_EXISTS)

    def mark(self, branch: Branch, *, ending_since: datetime | None) -> None:
        """Record whether a branch is being deleted; its name stays meanwhile.

        Raises:
            BranchNotFoundError: it is gone. Another that has its name is untouched.
            ConflictError: others kept changing it.
        """
        for _ in range(_MARKS_MAX):
            held = self._held(branch.name)
            if held is None or held.branch.ref != branch.ref:
                raise self._missing(branch.name)
            if held.branch.is_ending == (ending_since is not None):
                return
            marked = _encode(replace(held.branch, ending_since=ending_since))
            if self._store.objects.update(held.path, marked, expecting=held.stored.tag):
                return
        message = f"the branch {branch.name} is being deleted by others"
        raise ConflictError(message, hint="look whether it is still there")

    def retire(self, branch: Branch, now: datetime) -> None:
        """Delete a branch: it has no name from then on, and its ref stays for who merged it.

        May be called again for a branch that is half retired.

        Raises:
            BranchNotFoundError: it is gone. Another that has its name is untouched.
        """
        if not branch.is_legacy:
            self._require_held(branch)
        record = {"format": 1, "retired_at": now.isoformat(), "source_ref": branch.source_ref}
        data = json.dumps(record, indent=1).encode()
        self._store.objects.put_if_absent(_retired_path(branch.name, branch.ref), data)
        hit(Failpoint.BRANCH_AFTER_RETIRE)
        if not branch.is_legacy:
            self.unregister(branch)

    def reinstate(self, branch: Branch) -> None:
        """Give a branch that was just retired its name back.

        Raises:
            AlreadyExistsError: the name was taken meanwhile.
        """
        if not branch.is_legacy:
            self.register(branch)
        self.forget(RetiredBranch(branch.name, branch.ref))

    def users_of(self, branch: Branch) -> tuple[BranchName, ...]:
        """The branches that were created from one, as far as their records can be read."""
        users = (each.name for each in self.survey().branches if each.source_ref == branch.ref)
        return tuple(sorted(users))

    def finish_deletion(self, name: BranchName, now: datetime) -> None:
        """Finish a deletion that was interrupted, or withdraw it where others build on the branch.

        Raises:
            BranchNotFoundError: the graph has no such branch.
            ConflictError: somebody is deleting it right now. It is as it was.
        """
        branch = self.find(name)
        if branch is None or not branch.is_ending:
            return
        if not branch.is_abandoned(now):
            message = f"branch {name} is being deleted"
            raise ConflictError(message, hint="look whether it is still there, then try again")
        if self.users_of(branch):
            self.mark(branch, ending_since=None)
        else:
            self.retire(branch, now)

    def unregister(self, branch: Branch) -> None:
        """Take a branch's name away: from then on it does not exist.

        Raises:
            BranchNotFoundError: it is gone. Another that has its name is untouched.
        """
        self._store.objects.delete(self._require_held(branch).path)

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
            retired_at = datetime.fromisoformat(record["retired_at"])
            return replace(retired, retired_at=retired_at, source_ref=record["source_ref"])
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
            if (stored := self._store.objects.read(path)) is not None:
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
    }
    return json.dumps(record, indent=1).encode()


def _decode(name: BranchName, path: str, data: bytes) -> Branch:
    try:
        record = json.loads(data)
        created_at = datetime.fromisoformat(record["created_at"])
        since = record.get("ending_since")
        if record.get("is_ending") and since is None:
            # An earlier release marked it, and did not record when.
            since = record["created_at"]
        return Branch(
            name,
            ref=str(record["ref"]),
            source_ref=record["source_ref"],
            source_commit=CommitId.parse(record["source_commit"]),
            created_at=created_at,
            ending_since=None if since is None else datetime.fromisoformat(since),
        )
    except (ValueError, KeyError, TypeError) as cause:
        message = f"the record of branch {name}, {path}, cannot be read"
        raise corrupted(message) from cause
