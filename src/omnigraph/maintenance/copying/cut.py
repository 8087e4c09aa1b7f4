"""The cut: the state of a graph that a copy has, consistent although others write meanwhile.

Names are read first, then the newest version of each ref of the manifest. A merge may have landed
in between, so the histories of these versions are read, too: each ref is copied at least up to the
newest of its commits that any of them has.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from omnigraph.errors import InvalidInputError, NotFoundError
from omnigraph.manifest import schemas
from omnigraph.manifest.branches import encode_retired, retired_path
from omnigraph.manifest.layout import (
    BRANCHES,
    PROPOSALS,
    REQUESTS,
    RETENTION,
    RETIRED,
    SCHEMA_TEXT,
    SETTINGS,
    TAGS,
)
from omnigraph.manifest.let_go import LetGoRecord, let_go_path
from omnigraph.manifest.reader import Manifest, OpenManifest
from omnigraph.manifest.tags import tag_path
from omnigraph.model.commits import Commit
from omnigraph.model.ids import CommitId
from omnigraph.model.names import MAIN, BranchName

MIRRORED: Final = (RETENTION, RETIRED, BRANCHES, TAGS, PROPOSALS, REQUESTS)
"""Folders of small objects that a complete copy has as they are, in the order they are written."""


@dataclass(frozen=True, slots=True)
class GraphCut:
    """One state of a graph.

    Attributes:
        branches: The branches that are copied, main first.
        is_complete: Whether all branches are.
        ends: By ref of the manifest, its newest version.
        tips: By ref, that version.
        commits: Every commit in their histories.
        records: By path, the small objects.
        known_refs: Refs of branches that the source has or had, copied or not.
        let_go: Which commits expired.
    """

    branches: tuple[BranchName, ...]
    is_complete: bool
    ends: Mapping[str | None, int]
    tips: Mapping[str | None, OpenManifest]
    commits: Mapping[CommitId, Commit]
    records: Mapping[str, bytes]
    known_refs: frozenset[str]
    let_go: LetGoRecord


def take_cut(manifest: Manifest, chosen: Collection[BranchName], now: datetime) -> GraphCut:
    """Read the state of a graph.

    Args:
        manifest: A new one, which has cached nothing.
        chosen: The branches to copy besides main; all of them when empty.
    """
    names = manifest.names.survey()
    tagged = manifest.tags.survey()
    for failure in (*names.unreadable.values(), *tagged.unreadable.values()):
        raise failure
    for name in chosen:
        manifest.names.ref_of(name)
    branches = [each for each in names.branches if not chosen or each.name in chosen]
    living = {branch.ref for branch in names.branches}
    retired = [each for each in manifest.names.retired_refs() if each.ref not in living]
    let_go = manifest.let_go.read()
    for unreadable in let_go.unreadable.values():
        raise unreadable
    refs: list[str | None] = [None, *(branch.ref for branch in branches)]
    if not chosen:
        refs += [each.ref for each in retired]
    tips, commits = _read_histories(manifest, refs, {*living, None}, let_go)
    ends = {ref: opened.table.version for ref, opened in tips.items()}
    objects = manifest.store.objects
    text = schemas.load(objects, manifest.snapshot(tips[None], MAIN).schema_digest).text
    records = {SCHEMA_TEXT: text.encode(), **_read(manifest, SETTINGS)}
    for branch in branches:
        records |= manifest.names.read_stored(branch)
    for each in retired:
        if each.ref in ends:
            records |= _read(manifest, retired_path(each.name, each.ref))
    for branch in names.branches:
        # It is not copied, but commits of it were merged: they stay readable without its name.
        if branch not in branches and branch.ref in ends:
            path, data = encode_retired(branch, now)
            records[path] = data
    for tag in tagged.tags:
        if tag.ref in ends and tag.manifest_version <= ends[tag.ref]:
            records |= _read(manifest, tag_path(tag.name))
    # Of some refs, commits in a history are all that is left.
    named = {*ends, *(commit.ref for commit in commits.values())}
    for ref in let_go.by_ref:
        if ref in named or not chosen:
            records |= _read(manifest, let_go_path(ref))
    for folder in () if chosen else (PROPOSALS, REQUESTS):
        for path in objects.list(folder):
            records |= _read(manifest, path)
    return GraphCut(
        (MAIN, *(branch.name for branch in branches)),
        not chosen,
        ends,
        tips,
        commits,
        records,
        frozenset({*living, *(each.ref for each in retired)}),
        let_go,
    )


def _read_histories(
    manifest: Manifest,
    refs: Collection[str | None],
    required: Collection[str | None],
    let_go: LetGoRecord,
) -> tuple[dict[str | None, OpenManifest], dict[CommitId, Commit]]:
    """The newest version of each ref, and others until no history names a newer one."""
    tips: dict[str | None, OpenManifest] = {}
    commits: dict[CommitId, Commit] = {}
    pages: set[str] = set()
    missing: set[tuple[str | None, int]] = set()
    wanted: dict[str | None, int | None] = dict.fromkeys(refs)
    while wanted:
        for ref, version in wanted.items():
            try:
                opened = _open(manifest, ref, version)
            except NotFoundError:
                if version is None and ref in required:
                    raise
                # The branch was deleted long ago, and a cleanup took what was left of it.
                missing.add((ref, version or 0))
                continue
            tips[ref] = opened
            for commit in manifest.every_commit(opened, pages):
                commits[commit.commit_id] = commit
        wanted = {}
        for commit in commits.values():
            place = commit.ref, commit.manifest_version
            end = tips[commit.ref].table.version if commit.ref in tips else 0
            newest = wanted.get(commit.ref) or end
            is_lost = place in missing or let_go.find(commit) is not None
            if commit.has_known_ref and commit.manifest_version > newest and not is_lost:
                wanted[commit.ref] = commit.manifest_version
    return tips, commits


def _open(manifest: Manifest, ref: str | None, version: int | None) -> OpenManifest:
    if version is not None:
        return manifest.open_version(ref, version)
    return manifest.open(MAIN) if ref is None else manifest.open_ref(ref)


def _read(manifest: Manifest, path: str) -> dict[str, bytes]:
    stored = manifest.store.objects.read(path)
    return {} if stored is None else {path: stored.data}


def require_apart(source: str, target: str) -> None:
    """Refuse a target that is the source, or in it, or around it."""
    for outer, inner in ((source, target), (target, source)):
        if f"{inner}/".startswith(f"{outer}/"):
            message = f"{target} and {source} are the same place, or one is in the other"
            raise InvalidInputError(message, hint="choose another target")
