"""Retirement: which deleted branches have commits that the history of another branch needs."""

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


def find_releasable(
    manifest: Manifest,
    retired: Sequence[RetiredBranch],
    *,
    among: Collection[RetiredBranch],
    histories: Mapping[BranchName, OpenManifest],
    sources: Collection[str | None],
) -> frozenset[RetiredBranch]:
    """The deleted branches whose commits no history has, and from which no branch was created.

    Args:
        retired: Every deleted branch.
        among: Those of them that may be released.
        histories: The existing branches.
        sources: The refs that the existing branches were created from, and those that have commits
            with tags.
    """
    released = set(among) - _find_merged(manifest, among, histories)
    while True:
        others = [branch for branch in retired if branch not in released]
        needed = {*sources, *(branch.source_ref for branch in others)}
        still_needed = {branch for branch in released if branch.ref in needed}
        if not still_needed:
            return frozenset(released)
        released -= still_needed


def _find_merged(
    manifest: Manifest,
    retired: Collection[RetiredBranch],
    histories: Mapping[BranchName, OpenManifest],
) -> set[RetiredBranch]:
    """The branches to keep: a history has commits of them, and then also the first of them."""
    merged: set[RetiredBranch] = set()
    by_first_commit: dict[CommitId, RetiredBranch] = {}
    for branch in retired:
        try:
            opened = manifest.open_ref(branch.ref)
        except NotFoundError:
            # A cleanup was interrupted after it had deleted this ref.
            continue
        # If it moved before it lost its name, and its deletion was killed, it has a commit that was
        # reported to a caller as landed.
        has_moved = branch.head not in (None, opened.contents.head)
        if opened.stamp < CURRENT or has_moved:
            merged.add(branch)
        elif (first := _first_commit(manifest, opened, branch)) is not None:
            by_first_commit[first] = branch
    for name, opened in histories.items():
        ids = by_first_commit.keys()
        commits = manifest.lookup_all(opened, name, ids) if by_first_commit else {}
        merged |= {by_first_commit.pop(commit_id) for commit_id in commits}
    return merged


def _first_commit(
    manifest: Manifest, opened: OpenManifest, retired: RetiredBranch
) -> CommitId | None:
    """The oldest commit that was made on a branch, if any."""
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
    # An earlier release made it, perhaps on an earlier branch of the same name, which cannot be
    # distinguished: then more is kept than necessary.
    return commit.branch == retired.name
