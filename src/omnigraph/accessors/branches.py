"""A graph's branches: `graph.branches`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph.clock import Clock
from omnigraph.model.arguments import require_text
from omnigraph.model.ids import CommitId
from omnigraph.model.names import BranchName
from omnigraph.policy.actions import Action

# What a signature names need not be imported to read a graph.
if TYPE_CHECKING:
    from omnigraph.graph import Graph
    from omnigraph.manifest.reader import Manifest


class BranchList:
    """A graph's branches: `graph.branches`."""

    def __init__(self, graph: Graph, manifest: Manifest, clock: Clock) -> None:
        self._graph = graph
        self._manifest = manifest
        self._clock = clock

    def list(self) -> tuple[str, ...]:
        """Every branch that the actor may read, main first."""
        return self._graph.authority.visible(self._manifest.branches())

    def create(
        self,
        name: str,
        *,
        branch: str | None = None,
        commit: str | None = None,
        version: int | None = None,
    ) -> Graph:
        """Create a branch, and return a handle on it. Copies no rows.

        Args:
            branch: The branch to start at; the handle's own when None. `version` and `commit` name
                a point of its history.

        Raises:
            AlreadyExistsError: the graph has a branch of that name.
            InvalidNameError: the name is invalid, or is a parent or child path of another branch.
            NotFoundError: the branch, the commit or the version to start at does not exist.
            CommitLetGoError: the commit to start at expired.
            NotAllowedError: the handle was opened read-only, or the policy forbids it.
        """
        from omnigraph.branching import lifecycle

        self._graph.require_unblocked()
        new = BranchName.parse(name)
        now = self._clock.now() if (commit, version) == (None, None) else None
        source = self._graph.full_snapshot(branch=branch, commit=commit, version=version)
        # A commit belongs to the branch that it was made on, through whichever one it was found.
        start = source.branch if commit is None else source.head.branch
        self._graph.authority.require(Action.BRANCH_CREATE, branch=new, source=start)
        lifecycle.create(self._manifest, self._clock, new, source, tip_since=now)
        return self._graph.on(new)

    def delete(self, name: str, *, dry_run: bool = False, expect_head: str | None = None) -> None:
        """Delete a branch, and its commits but for those that were merged or have tags.

        Args:
            dry_run: Raise the errors of a deletion, and write nothing.
            expect_head: The commit that the branch must be at, or it is not deleted.

        Raises:
            BranchNotFoundError: the graph has no such branch.
            StaleHeadError: it is not at `expect_head`. It is unchanged.
            NotAllowedError: it is main, other branches build on it, or the policy forbids it.
        """
        from omnigraph.branching import lifecycle

        wanted = BranchName.parse(name)
        if self._graph.authority.is_limited:
            # A branch that the actor may not read must look as if there were none.
            self._graph.full_snapshot(branch=wanted)
            self._graph.authority.require(Action.BRANCH_DELETE, branch=wanted)
        head = None if expect_head is None else CommitId(require_text(expect_head, "expect_head"))
        if dry_run:
            lifecycle.require_deletable(self._manifest, wanted)
            if head is not None:
                lifecycle.require_head(self._manifest.current(wanted), head)
            return
        self._graph.require_unblocked()
        if head is None:
            lifecycle.delete(self._manifest, self._clock, wanted)
            return
        branch = lifecycle.require_deletable(self._manifest, wanted)
        lifecycle.delete_unmoved(self._manifest, self._clock, branch, head)
