"""A graph's history: `graph.commits`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from omnigraph.errors import BranchNotFoundError, CommitNotFoundError, InvalidParameterError
from omnigraph.manifest import lineage
from omnigraph.model.arguments import require_number
from omnigraph.model.commits import Commit, require_commits
from omnigraph.model.ids import CommitId
from omnigraph.model.names import BranchName

# What a signature names need not be imported to read a graph.
if TYPE_CHECKING:
    from omnigraph.changes.diffs import GraphDiff
    from omnigraph.changes.feed import Feed
    from omnigraph.graph import Graph
    from omnigraph.manifest.points import Points
    from omnigraph.manifest.reader import Manifest
    from omnigraph.model.let_go import LetGo


class Commits:
    """A graph's history: `graph.commits`."""

    def __init__(
        self, graph: Graph, manifest: Manifest, points: Points, feed: Feed, *, near: BranchName
    ) -> None:
        self._graph = graph
        self._manifest = manifest
        self._points = points
        self._feed = feed
        self._near = near

    def list(self, *, branch: str | None = None, limit: int | None = None) -> tuple[Commit, ...]:
        """A branch's commits through first parents, newest first.

        Commits of branches that the actor may not read are left out: a branch begins with the
        history of the one that it was created from.

        Args:
            branch: When None, up to the commit that the handle reads.

        Raises:
            BranchNotFoundError: the graph has no such branch.
        """
        most = _require_limit(limit)
        place = self._graph.full_snapshot(branch=branch)
        walk = lineage.first_parents(place.head.commit_id, self._manifest.history(place).find)
        return tuple(islice(self._visible(walk), most))

    def every(
        self, *, branch: str | None = None, after: str | None = None, limit: int | None = None
    ) -> tuple[Commit, ...]:
        """The commits in the history of one branch, or of every branch, merged ones included.

        Every commit precedes its parents; newer commits are first. Commits of branches that the
        actor may not read are left out, also where they were merged.

        Args:
            after: Only those that follow this commit in that order.
            limit: How many at most. The history is read as far as they need.

        Raises:
            BranchNotFoundError: the graph has no such branch.
            CommitNotFoundError: `after` is not among the commits.
        """
        most = _require_limit(limit)
        names = (
            self._graph.branches.list()
            if branch is None
            else (self._graph.full_snapshot(branch=branch).branch,)
        )
        walk = self._visible(self._walk(map(BranchName, names)))
        return tuple(islice(walk if after is None else _follow(walk, after), most))

    def _walk(self, branches: Iterable[BranchName]) -> Iterator[Commit]:
        """The commits of branches, in the order of `every`."""
        tips = []
        for name in branches:
            # A branch that is deleted meanwhile is left out.
            with suppress(BranchNotFoundError):
                tips.append(self._manifest.current(name))
        heads = dict.fromkeys(tip.head.commit_id for tip in tips)
        return lineage.newest_first(heads, self._manifest.ancestry(*tips).find)

    def _visible(self, commits: Iterable[Commit]) -> Iterator[Commit]:
        """Those of the commits that were made on branches that the actor may read."""
        decisions: dict[BranchName, bool] = {}
        for commit in commits:
            if commit.branch not in decisions:
                decisions[commit.branch] = bool(self._graph.authority.visible([commit.branch]))
            if decisions[commit.branch]:
                yield commit

    def show(self, commit_id: str) -> Commit:
        """One commit, by its id or by a tag.

        Raises:
            CommitNotFoundError: no branch of the graph has it.
            TagNotFoundError: it is no id, and the graph has no such tag.
        """
        with self._graph.authority.conceal(commit_id):
            commit = self._points.find(commit_id, near=self._near)
            self._graph.authority.require_visible(commit.branch)
            return commit

    def let_go(self, commits: Iterable[Commit]) -> dict[str, LetGo]:
        """Those of the commits that expired, by id, with when and by which rule.

        They stay in the history, and can no longer be read.

        Raises:
            InvalidParameterError: something else than commits was given.
        """
        record = self._manifest.let_go.read()
        gone = ((commit.commit_id, record.find(commit)) for commit in require_commits(commits))
        return {commit_id: let_go for commit_id, let_go in gone if let_go is not None}

    def changes(self, commit_id: str) -> GraphDiff:
        """What one commit changed against the commit before it on its branch.

        Raises:
            CommitNotFoundError: no branch of the graph has it.
            FeedGapError: the commit before it can no longer be read.
        """
        commit = self.show(commit_id)
        find = partial(self._manifest.find, near=commit.branch)
        return self._feed.changes(commit, find).diff


def _require_limit(limit: int | None) -> int | None:
    if limit is not None and require_number(limit, "limit") < 0:
        message = f"limit must not be negative, and is {limit}"
        raise InvalidParameterError(message, name="limit")
    return limit


def _follow(walk: Iterator[Commit], after: str) -> Iterator[Commit]:
    """What follows a commit in a walk.

    Raises:
        CommitNotFoundError: the walk does not have it.
    """
    wanted = CommitId.parse(after)
    if any(commit.commit_id == wanted for commit in walk):
        return walk
    message = f"commit {wanted} does not exist in this history"
    raise CommitNotFoundError(message, hint="begin with the newest commits")
