"""Retirement: which deleted branches have commits that the history of another branch needs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import takewhile

from omnigraph.errors import NotFoundError
from omnigraph.manifest.branches import RetiredBranch
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
    is_let_go: Callable[[Commit], bool],
) -> frozenset[RetiredBranch]:
    """The deleted branches whose commits no history has, and from which no branch was created.

    Commits that expired do not count.

    Args:
        retired: Every deleted branch.
        among: Those of them that may be released.
        histories: The existing branches.
        sources: The refs that the existing branches were created from, and those that have commits
            with tags.
    """
    released = set(among) - _find_merged(manifest, among, histories, is_let_go)
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
    is_let_go: Callable[[Commit], bool],
) -> set[RetiredBranch]:
    """The branches to keep: a history has commits of them, so also the oldest that is kept."""
    merged: set[RetiredBranch] = set()
    by_oldest: dict[CommitId, RetiredBranch] = {}
    for branch in retired:
        try:
            opened = manifest.open_ref(branch.ref)
        except NotFoundError:
            # A cleanup was interrupted after it had deleted this ref.
            continue
        # If it moved before it lost its name, and its deletion was killed, it has a commit that was
        # reported to a caller as landed.
        has_moved = branch.head not in (None, opened.contents.head)
        if has_moved:
            merged.add(branch)
            continue
        own = _own_commits(manifest, opened, branch)
        kept = [commit.commit_id for commit in own if not is_let_go(commit)]
        if kept:
            by_oldest[kept[-1]] = branch
    for opened in histories.values():
        ids = by_oldest.keys()
        commits = manifest.lookup_all(opened, ids) if by_oldest else {}
        merged |= {by_oldest.pop(commit_id) for commit_id in commits}
    return merged


def _own_commits(manifest: Manifest, opened: OpenManifest, retired: RetiredBranch) -> list[Commit]:
    """The commits that were made on a branch, newest first."""
    head = opened.contents.head
    assert head is not None, "manifests of the newest format have one"
    walk = first_parents(head, manifest.history_of(opened).find)
    return list(takewhile(lambda commit: _is_of(commit, retired), walk))


def _is_of(commit: Commit, retired: RetiredBranch) -> bool:
    if commit.has_known_ref:
        return commit.ref == retired.ref
    # An earlier release made it, perhaps on an earlier branch of the same name, which cannot be
    # distinguished: then more is kept than necessary.
    return commit.branch == retired.name
