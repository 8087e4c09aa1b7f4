"""The facade: a graph's nouns as accessors, each method a few lines."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Final, NoReturn, Self

from omnigraph.clock import Clock, SystemClock
from omnigraph.engine.queries import Explanation, Queries, QueryResult
from omnigraph.errors import (
    ErrorCode,
    InvalidInputError,
    InvalidParameterError,
    NotAllowedError,
    NotFoundError,
)
from omnigraph.lang.source import decoded
from omnigraph.limits import ACTOR_LENGTH_MAX, MESSAGE_LENGTH_MAX
from omnigraph.maintenance import indexes
from omnigraph.maintenance.indexes import IndexResult
from omnigraph.manifest import lifecycle, lineage, schemas
from omnigraph.manifest.reader import Manifest
from omnigraph.manifest.schemas import AcceptedSchema, Catalogs
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.model.commits import RESERVED_ACTOR_PREFIX, Commit, OperationKind
from omnigraph.model.ids import CommitId
from omnigraph.model.names import MAIN, BranchName
from omnigraph.recovery.audit import RecoveryEntry
from omnigraph.recovery.sidecars import Found
from omnigraph.recovery.sweep import Recovery
from omnigraph.schema.catalog import Catalog
from omnigraph.schema.parser import parse_schema
from omnigraph.schema.printer import print_schema
from omnigraph.storage.store import Store
from omnigraph.transaction.protocol import Order, Transactions

_SURROGATE: Final = re.compile(r"[\ud800-\udfff]")


def init(
    uri: str | Path,
    schema: str | Path | Catalog,
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
    store = Store.open(uri)
    accepted = _accepted(schema)
    clock = clock or SystemClock()
    actor, message = checked_actor(actor), checked_message(message)
    lifecycle.create(store, clock, accepted, actor=actor, message=message)
    return Graph(store, clock, read_only=False, actor=actor)


def open(  # noqa: A001  # omnigraph.open reads as it should
    uri: str | Path,
    *,
    actor: str | None = None,
    read_only: bool = False,
    clock: Clock | None = None,
) -> Graph:
    """Open a graph; read-write opens bring an older format, and interrupted writes, to an end.

    Args:
        actor: Who writes through this handle, unless a write says otherwise.
        read_only: Write nothing at all, not even a migration.

    Raises:
        GraphNotFoundError: there is no graph at this URI.
        FormatError: its format is newer than this release, or too old for it.
        RecoveryNeededError: an interrupted write left what needs a person. Read-only opens work.
    """
    store = Store.open(uri)
    clock = clock or SystemClock()
    actor = checked_actor(actor)
    if read_only:
        Manifest(store).current(MAIN)
        return Graph(store, clock, read_only=True)
    lifecycle.prepare(store, clock)
    graph = Graph(store, clock, read_only=False, actor=actor)
    graph.refresh()
    return graph


class Graph:
    """A handle on one graph. Cheap to keep, safe to share between threads."""

    def __init__(
        self, store: Store, clock: Clock, *, read_only: bool, actor: str | None = None
    ) -> None:
        self._store = store
        self._clock = clock
        self._manifest = Manifest(store)
        self._queries = Queries(store, clock)
        self._transactions = Transactions(self._manifest, clock, Catalogs(store.objects))
        self._actor = actor
        self.read_only = read_only

    @property
    def uri(self) -> str:
        """Where the graph lives."""
        return self._store.root.uri

    @property
    def commits(self) -> Commits:
        """The graph's history."""
        return Commits(self._manifest)

    @property
    def recoveries(self) -> Recoveries:
        """What became of interrupted writes."""
        return Recoveries(self._transactions.recovery)

    @property
    def schema(self) -> Schema:
        """The graph's schema."""
        return Schema(self, self._store)

    def snapshot(
        self, *, branch: str | None = None, commit: str | None = None, version: int | None = None
    ) -> Snapshot:
        """The value of the graph at one commit: a branch's newest unless told otherwise.

        Args:
            version: A manifest version of the branch; a commit needs no branch.

        Raises:
            NotFoundError: the branch, the commit or the version does not exist.
            InvalidInputError: a commit was given together with a branch or a version.
        """
        if commit is not None:
            if branch is not None or version is not None:
                message = "a commit says it all: give a commit, or a branch and a version"
                raise InvalidInputError(message)
            return self._manifest.at_commit(CommitId.parse(commit))
        name = MAIN if branch is None else BranchName.parse(branch)
        if version is None:
            return self._manifest.current(name)
        return self._manifest.at_version(name, version)

    def query(
        self,
        source: str,
        params: Mapping[str, object] | None = None,
        *,
        name: str | None = None,
        branch: str | None = None,
        commit: str | None = None,
        version: int | None = None,
        engine: str | None = None,
    ) -> QueryResult:
        """Answer a read query, all of it from one commit.

        Args:
            source: The text of one or more `.gq` queries.
            name: Which of them to run; not needed when there is one.
            engine: `local`, `spark` or `auto`.

        Raises:
            DiagnosticsError: the text is no query of this graph. Nothing was read.
            InvalidParameterError: a parameter is missing, unknown or ill-typed. Nothing was read.
        """
        snapshot = self.snapshot(branch=branch, commit=commit, version=version)
        return self._queries.run(snapshot, source, params, name=name, engine=engine)

    def explain(
        self,
        source: str,
        params: Mapping[str, object] | None = None,
        *,
        name: str | None = None,
        branch: str | None = None,
        commit: str | None = None,
        version: int | None = None,
        engine: str | None = None,
    ) -> Explanation:
        """How `query` would answer: the plan, the engine and why, without running it."""
        snapshot = self.snapshot(branch=branch, commit=commit, version=version)
        return self._queries.explain(snapshot, source, params, name=name, engine=engine)

    def ensure_indices(
        self,
        *,
        branch: str | None = None,
        actor: str | None = None,
        message: str | None = None,
    ) -> IndexResult:
        """Build the indexes that are missing, and extend the others to rows they do not cover.

        Lookups by id, key and edge end are fast where an index covers them, and right anywhere.

        Raises:
            ConflictError: others kept a table busy all the time. Nothing changed.
        """
        order = self._order(OperationKind.INDEX, branch, actor, message)
        return indexes.result_of(self._transactions.run(order, indexes.plan_indexes))

    def refresh(self) -> tuple[RecoveryEntry, ...]:
        """Bring interrupted writes of processes that are gone to an end; says which.

        Reads always see the newest commit, so they need no refresh.

        Raises:
            RecoveryNeededError: an interrupted write left what needs a person.
        """
        self._require_writable()
        return self._transactions.recovery.heal()

    def _order(
        self,
        kind: OperationKind,
        branch: str | None,
        actor: str | None,
        message: str | None,
        expect_head: str | None = None,
    ) -> Order:
        self._require_writable()
        return Order(
            kind,
            MAIN if branch is None else BranchName.parse(branch),
            actor=self._actor if actor is None else checked_actor(actor),
            message=checked_message(message),
            expect_head=None if expect_head is None else CommitId.parse(expect_head),
        )

    def _require_writable(self) -> None:
        if self.read_only:
            message = f"the graph {self.uri} was opened read-only"
            hint = "open it without read_only"
            raise NotAllowedError(message, hint=hint, code=ErrorCode.READ_ONLY)

    def close(self) -> None:
        """Let go of the graph. Nothing is pending between calls, so nothing can be lost."""

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


class Commits:
    """A graph's history: `graph.commits`."""

    def __init__(self, manifest: Manifest) -> None:
        self._manifest = manifest

    def list(self, *, branch: str = MAIN, limit: int | None = None) -> tuple[Commit, ...]:
        """A branch's commits through first parents, newest first.

        Raises:
            BranchNotFoundError: the graph has no such branch.
        """
        if limit is not None and limit < 0:
            message = f"limit is {limit}, and must not be negative"
            raise InvalidParameterError(message)
        name = BranchName.parse(branch)
        head = self._manifest.current(name).head
        walk = lineage.first_parents(head.commit_id, self._manifest.history(name).find)
        return tuple(islice(walk, limit))

    def show(self, commit_id: str) -> Commit:
        """One commit.

        Raises:
            CommitNotFoundError: no branch of the graph has it.
        """
        return self._manifest.find(CommitId.parse(commit_id))


class Recoveries:
    """A graph's interrupted writes: `graph.recoveries`."""

    def __init__(self, recovery: Recovery) -> None:
        self._recovery = recovery

    def list(self) -> tuple[RecoveryEntry, ...]:
        """Every recovery there was, oldest first."""
        return self._recovery.audit.entries()

    def pending(self) -> Found:
        """The writes that are in flight or were interrupted; they are left as they are."""
        return self._recovery.sidecars.find()


class Schema:
    """A graph's schema: `graph.schema`."""

    def __init__(self, graph: Graph, store: Store) -> None:
        self._graph = graph
        self._store = store

    def show(
        self, *, branch: str | None = None, commit: str | None = None, version: int | None = None
    ) -> AcceptedSchema:
        """The schema that the graph's rows follow at one commit: its text, and what it means.

        Raises:
            NotFoundError: the branch, the commit or the version does not exist.
            InvalidInputError: a commit was given together with a branch or a version.
        """
        snapshot = self._graph.snapshot(branch=branch, commit=commit, version=version)
        return schemas.load(self._store.objects, snapshot.schema_digest)


def checked_actor(actor: str | None) -> str | None:
    """An actor a caller may write as.

    Raises:
        InvalidParameterError: it is empty, too long, not printable, or one we keep for ourselves.
    """
    if actor is None:
        return None
    if not actor.strip() or len(actor) > ACTOR_LENGTH_MAX:
        message = f"an actor has 1 to {ACTOR_LENGTH_MAX} characters; this one has {len(actor)}"
        raise InvalidParameterError(message, name="actor")
    if not actor.isprintable():
        message = f"the actor {actor!r} has a character that cannot be printed"
        hint = "actors are one line of text, such as a name or an address"
        raise InvalidParameterError(message, hint=hint, name="actor")
    if actor.startswith(RESERVED_ACTOR_PREFIX):
        message = f"the actor {actor!r} is reserved"
        hint = f"actors that start with {RESERVED_ACTOR_PREFIX!r} are Omnigraph's own"
        raise InvalidParameterError(message, hint=hint, name="actor")
    return actor


def checked_message(message: str | None) -> str | None:
    """A commit message that fits.

    Raises:
        InvalidParameterError: it is too long, or no text.
    """
    if message is None:
        return None
    if (lone := _SURROGATE.search(message)) is not None:
        fault = f"the message has {lone[0]!r} at character {lone.start() + 1}, which is no text"
        raise InvalidParameterError(fault, hint="write the message in UTF-8", name="message")
    if len(message) > MESSAGE_LENGTH_MAX:
        fault = f"the message has {len(message)} characters; the limit is {MESSAGE_LENGTH_MAX}"
        raise InvalidParameterError(fault, name="message")
    return message


def _accepted(schema: str | Path | Catalog) -> AcceptedSchema:
    if isinstance(schema, Catalog):
        return AcceptedSchema(schema, print_schema(schema))
    # A schema text declares something in braces; a path has neither braces nor lines.
    if isinstance(schema, str) and ("{" in schema or "\n" in schema):
        return AcceptedSchema(parse_schema(schema), schema)
    path = Path(schema)
    try:
        data = path.read_bytes()
    except FileNotFoundError as cause:
        message = f"there is no schema file {path}"
        raise NotFoundError(message, hint="give a .pg file, or the schema's text") from cause
    except OSError as cause:
        message = f"the schema file {path} cannot be read: {cause.strerror}"
        raise InvalidInputError(message, hint="give a .pg file that you may read") from cause
    text = decoded(data, str(path))
    return AcceptedSchema(parse_schema(text, path.name), text)
