"""Retirement: which branches that were deleted have commits that the history of another needs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from omnigraph.errors import NotFoundError
from omnigraph.manifest.branches import RetiredBranch
from omnigraph.manifest.format import CURRENT
from omnigraph.manifest.lineage import first_parents
from omnigraph.manifest.reader import Manifest, OpenManifest
from omnigraph.model.commits import Commit
from omnigraph.model.ids import CommitId
from omnigraph.model.names import BranchName


def find_released(
    manifest: Manifest,
    retired: Sequence[RetiredBranch],
    *,
    among: Collection[RetiredBranch],
    histories: Mapping[BranchName, OpenManifest],
    sources: Collection[str | None],
) -> frozenset[RetiredBranch]:
    """The deleted branches whose commits no history has, and from which no branch was created.

    Args:
        retired: Every branch that was deleted.
        among: Those of them that may be released.
        histories: The branches that exist.
        sources: The refs that those were created from.
    """
    released = set(among) - _merged(manifest, among, histories)
    while True:
        kept = [each for each in retired if each not in released]
        needed = {*sources, *(each.source_ref for each in kept)}
        still_needed = {each for each in released if each.ref in needed}
        if not still_needed:
            return frozenset(released)
        released -= still_needed


def _merged(
    manifest: Manifest,
    retired: Collection[RetiredBranch],
    histories: Mapping[BranchName, OpenManifest],
) -> set[RetiredBranch]:
    """The branches that must stay: a history has commits of them. Who has any has the first."""
    merged: set[RetiredBranch] = set()
    waiting: dict[CommitId, RetiredBranch] = {}
    for each in retired:
        try:
            opened = manifest.open_ref(each.ref)
        except NotFoundError:
            # A cleanup was interrupted after it had removed this ref.
            continue
        # One that moved on before it lost its name, and whose deleter was killed, has a commit that
        # somebody was told has landed.
        has_moved = each.head not in (None, opened.contents.head)
        if opened.stamp < CURRENT or has_moved:
            merged.add(each)
        elif (first := _first_commit(manifest, opened, each)) is not None:
            waiting[first] = each
    for name, opened in histories.items():
        found = manifest.lookup_all(opened, name, waiting.keys()) if waiting else {}
        merged |= {waiting.pop(commit_id) for commit_id in found}
    return merged


def _first_commit(
    manifest: Manifest, opened: OpenManifest, retired: RetiredBranch
) -> CommitId | None:
    """The oldest commit that was made on a branch, if any was."""
    head = opened.contents.head
    assert head is not None, "manifests of the newest format have one"
    first = None
    for commit in first_parents(head, manifest.history_of(opened).find):
        if not _is_of(commit, retired):
            break
        first = commit.commit_id
    return first


def _is_of(commit: Commit, retired: RetiredBranch) -> bool:
    if commit.has_known_ref:
        return commit.ref == retired.ref
    # An earlier release made it, or an earlier branch of that name, which is taken for this one:
    # then more is kept than has to be.
    return commit.branch == retired.name
