"""A graph's stored queries: `graph.queries`. They are rows, with the history of all rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, Final

from omnigraph.engine.budget import Budget, BudgetRequest
from omnigraph.errors import (
    AlreadyExistsError,
    ErrorCode,
    InvalidInputError,
    InvalidParameterError,
    NotFoundError,
)
from omnigraph.lang.source import Source
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.model.arguments import require_text
from omnigraph.model.brief import brief
from omnigraph.model.query_limits import Timeout
from omnigraph.schema.catalog import Catalog
from omnigraph.schema.change_codes import ChangeCode, ChangeFinding
from omnigraph.schema.stored_queries import DECLARATION, STORED_QUERY, stores_queries
from omnigraph.storage.texts import query_text

# What a signature names need not be imported to read a graph.
if TYPE_CHECKING:
    from omnigraph.engine.budget import Cancellation
    from omnigraph.engine.queries import Queries
    from omnigraph.engine.query_results import QueryResult
    from omnigraph.graph import Graph
    from omnigraph.mutation.results import MutationResult
    from omnigraph.query import ir
    from omnigraph.relational.plans import Plan
    from omnigraph.storage.store import Store
    from omnigraph.storage.tables import Table
    from omnigraph.transaction.requests import RequestKey

_DELETE: Final = f"query remove($name: String) {{ delete {STORED_QUERY} where name = $name }}"


@brief
@dataclass(frozen=True, slots=True)
class StoredParameter:
    """A parameter of a stored query."""

    name: str
    type: str
    nullable: bool


@brief
@dataclass(frozen=True, slots=True)
class StoredQuery:
    """A query that a graph stores.

    Attributes:
        changes: Whether it changes the graph; None if it is not valid any more.
        fault: Why it does not fit the schema any more; None if it does.
    """

    name: str
    text: str
    description: str | None = None
    instruction: str | None = None
    parameters: tuple[StoredParameter, ...] = ()
    changes: bool | None = None
    fault: str | None = None


class StoredQueries:
    """A graph's stored queries: `graph.queries`.

    They are rows of the type StoredQuery: branches, merges, diffs and time travel cover them.
    """

    def __init__(
        self,
        graph: Graph,
        store: Store,
        queries: Callable[[], Queries],
        budget: Callable[[BudgetRequest, Plan], Callable[[], Budget]],
        main: Callable[[], Snapshot],
    ) -> None:
        self._graph = graph
        self._store = store
        self._queries = queries
        self._budget = budget
        self._main = main

    def put(
        self,
        source: str | PathLike[str],
        *,
        branch: str | None = None,
        actor: str | None = None,
        message: str | None = None,
    ) -> tuple[StoredQuery, ...]:
        """Store the queries of a text by their names; one of the same name is replaced.

        The first query that a branch stores adds the type to its schema, in a commit of its own.

        Args:
            source: The text of one or more queries, or the path of a `.gq` file.

        Raises:
            DiagnosticsError: a query has errors, or does not fit the schema. Nothing was stored.
            AlreadyExistsError: the schema has a type StoredQuery of another form.
            NotAllowedError: the handle cannot write, or the policy forbids it; on main, also if the
                actor may not read what a query reads.
        """
        self._graph.require_writable()
        text = query_text(source)
        snapshot = self._graph.full_snapshot(branch=branch)
        queries = self._queries().compile(snapshot, text)
        if not queries:
            fault = "the text has no query to store"
            raise InvalidParameterError(fault, name="source")
        texts = _texts(text, queries)
        self._declare(snapshot, actor)
        statement, parameters = _insertion(texts)
        self._graph.mutate(
            statement,
            parameters,
            branch=snapshot.branch,
            actor=actor,
            message=message or f"store {', '.join(texts)}",
        )
        return tuple(_describe(query, texts[query.name]) for query in queries)

    def _declare(self, snapshot: Snapshot, actor: str | None) -> None:
        """Add the type to the schema of a branch, unless it is there."""
        schema = self._graph.schema.show(commit=snapshot.head.commit_id)
        if not stores_queries(schema.catalog):
            text = f"{schema.text.rstrip()}\n\n{DECLARATION}"
            message = "declare stored queries"
            self._graph.schema.apply(text, branch=snapshot.branch, actor=actor, message=message)
            return
        declared = schema.catalog.type_named(STORED_QUERY)
        if {"name", "text"} != {property_.name for property_ in declared.properties}:
            fault = f"the schema has a type {STORED_QUERY} that cannot store queries"
            hint = "rename it: stored queries need a type of that name, with name and text"
            raise AlreadyExistsError(fault, hint=hint)

    def list(
        self, *, branch: str | None = None, commit: str | None = None, version: int | None = None
    ) -> tuple[StoredQuery, ...]:
        """Every stored query that the actor may invoke or read, by name.

        Raises:
            NotFoundError: the branch, the commit or the version does not exist.
        """
        snapshot = self._graph.full_snapshot(branch=branch, commit=commit, version=version)
        may_invoke = partial(self._graph.authority.may_invoke, snapshot)
        return tuple(query for query in self._read_all(snapshot) if may_invoke(query.name))

    def _read_all(self, snapshot: Snapshot) -> Iterator[StoredQuery]:
        if not self._is_declared(snapshot):
            return
        with self._table_at(snapshot) as table:
            rows = [row for batch in table.scan(["name", "text"]) for row in batch.to_pylist()]
        for row in sorted(rows, key=lambda row: str(row["name"])):
            yield self._read(snapshot, row["name"], row["text"])

    def show(
        self,
        name: str,
        *,
        branch: str | None = None,
        commit: str | None = None,
        version: int | None = None,
    ) -> StoredQuery:
        """One stored query.

        Raises:
            NotFoundError: there is no such query that the actor may invoke or read, or no such
                branch, commit or version.
        """
        snapshot = self._graph.full_snapshot(branch=branch, commit=commit, version=version)
        return self._find(snapshot, name)

    def delete(
        self,
        name: str,
        *,
        branch: str | None = None,
        actor: str | None = None,
        message: str | None = None,
    ) -> None:
        """Delete a stored query from a branch; earlier commits keep it.

        Raises:
            NotFoundError: there is no such query.
            NotAllowedError: the handle cannot write, or the policy forbids it.
        """
        snapshot = self._graph.full_snapshot(branch=branch)
        found = self._find(snapshot, name)
        self._graph.mutate(
            _DELETE,
            {"name": found.name},
            branch=snapshot.branch,
            actor=actor,
            message=message or f"delete query {name}",
        )

    def run(
        self,
        name: str,
        params: Mapping[str, object] | None = None,
        *,
        branch: str | None = None,
        commit: str | None = None,
        version: int | None = None,
        engine: str | None = None,
        timeout: Timeout | None = None,
        memory: str | int | None = None,
        max_rows: str | int | None = None,
        cancel: Cancellation | None = None,
        actor: str | None = None,
        message: str | None = None,
        expect_head: str | None = None,
        key: str | RequestKey | None = None,
    ) -> QueryResult | MutationResult:
        """Run a stored query as it is at a commit.

        Who may invoke it need not be allowed to read the types that it reads, as long as main has
        the same text now. What it writes has to be allowed as if it were written out.

        Args:
            memory: This and `max_rows` limit a query that reads, as those of `Graph.query` do.
            expect_head: This and `key` are for a query that changes the graph, as those of
                `Graph.mutate` are.

        Raises:
            NotFoundError: there is no such query, branch, commit or version.
            InvalidInputError: it does not fit the schema any more.
            InvalidParameterError: a parameter is missing, unknown or ill-typed.
            NotAllowedError: the policy forbids what it does.
        """
        snapshot = self._graph.full_snapshot(branch=branch, commit=commit, version=version)
        found = self._find(snapshot, name)
        if found.fault is not None:
            fault = f"the stored query {name} does not fit the schema any more: {found.fault}"
            hint = "store it again as the schema is now, or run it at an earlier commit"
            raise InvalidInputError(fault, hint=hint)
        if found.changes:
            if commit is not None or version is not None:
                fault = f"the stored query {name} changes the graph, and the past cannot change"
                raise InvalidInputError(fault, hint="name a branch", code=ErrorCode.READ_ONLY)
            return self._graph.mutate(
                found.text,
                params,
                name=name,
                branch=snapshot.branch,
                timeout=timeout,
                cancel=cancel,
                actor=actor,
                message=message,
                expect_head=expect_head,
                key=key,
            )
        from omnigraph.manifest.removals import detect_removal

        is_past = self._graph.target.is_past or (commit, version) != (None, None)
        request = BudgetRequest.parse(
            timeout=timeout, memory=memory, max_rows=max_rows, cancel=cancel
        )
        with detect_removal(self._store, snapshot):
            return self._queries().run(
                snapshot,
                Source(name, found.text),
                params,
                name=name,
                engine=engine,
                exact=False,
                admit=partial(
                    self._graph.authority.admit_invocation,
                    snapshot,
                    name,
                    is_of_main=lambda: self._is_of_main(snapshot, found, is_past=is_past),
                ),
                budget=partial(self._budget, request),
            )

    def _is_of_main(self, snapshot: Snapshot, query: StoredQuery, *, is_past: bool) -> bool:
        """Whether main stores the text of a query under its name now, whoever may read main."""
        if snapshot.branch.is_main and not is_past:
            return True
        return self._text_at(self._main(), query.name) == query.text

    def _is_declared(self, snapshot: Snapshot) -> bool:
        return stores_queries(self._queries().catalog(snapshot.schema_digest))

    @contextmanager
    def _table_at(self, snapshot: Snapshot) -> Iterator[Table]:
        """The table of a snapshot that has one, to read from in the block."""
        from omnigraph.engine.snapshots import data_at
        from omnigraph.manifest.removals import detect_removal

        key = self._queries().catalog(snapshot.schema_digest).type_named(STORED_QUERY).table_key
        with detect_removal(self._store, snapshot):
            yield data_at(self._store, snapshot).table(key)

    def _find(self, snapshot: Snapshot, name: str) -> StoredQuery:
        wanted = require_text(name, "name")
        text = None
        if self._graph.authority.may_invoke(snapshot, wanted):
            text = self._text_at(snapshot, wanted)
        if text is None:
            fault = f"branch {snapshot.branch} stores no query {wanted[:100]!r}"
            raise NotFoundError(fault, hint="see 'omnigraph queries list'")
        return self._read(snapshot, wanted, text)

    def _text_at(self, snapshot: Snapshot, name: str) -> str | None:
        """The text of a query at a snapshot; None if that stores none of the name."""
        if not self._is_declared(snapshot):
            return None
        from omnigraph.storage import lookups

        with self._table_at(snapshot) as table:
            rows = lookups.find(table, "id", [name], columns=["text"]).to_pylist()
        return str(rows[0]["text"]) if rows else None

    def _read(self, snapshot: Snapshot, name: str, text: str) -> StoredQuery:
        from omnigraph.engine.queries import choose_query
        from omnigraph.lang.diagnostics import DiagnosticsError, errors_in

        try:
            query = choose_query(self._queries().compile(snapshot, Source(name, text)), name)
        except DiagnosticsError as error:
            return StoredQuery(name, text, fault=errors_in(error.diagnostics)[0].message)
        except InvalidParameterError as error:
            # Somebody wrote a row by hand whose text has no query of its name.
            return StoredQuery(name, text, fault=error.message)
        return _describe(query, text)


def find_breaking(queries: Iterable[StoredQuery], new: Catalog) -> Iterator[ChangeFinding]:
    """Warnings of queries that fit a schema now, and would not fit a new one."""
    from omnigraph.lang.diagnostics import errors_in
    from omnigraph.query.compile import read_queries

    for stored in queries:
        reading = read_queries(stored.text, new, stored.name)
        if stored.fault is None and reading.queries is None:
            fault = errors_in(reading.diagnostics)[0].message
            message = f"the stored query {stored.name}: {fault}"
            hint = "store it again after the change"
            yield ChangeFinding(ChangeCode.STORED_QUERY_BREAKS, STORED_QUERY, None, message, hint)


def _texts(source: Source, queries: tuple[ir.Query, ...]) -> dict[str, str]:
    """The text of each query: as it was written if it is alone, else as it is printed."""
    from omnigraph.query.parser import read
    from omnigraph.query.printer import print_queries

    if len(queries) == 1:
        return {queries[0].name: source.text.strip() + "\n"}
    return {query.name.text: print_queries([query]) for query in read(source).queries}


def _insertion(texts: Mapping[str, str]) -> tuple[str, dict[str, object]]:
    """The mutation that stores queries, all in one commit, and its parameters."""
    declared, inserts, parameters = [], [], dict[str, object]()
    for number, (name, text) in enumerate(texts.items()):
        declared.append(f"$name{number}: String, $text{number}: String")
        inserts.append(f"insert {STORED_QUERY} {{ name: $name{number}  text: $text{number} }}")
        parameters |= {f"name{number}": name, f"text{number}": text}
    return f"query put({', '.join(declared)}) {{ {' '.join(inserts)} }}", parameters


def _describe(query: ir.Query, text: str) -> StoredQuery:
    from omnigraph.query.ir import MutationQuery

    parameters = tuple(
        StoredParameter(parameter.name, str(parameter.type), parameter.nullable)
        for parameter in query.parameters
    )
    return StoredQuery(
        query.name,
        text,
        query.description,
        query.instruction,
        parameters,
        changes=isinstance(query, MutationQuery),
    )
