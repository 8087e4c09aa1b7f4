"""The record of the commits that expired: by ref of the manifest, versions, times and rules.

A cleanup marks a commit before it removes anything, then looks once more whether the commit is
needed, and confirms the mark. Whoever creates a branch or a tag at a commit writes it first and
then claims the commit here: an unconfirmed mark is taken back, and a confirmed one refuses. So at
least one of the two sees the other (docs/decisions/0014).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

from omnigraph.errors import (
    CommitLetGoError,
    ConflictError,
    ErrorCode,
    FormatError,
    StorageError,
)
from omnigraph.manifest.layout import RETENTION
from omnigraph.manifest.rows import corruption_error
from omnigraph.model.commits import Commit
from omnigraph.model.ids import OperationId
from omnigraph.model.let_go import LetGo
from omnigraph.model.names import MAIN, BranchName
from omnigraph.storage.objects import Objects
from omnigraph.wording import format_instant

LET_GO_ATTEMPTS_MAX: Final = 20
"""Times that a change of the record of let-go commits is tried while others change it."""


_FORMAT: Final = 1
_SUFFIX: Final = ".json"


@dataclass(frozen=True, slots=True)
class _Entry:
    """Versions of one ref that one cleanup let go, or marked.

    Attributes:
        run: The cleanup, for a mark that it has not confirmed.
    """

    let_go: LetGo
    versions: frozenset[int]
    run: OperationId | None = None


@dataclass(frozen=True, slots=True)
class RefRecord:
    """Which versions of one ref of the manifest expired, and which are marked."""

    confirmed: tuple[_Entry, ...] = ()
    marked: tuple[_Entry, ...] = ()

    def find(self, version: int) -> LetGo | None:
        """When and why a version expired; None if it did not."""
        return next((each.let_go for each in self.confirmed if version in each.versions), None)

    @property
    def versions(self) -> frozenset[int]:
        """The versions that expired."""
        return frozenset().union(*(each.versions for each in self.confirmed))


@dataclass(frozen=True, slots=True)
class LetGoRecord:
    """The record of every ref.

    Attributes:
        unreadable: By path, the errors of what cannot be read.
    """

    by_ref: Mapping[str | None, RefRecord]
    unreadable: Mapping[str, StorageError | FormatError] = field(default_factory=dict)

    def find(self, commit: Commit) -> LetGo | None:
        """When and why a commit expired; None if it did not."""
        record = self.by_ref.get(commit.ref) if commit.has_known_ref else None
        return None if record is None else record.find(commit.manifest_version)


class LetGoCommits:
    """The record of one graph."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    def find(self, ref: str | None, version: int) -> LetGo | None:
        """When and why a version of the manifest expired; None if it did not. One request."""
        return self._read(ref)[0].find(version)

    def require(self, commit: Commit) -> None:
        """Reject a commit that expired. One request."""
        if commit.has_known_ref and (gone := self.find(commit.ref, commit.manifest_version)):
            raise let_go_error(commit, gone)

    def read(self) -> LetGoRecord:
        """The record of every ref."""
        by_ref: dict[str | None, RefRecord] = {}
        unreadable: dict[str, StorageError | FormatError] = {}
        for path in filter(is_let_go_path, self._objects.list(RETENTION)):
            ref = _ref_of(path)
            try:
                by_ref[ref] = self._read(ref)[0]
            except (StorageError, FormatError) as failure:
                unreadable[path] = failure
        return LetGoRecord(by_ref, unreadable)

    def mark(
        self, run: OperationId, versions: Mapping[str | None, Collection[int]], why: LetGo
    ) -> None:
        """Mark versions of refs, before a cleanup looks once more whether they are needed."""
        for ref, some in versions.items():
            entry = _Entry(why, frozenset(some), run)
            self._change(ref, partial(_with_mark, entry=entry))

    def confirm(
        self, run: OperationId, needed: Mapping[str | None, Collection[int]]
    ) -> dict[str | None, frozenset[int]]:
        """Let go what a cleanup marked, but for what is needed after all.

        Args:
            needed: By ref, versions whose marks are taken back.

        Returns:
            By ref, the versions that expired: those that others claimed meanwhile are not.
        """
        confirmed: dict[str | None, frozenset[int]] = {}
        for ref, record in self.read().by_ref.items():
            marked = [each.versions for each in record.marked if each.run == run]
            if marked:
                spared = frozenset(needed.get(ref, ()))
                changed = self._change(ref, partial(_confirm, run=run, spared=spared))
                confirmed[ref] = frozenset().union(*marked) & changed.versions
        return confirmed

    def claim(self, commit: Commit) -> None:
        """Take back the marks of a commit that a new branch or tag needs.

        The branch or tag has to be visible by now: a cleanup that marks the commit later sees it.
        """
        if not commit.has_known_ref:
            return
        version = commit.manifest_version
        record = self._change(commit.ref, partial(_without_marks, version=version))
        if gone := record.find(version):
            raise let_go_error(commit, gone)

    def forget_marks(self, before: datetime) -> None:
        """Remove the marks that cleanups left behind which were killed before a time."""
        for ref, record in self.read().by_ref.items():
            if any(each.let_go.at < before for each in record.marked):
                self._change(ref, partial(_without_old_marks, before=before))

    def _change(self, ref: str | None, change: Callable[[RefRecord], RefRecord]) -> RefRecord:
        for _ in range(LET_GO_ATTEMPTS_MAX):
            record, tag = self._read(ref)
            changed = change(record)
            if changed == record:
                return record
            data = _encode(changed)
            if tag is None:
                is_stored = self._objects.put_if_absent(let_go_path(ref), data)
            else:
                is_stored = self._objects.update(let_go_path(ref), data, expecting=tag)
            if is_stored:
                return changed
        message = f"other processes kept changing {let_go_path(ref)}"
        raise ConflictError(message, hint="try again", code=ErrorCode.OBJECT_CHANGED)

    def _read(self, ref: str | None) -> tuple[RefRecord, str | None]:
        path = let_go_path(ref)
        stored = self._objects.read(path)
        if stored is None:
            return RefRecord(), None
        return _decode(path, stored.data), stored.tag


def let_go_error(commit: Commit, gone: LetGo) -> CommitLetGoError:
    """The error for reading a commit that expired."""
    return _error(f"commit {commit.commit_id}", gone, commit_id=commit.commit_id)


def let_go_version_error(branch: BranchName, version: int, gone: LetGo) -> CommitLetGoError:
    """The error for reading a version of a branch whose commit expired."""
    return _error(f"version {version} of branch {branch}", gone, version=version)


def _error(what: str, gone: LetGo, **details: Any) -> CommitLetGoError:
    message = f"{what} expired on {gone}, and what it read was removed"
    hint = "see 'omnigraph log' for the commits that are kept; a tag keeps a commit"
    at = format_instant(gone.at)
    return CommitLetGoError(message, hint=hint, let_go_at=at, rule=gone.rule, **details)


def let_go_path(ref: str | None) -> str:
    """The path of the record of a ref below the graph's root."""
    return f"{RETENTION}/{ref or MAIN}{_SUFFIX}"


def is_let_go_path(path: str) -> bool:
    """Whether a path in the folder of the record is one of ours.

    >>> is_let_go_path("__retention/main.json"), is_let_go_path("__retention/notes.txt")
    (True, False)
    """
    return path.endswith(_SUFFIX) and path.count("/") == 1


def _ref_of(path: str) -> str | None:
    name = path.removeprefix(f"{RETENTION}/").removesuffix(_SUFFIX)
    return None if name == MAIN else name


def _with_mark(record: RefRecord, entry: _Entry) -> RefRecord:
    others = tuple(each for each in record.marked if each.run != entry.run)
    return replace(record, marked=(*others, entry))


def _confirm(record: RefRecord, run: OperationId, spared: frozenset[int]) -> RefRecord:
    mine = [each for each in record.marked if each.run == run]
    others = tuple(each for each in record.marked if each.run != run)
    confirmed = (replace(each, versions=each.versions - spared, run=None) for each in mine)
    new = tuple(each for each in confirmed if each.versions)
    return RefRecord((*record.confirmed, *new), others)


def _without_marks(record: RefRecord, version: int) -> RefRecord:
    rest = (replace(each, versions=each.versions - {version}) for each in record.marked)
    return replace(record, marked=tuple(each for each in rest if each.versions))


def _without_old_marks(record: RefRecord, before: datetime) -> RefRecord:
    marked = tuple(each for each in record.marked if each.let_go.at >= before)
    return replace(record, marked=marked)


def _encode(record: RefRecord) -> bytes:
    fields = {
        "format": _FORMAT,
        "let_go": [_encode_entry(each) for each in record.confirmed],
        "marked": [_encode_entry(each) for each in record.marked],
    }
    return json.dumps(fields, indent=1).encode()


def _encode_entry(entry: _Entry) -> dict[str, Any]:
    fields = {
        "at": entry.let_go.at.isoformat(),
        "rule": entry.let_go.rule,
        "versions": [list(each) for each in _ranges(entry.versions)],
    }
    return fields if entry.run is None else {"run": entry.run, **fields}


def _ranges(versions: Iterable[int]) -> Iterator[tuple[int, int]]:
    """The first and last version of each gapless range."""
    first = last = None
    for version in sorted(versions):
        if last is None or first is None:
            first = version
        elif version != last + 1:
            yield first, last
            first = version
        last = version
    if first is not None and last is not None:
        yield first, last


def _decode(path: str, data: bytes) -> RefRecord:
    try:
        fields = json.loads(data)
        found = int(fields["format"])
    except (ValueError, KeyError, TypeError) as cause:
        raise _unreadable_error(path) from cause
    if found > _FORMAT:
        message = f"{path} has format {found}, and this release reads {_FORMAT}"
        code = ErrorCode.FORMAT_TOO_NEW
        raise FormatError(
            message, hint="upgrade omnigraph", code=code, found=found, supported=_FORMAT
        )
    try:
        return RefRecord(
            tuple(map(_decode_entry, fields["let_go"])), tuple(map(_decode_entry, fields["marked"]))
        )
    except (ValueError, KeyError, TypeError, AttributeError) as cause:
        raise _unreadable_error(path) from cause


def _decode_entry(fields: Mapping[str, Any]) -> _Entry:
    at = datetime.fromisoformat(fields["at"]).astimezone(UTC)
    ranges = ((int(first), int(last)) for first, last in fields["versions"])
    versions = frozenset(version for first, last in ranges for version in range(first, last + 1))
    run = fields.get("run")
    return _Entry(
        LetGo(at, str(fields["rule"])), versions, None if run is None else OperationId(run)
    )


def _unreadable_error(path: str) -> StorageError:
    return corruption_error(f"the record of commits that expired, {path}, cannot be read")
