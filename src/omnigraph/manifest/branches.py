"""Branch names: small objects that say which ref of the manifest carries each branch.

A ref's name is never used twice (docs/decisions/0007), and people want theirs again: so a ref is
named by an id, and its branch's name is an object that can be made, in one atomic step, exactly
once. Branches of older graphs have no such object: there the ref itself has the branch's name.
"""

from __future__ import annotations

import difflib
import json
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from omnigraph.clock import is_ulid
from omnigraph.errors import (
    AlreadyExistsError,
    BranchNotFoundError,
    ConflictError,
    ErrorCode,
)
from omnigraph.manifest.layout import BRANCHES, MANIFEST
from omnigraph.manifest.rows import corrupted
from omnigraph.model.ids import CommitId
from omnigraph.model.names import MAIN, BranchName
from omnigraph.storage.store import Store

_SUFFIX: Final = ".json"
_MARKS_MAX: Final = 5


@dataclass(frozen=True, slots=True)
class Branch:
    """A branch and where it came from.

    Attributes:
        ref: The ref of the manifest that carries it; also what the refs of its own tables start
            with.
        source_ref: The ref it was made from; None is main's.
        source_commit: The commit it started at; None where nobody wrote that down.
        is_ending: Whether it is being deleted: no branch may be made from it any more.
    """

    name: BranchName
    ref: str
    source_ref: str | None = None
    source_commit: CommitId | None = None
    created_at: datetime | None = None
    is_ending: bool = False

    @property
    def is_legacy(self) -> bool:
        """Whether an older release made it: then the ref has the name, and is the authority."""
        return self.ref == self.name

    def owns(self, table_ref: str | None) -> bool:
        """Whether a table's ref was made for this branch."""
        if table_ref is None:
            return False
        # Older releases gave every table's ref the branch's name.
        return table_ref == self.ref or table_ref.startswith(f"{self.ref}/")


class Branches:
    """The names of one graph's branches."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._has_legacy = True

    def names(self) -> tuple[BranchName, ...]:
        """Every branch people can name, main first."""
        found = sorted({*self._listed(), *self._unregistered()})
        return (MAIN, *map(BranchName, found))

    def taken_names(self) -> tuple[BranchName, ...]:
        """Like `names`, for who makes another: older branches are looked for but once.

        Graphs that can be written have the newest format, and releases that made branches without
        registering them cannot write those.
        """
        return self.names() if self._has_legacy else (MAIN, *map(BranchName, self._listed()))

    def _listed(self) -> list[str]:
        paths = self._store.objects.list(BRANCHES)
        return sorted(path.removeprefix(f"{BRANCHES}/").removesuffix(_SUFFIX) for path in paths)

    def ref_of(self, name: BranchName) -> str | None:
        """The ref of the manifest that carries a branch; Lance spells its own main as None.

        Raises:
            BranchNotFoundError: the graph has no such branch.
        """
        found = self.find(name)
        return None if found is None else found.ref

    def find(self, name: BranchName) -> Branch | None:
        """A branch by its name; None is main, which was never made.

        Raises:
            BranchNotFoundError: the graph has no such branch.
        """
        if name.is_main:
            return None
        if (registered := self._registered(name)) is not None:
            return registered
        if name in self._unregistered():
            return Branch(name, str(name))
        raise self._missing(name)

    def _missing(self, name: BranchName) -> BranchNotFoundError:
        known = self.names()
        message = f"the graph {self._store.root.uri} has no branch {name}"
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"it has {', '.join(known)}"
        return BranchNotFoundError(message, hint=hint)

    def every(self) -> tuple[Branch, ...]:
        """Every branch but main; reads each."""
        found = []
        for name in self.names():
            # One that goes while we look is left out.
            with suppress(BranchNotFoundError):
                found.append(self.find(name))
        return tuple(each for each in found if each is not None)

    def register(self, branch: Branch) -> None:
        """Give a branch its name: from then on it exists.

        Raises:
            AlreadyExistsError: the name is taken. What holds it is untouched.
        """
        # The first answer may be lost and the request repeated, so what counts is what is there.
        if self._store.objects.put_if_absent(_path(branch.name), _encode(branch)):
            return
        held = self._registered(branch.name)
        if held is None or held.ref != branch.ref:
            raise self.taken(branch.name)

    def taken(self, name: BranchName) -> AlreadyExistsError:
        """What to raise where a name is asked for that another branch has."""
        message = f"the graph {self._store.root.uri} already has a branch {name}"
        hint = "choose another name, or delete that branch first"
        return AlreadyExistsError(message, hint=hint, code=ErrorCode.BRANCH_EXISTS)

    def mark(self, branch: Branch, *, is_ending: bool) -> None:
        """Write down whether a branch is being deleted; its name stays meanwhile.

        Raises:
            BranchNotFoundError: it is gone. Another that has its name is untouched.
            ConflictError: others kept changing it.
        """
        path = _path(branch.name)
        for _ in range(_MARKS_MAX):
            stored = self._store.objects.read(path)
            held = None if stored is None else _decode(branch.name, stored.data)
            if stored is None or held is None or held.ref != branch.ref:
                raise self._missing(branch.name)
            if held.is_ending == is_ending:
                return
            marked = _encode(replace(held, is_ending=is_ending))
            if self._store.objects.update(path, marked, expecting=stored.tag):
                return
        message = f"the branch {branch.name} is being deleted by others"
        raise ConflictError(message, hint="look whether it is still there")

    def unregister(self, branch: Branch) -> None:
        """Take a branch's name away: from then on it does not exist.

        Raises:
            BranchNotFoundError: it is gone. Another that has its name is untouched.
        """
        held = self._registered(branch.name)
        if held is None or held.ref != branch.ref:
            raise self._missing(branch.name)
        self._store.objects.delete(_path(branch.name))

    def _registered(self, name: BranchName) -> Branch | None:
        stored = self._store.objects.read(_path(name))
        return None if stored is None else _decode(name, stored.data)

    def _unregistered(self) -> tuple[str, ...]:
        """Branches of older graphs, by the refs that carry them."""
        refs = self._store.refs.list(MANIFEST)
        found = tuple(ref for ref in refs if not ref.startswith("__") and not is_ulid(ref))
        self._has_legacy = bool(found)
        return found


def _path(name: BranchName) -> str:
    return f"{BRANCHES}/{name}{_SUFFIX}"


def _encode(branch: Branch) -> bytes:
    assert branch.created_at is not None, "branches that are made now have it"
    record = {
        "format": 1,
        "ref": branch.ref,
        "source_ref": branch.source_ref,
        "source_commit": branch.source_commit,
        "created_at": branch.created_at.isoformat(),
        "is_ending": branch.is_ending,
    }
    return json.dumps(record, indent=1).encode()


def _decode(name: BranchName, data: bytes) -> Branch:
    try:
        record = json.loads(data)
        return Branch(
            name,
            ref=str(record["ref"]),
            source_ref=record["source_ref"],
            source_commit=CommitId.parse(record["source_commit"]),
            created_at=datetime.fromisoformat(record["created_at"]),
            is_ending=bool(record.get("is_ending")),
        )
    except (ValueError, KeyError, TypeError) as cause:
        message = f"the branch {_path(name)} cannot be read"
        raise corrupted(message) from cause
