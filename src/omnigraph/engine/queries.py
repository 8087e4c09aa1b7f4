"""Read queries from text to answer: compile, bind, lower, choose an engine, run."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

from omnigraph.choices import EngineName
from omnigraph.clock import Clock
from omnigraph.engine.budget import Budget
from omnigraph.engine.choose import Choice, by_size, measure_plan
from omnigraph.engine.extras import require_pandas, require_spark
from omnigraph.engine.nearest import TextVectors, by_model, placeholders
from omnigraph.engine.protocol import Data, Engines
from omnigraph.engine.snapshots import data_at
from omnigraph.errors import InvalidInputError, InvalidParameterError
from omnigraph.lang.diagnostics import DiagnosticsError, did_you_mean
from omnigraph.lang.source import Source
from omnigraph.limits import COMPILED_QUERIES_MAX
from omnigraph.manifest.schemas import Catalogs
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.model.arguments import require_names, require_text
from omnigraph.model.former_names import FormerNames
from omnigraph.model.settings import EmbeddingSettings, Settings
from omnigraph.query import ir
from omnigraph.query.compile import compile_queries
from omnigraph.query.lowering.operands import Given, unconverted_parameters
from omnigraph.query.lowering.plan import Template, lower
from omnigraph.query.parameters import bind
from omnigraph.relational.plans import Plan, TableRows, tables_read
from omnigraph.storage.store import Store

if TYPE_CHECKING:
    import pandas as pd

    from omnigraph.engine.spark.execute import Frame


BudgetFor: TypeAlias = "Callable[[Plan], Callable[[], Budget]]"
"""What a run of a plan may spend: called when the plan is known, and what it returns, before the
run. In between tables are opened, while settings may be read."""


@dataclass(frozen=True, slots=True)
class QueryResult:
    """The rows of a read query, and where they were read.

    Attributes:
        commit_id: The commit whose graph the rows were read from.
        engine: The engine that ran it, and `why` it was chosen.
        notes: What the rows do not show, such as rows that wait to be embedded.
    """

    commit_id: str
    engine: EngineName
    why: str
    _table: pa.Table = field(repr=False)
    _query: _PreparedQuery = field(repr=False)
    notes: tuple[str, ...] = ()

    def arrow(self) -> pa.Table:
        """The rows as an Arrow table."""
        return self._table

    def pandas(self) -> pd.DataFrame:
        """The rows as a pandas DataFrame; columns keep Arrow's types, so nulls stay nulls.

        Raises:
            InvalidInputError: pandas is not installed.
        """
        require_pandas()
        import pandas as pd

        return self._table.to_pandas(types_mapper=pd.ArrowDtype)

    def rows(self) -> list[dict[str, Any]]:
        """The rows as dictionaries by column name."""
        return self._table.to_pylist()  # type: ignore[no-any-return]

    def frame(self) -> Frame:
        """The query as a Spark DataFrame over the same snapshot, not run before it is used.

        Raises:
            InvalidInputError: Spark is not installed, or there is no Java that can run it.
        """
        require_spark()
        from omnigraph.engine.spark.execute import SparkEngine

        return SparkEngine().frame(self._query.plan, self._query.data)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)

    def __len__(self) -> int:
        return int(self._table.num_rows)


@dataclass(frozen=True, slots=True)
class Explanation:
    """How a query would be run; its text is for people.

    Attributes:
        engine: The engine that would run it, and `why` it was chosen.
        means: By what the engine would answer it, and why.
        sql: The plan, in that engine's dialect; arrays say the same without it.
        reads: Each relation of the plan, and the table and columns it reads.
        looks_up: What may be found by an index instead of a scan.
        searches: Each search of the plan, and how it is answered.
    """

    engine: EngineName
    why: str
    means: str
    sql: str
    reads: Mapping[str, str]
    looks_up: tuple[str, ...]
    searches: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        reads = "\n".join(f"  {name}: {what}" for name, what in self.reads.items())
        looks_up = "\n".join(f"  {lookup}" for lookup in self.looks_up) or "  nothing"
        searches = "".join(f"\n  {name}: {how}" for name, how in self.searches.items())
        searched = f"searches:{searches}\n" if searches else ""
        return (
            f"engine: {self.engine}, because {self.why}\n"
            f"answers by: {self.means}\n"
            f"reads:\n{reads}\n{searched}may look up:\n{looks_up}\nplan:\n{self.sql}"
        )


@dataclass(frozen=True, slots=True)
class _PreparedQuery:
    plan: Plan
    data: Data
    choice: Choice


def _default_embedding() -> EmbeddingSettings:
    return Settings.of({}).embedding


@dataclass(frozen=True, slots=True)
class _GivenShape:
    """What a query is run with, equal to anything that the same lowered query serves."""

    shape: Hashable
    given: Given = field(compare=False)


@dataclass(frozen=True, eq=False, slots=True)
class _SameQuery:
    """A query that equals itself only: queries are kept as they are compiled, and are large."""

    query: ir.ReadQuery

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _SameQuery) and self.query is other.query

    def __hash__(self) -> int:
        return id(self.query)


class Queries:
    """Runs read queries on snapshots of one graph.

    Attributes:
        local: The engine in this process, which whoever shares the queries may use too.
        catalog: The schema of a digest.
    """

    def __init__(
        self,
        store: Store,
        catalogs: Catalogs,
        clock: Clock,
        engines: Engines,
        embedding: Callable[[], EmbeddingSettings] = _default_embedding,
    ) -> None:
        self._store = store
        self._texts = TextVectors(embedding, clock)
        self._clock = clock
        self._engines = engines
        self.local = engines(EngineName.LOCAL)
        self.catalog = catalogs.of
        self._compiled = lru_cache(maxsize=COMPILED_QUERIES_MAX)(self._compile)
        self._unconverted = lru_cache(maxsize=COMPILED_QUERIES_MAX)(_find_unconverted)
        self._lowered = lru_cache(maxsize=COMPILED_QUERIES_MAX)(self._lower)

    def run(
        self,
        snapshot: Snapshot,
        source: Source,
        parameters: Mapping[str, object] | None,
        *,
        name: str | None,
        engine: str | None,
        exact: bool,
        budget: BudgetFor,
        embedding_model: str | None = None,
    ) -> QueryResult:
        """Answer one query; every table is read at the snapshot.

        Args:
            exact: Whether no search may be answered by an approximate index.
            embedding_model: The model whose vectors are searched, if it is not the schema's.

        Raises:
            DiagnosticsError: the text is no query of this graph. Nothing was read.
            InvalidParameterError: a parameter is missing, unknown or ill-typed. Nothing was read.
            EmbeddingError: a provider could not embed a text that is looked for.
            LimitExceededError: the budget does not suffice. What the query held is free.
            CancelledError: the query was cancelled. What it held is free.
        """
        query = self._choose(snapshot, source, name)
        given = self._bind(query, parameters)
        embed = partial(self._texts.embed, query, given, embedding_model)
        plan = by_model(self._lower_query(snapshot, query, given, embed), embedding_model)
        find_budget = budget(plan)
        prepared = self._prepare(snapshot, plan, engine, exact=exact)
        choice, data = prepared.choice, replace(prepared.data, budget=find_budget())
        notes = self._texts.notes(query, data, embedding_model)
        return QueryResult(
            commit_id=snapshot.head.commit_id,
            engine=choice.engine,
            why=choice.why,
            _table=self._engines(choice.engine).run(plan, data),
            _query=prepared,
            notes=notes,
        )

    def explain(
        self,
        snapshot: Snapshot,
        source: Source,
        parameters: Mapping[str, object] | None,
        *,
        name: str | None,
        engine: str | None,
        exact: bool,
    ) -> Explanation:
        """How a query would be run, without running it."""
        query = self._choose(snapshot, source, name)
        given = self._bind(query, parameters)
        plan = self._lower_query(snapshot, query, given, partial(placeholders, query))
        prepared = self._prepare(snapshot, plan, engine, exact=exact)
        choice = prepared.choice
        reads = {
            name: f"{relation.table} ({', '.join(relation.columns)})"
            for name, relation in plan.relations.items()
            if isinstance(relation, TableRows)
        }
        lookups = (f"{each.relation}.{each.column} by {each.by}" for each in plan.reductions)
        runner = self._engines(choice.engine)
        return Explanation(
            choice.engine,
            choice.why,
            runner.means(plan, prepared.data),
            plan.tree.sql(dialect=runner.dialect, pretty=True),
            reads,
            tuple(dict.fromkeys(lookups)),
            runner.searches(plan, prepared.data),
        )

    def _choose(self, snapshot: Snapshot, source: Source, name: str | None) -> ir.ReadQuery:
        query = choose_query(self.compile(snapshot, source), name)
        if not isinstance(query, ir.ReadQuery):
            message = f"the query {query.name} changes the graph"
            raise InvalidInputError(message, hint="run it with mutate")
        return query

    def _bind(self, query: ir.ReadQuery, parameters: Mapping[str, object] | None) -> Given:
        values = bind(query, require_names(parameters, "params"))
        return Given(values, self._clock.now(), self._unconverted(_SameQuery(query)))

    def _lower_query(
        self,
        snapshot: Snapshot,
        query: ir.ReadQuery,
        given: Given,
        embed: Callable[[], Mapping[str, ir.Value]],
    ) -> Plan:
        """The plan of a query, with the vectors of texts that it looks for."""
        if vectors := embed():
            given = replace(given, values={**given.values, **vectors})
        shape = _GivenShape(given.shape, given)
        return self._lowered(snapshot.schema_digest, _SameQuery(query), shape).plan(given)

    def _prepare(
        self, snapshot: Snapshot, plan: Plan, engine: str | None, *, exact: bool
    ) -> _PreparedQuery:
        self._store.tables.open_pins(map(snapshot.pin, tables_read(plan)))
        data = replace(data_at(self._store, snapshot), exact=exact)
        return _PreparedQuery(plan, data, by_size(engine, measure_plan(plan, data)))

    def compile(self, snapshot: Snapshot, source: Source) -> tuple[ir.Query, ...]:
        """The queries of a text, for the schema of a snapshot.

        Raises:
            DiagnosticsError: the text is no query of this graph.
        """
        try:
            return self._compiled(snapshot.schema_digest, source)
        except DiagnosticsError:
            # Only a text with errors needs to know what its names may have meant once.
            former = FormerNames.of(snapshot.pins.values(), snapshot.tombstones)
            catalog = self.catalog(snapshot.schema_digest)
            return compile_queries(source.text, catalog, source.name, former)

    def _compile(self, digest: str, source: Source) -> tuple[ir.Query, ...]:
        return compile_queries(source.text, self.catalog(digest), source.name)

    def _lower(self, digest: str, same: _SameQuery, shape: _GivenShape) -> Template:
        return lower(same.query, self.catalog(digest), shape.given)


def _find_unconverted(same: _SameQuery) -> frozenset[str]:
    return unconverted_parameters(same.query)


def choose_query(queries: tuple[ir.Query, ...], name: str | None) -> ir.Query:
    """The query of that name, or the only one.

    Raises:
        InvalidParameterError: there is none at all or none of that name, or no name and several to
            choose from.
    """
    if not queries:
        message = "the text has no query"
        raise InvalidParameterError(
            message, hint="write query q() { match { … } return { … } }", name="source"
        )
    names = [query.name for query in queries]
    listed = ", ".join(names)
    if name is None:
        if len(queries) == 1:
            return queries[0]
        message = f"the text has {len(queries)} queries, and none was named"
        raise InvalidParameterError(message, hint=f"name one of them: {listed}", name="name")
    for query in queries:
        if query.name == name:
            return query
    hint = did_you_mean(require_text(name, "name"), names, otherwise=f"it has {listed}")
    message = f"the text has no query {json.dumps(name)}"
    raise InvalidParameterError(message, hint=hint, name="name")
