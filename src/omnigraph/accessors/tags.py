"""A graph's tags: `graph.tags`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph.clock import Clock
from omnigraph.model.commits import require_actor, require_message
from omnigraph.model.names import TagName
from omnigraph.model.tags import Tag
from omnigraph.policy.actions import Action

# What a signature names need not be imported to read a graph.
if TYPE_CHECKING:
    from omnigraph.graph import Graph
    from omnigraph.manifest.reader import Manifest


class TagList:
    """A graph's tags: `graph.tags`. A tag names a commit, and stands wherever a commit id can."""

    def __init__(self, graph: Graph, manifest: Manifest, clock: Clock, actor: str | None) -> None:
        self._graph = graph
        self._manifest = manifest
        self._clock = clock
        self._actor = actor

    def list(self) -> tuple[Tag, ...]:
        """Every tag whose commit the actor may read, sorted by name.

        Raises:
            StorageError: the record of a tag cannot be read.
        """
        may = self._graph.authority.allows
        return tuple(tag for tag in self._manifest.tags.list() if may(Action.READ, tag.branch))

    def show(self, name: str) -> Tag:
        """One tag.

        Raises:
            TagNotFoundError: the graph has no such tag.
            StorageError: its record cannot be read.
        """
        with self._graph.authority.conceal(name):
            tag = self._manifest.tags.find(TagName.parse(name))
            self._graph.authority.require_visible(tag.branch)
            return tag

    def create(
        self,
        name: str,
        *,
        branch: str | None = None,
        commit: str | None = None,
        version: int | None = None,
        actor: str | None = None,
        message: str | None = None,
    ) -> Tag:
        """Name a commit, which is kept as long as it has the name.

        A tag does not move: to name another commit, delete it and create it again.

        Args:
            branch: The branch whose newest commit is named; the handle's own when None. `version`
                and `commit` name a point of its history.
            commit: The commit to name: its id, or another tag of it.

        Raises:
            AlreadyExistsError: the graph has a tag or a branch of that name. It is untouched.
            InvalidNameError: the name is invalid.
            NotFoundError: the branch, the commit or the version does not exist.
            NotAllowedError: the handle is on a point of history, was opened read-only, or the
                policy forbids it.
        """
        from omnigraph.branching.tagging import create_tag

        self._graph.require_unblocked()
        new = TagName.parse(name)
        who, why = require_actor(actor) or self._actor, require_message(message)
        head = self._graph.full_snapshot(branch=branch, commit=commit, version=version).head
        self._graph.authority.acting_as(who).require(Action.TAG, branch=head.branch)
        return create_tag(self._manifest, self._clock, new, head, actor=who, message=why)

    def delete(self, name: str) -> None:
        """Delete a tag. Its commit stays where it is in the history of a branch.

        Raises:
            TagNotFoundError: the graph has no such tag.
            NotAllowedError: the handle is on a point of history, was opened read-only, or the
                policy forbids it.
        """
        self._graph.require_unblocked()
        if self._graph.authority.is_limited:
            self._graph.authority.require(Action.TAG, branch=self.show(name).branch)
        self._manifest.tags.delete(TagName.parse(name))
