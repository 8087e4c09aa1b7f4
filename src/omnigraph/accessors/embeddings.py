"""A graph's embedded vectors: `graph.embeddings`."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import cache, partial
from typing import TYPE_CHECKING, Protocol

from omnigraph.choices import EmbedScope
from omnigraph.clock import Clock
from omnigraph.model.arguments import require_choice, require_texts
from omnigraph.model.commits import OperationKind
from omnigraph.policy.actions import Action

# What a signature names need not be imported to read a graph.
if TYPE_CHECKING:
    from omnigraph.backends.registry import Backends
    from omnigraph.choices import EngineName
    from omnigraph.embedding.counts import EmbeddingStatus
    from omnigraph.graph import Graph
    from omnigraph.load.results import Progress
    from omnigraph.maintenance.embedding.run import BatchEmbedder
    from omnigraph.maintenance.results import EmbedResult
    from omnigraph.manifest.settings import StoredSettings
    from omnigraph.manifest.snapshot import Snapshot
    from omnigraph.transaction.commit import Transactions
    from omnigraph.transaction.view import View
    from omnigraph.transaction.writes import WriteRequest


class MakeRequest(Protocol):
    """Makes the request of a write by this handle."""

    def __call__(
        self, kind: OperationKind, branch: str | None, actor: str | None, message: str | None
    ) -> WriteRequest:
        """The request; refuses what the handle may not write."""
        ...


class Embeddings:
    """A graph's embedded vectors: `graph.embeddings`."""

    def __init__(
        self,
        graph: Graph,
        view_at: Callable[[Snapshot], View],
        settings: StoredSettings,
        backends: Backends,
        transactions: Callable[[], Transactions],
        request: MakeRequest,
        clock: Clock,
    ) -> None:
        self._graph = graph
        self._view_at = view_at
        self._settings = settings
        self._backends = backends
        self._transactions = transactions
        self._request = request
        self._clock = clock

    def status(
        self,
        *,
        types: str | Collection[str] | None = None,
        branch: str | None = None,
        commit: str | None = None,
        version: int | None = None,
    ) -> tuple[EmbeddingStatus, ...]:
        """How many rows have the vectors of their texts, for each embedded vector.

        At one commit: the handle's own unless another is named. Types that the actor may not read
        are left out.

        Raises:
            NotAllowedError: the actor may not read a type that is named.
            NotFoundError: a type, the branch, the commit or the version does not exist.
            InvalidInputError: a commit was given together with a branch or a version.
        """
        from omnigraph.maintenance.embedding.status import find_status

        snapshot = self._graph.full_snapshot(branch=branch, commit=commit, version=version)
        view, names = self._view_at(snapshot), require_texts(types, "types")
        authority = self._graph.authority
        if names is None:
            sees = authority.sight(snapshot.branch).sees
            names = tuple(type_.name for type_ in view.catalog.types if sees(type_.name))
        else:
            authority.require(Action.READ, branch=snapshot.branch, types=names)
        return find_status(view, names)

    def run(
        self,
        *,
        types: str | Collection[str] | None = None,
        scope: str = "waiting",
        branch: str | None = None,
        engine: str | None = None,
        actor: str | None = None,
        message: str | None = None,
        progress: Progress | None = None,
    ) -> EmbedResult:
        """Embed the rows that wait for it, in commits of bounded size. Others may write meanwhile.

        If it is interrupted, what was committed stays, and the next run continues from there.

        Args:
            types: Only rows of these types; all when None.
            scope: `waiting`, or only those that are `pending` or `stale`, or `all` again.
            engine: `local`, `spark` or `auto`, by size; `$OMNIGRAPH_ENGINE` when None.
            progress: Called with how far the stage `embed` is.

        Raises:
            TypeNotFoundError: the schema has no type of a name. Nothing changed.
            InvalidInputError: a model is not known, or its provider is not set up.
            EmbeddingError: a provider failed. What was committed before stays.
            ConflictError: other processes kept changing a table. What was committed before stays.
            NotAllowedError: the handle is on a point of history, or was opened read-only.
        """
        from omnigraph.maintenance.embedding.run import EmbeddingRun

        wanted = require_choice(scope, EmbedScope, "scope")
        request = self._request(OperationKind.EMBED, branch, actor, message)

        @cache
        def begin(name: EngineName) -> BatchEmbedder:
            settings = self._settings.current().embedding
            return self._backends.of(name).begin_embedding(settings, self._clock)

        def view() -> View:
            return self._view_at(self._graph.full_snapshot(branch=str(request.branch)))

        follow = None if progress is None else partial(progress, "embed")
        names = require_texts(types, "types")
        run = EmbeddingRun(
            self._transactions(), request, wanted, names, engine, begin, view, follow
        )
        return self._graph.authority.sight_of(request).embedding(run.run())
