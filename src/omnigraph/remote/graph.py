"""The facade from afar: `connect`, and `RemoteGraph`, which has the methods of `Graph`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, NoReturn, Self, TypeAlias

from omnigraph.accessors.algorithms import Algorithms
from omnigraph.accessors.branches import BranchList
from omnigraph.accessors.embeddings import Embeddings
from omnigraph.accessors.history import Commits
from omnigraph.accessors.indexes import IndexList
from omnigraph.accessors.proposals import ProposalList
from omnigraph.accessors.recoveries import Recoveries
from omnigraph.accessors.schema import Schema
from omnigraph.accessors.settings import GraphSettings
from omnigraph.accessors.stored_queries import StoredQueries
from omnigraph.accessors.streams import StreamList
from omnigraph.accessors.tags import TagList
from omnigraph.documents.operations import OPERATIONS, Operation
from omnigraph.documents.results import spark_error
from omnigraph.errors import InvalidParameterError
from omnigraph.export.results import ExportResult
from omnigraph.graph import Graph, Target
from omnigraph.load.results import LoadResult
from omnigraph.model.arguments import require_text
from omnigraph.model.commits import require_actor
from omnigraph.remote.addresses import Address
from omnigraph.remote.calls import Handle
from omnigraph.remote.extras import require_client
from omnigraph.remote.methods import like, remote

if TYPE_CHECKING:
    from omnigraph.maintenance.checking.report import CheckReport

TOKEN_VARIABLE: Final = "OMNIGRAPH_TOKEN"  # the name of a variable

NOT_REMOTE: Final[Mapping[str, str]] = {
    "acting_as": "it is for servers; the token says who acts",
    "authority": "a policy is enforced where the graph is served",
    "copy": "it copies files from where the graph is stored",
    "edges": "Spark reads where the graph is stored",
    "frame": "Spark reads where the graph is stored",
    "full_point": "it is for parts of a graph, which limit what they return",
    "full_snapshot": "it is for parts of a graph, which limit what they return",
    "ingest": "a stream of Spark writes where the graph is stored",
    "keep_comparisons": "it is for servers",
    "on": "it is for parts of a graph that know a branch; `at` is for callers",
    "reading": "it is for servers",
    "require_unblocked": "it is for parts of a graph; the server checks each of its writes",
    "requests": "it is for servers; a key is an argument of writes",
    "vertices": "Spark reads where the graph is stored",
}
"""What a graph has, and a remote one has not or refuses, each with the reason."""


def connect(
    address: str,
    token: str | None = None,
    *,
    actor: str | None = None,
    read_only: bool = False,
    timeout: float = 300.0,
    retry_for: float = 60.0,
) -> RemoteGraph:
    """Connect to a graph that a server has: `https://host/graphs/world`.

    What it returns has the methods of `omnigraph.open`, with the same results and the same errors.

    Args:
        token: Who acts: the actor of the token. When None, `$OMNIGRAPH_TOKEN`, then what
            `omnigraph login` stored for the server.
        actor: Who has to be the actor of the token; requests are refused if another one is.
        read_only: Refuse all writes through this handle.
        timeout: How many seconds to wait for an answer, or for its next piece.
        retry_for: For how many seconds requests are repeated that the server could not take, or
            whose answer was lost. Writes land once, however often they are sent.

    Raises:
        GraphNotFoundError: the server has no such graph, or the actor may not see it.
        NotAllowedError: the token is not accepted, or is of another actor.
        InvalidInputError: it is no address of a served graph, a token would be sent unencrypted,
            or the extra `client` is not installed.
        StorageError: the server cannot be reached.
    """
    require_client()
    from omnigraph.remote.connections import Connection, WaitLimits
    from omnigraph.remote.logins import find_token

    place = Address.parse(address)
    secret = _require_secret(token) or os.environ.get(TOKEN_VARIABLE) or find_token(place)
    if secret is not None:
        place.require_safe()
    limits = WaitLimits(
        _require_seconds(timeout, "timeout"), _require_seconds(retry_for, "retry_for")
    )
    named = require_actor(actor)
    graph = RemoteGraph(Handle(Connection(place, secret, limits), Target(), read_only, named))
    try:
        graph.snapshot()
    except BaseException:
        graph.close()
        raise
    return graph


def _require_secret(token: object) -> str | None:
    if token is None:
        return None
    # No message may have the token in it.
    if not isinstance(token, str) or not token.isascii() or not token.isprintable() or not token:
        message = "the token must be printable ASCII"
        hint = "give what 'omnigraph token create' printed"
        raise InvalidParameterError(message, hint=hint, name="token")
    return token


def _require_seconds(value: object, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
        message = f"{name} is {value!r}, which is not a number of seconds"
        raise InvalidParameterError(message, name=name)
    return float(value)


class _Part:
    """A part of a remote graph, such as its branches."""

    prefix = ""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    def call(self, operation: Operation, arguments: Mapping[str, Any]) -> Any:
        """Have the server carry out an operation, and return its result."""
        return self._handle.call(operation, arguments)


class RemoteAlgorithms(_Part):
    """Algorithms on a remote graph: `graph.algorithms`. The server computes them."""

    prefix = "algorithms."
    degrees = remote(Algorithms.degrees)
    pagerank = remote(Algorithms.pagerank)
    components = remote(Algorithms.components)
    label_propagation = remote(Algorithms.label_propagation)
    shortest_paths = remote(Algorithms.shortest_paths)
    triangles = remote(Algorithms.triangles)


class RemoteBranches(_Part):
    """A remote graph's branches: `graph.branches`."""

    prefix = "branches."
    list = remote(BranchList.list)
    delete = remote(BranchList.delete)

    @like(BranchList.create)
    def create(self, arguments: dict[str, Any]) -> RemoteGraph:
        """Create a branch, and return a handle on it."""
        target = self.call(OPERATIONS["branches.create"], arguments)
        return RemoteGraph(self._handle.at(target))


class RemoteCommits(_Part):
    """A remote graph's history: `graph.commits`."""

    prefix = "commits."
    list = remote(Commits.list)
    every = remote(Commits.every)
    show = remote(Commits.show)
    let_go = remote(Commits.let_go)
    changes = remote(Commits.changes)


class RemoteEmbeddings(_Part):
    """A remote graph's embedded vectors: `graph.embeddings`. The server embeds."""

    prefix = "embeddings."
    status = remote(Embeddings.status)
    run = remote(Embeddings.run)


class RemoteIndexes(_Part):
    """A remote graph's indexes: `graph.indexes`."""

    prefix = "indexes."
    list = remote(IndexList.list)


class RemoteProposals(_Part):
    """A remote graph's proposals: `graph.proposals`."""

    prefix = "proposals."
    approve = remote(ProposalList.approve)
    close = remote(ProposalList.close)
    comment = remote(ProposalList.comment)
    create = remote(ProposalList.create)
    diff = remote(ProposalList.diff)
    list = remote(ProposalList.list)
    merge = remote(ProposalList.merge)
    preview = remote(ProposalList.preview)
    show = remote(ProposalList.show)
    withdraw_approval = remote(ProposalList.withdraw_approval)


class RemoteRecoveries(_Part):
    """A remote graph's interrupted writes: `graph.recoveries`."""

    prefix = "recoveries."
    list = remote(Recoveries.list)
    pending = remote(Recoveries.pending)


class RemoteSchema(_Part):
    """A remote graph's schema: `graph.schema`. Files are those of the caller."""

    prefix = "schema."
    show = remote(Schema.show)
    plan = remote(Schema.plan)
    apply = remote(Schema.apply)
    purge = remote(Schema.purge)
    diff = remote(Schema.diff)
    history = remote(Schema.history)


class RemoteSettings(_Part):
    """A remote graph's settings: `graph.settings`."""

    prefix = "settings."
    get = remote(GraphSettings.get)
    list = remote(GraphSettings.list)
    set = remote(GraphSettings.set)
    unset = remote(GraphSettings.unset)


class RemoteQueries(_Part):
    """A remote graph's stored queries: `graph.queries`."""

    prefix = "queries."
    put = remote(StoredQueries.put)
    list = remote(StoredQueries.list)
    show = remote(StoredQueries.show)
    delete = remote(StoredQueries.delete)
    run = remote(StoredQueries.run)


class RemoteStreams(_Part):
    """The streams that write to a remote graph: `graph.streams`."""

    prefix = "streams."
    list = remote(StreamList.list)
    forget = remote(StreamList.forget)


class RemoteTags(_Part):
    """A remote graph's tags: `graph.tags`."""

    prefix = "tags."
    list = remote(TagList.list)
    show = remote(TagList.show)
    create = remote(TagList.create)
    delete = remote(TagList.delete)


class RemoteGraph(_Part):
    """A handle on a graph that a server has: the methods, results and errors of `Graph`.

    Cheap to keep, safe to share between threads. `NOT_REMOTE` lists what it has not, and why.
    """

    query = remote(Graph.query)
    explain = remote(Graph.explain)
    mutate = remote(Graph.mutate)
    snapshot = remote(Graph.snapshot)
    point = remote(Graph.point)
    ensure_indices = remote(Graph.ensure_indices)
    optimize = remote(Graph.optimize)
    merge = remote(Graph.merge)
    diff = remote(Graph.diff)
    changes = remote(Graph.changes)
    baseline = remote(Graph.baseline)
    entity = remote(Graph.entity)
    cleanup = remote(Graph.cleanup)
    repair = remote(Graph.repair)
    refresh = remote(Graph.refresh)
    require_writable = remote(Graph.require_writable)

    @like(Graph.at)
    def at(self, arguments: dict[str, Any]) -> RemoteGraph:
        """A handle on another branch, or, read-only, on one point of history."""
        return RemoteGraph(self._handle.at(self.call(OPERATIONS["at"], arguments)))

    @like(Graph.check)
    def check(self, arguments: dict[str, Any]) -> CheckReport:
        """Verify the whole graph where it is, and report what is wrong with it."""
        report: CheckReport = self.call(OPERATIONS["check"], arguments)
        return replace(report, uri=self.uri)

    @like(Graph.load)
    def load(self, arguments: dict[str, Any]) -> LoadResult:
        """Write all rows of an input, of any size and any types, in one commit."""
        from omnigraph.remote.loads import load

        return load(self._handle, arguments)

    @like(Graph.export)
    def export(self, arguments: dict[str, Any]) -> ExportResult:
        """Write the rows that this handle reads to files here."""
        from omnigraph.remote.exports import export

        return export(self._handle, arguments)

    @like(Graph.frame)
    def frame(self, arguments: dict[str, Any]) -> NoReturn:
        """Refuse: Spark reads where the graph is stored."""
        what = f"a DataFrame of {require_text(arguments['type_name'], 'type_name')}"
        raise spark_error(what)

    @like(Graph.vertices)
    def vertices(self, arguments: dict[str, Any]) -> NoReturn:  # noqa: ARG002
        """Refuse: Spark reads where the graph is stored."""
        what = "a DataFrame of all nodes"
        raise spark_error(what)

    @like(Graph.edges)
    def edges(self, arguments: dict[str, Any]) -> NoReturn:  # noqa: ARG002
        """Refuse: Spark reads where the graph is stored."""
        what = "a DataFrame of all edges"
        raise spark_error(what)

    @like(Graph.ingest)
    def ingest(self, arguments: dict[str, Any]) -> NoReturn:  # noqa: ARG002
        """Refuse: a stream of Spark writes where the graph is stored."""
        what = "a stream of Spark"
        raise spark_error(what)

    @property
    def uri(self) -> str:
        """The address of the graph."""
        return str(self._handle.connection.address)

    @property
    def target(self) -> Target:
        """What the handle reads, and writes to unless a write names another branch."""
        return self._handle.target

    @property
    def read_only(self) -> bool:
        """Whether writes are refused."""
        return self._handle.read_only or self.target.is_past

    @property
    def algorithms(self) -> RemoteAlgorithms:
        """Algorithms on the graph."""
        return RemoteAlgorithms(self._handle)

    @property
    def branches(self) -> RemoteBranches:
        """The graph's branches."""
        return RemoteBranches(self._handle)

    @property
    def commits(self) -> RemoteCommits:
        """The graph's history."""
        return RemoteCommits(self._handle)

    @property
    def embeddings(self) -> RemoteEmbeddings:
        """The graph's embedded vectors."""
        return RemoteEmbeddings(self._handle)

    @property
    def indexes(self) -> RemoteIndexes:
        """The graph's indexes."""
        return RemoteIndexes(self._handle)

    @property
    def proposals(self) -> RemoteProposals:
        """The graph's proposals."""
        return RemoteProposals(self._handle)

    @property
    def queries(self) -> RemoteQueries:
        """The graph's stored queries."""
        return RemoteQueries(self._handle)

    @property
    def recoveries(self) -> RemoteRecoveries:
        """Interrupted writes, and what became of them."""
        return RemoteRecoveries(self._handle)

    @property
    def schema(self) -> RemoteSchema:
        """The graph's schema."""
        return RemoteSchema(self._handle)

    @property
    def settings(self) -> RemoteSettings:
        """The graph's settings."""
        return RemoteSettings(self._handle)

    @property
    def streams(self) -> RemoteStreams:
        """The streams that write to the graph."""
        return RemoteStreams(self._handle)

    @property
    def tags(self) -> RemoteTags:
        """The graph's tags: names for commits."""
        return RemoteTags(self._handle)

    @property
    def has_written(self) -> bool:
        """Whether a request through this connection, that changes something, was answered."""
        return self._handle.connection.has_written

    def close(self) -> None:
        """Close connections that are open. The handle can still be used, and opens them again."""
        self._handle.connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        mode = ", read_only=True" if self._handle.read_only else ""
        return f"RemoteGraph({self.uri!r}{mode})"

    def __reduce__(self) -> NoReturn:
        message = "a RemoteGraph cannot be pickled; ship its uri and connect there"
        raise TypeError(message)


AnyGraph: TypeAlias = Graph | RemoteGraph
"""A graph, wherever it is."""
