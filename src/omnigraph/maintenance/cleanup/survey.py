"""The survey of a graph: its branches, tags, unfinished writes and commits at one moment.

What a cleanup may remove was listed before the survey is made. Sidecars are read before branches: a
write that settles meanwhile has published what it made, so the branches show it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, TypeAlias

from omnigraph.errors import (
    BranchNotFoundError,
    CommitNotFoundError,
    FormatError,
    NotFoundError,
    OmnigraphError,
    StorageError,
)
from omnigraph.limits import CLEANUP_THREADS
from omnigraph.maintenance.retention import Needs
from omnigraph.manifest.branches import Branch, RetiredBranch
from omnigraph.manifest.let_go import LetGoRecord
from omnigraph.manifest.reader import Manifest, OpenManifest
from omnigraph.manifest.rows import Contents
from omnigraph.model.commits import Commit
from omnigraph.model.ids import CommitId
from omnigraph.model.names import MAIN, BranchName
from omnigraph.model.tags import Tag
from omnigraph.recovery.intents import Intent
from omnigraph.recovery.sidecars import Sidecars

Place: TypeAlias = tuple[str | None, int]
"""A ref of the manifest, and a version of it."""


_UNKNOWN: Final = datetime.max.replace(tzinfo=UTC)
"""When a branch was deleted whose record cannot be read: perhaps just now."""


@dataclass(frozen=True, slots=True)
class GraphSurvey:
    """What refers to commits and tables of a graph.

    Attributes:
        intents: The unfinished writes.
        tips: The existing branches as they are now.
        branches: The records of the existing branches, main left out.
        retired: The deleted branches.
        record: Which commits expired.
        commits: Every commit in the history of a branch or of a tag.
        heads: By branch, its newest commit.
        unnamed: Those of the commits that only branches have which were deleted a moment ago.
        left: The newest commits of these branches, and when the branches were deleted.
        failures: What cannot be read. Then anything may be needed.
    """

    intents: tuple[Intent, ...]
    tips: Mapping[BranchName, OpenManifest]
    branches: tuple[Branch, ...]
    tags: tuple[Tag, ...]
    retired: tuple[RetiredBranch, ...]
    record: LetGoRecord
    commits: Mapping[CommitId, Commit]
    heads: Mapping[BranchName, CommitId]
    unnamed: frozenset[CommitId]
    left: Mapping[CommitId, datetime]
    failures: tuple[OmnigraphError, ...]

    @property
    def living(self) -> dict[str | None, OpenManifest]:
        """By ref, the branches that exist."""
        return {opened.table.address.ref: opened for opened in self.tips.values()}

    @property
    def needs(self) -> Needs:
        """The commits that are needed, whatever rules say."""
        writes = {commit_id for intent in self.intents for commit_id in intent.named_commits}
        retired_at = {branch.ref: branch.retired_at for branch in self.retired}
        newest: dict[str, Commit] = {}
        for commit in self.commits.values():
            if commit.ref in retired_at:
                last = newest.setdefault(commit.ref, commit)
                if commit.manifest_version > last.manifest_version:
                    newest[commit.ref] = commit
        ended = {
            commit.commit_id: at
            for ref, commit in newest.items()
            if (at := retired_at[ref]) is not None
        }
        tags = [tag.commit_id for tag in self.tags]
        return Needs(self.heads, tags, writes, ended, self.unnamed, self.left)

    def is_let_go(self, commit: Commit) -> bool:
        """Whether a commit expired."""
        return self.record.find(commit) is not None


def survey_graph(manifest: Manifest, sidecars: Sidecars, *, since: datetime) -> GraphSurvey:
    """Read everything that refers to commits.

    Args:
        since: The commits of branches that were deleted after this time are included: somebody may
            still read them.
    """
    intents = sidecars.find().require_readable()
    names = manifest.names.survey()
    failures: list[OmnigraphError] = list(names.unreadable.values())
    tips = {MAIN: manifest.open(MAIN)}
    for branch in names.branches:
        try:
            tips[branch.name] = manifest.open(branch.name)
        except (BranchNotFoundError, StorageError, FormatError) as failure:
            # Where it was deleted meanwhile, the next cleanup knows what it needed.
            failures.append(failure)
    tagged = manifest.tags.survey()
    failures += tagged.unreadable.values()
    retired = manifest.names.retired_branches()
    record = manifest.let_go.read()
    for unreadable in record.unreadable.values():
        raise unreadable
    heads = {name: manifest.snapshot(opened, name).head for name, opened in tips.items()}
    commits = {head.commit_id: head for head in heads.values()}
    recent = [each for each in retired if each.retired_at is None or each.retired_at > since]
    pages: set[str] = set()
    for commit in _read_commits(manifest, tips, tagged.tags, pages):
        commits.setdefault(commit.commit_id, commit)
    named = frozenset(commits)
    left: dict[CommitId, datetime] = {}
    for ended, opened in _open_retired(manifest, recent):
        for commit in manifest.every_commit(opened, pages):
            commits.setdefault(commit.commit_id, commit)
        if opened.contents.head is not None:
            at = ended.retired_at or _UNKNOWN
            left[opened.contents.head] = max(at, left.get(opened.contents.head, at))
    for intent in intents:
        source = intent.merged_parent
        if source is not None and source not in commits:
            # Its branch was deleted while it was merged.
            with suppress(CommitNotFoundError):
                commits[source] = manifest.find(source, among_retired=True)
    return GraphSurvey(
        intents,
        tips,
        names.branches,
        tagged.tags,
        retired,
        record,
        commits,
        {name: head.commit_id for name, head in heads.items()},
        frozenset(commits) - named,
        left,
        tuple(failures),
    )


def _read_commits(
    manifest: Manifest,
    tips: Mapping[BranchName, OpenManifest],
    tags: Iterable[Tag],
    pages: set[str],
) -> Iterator[Commit]:
    # Branches share most pages of their lineage.
    for opened in tips.values():
        yield from manifest.every_commit(opened, pages)
    refs = {opened.table.address.ref for opened in tips.values()}
    for tag in tags:
        if tag.ref in refs:
            continue
        # Its branch was deleted. Where its commit expired, nothing of it is needed.
        with suppress(NotFoundError):
            opened = manifest.open_version(tag.ref, tag.manifest_version)
            yield from manifest.every_commit(opened, pages)


def _open_retired(
    manifest: Manifest, retired: Iterable[RetiredBranch]
) -> Iterator[tuple[RetiredBranch, OpenManifest]]:
    for branch in retired:
        with suppress(NotFoundError):
            yield branch, manifest.open_ref(branch.ref)


def read_contents(manifest: Manifest, places: Iterable[Place]) -> dict[Place, Contents]:
    """The contents of versions of the manifest; those that expired meanwhile are left out."""

    def read(place: Place) -> Contents | None:
        try:
            return manifest.contents_at(*place)
        except NotFoundError as missing:
            if manifest.let_go.find(*place) is not None:
                return None
            message = f"a commit that is kept cannot be read: {missing.message}"
            raise StorageError(message, hint="see 'omnigraph check --history'") from missing

    return _in_parallel(read, tuple(places))


def _in_parallel(
    read: Callable[[Place], Contents | None], places: tuple[Place, ...]
) -> dict[Place, Contents]:
    with ThreadPoolExecutor(CLEANUP_THREADS) as pool:
        read_contents = zip(places, pool.map(read, places), strict=True)
        return {place: contents for place, contents in read_contents if contents is not None}
