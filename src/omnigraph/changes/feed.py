"""The feed: a branch's commits in order, each with its changes, starting at any commit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from omnigraph.changes.diffs import Batch, CommitChanges, GraphDiff
from omnigraph.changes.graphs import (
    Comparer,
    Filter,
    FindCatalog,
    SchemaSteps,
    Side,
    compare_graphs,
)
from omnigraph.errors import CommitLetGoError, CommitNotFoundError, FeedGapError
from omnigraph.manifest import lineage
from omnigraph.manifest.reader import Manifest
from omnigraph.manifest.removals import detect_removal
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.model.commits import Commit
from omnigraph.model.ids import CommitId
from omnigraph.model.names import BranchName


@dataclass(frozen=True, slots=True)
class Feed:
    """Reads the feed of one branch.

    Attributes:
        side: Opens the graph at a commit, for readers of a branch that has it in its history.
        steps: Compares the schemas of a commit and of the one before it, where they differ.
    """

    manifest: Manifest
    comparer: Comparer
    side: Callable[[Commit, BranchName], Side]
    catalog: FindCatalog
    steps: SchemaSteps | None = None

    def poll(
        self, place: Snapshot, after: CommitId | None, *, limit: int, wanted: Filter | None
    ) -> Batch:
        """The commits after a cursor, up to a snapshot; without a cursor, from the first one."""
        head, history = place.head, self.manifest.history(place)
        walk = lineage.first_parents(head.commit_id, history.find)
        newer = commits_after(after, walk, place.branch)[::-1]
        shown = [at for at, commit in enumerate(newer) if not commit.is_maintenance]
        # The cursor is behind maintenance that follows: there is nothing more to deliver of it.
        passed = newer[: shown[limit]] if len(shown) > limit else newer
        cursor = passed[-1].commit_id if passed else head.commit_id
        commits = tuple(self.changes(newer[at], history.find, wanted) for at in shown[:limit])
        return Batch(commits, cursor, is_newest=cursor == head.commit_id)

    def changes(
        self, commit: Commit, find: lineage.Lookup, wanted: Filter | None = None
    ) -> CommitChanges:
        """The changes of one commit; the first one of a graph has none, nor has maintenance.

        Args:
            find: Finds the commit before it.
        """
        if commit.parent is None or commit.is_maintenance:
            parent = commit.parent or commit.commit_id
            return CommitChanges(commit, GraphDiff(parent, commit.commit_id, ()))
        try:
            # The commit before it may be of another branch, where this one was created.
            after, before = (self.side(at, commit.branch) for at in (commit, find(commit.parent)))
            with detect_removal(self.manifest.store, before.snapshot, after.snapshot):
                diff = compare_graphs(
                    self.catalog, before, after, self.comparer, wanted, steps=self.steps
                )
            return CommitChanges(commit, diff)
        except (CommitNotFoundError, CommitLetGoError) as cause:
            message = f"the changes of commit {commit.commit_id} cannot be read: {cause.message}"
            raise gap_error(message) from cause


def commits_after(
    after: CommitId | None, walk: Iterator[Commit], branch: BranchName
) -> list[Commit]:
    """The commits above a cursor, newest first; all of them without one.

    Args:
        walk: The commits of the branch, newest first.
    """
    newer: list[Commit] = []
    for commit in walk:
        if commit.commit_id == after:
            return newer
        newer.append(commit)
    if after is None:
        return newer
    message = f"commit {after} is not in the history of branch {branch}"
    raise gap_error(message)


def gap_error(message: str) -> FeedGapError:
    """The error for a feed that cannot continue."""
    hint = "take a new baseline ('omnigraph changes baseline'), then export, then go on from it"
    return FeedGapError(message, hint=hint)
