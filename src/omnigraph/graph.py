"""The facade: `init`, `open` and `Graph`, whose methods check arguments and delegate."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cache, cached_property, partial
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, NoReturn, Self

from omnigraph.accessors.algorithms import Algorithms
from omnigraph.accessors.branches import BranchList
from omnigraph.accessors.embeddings import Embeddings
from omnigraph.accessors.history import Commits
from omnigraph.accessors.indexes import IndexList
from omnigraph.accessors.recoveries import Recoveries
from omnigraph.accessors.schema import Schema, accept_schema
from omnigraph.accessors.settings import GraphSettings
from omnigraph.accessors.streams import StreamList
from omnigraph.accessors.tags import TagList
from omnigraph.choices import EmbedWhen
from omnigraph.clock import Clock, SystemClock
from omnigraph.engine.budget import Budget, BudgetRequest, Cancellation
from omnigraph.engine.choose import by_size, follow_up
from omnigraph.engine.extras import require_spark
from omnigraph.errors import (
    AlreadyExistsError,
    BranchNotFoundError,
    ErrorCode,
    InvalidInputError,
    InvalidParameterError,
    NotAllowedError,
    OmnigraphError,
    OutcomeUnknownError,
)
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.model.arguments import (
    misfit_error,
    require_choice,
    require_number,
    require_path,
    require_text,
    require_texts,
)
from omnigraph.model.commits import (
    Commit,
    OperationKind,
    require_actor,
    require_message,
)
from omnigraph.model.followups import (
    deletion_failure,
    deletion_remedy,
    index_failure,
    index_remedy,
)
from omnigraph.model.ids import CommitId
from omnigraph.model.names import MAIN, BranchName
from omnigraph.model.query_limits import QueryLimits, Timeout
from omnigraph.policy.actions import Action
from omnigraph.policy.authority import UNLIMITED, Authority, graph_name
from omnigraph.schema.catalog import Catalog
from omnigraph.storage.texts import query_text

# What not every handle needs is imported where it is used: short commands must start quickly, and a
# remote graph has the methods of this one without Lance.
if TYPE_CHECKING:
    from omnigraph.accessors.proposals import ProposalList
    from omnigraph.accessors.stored_queries import StoredQueries
    from omnigraph.changes.diffs import Batch, GraphDiff
    from omnigraph.changes.feed import Feed
    from omnigraph.changes.graphs import Comparer, Side
    from omnigraph.changes.kept import KeptComparisons
    from omnigraph.choices import EngineName
    from omnigraph.embedding.writes import WriteEmbedding
    from omnigraph.engine.choose import Choice
    from omnigraph.engine.protocol import Data
    from omnigraph.engine.queries import Queries
    from omnigraph.engine.query_results import Explanation, QueryResult
    from omnigraph.engine.spark.execute import Frame, Session
    from omnigraph.evolution.run import SchemaChanges
    from omnigraph.export.plans import Progress as ExportProgress
    from omnigraph.export.results import ExportResult
    from omnigraph.load.dialects import CsvOptions
    from omnigraph.load.loads import Loads
    from omnigraph.load.results import LoadResult, Progress
    from omnigraph.load.sources import Source
    from omnigraph.maintenance.checking.report import CheckReport
    from omnigraph.maintenance.checking.rules import Progress as CheckProgress
    from omnigraph.maintenance.cleanup.results import CleanupResult
    from omnigraph.maintenance.copying.results import CopyResult
    from omnigraph.maintenance.copying.run import CopyProgress
    from omnigraph.maintenance.indexes import IndexRun
    from omnigraph.maintenance.optimize import Compaction
    from omnigraph.maintenance.purge.run import Purges
    from omnigraph.maintenance.results import IndexResult, OptimizeResult, RepairResult
    from omnigraph.maintenance.retention import RetentionRules
    from omnigraph.manifest.branches import Branch
    from omnigraph.manifest.points import Points
    from omnigraph.manifest.reader import Manifest
    from omnigraph.manifest.settings import StoredSettings
    from omnigraph.merge.outcomes import MergeOutcome
    from omnigraph.merge.run import Merges, Options
    from omnigraph.mutation.plan import Mutations
    from omnigraph.mutation.results import MutationResult
    from omnigraph.originals.results import ImportResult
    from omnigraph.policy.policies import AccessPolicy
    from omnigraph.policy.sight import Sight
    from omnigraph.recovery.entries import RecoveryEntry
    from omnigraph.relational.plans import Plan
    from omnigraph.schema.plan import SchemaPlan
    from omnigraph.schema.steps import SchemaStep
    from omnigraph.storage.store import Store
    from omnigraph.streams.handles import Ingest
    from omnigraph.transaction.commit import Transactions
    from omnigraph.transaction.requests import RequestKey, Requests
    from omnigraph.transaction.view import View
    from omnigraph.transaction.writes import WriteRequest


def init(
    uri: str | PathLike[str],
    schema: str | PathLike[str] | Catalog,
    *,
    actor: str | None = None,
    message: str | None = None,
    clock: Clock | None = None,
) -> Graph:
    """Create a graph with one empty table per type and a first commit.

    Args:
        uri: A directory, `file:///directory` or `s3://bucket/prefix`.
        schema: A path to a `.pg` file, the text itself, or a catalog built in Python.

    Raises:
        AlreadyExistsError: the place holds a graph, or other files. It is untouched.
        InvalidInputError: the schema or the URI is wrong. Nothing was written.
    """
    from omnigraph.manifest import lifecycle
    from omnigraph.storage.store import Store

    store = Store.open(uri)
    accepted = accept_schema(schema)
    clock = clock or SystemClock()
    actor, message = require_actor(actor), require_message(message)
    lifecycle.create(store, clock, accepted, actor=actor, message=message)
    return Graph(store, clock, read_only=False, actor=actor)


def open(  # noqa: A001  # omnigraph.open reads as it should
    uri: str | PathLike[str],
    *,
    actor: str | None = None,
    read_only: bool = False,
    policy: str | PathLike[str] | None = None,
    clock: Clock | None = None,
) -> Graph:
    """Open a graph. Unless read-only, recover interrupted writes.

    Args:
        actor: Who acts through this handle, unless a write names another.
        read_only: Write nothing at all, not even a recovery.
        policy: What actors may do: a `.toml` or `.cedar` file; `$OMNIGRAPH_POLICY` when None, and
            everything without either.

    Raises:
        GraphNotFoundError: there is no graph at this URI.
        NotFoundError: there is no such policy.
        InvalidInputError: the policy is not valid.
        FormatError: its format is newer than this release, or a Rust release wrote it
            (`import_original`).
        RecoveryNeededError: an interrupted write cannot be recovered without a person. The graph
            can still be opened read-only.
    """
    from omnigraph.storage.store import Store

    store = Store.open(uri)
    clock = clock or SystemClock()
    actor = require_actor(actor)
    authority = Authority.open(store.root.uri, policy, actor)
    if read_only:
        graph = Graph(store, clock, read_only=True, authority=authority)
        graph.snapshot()
        return graph
    from omnigraph.manifest import lifecycle
    from omnigraph.manifest.reader import Manifest

    # The handle starts with what its preparation has read.
    manifest = Manifest(store)
    lifecycle.prepare(manifest)
    graph = Graph(
        store, clock, read_only=False, actor=actor, manifest=manifest, authority=authority
    )
    # Omnigraph's own work, whoever opens the graph.
    graph._transactions.recovery.heal()  # noqa: SLF001  # a function of the same facade
    return graph


def import_original(
    source: str | PathLike[str], target: str | PathLike[str], *, clock: Clock | None = None
) -> ImportResult:
    """Make a graph of a Rust release again, with every branch, commit, actor, time and row.

    The source is only read. An import that was interrupted is continued by the same call; until it
    has ended, the target is not a graph.

    Args:
        source: The graph that a release from 0.4 to 0.8 wrote, wherever it is by now.
        target: An empty or a new place: a directory, `file:///directory` or `s3://bucket/prefix`.

    Raises:
        GraphNotFoundError: the source holds no graph.
        FormatError: the source cannot be imported; the message says why. The target is not a graph.
        AlreadyExistsError: the target holds something else. It is untouched.
        TableConflictError: another process is importing into the target. Call it again.
    """
    from omnigraph.backends.registry import Backends
    from omnigraph.originals.run import import_graph
    from omnigraph.storage.store import Store

    clock = clock or SystemClock()
    return import_graph(Store.open(source), Store.open(target), clock, Backends().local)


def diff_schemas(
    before: str | PathLike[str] | Catalog, after: str | PathLike[str] | Catalog
) -> SchemaPlan:
    """The steps between two schemas that no graph has to have. Nothing is refused.

    Args:
        before: A path to a `.pg` file, the text itself, or a catalog built in Python; so is
            `after`. Types and properties are matched by their names and `@rename_from`.

    Raises:
        DiagnosticsError: a schema has errors.
    """
    from omnigraph.evolution.run import compare_schemas

    return compare_schemas(accept_schema(before), accept_schema(after))


@dataclass(frozen=True, slots=True)
class Target:
    """What a handle reads: a branch as it moves, or one point of history.

    Attributes:
        branch: The branch; for a commit, the branch to search for it first.
    """

    branch: BranchName = MAIN
    commit: CommitId | None = None
    version: int | None = None

    def validated(self) -> Target:
        """The same target, whose parts a client may have sent.

        Raises:
            InvalidInputError: a part is no name of a branch, no commit id or no number.
        """
        return Target(
            BranchName.parse(require_text(self.branch, "branch")),
            None if self.commit is None else CommitId.parse(require_text(self.commit, "commit")),
            None if self.version is None else require_number(self.version, "version"),
        )

    @property
    def is_past(self) -> bool:
        """Whether it is one point of history, where nothing can be written."""
        return self.commit is not None or self.version is not None

    @classmethod
    def parse(
        cls, points: Points, branch: str | None, commit: str | None, version: int | None
    ) -> Self:
        """Validate what a caller named; a tag is resolved to the commit that it names now.

        Raises:
            InvalidInputError: a commit was given together with a branch or a version.
            InvalidParameterError: one of them has the wrong type.
            TagNotFoundError: the commit is no id, and the graph has no such tag.
        """
        if version is not None:
            version = require_number(version, "version")
        if commit is None:
            return cls(MAIN if branch is None else BranchName.parse(branch), version=version)
        if branch is not None or version is not None:
            message = "a commit was given, and a branch or a version with it"
            hint = "give either a commit, or a branch and a version"
            raise InvalidInputError(message, hint=hint)
        place = points.locate(commit)
        return cls(place.near, place.commit_id)


class Graph:
    """A handle on one graph. Cheap to keep, safe to share between threads."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        *,
        read_only: bool,
        actor: str | None = None,
        target: Target | None = None,
        settings: StoredSettings | None = None,
        manifest: Manifest | None = None,
        authority: Authority = UNLIMITED,
    ) -> None:
        from omnigraph.backends.registry import Backends
        from omnigraph.manifest.points import Points
        from omnigraph.manifest.reader import Manifest
        from omnigraph.manifest.schemas import Catalogs
        from omnigraph.manifest.settings import StoredSettings

        self._store = store
        self._clock = clock
        self._manifest = manifest or Manifest(store)
        self._points = Points(self._manifest)
        self._backends = Backends()
        self._catalogs = Catalogs(store.objects)
        self._actor = actor
        self._target = target or Target()
        # Handles on other branches share it, so that a new handle reads no settings again.
        self._settings = settings or StoredSettings(store.objects, clock)
        self._comparisons: KeptComparisons | None = None
        self.authority = authority
        self.read_only = read_only

    @cached_property
    def _queries(self) -> Queries:
        from omnigraph.engine.queries import Queries

        return Queries(
            self._store,
            self._catalogs,
            self._clock,
            self._backends.of,
            self._settings.current,
        )

    @cached_property
    def _transactions(self) -> Transactions:
        from omnigraph.maintenance.automatic import Folding
        from omnigraph.transaction.commit import Transactions

        return Transactions(
            self._manifest,
            self._clock,
            self._catalogs,
            self.authority,
            Folding(self._settings).after_commit,
        )

    @cached_property
    def _mutations(self) -> Mutations:
        from omnigraph.mutation.plan import Mutations

        return Mutations(self._queries, self._clock)

    @cached_property
    def _loads(self) -> Loads:
        from omnigraph.load.loads import Loads

        return Loads(
            self._transactions,
            self._backends.of,
            self._clock,
            self._begin_embedding,
            self.requests,
        )

    @cached_property
    def requests(self) -> Requests:
        """Writes that were requested with keys."""
        from omnigraph.transaction.requests import Requests

        return Requests(self._manifest, self._clock)

    def _begin_embedding(self, when: EmbedWhen) -> WriteEmbedding:
        from omnigraph.embedding.writes import WriteEmbedding

        return WriteEmbedding(when, lambda: self._settings.current().embedding, self._clock)

    @cached_property
    def _merges(self) -> Merges:
        from omnigraph.merge.run import Merges

        return Merges(
            self._manifest, self._clock, self._transactions, self._catalogs, self._backends.of
        )

    @cached_property
    def _schema_changes(self) -> SchemaChanges:
        from omnigraph.evolution.run import SchemaChanges

        return SchemaChanges(
            self._manifest, self._clock, self._transactions, self._catalogs, self._backends.of
        )

    @cached_property
    def _purges(self) -> Purges:
        from omnigraph.maintenance.purge.run import Purges

        @cache
        def begin(name: EngineName) -> Compaction:
            return self._backends.of(name).begin_compaction(self._clock, None)

        return Purges(self._manifest, self._clock, self._transactions, begin)

    def at(
        self, *, branch: str | None = None, commit: str | None = None, version: int | None = None
    ) -> Graph:
        """A handle on another branch, or, read-only, on one point of history.

        Args:
            commit: A commit by its id, or by a tag; the handle stays there if the tag moves.

        Raises:
            NotFoundError: the branch, the commit or the version does not exist.
        """
        with self.authority.conceal(commit or branch or MAIN):
            other = self._at(Target.parse(self._points, branch, commit, version))
        other.snapshot()
        return other

    def acting_as(
        self, actor: str | None, policy: AccessPolicy | None = None, name: str | None = None
    ) -> Graph:
        """A handle of another actor, under a policy. It shares what this one has read.

        Args:
            policy: What the actor may do; as this handle's policy says when None.
            name: The graph as the rules of the policy name it, such as the name under which it is
                served; when None, the last part of its URI without `.omni`.

        Raises:
            InvalidParameterError: the actor or the policy is not valid.
        """
        from omnigraph.policy.policies import AccessPolicy

        actor = require_actor(actor)
        authority = replace(self.authority, actor=actor)
        if policy is not None:
            if not isinstance(policy, AccessPolicy):
                raise misfit_error(policy, "policy", "a policy that was read")
            named = graph_name(self.uri) if name is None else require_text(name, "name")
            authority = Authority(policy, named, actor)
        other = Graph(
            self._store,
            self._clock,
            read_only=self.read_only,
            actor=actor,
            target=self._target,
            settings=self._settings,
            manifest=self._manifest,
            authority=authority,
        )
        other._catalogs = self._catalogs  # a handle of the same class
        other._queries = self._queries
        other._comparisons = self._comparisons
        return other

    def on(self, branch: BranchName) -> Graph:
        """A handle on a branch that is known to exist."""
        return self._at(Target(branch))

    def reading(self, target: Target, *, read_only: bool = False) -> Graph:
        """A handle on what another one reads, such as that of a client. Nothing is read for it.

        Raises:
            InvalidParameterError: it is no target.
        """
        if not isinstance(target, Target):
            raise misfit_error(target, "target", "what another handle reads")
        return self._at(target, read_only=read_only)

    def _at(self, target: Target, *, read_only: bool = False) -> Graph:
        other = Graph(
            self._store,
            self._clock,
            read_only=read_only or self.read_only or target.is_past,
            actor=self._actor,
            target=target,
            settings=self._settings,
            authority=self.authority,
        )
        other._comparisons = self._comparisons
        return other

    def keep_comparisons(self) -> None:
        """Keep in memory what this handle compares, for a server that reads diffs page by page.

        Handles that are made from this one share it.
        """
        from omnigraph.changes.kept import KeptComparisons

        self._comparisons = KeptComparisons()

    @property
    def target(self) -> Target:
        """What the handle reads, and writes to unless a write names another branch."""
        return self._target

    @property
    def branches(self) -> BranchList:
        """The graph's branches."""
        return BranchList(self, self._manifest, self._clock)

    @property
    def uri(self) -> str:
        """The location of the graph."""
        return self._store.root.uri

    @property
    def commits(self) -> Commits:
        """The graph's history."""
        return Commits(self, self._manifest, self._points, self._feed, near=self._target.branch)

    @property
    def indexes(self) -> IndexList:
        """The graph's indexes."""
        return IndexList(self, self._view_at, self._clock)

    @property
    def recoveries(self) -> Recoveries:
        """Interrupted writes, and what became of them.

        Raises:
            NotAllowedError: the policy forbids maintenance, and with it to look at these.
        """
        self.authority.require(Action.MAINTAIN)
        return Recoveries(self._transactions.recovery)

    @property
    def schema(self) -> Schema:
        """The graph's schema."""
        return Schema(
            self,
            self._store,
            lambda: self._schema_changes,
            lambda: self._purges,
            self._request_write,
            self._retention_rules,
        )

    @property
    def tags(self) -> TagList:
        """The graph's tags: names for commits."""
        return TagList(self, self._manifest, self._clock, self._actor)

    @property
    def proposals(self) -> ProposalList:
        """The graph's proposals: branches to be merged, with approvals and comments."""
        from omnigraph.accessors.proposals import ProposalList

        return ProposalList(
            self, self._manifest, self._clock, self._actor, lambda: self._merges, self._merge
        )

    @property
    def algorithms(self) -> Algorithms:
        """Algorithms on the graph."""
        return Algorithms(self, self._view_at, self._backends)

    @property
    def embeddings(self) -> Embeddings:
        """The graph's embedded vectors."""
        return Embeddings(
            self,
            self._unlimited_view_at,
            self._settings,
            self._backends,
            lambda: self._transactions,
            self._request_write,
            self._clock,
        )

    @property
    def queries(self) -> StoredQueries:
        """The graph's stored queries."""
        from omnigraph.accessors.stored_queries import StoredQueries

        return StoredQueries(
            self,
            self._store,
            lambda: self._queries,
            self._budget,
            lambda: self._manifest.current(MAIN),
        )

    @property
    def streams(self) -> StreamList:
        """The streams that write to the graph."""
        return StreamList(self, lambda: self._transactions, self._request_write)

    @property
    def settings(self) -> GraphSettings:
        """The graph's settings."""
        return GraphSettings(self, self._settings)

    def snapshot(
        self, *, branch: str | None = None, commit: str | None = None, version: int | None = None
    ) -> Snapshot:
        """The value of the graph at one commit: the handle's own unless another is named.

        Args:
            commit: A commit by its id, or by a tag; it is named without a branch.
            version: A manifest version of the branch.

        Raises:
            NotFoundError: the branch, the commit or the version does not exist.
            InvalidInputError: a commit was given together with a branch or a version.
        """
        return self._shown(self.full_snapshot(branch=branch, commit=commit, version=version))

    def _shown(self, snapshot: Snapshot) -> Snapshot:
        """A snapshot as the actor may see it."""
        return self.authority.sight(snapshot.branch).snapshot(snapshot)

    def full_snapshot(
        self, *, branch: str | None = None, commit: str | None = None, version: int | None = None
    ) -> Snapshot:
        """As `snapshot`, with the tables of types that the actor may not read: for the accessors.

        Raises:
            NotFoundError: the branch, the commit or the version does not exist.
            InvalidInputError: a commit was given together with a branch or a version.
        """
        target = self._target
        with self.authority.conceal(commit or branch or target.commit or target.branch):
            if (branch, commit, version) != (None, None, None):
                target = Target.parse(self._points, branch, commit, version)
            snapshot = self._read(target)
            named = snapshot.branch if target.commit is None else snapshot.head.branch
            self.authority.require_visible(named)
            return snapshot

    def _read(self, target: Target) -> Snapshot:
        if target.commit is not None:
            return self._manifest.at_commit(target.commit, near=target.branch)
        if target.version is not None:
            return self._manifest.at_version(target.branch, target.version)
        return self._manifest.current(target.branch)

    def query(
        self,
        source: str | PathLike[str],
        params: Mapping[str, object] | None = None,
        *,
        name: str | None = None,
        branch: str | None = None,
        commit: str | None = None,
        version: int | None = None,
        engine: str | None = None,
        exact: bool | None = None,
        timeout: Timeout | None = None,
        memory: str | int | None = None,
        max_rows: str | int | None = None,
        cancel: Cancellation | None = None,
        embedding_model: str | None = None,
    ) -> QueryResult:
        """Run a read query on one commit.

        Args:
            source: The text of one or more queries, or the path of a `.gq` file.
            name: Which of them to run; not needed when there is only one.
            engine: `local`, `spark` or `auto`, by size; `$OMNIGRAPH_ENGINE` when None.
            exact: Use no approximate index: `nearest` finds the nearest, and not almost always. As
                the graph's setting `search.exact` says when None.
            timeout: How long it may run: `30s`, seconds or a `timedelta`. This and the next two are
                as the graph's settings say when None, and unlimited when `none`.
            memory: How much it may hold at once: `512MB`, or bytes.
            max_rows: How many rows it may return; a query that has more is refused, not cut.
            cancel: Cancels the query when its `cancel` is called, in any thread.
            embedding_model: After a change of the model in the schema, the model whose vectors
                `nearest` looks among; it embeds texts, too. The schema's when None.

        Raises:
            DiagnosticsError: the text has errors, or does not fit the schema. Nothing was read.
            InvalidParameterError: a parameter is missing, unknown or ill-typed. Nothing was read.
            EmbeddingError: a provider could not embed a text that is looked for.
            InvalidInputError: the query changes the graph, looks for a text among vectors that
                another model made, or a commit was given together with a
                branch or a version. Nothing was read.
            NotFoundError: the branch, the commit, the version or the file does not exist.
            ConflictError: the branch was deleted and created again meanwhile.
            LimitExceededError: a limit was exceeded; what the query held is free.
            CancelledError: it was cancelled; what the query held is free.
        """
        request = BudgetRequest.parse(
            timeout=timeout, memory=memory, max_rows=max_rows, cancel=cancel
        )
        snapshot = self.full_snapshot(branch=branch, commit=commit, version=version)
        with self._detect_removal(snapshot):
            return self._queries.run(
                snapshot,
                query_text(source),
                params,
                name=name,
                engine=engine,
                exact=exact,
                admit=partial(self.authority.require_readable, snapshot),
                budget=partial(self._budget, request),
                embedding_model=embedding_model,
            )

    def _budget(self, request: BudgetRequest, plan: Plan) -> Callable[[], Budget]:
        # One row by its id exceeds no limit: it need not wait for the settings.
        if plan.lookup is not None:
            return lambda: request.budget(QueryLimits)
        if request.needs_defaults:
            self._settings.start_reading()
        return lambda: request.budget(lambda: self._settings.current().query)

    def explain(
        self,
        source: str | PathLike[str],
        params: Mapping[str, object] | None = None,
        *,
        name: str | None = None,
        branch: str | None = None,
        commit: str | None = None,
        version: int | None = None,
        engine: str | None = None,
        exact: bool | None = None,
        memory: str | int | None = None,
    ) -> Explanation:
        """How `query` would run: the plan, the engine and the reason for it. Runs nothing.

        Takes the arguments of `query` that a plan depends on, and raises its errors.
        """
        request = BudgetRequest.parse(memory=memory)
        snapshot = self.full_snapshot(branch=branch, commit=commit, version=version)
        text = query_text(source)
        with self._detect_removal(snapshot):
            return self._queries.explain(
                snapshot,
                text,
                params,
                name=name,
                engine=engine,
                exact=exact,
                admit=partial(self.authority.require_readable, snapshot),
                budget=partial(self._budget, request),
            )

    def mutate(
        self,
        source: str | PathLike[str],
        params: Mapping[str, object] | None = None,
        *,
        name: str | None = None,
        branch: str | None = None,
        actor: str | None = None,
        message: str | None = None,
        expect_head: str | None = None,
        timeout: Timeout | None = None,
        cancel: Cancellation | None = None,
        embed: str = "auto",
        key: str | RequestKey | None = None,
    ) -> MutationResult:
        """Change the graph as a mutation query says, in one commit.

        Args:
            source: The text of one or more queries, or the path of a `.gq` file.
            name: Which of them to run; not needed when there is only one.
            expect_head: The commit, or a tag of it, that the branch must be at, or the write is
                refused.
            timeout: How long it may look for rows and check rules: `30s`, seconds or a
                `timedelta`. Once it writes, it writes to the end.
            cancel: Cancels the mutation when its `cancel` is called, unless it writes by then.
            embed: `now` embeds texts that are new or changed, `later` leaves that to `embed`, and
                `auto` leaves it if they are many.
            key: A text that names this request for a day: whoever repeats it with its key, in any
                process, gets the result of the one time that it was carried out.

        Raises:
            DiagnosticsError: the text has errors, or does not fit the schema. Nothing was read.
            InvalidParameterError: a parameter is missing, unknown or ill-typed. Nothing was read.
            InvalidInputError: the query only reads, or its key was used for another one. Nothing
                changed.
            NotFoundError: the branch or the file does not exist.
            NotAllowedError: the handle is on a point of history, or was opened read-only.
            IntegrityError: the change would break rules of the schema. Nothing changed.
            ConflictError: others changed the same rows meanwhile, or the branch is not at
                `expect_head`. Nothing changed.
            RecoveryNeededError: an earlier write cannot be recovered without a person. Nothing
                changed.
            OutcomeUnknownError: whether the commit landed is unknown; look for it before a retry.
            LimitExceededError: the time was up before it wrote. Nothing changed.
            CancelledError: it was cancelled before it wrote. Nothing changed.
            EmbeddingError: the provider of a model failed. Nothing changed.
        """
        from omnigraph.mutation.results import result_of

        budget = BudgetRequest.parse(timeout=timeout, cancel=cancel).budget(QueryLimits)
        write = self._request_write(OperationKind.MUTATION, branch, actor, message, expect_head)
        embedding = self._begin_embedding(require_choice(embed, EmbedWhen, "embed"))
        mutation = self._mutations.prepare(
            query_text(source),
            params,
            name=name,
            embedding=embedding,
            budget=budget,
        )
        sight = self._sight_of(write)
        if key is None:
            return sight.mutation(result_of(self._transactions.run(write, mutation.plan)))
        from omnigraph.mutation.results import MutationResult
        from omnigraph.transaction.requests import RequestKey

        if not isinstance(key, RequestKey):
            text = query_text(source).text
            described = (write.kind, write.branch, text, name, params, expect_head, message)
            key = RequestKey.parse(key, *described)
        result = self.requests.run(
            write,
            key,
            lambda write: result_of(self._transactions.run(write, mutation.plan)),
            read=MutationResult.from_json,
            preview=result_of,
        )
        return sight.mutation(result)

    def load(
        self,
        source: Source,
        *,
        mode: str = "append",
        branch: str | None = None,
        start: str | None = None,
        on_error: str = "fail",
        rejects: str | Path | None = None,
        on_duplicate: str | None = None,
        order_by: str | None = None,
        ignore_unknown: bool = False,
        csv: CsvOptions | None = None,
        engine: str | None = None,
        index: bool = True,
        embed: str = "auto",
        actor: str | None = None,
        message: str | None = None,
        expect_head: str | None = None,
        progress: Progress | None = None,
        key: str | RequestKey | None = None,
    ) -> LoadResult:
        """Write all rows of an input, of any size and any types, in one commit.

        Args:
            source: Files, globs, directories, here or in an object store, `-` for standard input,
                or tables and DataFrames by the name of their type. A file by the name of its type
                may have a map of its columns behind it: `people.csv:name=full_name`.
            mode: `append` adds new rows, `merge` replaces rows that have the same id, and
                `overwrite` replaces all rows of the types that the input names.
            start: The branch to create `branch` from where that does not exist; `branch` has to be
                named. A load that fails deletes the new branch again, unless others use it by now
                or the load may have landed: the error then has a note.
            on_error: `fail`, or `quarantine`: rows that break rules are written to `rejects` with
                their reasons, and the others are loaded.
            on_duplicate: Which of several rows of one id is loaded: `first`, `last`, or none, as
                they break a rule (`reject`). By default, `merge` loads the last one, unless the
                rows of a DataFrame of Spark have no order, and the other modes reject them.
            order_by: The column that orders the rows of DataFrames of Spark and Arrow tables, so
                that one of them is the last; nulls are first. It need not be a property.
            ignore_unknown: Whether values that no property takes are dropped instead of refused.
            csv: How CSV files are read: `delimiter`, `quote`, `escape`, `header`, `null` and
                `encoding`, by name or as texts like `delimiter=|,null=NA`; those of one type as
                `Person:header=name,age`.
            engine: `local`, `spark` or `auto`, by size; `$OMNIGRAPH_ENGINE` when None.
            index: Whether to update the indexes afterwards, in a commit of its own. If that fails,
                the load has landed all the same, and the result has a warning.
            embed: `now` embeds texts whose vectors are not given, `later` leaves that to `embed`,
                and `auto` leaves it if they are many, or on Spark.
            expect_head: The commit, or a tag of it, that the branch must be at, or the load is
                refused.
            progress: Called with how far each stage is.
            key: Names this load for a day, as for `mutate`. A text stands for the names of files
                and not for their contents.

        Raises:
            EmbeddingError: the provider of a model failed. Nothing changed.
            InvalidInputError: the arguments do not fit together, or name nothing that can be
                loaded. Nothing was read.
            NotFoundError: there is no such file, type or branch.
            NotAllowedError: the handle is on a point of history, or was opened read-only.
            IntegrityError: rows break rules of the schema; its report lists them. Nothing changed.
            ConflictError: others changed the same tables meanwhile, or the branch is not at
                `expect_head`. Nothing changed.
            RecoveryNeededError: an earlier write cannot be recovered without a person. Nothing
                changed.
            OutcomeUnknownError: whether the commit landed is unknown; look for it before a retry.
        """
        from omnigraph.load.loads import LoadRequest
        from omnigraph.transaction.requests import RequestKey

        if start is not None and branch is None:
            fault = "start makes a branch, and branch names it: give both"
            raise InvalidParameterError(fault, name="start")
        write = self._request_write(OperationKind.LOAD, branch, actor, message, expect_head)
        request = LoadRequest(
            source,
            mode=require_text(mode, "mode"),
            on_error=require_text(on_error, "on_error"),
            rejects=rejects,
            on_duplicate=on_duplicate,
            order_by=order_by,
            ignore_unknown=ignore_unknown,
            csv=csv,
            engine=engine,
            progress=progress,
            embed=require_text(embed, "embed"),
        )
        check = partial(self._loads.require_possible, request)
        with self._branch_for_load(write, start, check):
            if key is not None and not isinstance(key, RequestKey):
                described = (write.branch, mode, repr(source), message, expect_head)
                key = RequestKey.parse(key, *described)
            result = self._sight_of(write).load(self._loads.run(write, request, key))
        if not index or result.commit_id is None:
            return result
        wanted = follow_up(engine, result.engine)
        try:
            self.ensure_indices(branch=write.branch, engine=wanted, actor=actor, progress=progress)
        except OmnigraphError as failure:
            failures = (*result.warnings, index_failure(write.branch, failure))
            return replace(result, warnings=failures)
        except BaseException as interruption:
            note = f"the load landed as commit {result.commit_id}"
            interruption.add_note(f"{note}; {index_remedy(write.branch)}")
            raise
        return result

    def ingest(
        self,
        stream: Frame,
        *,
        type: str | None = None,  # noqa: A002  # what it is called everywhere else
        router: str | None = None,
        envelope: str | None = None,
        checkpoint: str | PathLike[str],
        mode: str = "append",
        name: str | None = None,
        branch: str | None = None,
        on_error: str = "fail",
        rejects: str | PathLike[str] | None = None,
        on_duplicate: str | None = None,
        order_by: str | None = None,
        ignore_unknown: bool = False,
        embed: str = "auto",
        every: str | None = None,
        available_now: bool = False,
        adopt: bool = False,
        actor: str | None = None,
        message: str | None = None,
    ) -> Ingest:
        """Write a streaming DataFrame of Spark, each micro-batch in one commit, exactly once.

        Args:
            type: The type of all rows.
            router: Instead, the column with the name of each row's type; the other columns are
                properties, and null in rows whose type has no such property.
            envelope: Instead, the column with whole rows, as lines of a graph file.
            checkpoint: Where Spark keeps how far the stream is: a directory, or a URL.
            mode: `append` adds new rows, and `merge` replaces rows that have the same id.
            name: The name of the stream, under which the branch records its newest batch; the
                location of the checkpoint when None.
            on_error: `fail` stops the stream at rows that break rules, `quarantine` writes them to
                a file of the batch in the directory `rejects`, and loads the others.
            on_duplicate: Which of several rows of one id in a batch is loaded: `first` or `last`,
                which need `order_by`, or none (`reject`). By default, `merge` loads the last one
                if `order_by` is given.
            order_by: The column that orders the rows of a batch.
            every: How often to make a batch, such as `10 seconds`; as soon as the one before is
                done when None.
            available_now: Whether the stream ends when it has read what there is now.
            adopt: Accept a checkpoint that has done batches which the branch does not have.

        Raises:
            InvalidInputError: the arguments do not fit together, or Spark refuses the stream.
            NotFoundError: there is no such type or branch.
            NotAllowedError: the handle is on a point of history, or was opened read-only.
        """
        require_spark()
        from omnigraph.streams.batches import StreamSettings, StreamWriter
        from omnigraph.streams.checkpoints import Checkpoint
        from omnigraph.streams.ingest import Trigger, fetch_with, start_ingest

        write = self._request_write(OperationKind.LOAD, branch, actor, message)
        place = Checkpoint.parse(checkpoint, lambda path: fetch_with(stream.sparkSession, path))
        settings = StreamSettings.parse(
            place.location if name is None else name,
            type_name=type,
            router=router,
            envelope=envelope,
            mode=mode,
            on_error=on_error,
            rejects=rejects,
            on_duplicate=on_duplicate,
            order_by=order_by,
            ignore_unknown=ignore_unknown,
            embed=embed,
            adopts=adopt,
        )
        trigger = Trigger.parse(every, is_available_now=available_now)
        # As for a load: writing does not need the right to read.
        self.authority.admit(write)
        with self.authority.conceal(write.branch):
            now = self._manifest.current(write.branch)
        if type is not None:
            self._catalogs.of(now.schema_digest).type_named(type)
        writer = StreamWriter(self._manifest, self._loads, self._clock, write, settings)
        return start_ingest(stream, writer, place, trigger)

    @contextmanager
    def _branch_for_load(
        self, write: WriteRequest, start: str | None, check: Callable[[Catalog], None]
    ) -> Iterator[None]:
        """Create a branch for the block if it does not exist; delete it again if the block fails.

        The branch stays where others use it by now, or where the block may have committed to it.
        The error then has a note that says so.

        Args:
            check: Refuses a load that cannot succeed, before a branch is created for it.
        """
        name = write.branch
        branch = None if start is None else self._create_missing(write, start, check)
        try:
            yield
        except OutcomeUnknownError as failure:
            if branch is not None:
                note = (
                    f"branch {name} was created for this load and was not deleted: the commit "
                    "may be on it"
                )
                failure.add_note(note)
            raise
        except BaseException as failure:
            if branch is not None:
                self._delete_again(branch, failure)
            raise

    def _create_missing(
        self, write: WriteRequest, start: str, check: Callable[[Catalog], None]
    ) -> Branch | None:
        """A new branch at the tip of another; None if there is one of that name."""
        name = write.branch
        # Read even where nothing is to be created: a misspelt start is refused in any case.
        source = self.full_snapshot(branch=start)
        # Before it is looked up: the refusal of a load does not tell which branches there are.
        self.authority.admit(write)
        if name in self._manifest.branches():
            return None
        self.authority.acting_as(write.actor).require(
            Action.BRANCH_CREATE, branch=name, source=source.branch
        )
        check(self._catalogs.of(source.schema_digest))
        from omnigraph.branching import lifecycle

        try:
            return lifecycle.create(self._manifest, self._clock, name, source)
        except AlreadyExistsError:
            # Others created it since, which is as if it had existed before.
            return None

    def _delete_again(self, branch: Branch, failure: BaseException) -> None:
        """Delete a branch that nobody has moved since; if it stays, note on the failure why."""
        from omnigraph.branching import lifecycle

        assert branch.source_commit is not None, "it was created from another branch"
        try:
            lifecycle.delete_unmoved(self._manifest, self._clock, branch, branch.source_commit)
        except BranchNotFoundError:
            # Others deleted it. A branch that has its name by now is theirs.
            return
        except OmnigraphError as second:
            note = f"branch {branch.name}, which was created for this load, was not deleted"
            failure.add_note(f"{note}: {second.message}")

    def export(
        self,
        target: str | PathLike[str],
        *,
        types: str | Collection[str] | None = None,
        format: str | None = None,  # noqa: A002  # what it is called everywhere else
        engine: str | None = None,
        replace: bool = False,
        progress: ExportProgress | None = None,
    ) -> ExportResult:
        """Write the rows that this handle reads to files; NDJSON loads again with the same ids.

        Args:
            target: A file, `-` for standard output, or a directory for Parquet, CSV and Spark. A
                file or directory may be a `file://` URL, or in a folder of an object store,
                `s3://bucket/folder/name`.
            types: Only these types, or this one.
            format: `ndjson`, `parquet` or `csv`; NDJSON when None.
            engine: `local`, `spark` or `auto`, by size; `$OMNIGRAPH_ENGINE` when None.
            replace: Whether to replace an earlier export of that name.

        Raises:
            AlreadyExistsError: the target exists. It is untouched.
            InvalidInputError: target, format and engine contradict one another, or exports are not
                written to that store. Nothing was written.
            TypeNotFoundError: the graph has no such type. Nothing was written.
            OutcomeUnknownError: in a bucket, whether the export is complete is unknown.
            StorageError: a table cannot be read, or the target not written. No part of the export
                is visible.
        """
        from omnigraph.export.run import ExportOrder, export

        view = self._view()
        branch, wanted = view.snapshot.branch, require_texts(types, "types")
        named = [type_.name for type_ in view.catalog.types_named(wanted)]
        self.authority.require(Action.EXPORT, branch=branch, types=() if wanted is None else named)
        shown = named
        if wanted is None:
            shown = [name for name in named if self._may_export(branch, name)]
        self.authority.require(Action.READ, branch=branch, types=shown)
        order = ExportOrder(
            require_path(target, "target"),
            types=tuple(shown),
            format=None if format is None else require_text(format, "format"),
            engine=engine,
            replaces=replace,
            progress=progress,
            hidden=tuple(sorted(set(named).difference(shown))),
        )
        with self._detect_removal(view.snapshot):
            return export(view, self._clock, self._backends.of, order)

    def _may_export(self, branch: BranchName, type_name: str) -> bool:
        may = self.authority.allows
        return all(may(each, branch, type_name=type_name) for each in (Action.READ, Action.EXPORT))

    def frame(
        self,
        type_name: str,
        *,
        columns: Iterable[str] | None = None,
        where: str | None = None,
        spark: Session | None = None,
    ) -> Frame:
        """The rows of a type as a Spark DataFrame, which reads them when it is used.

        Args:
            columns: Those to read; all when None. With none, the rows are only counted.
            where: A filter in Spark's SQL that Lance applies: comparisons with constants, IN,
                BETWEEN and IS NULL, joined by AND.

        Raises:
            TypeNotFoundError: the graph has no such type.
            InvalidParameterError: there is no such column, or the filter is none of those.
            InvalidInputError: Spark is not installed, or cannot be used. Nothing was read.
        """
        require_spark()
        from omnigraph.connector import frames

        return frames.type_frame(
            self._view(),
            require_text(type_name, "type_name"),
            spark,
            columns=require_texts(columns, "columns"),
            where=None if where is None else require_text(where, "where"),
        )

    def vertices(
        self,
        *,
        types: str | Collection[str] | None = None,
        qualified: bool = False,
        spark: Session | None = None,
    ) -> Frame:
        """All nodes as one Spark DataFrame: `id`, `type` and their properties.

        Args:
            types: Only these types, or this one.
            qualified: Whether ids have the form `Person/ada`, for types that share ids.

        Raises:
            TypeNotFoundError: the graph has no such type.
            InvalidInputError: Spark is not installed, or cannot be used. Nothing was read.
        """
        require_spark()
        from omnigraph.connector import frames

        wanted = require_texts(types, "types")
        return frames.vertices(self._view(), spark, types=wanted, qualified=qualified)

    def edges(
        self,
        *,
        types: str | Collection[str] | None = None,
        qualified: bool = False,
        spark: Session | None = None,
    ) -> Frame:
        """All edges as one Spark DataFrame: `src`, `dst`, `type`, their ids and properties.

        Args:
            types: Only these types, or this one.
            qualified: Whether ends have the form `Person/ada`, as the ids of `vertices`.

        Raises:
            TypeNotFoundError: the graph has no such type.
            InvalidInputError: Spark is not installed, or cannot be used. Nothing was read.
        """
        require_spark()
        from omnigraph.connector import frames

        wanted = require_texts(types, "types")
        return frames.edges(self._view(), spark, types=wanted, qualified=qualified)

    def _view(self) -> View:
        return self._view_at(self.full_snapshot())

    def _view_at(self, snapshot: Snapshot) -> View:
        view = self._unlimited_view_at(snapshot)
        return replace(view, data=self.authority.limit(snapshot, view.data))

    def _unlimited_view_at(self, snapshot: Snapshot) -> View:
        """The view of the graph itself, which no policy limits."""
        from omnigraph.transaction.view import view_at

        return view_at(self._store, self._catalogs, snapshot)

    def _detect_removal(self, *snapshots: Snapshot) -> AbstractContextManager[None]:
        from omnigraph.manifest.removals import detect_removal

        return detect_removal(self._store, *snapshots)

    def _data_at(self, snapshot: Snapshot) -> Data:
        from omnigraph.engine.snapshots import data_at

        return self.authority.limit(snapshot, data_at(self._store, snapshot))

    def ensure_indices(
        self,
        *,
        branch: str | None = None,
        engine: str | None = None,
        actor: str | None = None,
        message: str | None = None,
        rebuild: bool = False,
        progress: Progress | None = None,
    ) -> IndexResult:
        """Make the indexes those that the schema asks for: build, extend, join and remove.

        Indexes make lookups by id, key, edge end and indexed properties fast. No result depends on
        them.

        Args:
            engine: `local`, `spark` or `auto`, by size; `$OMNIGRAPH_ENGINE` when None.
            rebuild: Whether indexes that are there are built anew, such as one that is damaged.
            progress: Called with how far the stage `index` is.

        Raises:
            ConflictError: other processes kept changing a table. Nothing changed.
        """
        from omnigraph.maintenance.indexes import Indexing, result_of

        write = self._request_write(OperationKind.INDEX, branch, actor, message)
        follow = None if progress is None else partial(progress, "index")

        @cache
        def begin(name: EngineName) -> IndexRun:
            return self._backends.of(name).begin_indexing(self._clock, follow)

        indexing = Indexing(engine, begin, rebuilds=rebuild)
        landed = self._transactions.run(write, indexing.plan)
        self._store_arrays(write.branch, landed.report.choice)
        return self._sight_of(write).index(result_of(landed), _type_names(landed.view.snapshot))

    def _store_arrays(self, branch: BranchName, choice: Choice) -> None:
        """Write what makes the first query of a process faster, after the indexes are done.

        A failure is logged: the commit before has landed, and no answer needs what is missing.
        """
        if choice.is_bulk:
            # The driver of a job does not read whole tables.
            return
        from omnigraph.maintenance.text_lengths import store_text_lengths
        from omnigraph.maintenance.topologies import store_topologies, warn_not_stored

        try:
            # What is stored has no rows: whoever may write need not be allowed to read.
            snapshot = self._manifest.current(branch)
            view = self._unlimited_view_at(snapshot)
            store_topologies(view)
            store_text_lengths(view)
        except OmnigraphError as failure:
            warn_not_stored(branch, failure)
        except BaseException as interruption:
            interruption.add_note("the indexes are up to date; only their arrays were not stored")
            raise

    def optimize(
        self,
        *,
        branch: str | None = None,
        types: str | Collection[str] | None = None,
        if_needed: bool = False,
        engine: str | None = None,
        actor: str | None = None,
        message: str | None = None,
        progress: Progress | None = None,
    ) -> OptimizeResult:
        """Store the rows of a branch in fewer and fuller files, and index all of them.

        No row changes: diffs, the feed and merges do not see it, and older commits read what they
        always read. Others may write meanwhile. If there is nothing to do, there is no commit.

        Args:
            types: Only the tables of these types; all when None. Tables that the branch shares
                with another one are left to that one.
            if_needed: Leave tables as they are that are read almost as fast as after the work.
            engine: `local`, `spark` or `auto`, by size; `$OMNIGRAPH_ENGINE` when None.
            progress: Called with how far the stage `optimize` is.

        Raises:
            TypeNotFoundError: the schema has no type of a name. Nothing changed.
            ConflictError: other processes kept changing a table. Nothing changed.
            StorageError: a file could not be read or written. Nothing changed.
        """
        from omnigraph.maintenance.groups import group_all, group_needed
        from omnigraph.maintenance.optimize import Optimizing, Policy
        from omnigraph.maintenance.results import OptimizeResult

        write = self._request_write(OperationKind.OPTIMIZE, branch, actor, message)
        follow = None if progress is None else partial(progress, "optimize")

        @cache
        def begin(name: EngineName) -> Compaction:
            return self._backends.of(name).begin_compaction(self._clock, follow)

        policy = Policy(group_needed if if_needed else group_all, indexes_all=not if_needed)
        optimizing = Optimizing(engine, begin, policy, require_texts(types, "types"))
        landed = self._transactions.run(write, optimizing.plan)
        self._store_arrays(write.branch, landed.report.choice)
        result = OptimizeResult.of(landed)
        return self._sight_of(write).optimize(result, _type_names(landed.view.snapshot))

    def merge(
        self,
        source: str,
        *,
        into: str | None = None,
        resolve: str | None = None,
        strict_rows: bool = False,
        dry_run: bool = False,
        delete_branch: bool = False,
        engine: str | None = None,
        actor: str | None = None,
        message: str | None = None,
        expect_source: str | None = None,
        expect_head: str | None = None,
    ) -> MergeOutcome:
        """Merge what one branch changed into another, in one commit with two parents.

        Changes of both sides to different properties of one row are merged property by property.
        Schemas are merged first, by the identities of types and properties; rows that lack a
        property get its default.

        Args:
            into: The branch to merge into; the handle's own when None.
            resolve: How to decide conflicts: `ours` keeps the target's side, `theirs` takes the
                source's; or the JSON text of a list of decisions. Conflicts of the kinds
                `unique_violation` and `cardinality_violation` cannot be decided for `theirs`.
            strict_rows: Whether rows that both sides changed conflict even in different properties.
            dry_run: Report what would happen, with every conflict, and change nothing; under a
                policy, whoever may merge them, or read all of both branches, may. Where schemas
                differ, rules are checked on scratch files, which `cleanup` removes. Other errors
                are raised as without it.
            delete_branch: Delete the source once it is merged. If that fails, for example because
                it has moved since, the merge has landed all the same, and the outcome has a
                warning.
            engine: `local`, `spark` or `auto`, by how much differs; `$OMNIGRAPH_ENGINE` when None.
            expect_source: The commit, or a tag of it, that the source must be at, or the merge is
                refused.
            expect_head: The same of the branch that changes.

        Raises:
            MergeConflictError: there are conflicts that `resolve` does not decide. Nothing changed.
            ConflictError: the target kept moving meanwhile, or a branch is not where it is expected
                to be. Nothing changed.
            BranchNotFoundError: the graph has no such branch.
            InvalidInputError: source and target are one branch, `resolve` is invalid, or Spark
                cannot merge schemas that differ in this way. Nothing changed.
            NotAllowedError: the handle cannot write, or the source cannot be deleted. Nothing
                changed.
            RecoveryNeededError: an earlier write cannot be recovered without a person. Nothing
                changed.
            OutcomeUnknownError: whether the commit landed is unknown; look for it before a retry.
        """
        from omnigraph.merge.run import Options

        theirs = BranchName.parse(source)
        ours = self._merge_target(into)
        options = Options(
            None if resolve is None else require_text(resolve, "resolve"),
            strict_rows,
            engine,
            self._expected(expect_source),
            expect_head=self._expected(expect_head),
        )
        who, why = require_actor(actor) or self._actor, require_message(message)
        if dry_run:
            return self._preview(theirs, ours, options, who, delete_branch=delete_branch)
        return self._merge(theirs, ours, options, who, why, delete_branch=delete_branch)

    def _preview(
        self,
        theirs: BranchName,
        ours: BranchName,
        options: Options,
        who: str | None,
        *,
        delete_branch: bool,
    ) -> MergeOutcome:
        looking = self.authority.acting_as(who)
        names = self._types_of(theirs, ours)
        enough = looking.approvals_needed(ours)

        def admit(*, changes: Collection[str] = (), reads: Collection[str] = ()) -> None:
            may_merge = looking.allows(Action.MERGE, ours, source=theirs, approvals=enough)
            for branch in (theirs, ours):
                types = sorted({*reads} if may_merge else {*changes, *reads})
                looking.require(Action.READ, branch=branch, types=types)

        if delete_branch:
            self._deletable(theirs)
        sight = looking.sight(theirs, ours)
        outcome = self._merges.preview(theirs, ours, options, admit if looking.is_limited else None)
        return sight.outcome(outcome, names)

    def _types_of(self, *branches: BranchName) -> frozenset[str]:
        """The types of branches, where it matters which of them an actor may read."""
        if not self.authority.is_limited:
            return frozenset()
        return frozenset().union(
            *(_type_names(self.full_snapshot(branch=branch)) for branch in branches)
        )

    def _merge(
        self,
        theirs: BranchName,
        ours: BranchName,
        options: Options,
        who: str | None,
        why: str | None,
        *,
        delete_branch: bool = False,
    ) -> MergeOutcome:
        self.require_writable()
        merging = self.authority.acting_as(who)
        self._require_mergeable(merging, theirs, ours, options, delete_branch=delete_branch)
        branch = self._deletable(theirs) if delete_branch else None
        sight, names = merging.sight(theirs, ours), self._types_of(theirs, ours)
        with sight.limit_conflicts(theirs, ours, names):
            outcome = self._merges.run(theirs, ours, options, actor=who, message=why)
        outcome = sight.outcome(outcome, names)
        if branch is None:
            return outcome
        from omnigraph.branching import lifecycle

        try:
            # A commit made since is in no other branch, and then the source stays.
            head = CommitId(outcome.source_commit)
            lifecycle.delete_unmoved(self._manifest, self._clock, branch, head)
        except OmnigraphError as failure:
            warning = deletion_failure(theirs, ours, failure)
            return replace(outcome, warnings=(*outcome.warnings, warning))
        except BaseException as interruption:
            if outcome.commit_id is not None:
                note = f"the merge landed as commit {outcome.commit_id}"
                interruption.add_note(f"{note}; {deletion_remedy(theirs)}")
            raise
        return replace(outcome, deleted_source=True)

    def _merge_target(self, into: str | None) -> BranchName:
        if into is not None:
            return BranchName.parse(into)
        if self._target.is_past:
            message = "this handle looks at the past, and nothing can be merged into that"
            hint = "name the branch that is to change: into='branch'"
            raise NotAllowedError(message, hint=hint, code=ErrorCode.READ_ONLY)
        return self._target.branch

    def _require_mergeable(
        self,
        merging: Authority,
        theirs: BranchName,
        ours: BranchName,
        options: Options,
        *,
        delete_branch: bool,
    ) -> None:
        if not merging.is_limited:
            return
        self.snapshot(branch=theirs)
        self.snapshot(branch=ours)
        merging.require(Action.MERGE, branch=ours, source=theirs, approvals=options.approvals)
        if delete_branch:
            merging.require(Action.BRANCH_DELETE, branch=theirs)

    def _deletable(self, source: BranchName) -> Branch:
        """The source of a merge, if it can be deleted afterwards."""
        from omnigraph.branching import lifecycle

        try:
            return lifecycle.require_deletable(self._manifest, source)
        except NotAllowedError as error:
            error.add_note("nothing was merged; without deleting the branch, it would be")
            raise

    def diff(
        self,
        before: str,
        after: str,
        *,
        kinds: str | Collection[str] | None = None,
        types: str | Collection[str] | None = None,
        ops: str | Collection[str] | None = None,
        engine: str | None = None,
    ) -> GraphDiff:
        """The rows that were inserted, updated and deleted between two points of history.

        Rows are compared as rows of the later schema: types and properties are the same ones under
        other names, and a row that lacks a property has its default.

        Args:
            before: A branch, a commit or a tag; so is `after`.
            kinds: `node`, `edge` or both.
            types: Only these types, or this one, as `after` names them; a type that only `before`
                has, as that names it.
            ops: Only these of `insert`, `update` and `delete`, or this one.
            engine: `local`, `spark` or `auto`, by how much differs; `$OMNIGRAPH_ENGINE` when None.

        Raises:
            NotFoundError: a branch, a commit, a tag or a type does not exist.
            InvalidParameterError: there is no such kind, operation or engine.
        """
        from omnigraph.changes.graphs import (
            Filter,
            compare_graphs,
            measure_differences,
            moved_types,
        )

        old, new = self._side(before), self._side(after)
        catalog = self._catalogs.of(new.snapshot.schema_digest)
        wanted = Filter.parse(catalog, (new.snapshot, old.snapshot), kinds, types, ops)
        for side in (old, new):
            self._require_named(side.snapshot, types)
        with self._detect_removal(old.snapshot, new.snapshot):
            sizes = (moved.size for moved in moved_types(self._catalogs.of, old, new, wanted))
            choice = by_size(engine, measure_differences(sizes))
            comparer: Comparer = self._backends.of(choice.engine)
            if self._comparisons is not None:
                comparer = self._comparisons.by(comparer)
            diff = compare_graphs(
                self._catalogs.of, old, new, comparer, wanted, steps=self._schema_steps
            )
        return replace(diff, why=choice.why)

    def _side(self, point: str) -> Side:
        return self._side_of(self.full_point(point))

    def _side_of(self, snapshot: Snapshot) -> Side:
        from omnigraph.changes.graphs import Side

        return Side(snapshot, self._data_at(snapshot), self.authority.sight(snapshot.branch).sees)

    def _side_at(self, commit: Commit, branch: BranchName) -> Side:
        """The graph at a commit in the history of a branch that the actor can read.

        Raises:
            CommitNotFoundError: it is gone, or the actor may not read the branch.
        """
        with self.authority.conceal(commit.commit_id):
            self.authority.require_visible(branch)
        snapshot = self._manifest.at(commit)
        return replace(self._side_of(replace(snapshot, branch=branch)), snapshot=snapshot)

    def point(self, text: str) -> Snapshot:
        """The graph at the tip of a branch, at a commit or at a tag.

        Raises:
            NotFoundError: a branch, commit or tag of that name does not exist.
        """
        return self._shown(self.full_point(text))

    def full_point(self, text: str) -> Snapshot:
        """As `point`, with the tables of types that the actor may not read: for the accessors.

        Raises:
            NotFoundError: a branch, commit or tag of that name does not exist.
        """
        with self.authority.conceal(text):
            snapshot = self._points.at_any(text)
            named = snapshot.branch if snapshot.branch == text else snapshot.head.branch
            self.authority.require_visible(named)
            return snapshot

    def changes(
        self,
        *,
        after: str | None = None,
        branch: str | None = None,
        limit: int = 100,
        kinds: str | Collection[str] | None = None,
        types: str | Collection[str] | None = None,
        ops: str | Collection[str] | None = None,
    ) -> Batch:
        """The commits after a cursor, oldest first, each with what it changed.

        Maintenance, which changes no row, is left out: commits of the kinds `index` and `optimize`.

        Args:
            after: The cursor of an earlier batch or of `baseline`, any commit, or a tag; from the
                first commit when None.
            branch: The branch to follow; when None, up to the commit that this handle reads.
            limit: How many commits to return at most.
            kinds: `node`, `edge` or both.
            types: Only these types, or this one, as the newest of the commits names them, under
                whatever name they had before.
            ops: Only these of `insert`, `update` and `delete`, or this one.

        Raises:
            FeedGapError: the feed cannot continue from there, or would deliver commits of a branch
                that the actor may not read.
            NotFoundError: the branch, the tag or a type does not exist.
            InvalidNameError: `after` is no cursor.
            InvalidParameterError: there is no such kind or operation, or the limit is below 1.
        """
        from omnigraph.changes.graphs import Filter

        if require_number(limit, "limit") < 1:
            message = f"limit must be at least 1, not {limit}"
            raise InvalidParameterError(message, name="limit")
        place = self.full_snapshot(branch=branch)
        catalog = self._catalogs.of(place.schema_digest)
        wanted = Filter.parse(catalog, (place,), kinds, types, ops)
        self._require_named(place, types)
        cursor = None if after is None else self._cursor(after, place)
        with self._detect_removal(place):
            return self._feed.poll(place, cursor, limit=limit, wanted=wanted)

    def _require_named(self, snapshot: Snapshot, types: str | Collection[str] | None) -> None:
        """Refuse types that a caller named and may not read; only others are left out."""
        named = require_texts(types, "types") or ()
        self.authority.require(Action.READ, branch=snapshot.branch, types=named)

    def _cursor(self, after: str, place: Snapshot) -> CommitId:
        """The commit that a cursor names; a tag of a hidden branch does not exist."""
        with self.authority.conceal(after):
            named = self._points.locate(after, near=place.branch)
            if not self.authority.visible([named.near]):
                # The branch may have been created from the hidden one, at that commit.
                self._manifest.history(place).find(named.commit_id)
            return named.commit_id

    def baseline(self, *, branch: str | None = None) -> str:
        """The cursor of a branch as it is now: `changes` after it are those from now on.

        Args:
            branch: The handle's own when None.

        Raises:
            BranchNotFoundError: the graph has no such branch.
        """
        return self.snapshot(branch=branch).head.commit_id

    def entity(
        self,
        type_name: str,
        id: str,  # noqa: A002  # the column's own name
        *,
        at: str | None = None,
    ) -> dict[str, object] | None:
        """One node or edge by its id, as a dictionary by column, or None.

        Args:
            at: A branch, a commit or a tag; the handle's own when None.

        Raises:
            NotFoundError: the graph has no such type, branch, commit or tag.
        """
        from omnigraph.schema.arrow import table_schema
        from omnigraph.storage import lookups

        name, wanted = require_text(type_name, "type_name"), require_text(id, "id")
        snapshot = self.full_snapshot() if at is None else self._side(at).snapshot
        type_ = self._catalogs.of(snapshot.schema_digest).type_named(name)
        with self._detect_removal(snapshot):
            table = self._data_at(snapshot).table(type_.table_key)
            rows = lookups.find(table, "id", [wanted], columns=table_schema(type_).names)
        return rows.to_pylist()[0] if len(rows) else None

    @property
    def _feed(self) -> Feed:
        from omnigraph.changes.feed import Feed

        return Feed(
            self._manifest,
            self._backends.local,
            self._side_at,
            self._catalogs.of,
            self._schema_steps,
        )

    def _schema_steps(self, before: Snapshot, after: Snapshot) -> tuple[SchemaStep, ...]:
        return self._schema_changes.between(before, after).steps

    def cleanup(
        self,
        *,
        keep_commits: int | None = None,
        older_than: str | timedelta | None = None,
        grace: str | timedelta | None = None,
        keep_all: bool = False,
        dry_run: bool = False,
    ) -> CleanupResult:
        """Expire old commits, and remove what nothing needs any more.

        A commit is kept if a rule keeps it. Newest commits, tags, what merges between existing
        branches need as their base, and what writes in progress need are kept in any case. No
        query's result changes at a commit that is kept. A commit that expired stays in the
        history; reading it raises CommitLetGoError.

        Without rules, those that were set go by `maintenance.keep_commits` and
        `maintenance.keep_days`. Where those are not set either, all commits are kept, and only
        what killed processes and deleted branches left behind is removed.

        Args:
            keep_commits: Keep this many of the newest commits of each branch.
            older_than: Keep the commits that are younger, such as `30d`, `12h` or `90m`.
            grace: Keep a commit for this long after it stopped being the newest of its branch, for
                those who still read it; an hour when None.
            keep_all: Keep all commits, whatever the settings say.
            dry_run: Report what would be removed, and write nothing.

        Raises:
            InvalidParameterError: a rule makes no sense. Nothing was removed.
            RecoveryNeededError: an interrupted write cannot be recovered without a person. Nothing
                was removed.
            StorageError: a commit that is kept cannot be read. Nothing was removed.
        """
        from omnigraph.maintenance.cleanup.run import clean

        self.authority.require(Action.MAINTAIN)
        if not dry_run:
            self.require_writable()
        rules = self._retention_rules(keep_commits, older_than, grace, keep_all=keep_all)
        sidecars = self._transactions.recovery.sidecars
        if not dry_run:
            self.requests.forget_old()
        result = clean(self._manifest, sidecars, self._clock, rules, dry_run=dry_run)
        return self.authority.sight(MAIN).cleanup(result, self._types_of(MAIN))

    def _retention_rules(
        self,
        keep_commits: int | None,
        older_than: str | timedelta | None,
        grace: str | timedelta | None,
        *,
        keep_all: bool = False,
    ) -> RetentionRules:
        from omnigraph.maintenance.retention import choose_rules

        stored = self._settings.read()
        return choose_rules(keep_commits, older_than, grace, stored=stored, keep_all=keep_all)

    def check(
        self,
        *,
        branch: str | None = None,
        rows: bool = True,
        history: bool = False,
        engine: str | None = None,
        progress: CheckProgress | None = None,
    ) -> CheckReport:
        """Verify what must hold of a graph, from its branches to its rows; report what does not.

        Nothing is written or recovered, and others may write meanwhile.

        Args:
            branch: Only this branch; all branches when None.
            rows: Whether to read the rows, too, and check them against the rules of the schema.
            history: Whether to open the tables of older commits, too.
            engine: `local`, `spark` or `auto`, for rules about several rows; `$OMNIGRAPH_ENGINE`
                when None.
            progress: Called with how far each stage is.

        Raises:
            BranchNotFoundError: the graph has no such branch.
        """
        from omnigraph.backends.registry import Backends
        from omnigraph.maintenance.checking.run import CheckOrder, check

        self.authority.require(Action.MAINTAIN)
        branches = () if branch is None else (BranchName.parse(branch),)
        order = CheckOrder(
            branches,
            reads_rows=rows,
            walks_history=history,
            engine=engine,
            progress=progress,
            sees=lambda branch, name: self.authority.sight(branch).sees(name),
        )
        return check(self.uri, self._clock, Backends().of, order)

    def copy(
        self,
        target: str | PathLike[str],
        *,
        branches: str | Collection[str] | None = None,
        progress: CopyProgress | None = None,
    ) -> CopyResult:
        """Copy the graph with its history to another place, or what is new since the last copy.

        Others may write meanwhile: the copy has one state of the graph. A copy that was interrupted
        is continued by the next one. A place cannot be opened as a graph before its first copy is
        complete; during later ones it can, at whole commits.

        Args:
            target: An empty directory or `s3://bucket/prefix`, or an earlier copy.
            branches: Copy only these, and main; all branches when None.
            progress: Called with how far each stage is.

        Raises:
            AlreadyExistsError: the target holds other files. They are untouched.
            BranchNotFoundError: the graph has no such branch.
            ConflictError: the target has commits or branches of its own, or another copy to it
                runs.
            NotAllowedError: the policy does not allow administration, or to export everything.
            StorageError: something could not be read or written.
        """
        from omnigraph.backends.registry import Backends
        from omnigraph.maintenance.copying.run import CopyOrder, copy

        self.authority.require(Action.ADMIN)
        for branch in self._manifest.branches() if self.authority.is_limited else ():
            snapshot = self._manifest.current(branch)
            types = [str(key.type_name) for key in snapshot.pins]
            self.authority.require(Action.READ, branch=branch, types=types)
            self.authority.require(Action.EXPORT, branch=branch, types=types)
        place = require_path(target, "target")
        names = tuple(map(BranchName.parse, require_texts(branches, "branches") or ()))
        return copy(CopyOrder(self.uri, place, names, progress), self._clock, Backends().of)

    def repair(self, *, branch: str | None = None, dry_run: bool = False) -> RepairResult:
        """Restore tables that another program has written to: what it wrote is undone.

        No query's result changes. Rows that were written past the graph are never published.

        Args:
            branch: Only this branch; all branches when None.
            dry_run: Report what would be undone, and write nothing.

        Raises:
            RecoveryNeededError: an interrupted write cannot be recovered without a person. Nothing
                changed.
            ConflictError: other processes kept changing a table.
        """
        from omnigraph.maintenance.repair import repair

        self.authority.require(Action.MAINTAIN)
        if not dry_run:
            self.require_writable()
        wanted = None if branch is None else BranchName.parse(branch)
        return repair(self._manifest, self._transactions.recovery, wanted, dry_run=dry_run)

    def refresh(self) -> tuple[RecoveryEntry, ...]:
        """Recover interrupted writes of processes that have ended, and return what became of them.

        Reads always see the newest commit, so they need no refresh.

        Raises:
            NotAllowedError: the handle cannot write, or the policy forbids maintenance.
            RecoveryNeededError: an interrupted write cannot be recovered without a person.
        """
        self.require_writable()
        self.authority.require(Action.MAINTAIN)
        return self._transactions.recovery.heal()

    def _sight_of(self, write: WriteRequest) -> Sight:
        """What the actor of a write may see of its result."""
        return self.authority.sight_of(write)

    def _request_write(
        self,
        kind: OperationKind,
        branch: str | None,
        actor: str | None,
        message: str | None,
        expect_head: str | None = None,
    ) -> WriteRequest:

        from omnigraph.transaction.writes import WriteRequest

        self.require_writable()
        return WriteRequest(
            kind,
            self._target.branch if branch is None else BranchName.parse(branch),
            actor=self._actor if actor is None else require_actor(actor),
            message=require_message(message),
            expect_head=self._expected(expect_head),
        )

    def _expected(self, text: str | None) -> CommitId | None:
        """The commit that a branch has to be at; a tag of a hidden branch does not exist."""
        if text is None:
            return None
        with self.authority.conceal(text):
            place = self._points.locate(text)
            if place.commit_id != text.upper():
                self.authority.require_visible(place.near)
            return place.commit_id

    def require_writable(self) -> None:
        """Refuse a write through a handle that cannot write.

        Raises:
            NotAllowedError: the handle is on a point of history, or was opened read-only.
        """
        if self._target.is_past:
            message = "this handle looks at the past, which cannot be written"
            hint = "make a branch there: graph.branches.create(name, commit=...)"
            raise NotAllowedError(message, hint=hint, code=ErrorCode.READ_ONLY)
        if self.read_only:
            message = f"the graph {self.uri} was opened read-only"
            hint = "open it without read_only"
            raise NotAllowedError(message, hint=hint, code=ErrorCode.READ_ONLY)

    def require_unblocked(self) -> None:
        """Refuse a change that makes no commit, as a commit is refused.

        Raises:
            NotAllowedError: the handle is on a point of history, or was opened read-only.
            RecoveryNeededError: a recovery file cannot be read, which stops all writes.
        """
        self.require_writable()
        self._transactions.recovery.sidecars.find().require_readable()

    def close(self) -> None:
        """Do nothing: nothing is open between calls, and the handle can still be used.

        This exists for `with`, and for programs that close what they open.
        """

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
        mode = ", read_only=True" if self.read_only else ""
        return f"Graph({self.uri!r}{mode})"

    def __reduce__(self) -> NoReturn:
        message = "a Graph cannot be pickled; ship its uri and open it there"
        raise TypeError(message)


def _type_names(snapshot: Snapshot) -> frozenset[str]:
    return frozenset(key.type_name for key in snapshot.pins)
