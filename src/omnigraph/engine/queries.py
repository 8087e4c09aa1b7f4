"""Read queries from text to answer: compile, bind, lower, choose an engine, run."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

from omnigraph.choices import EngineName
from omnigraph.clock import Clock
from omnigraph.engine.budget import Budget
from omnigraph.engine.choose import Choice, by_size, measure_plan
from omnigraph.engine.extras import require_spark
from omnigraph.engine.protocol import Data, Engines
from omnigraph.engine.query_results import Explanation, QueryResult
from omnigraph.engine.snapshots import data_at
from omnigraph.engine.text_vectors import TextVectors, by_model, nearest_parts, placeholders
from omnigraph.errors import InvalidInputError, InvalidParameterError
from omnigraph.lang.diagnostics import DiagnosticsError, did_you_mean
from omnigraph.lang.source import Source
from omnigraph.limits import COMPILED_QUERIES_MAX
from omnigraph.manifest.schemas import Catalogs
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.model.arguments import require_names, require_text
from omnigraph.model.former_names import FormerNames
from omnigraph.model.settings import Settings
from omnigraph.query import ir
from omnigraph.query.compile import compile_queries
from omnigraph.query.lowering.operands import Given, unconverted_parameters
from omnigraph.query.lowering.plan import Template, lower
from omnigraph.query.parameters import bind
from omnigraph.relational.plans import Plan, SearchRows, TableRows, tables_read
from omnigraph.storage.store import Store

if TYPE_CHECKING:
    from omnigraph.engine.spark.execute import Frame
    from omnigraph.model.tables import TableKey


Admit: TypeAlias = "Callable[[Iterable[TableKey]], None]"
"""Raises if the tables may not be read."""
BudgetFor: TypeAlias = "Callable[[Plan], Callable[[], Budget]]"
"""What a run of a plan may spend: called when the plan is known, and what it returns, before the
run. In between tables are opened, while settings may be read."""


@dataclass(frozen=True, slots=True)
class _PreparedQuery:
    plan: Plan
    data: Data
    choice: Choice

    def frame(self) -> Frame:
        """The query as a DataFrame of Spark."""
        require_spark()
        from omnigraph.engine.spark.execute import SparkEngine

        return SparkEngine().frame(self.plan, self.data)


def _default_settings() -> Settings:
    return Settings.of({})


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


@dataclass(frozen=True, slots=True)
class _QueryFacts:
    """What is true of a query whatever it is run with.

    Attributes:
        unconverted: The parameters that no tree depends on, whatever their values.
        nearest: The searches among vectors.
    """

    unconverted: frozenset[str]
    nearest: tuple[ir.Nearest, ...]


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
        settings: Callable[[], Settings] = _default_settings,
    ) -> None:
        self._store = store
        self._settings = settings
        self._texts = TextVectors(lambda: settings().embedding, clock)
        self._clock = clock
        self._engines = engines
        self.local = engines(EngineName.LOCAL)
        self.catalog = catalogs.of
        self._compiled = lru_cache(maxsize=COMPILED_QUERIES_MAX)(self._compile)
        self._facts = lru_cache(maxsize=COMPILED_QUERIES_MAX)(_find_facts)
        self._lowered = lru_cache(maxsize=COMPILED_QUERIES_MAX)(self._lower)

    def run(
        self,
        snapshot: Snapshot,
        source: Source,
        parameters: Mapping[str, object] | None,
        *,
        name: str | None,
        engine: str | None,
        exact: bool | None,
        admit: Admit,
        budget: BudgetFor,
        embedding_model: str | None = None,
    ) -> QueryResult:
        """Answer one query; every table is read at the snapshot.

        Args:
            exact: Whether no search may be answered by an approximate index; None if the settings
                say so.
            admit: Raises if the tables may not be read.
            embedding_model: The model whose vectors are searched, if it is not the schema's.
        """
        query = self._choose(snapshot, source, name)
        admit(query.reads)
        given, facts = self._bind(query, parameters)
        vectors: Mapping[str, ir.Value] = {}
        if facts.nearest:
            if embedding_model is not None:
                searched = data_at(self._store, snapshot)
                self._texts.require_made(facts.nearest, searched, embedding_model)
            vectors = self._texts.embed(facts.nearest, given, embedding_model)
        plan = by_model(self._lower_query(snapshot, query, given, vectors), embedding_model)
        find_budget = budget(plan)
        prepared = self._prepare(snapshot, plan, engine)
        choice, data = prepared.choice, prepared.data.within(find_budget())
        data = self._with_search_settings(data, plan, exact=exact)
        notes = self._texts.notes(facts.nearest, data, embedding_model)
        return QueryResult(
            commit_id=snapshot.head.commit_id,
            engine=choice.engine,
            why=choice.why,
            _table=self._engines(choice.engine).run(plan, data),
            _open_frame=prepared.frame,
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
        exact: bool | None,
        admit: Admit,
        budget: BudgetFor,
    ) -> Explanation:
        """How a query would be run, without running it."""
        query = self._choose(snapshot, source, name)
        admit(query.reads)
        given, facts = self._bind(query, parameters)
        plan = self._lower_query(snapshot, query, given, placeholders(facts.nearest))
        prepared = self._prepare(snapshot, plan, engine)
        data = prepared.data.within(budget(plan)())
        data = self._with_search_settings(data, plan, exact=exact)
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
            runner.means(plan, data),
            plan.tree.sql(dialect=runner.dialect, pretty=True),
            reads,
            tuple(dict.fromkeys(lookups)),
            runner.searches(plan, data),
        )

    def _choose(self, snapshot: Snapshot, source: Source, name: str | None) -> ir.ReadQuery:
        query = choose_query(self.compile(snapshot, source), name)
        if not isinstance(query, ir.ReadQuery):
            message = f"the query {query.name} changes the graph"
            raise InvalidInputError(message, hint="run it with mutate")
        return query

    def _bind(
        self, query: ir.ReadQuery, parameters: Mapping[str, object] | None
    ) -> tuple[Given, _QueryFacts]:
        values = bind(query, require_names(parameters, "params"))
        facts = self._facts(_SameQuery(query))
        return Given(values, self._clock.now(), facts.unconverted), facts

    def _lower_query(
        self,
        snapshot: Snapshot,
        query: ir.ReadQuery,
        given: Given,
        vectors: Mapping[str, ir.Value],
    ) -> Plan:
        """The plan of a query, with the vectors of texts that it looks for."""
        if vectors:
            given = replace(given, values={**given.values, **vectors})
        shape = _GivenShape(given.shape, given)
        return self._lowered(snapshot.schema_digest, _SameQuery(query), shape).plan(given)

    def _with_search_settings(self, data: Data, plan: Plan, *, exact: bool | None) -> Data:
        if not any(isinstance(relation, SearchRows) for relation in plan.relations.values()):
            return data
        settings = self._settings().search
        return replace(data, search=settings if exact is None else replace(settings, exact=exact))

    def _prepare(self, snapshot: Snapshot, plan: Plan, engine: str | None) -> _PreparedQuery:
        self._store.tables.open_pins(map(snapshot.pin, tables_read(plan)))
        data = data_at(self._store, snapshot)
        return _PreparedQuery(plan, data, by_size(engine, measure_plan(plan, data)))

    def compile(self, snapshot: Snapshot, source: Source) -> tuple[ir.Query, ...]:
        """The queries of a text, for the schema of a snapshot."""
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


def _find_facts(same: _SameQuery) -> _QueryFacts:
    return _QueryFacts(unconverted_parameters(same.query), nearest_parts(same.query))


def choose_query(queries: tuple[ir.Query, ...], name: str | None) -> ir.Query:
    """The query of that name, or the only one."""
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
