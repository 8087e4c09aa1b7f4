"""Plans: one mutation query on one view, computed, validated and ready to be staged."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache, partial

import pyarrow as pa

from omnigraph.clock import Clock
from omnigraph.embedding.counts import EmbeddingCounts
from omnigraph.embedding.writes import WriteEmbedding
from omnigraph.engine.budget import UNLIMITED, Budget
from omnigraph.engine.queries import Queries, choose_query
from omnigraph.errors import InvalidInputError
from omnigraph.integrity import footprint
from omnigraph.integrity.evaluate import evaluate
from omnigraph.integrity.proofs.by_columns import by_columns
from omnigraph.integrity.proofs.by_lookup import by_lookup
from omnigraph.integrity.proofs.by_statements import by_statements
from omnigraph.integrity.proofs.proof import any_of
from omnigraph.integrity.rules import RuleSet
from omnigraph.integrity.violations import require_clean
from omnigraph.lang.source import Source
from omnigraph.model.arguments import require_names
from omnigraph.model.tables import TableKey
from omnigraph.mutation.matching import Matcher
from omnigraph.mutation.pending import PendingChanges, PendingTable
from omnigraph.mutation.results import MutationReport
from omnigraph.mutation.statements import Statements, origin_of
from omnigraph.query import ir
from omnigraph.query.lowering.operands import Given
from omnigraph.query.parameters import bind
from omnigraph.schema.arrow import to_table
from omnigraph.schema.catalog import Catalog, SchemaType
from omnigraph.schema.embeds import embedded_vectors
from omnigraph.storage import staging
from omnigraph.storage.tables import Table
from omnigraph.transaction.view import View
from omnigraph.transaction.writes import Stage, WritePlan


class Mutations:
    """Prepares the mutations of one graph handle, and caches what it compiles."""

    def __init__(self, queries: Queries, clock: Clock) -> None:
        self._queries = queries
        self._clock = clock
        self._matcher = Matcher(queries.local)
        self._rule_set = lru_cache(maxsize=8)(self._compile_rules)

    def prepare(
        self,
        source: Source,
        parameters: Mapping[str, object] | None,
        *,
        name: str | None,
        embedding: WriteEmbedding,
        budget: Budget = UNLIMITED,
    ) -> Mutation:
        """A mutation that can be planned on any view; its instant is now. Reads nothing."""
        given = dict(require_names(parameters, "params"))
        return Mutation(self, source, given, name, self._clock.now(), embedding, budget)

    def plan(self, mutation: Mutation, view: View) -> WritePlan[MutationReport]:
        """See `Mutation.plan`."""
        mutation.budget.check()
        view = replace(view, data=replace(view.data, budget=mutation.budget))
        query = choose_query(self._queries.compile(view.snapshot, mutation.source), mutation.name)
        if not isinstance(query, ir.MutationQuery):
            message = f"the query {query.name} changes nothing"
            raise InvalidInputError(message, hint="run it with query")
        given = Given(bind(query, mutation.parameters), mutation.now)
        reads = _matched(query) | _looked_up(query)
        view.admit(changes=_type_names(query.writes), reads=_type_names(reads))
        pending = PendingChanges(view.catalog)
        Statements(view, given, self._matcher, self._clock.ulid, pending).run(query.statements)
        delta = pending.delta()
        shape = delta.shape()
        rule_set = self._rule_set(view.snapshot.schema_digest)
        applicable = footprint.footprints(rule_set, shape)
        is_safe = by_statements(query.statements, view.catalog)
        doubtful = tuple(each for each in applicable if not is_safe(each.rule))
        is_proven = any_of(
            is_safe,
            by_columns(delta, view.snapshot.row_count),
            by_lookup((each.rule for each in doubtful), delta, view.data),
        )
        local = self._queries.local
        violations = evaluate(
            rule_set, delta, view.data, local, is_proven=is_proven, to_origin=origin_of
        )
        require_clean(violations)
        mutation.budget.check()
        embedded = _embed(pending, view.catalog, mutation.embedding)
        mutation.budget.check()
        report = replace(_report(pending), embedding=embedded)
        only_inserts = all(
            isinstance(statement, ir.InsertNode | ir.InsertEdge) for statement in query.statements
        )
        return WritePlan(
            report,
            changes={key: _stage(table) for key, table in pending.changed_tables()},
            # A rule that the statements cannot break reads no committed rows.
            reads=footprint.reads(doubtful) | _matched(query),
            locks=footprint.guards(applicable),
            can_replan=only_inserts,
            inserts=report.written if only_inserts else {},
        )

    def _compile_rules(self, digest: str) -> RuleSet:
        return RuleSet.compile(self._queries.catalog(digest))


@dataclass(frozen=True, slots=True)
class Mutation:
    """The text of a mutation query and its arguments.

    Attributes:
        name: Which query of the text it is; None for the only one.
        now: The one instant of the query, however often it is planned.
        embedding: Makes the vectors of rows whose texts are new or changed.
        budget: What all its plans together may spend.
    """

    owner: Mutations
    source: Source
    parameters: Mapping[str, object]
    name: str | None
    now: datetime
    embedding: WriteEmbedding
    budget: Budget = UNLIMITED

    def plan(self, view: View) -> WritePlan[MutationReport]:
        """Plan what the query changes in this view; writes nothing, and may be called again."""
        return self.owner.plan(self, view)


def _matched(query: ir.MutationQuery) -> frozenset[TableKey]:
    """The tables whose rows decide what other rows become."""
    kinds = ir.InsertMatched | ir.UpdateMatched | ir.DeleteMatched
    matches = (each.match for each in query.statements if isinstance(each, kinds))
    return frozenset().union(*(match.reads for match in matches))


def _looked_up(query: ir.MutationQuery) -> frozenset[TableKey]:
    """The tables whose rows are found by their values, so that a result says something of them."""
    kinds = ir.Update | ir.UpdateMatched | ir.Delete | ir.DeleteMatched
    return frozenset(each.table for each in query.statements if isinstance(each, kinds))


def _type_names(keys: Iterable[TableKey]) -> list[str]:
    return sorted({key.type_name for key in keys})


def _embed(pending: PendingChanges, catalog: Catalog, embedding: WriteEmbedding) -> EmbeddingCounts:
    """Complete the rows that will be written; invalid ones have cost no request by now."""
    written = {
        key: table
        for key, table in pending.changed_tables()
        if len(table.rows()) and embedded_vectors(table.type)
    }
    if not written:
        return EmbeddingCounts()
    completed, counts = embedding.complete(
        catalog, {key: table.rows() for key, table in written.items()}
    )
    for key, table in written.items():
        table.replace_rows(completed[key])
    return counts


def _report(pending: PendingChanges) -> MutationReport:
    changed = dict(pending.changed_tables())
    written = {key: len(table.rows()) for key, table in changed.items()}
    deleted = {key: len(table.deletions()) for key, table in changed.items()}
    return MutationReport(
        written={key: count for key, count in written.items() if count},
        deleted={key: count for key, count in deleted.items() if count},
    )


def _stage(pending: PendingTable) -> Stage:
    rows, deletions = pending.rows(), pending.deletions()
    assert not (len(rows) and len(deletions)), "a mutation writes or deletes, never both"
    if len(deletions):
        return partial(_stage_deletions, deletions)
    return partial(_stage_rows, rows, pending.type, fresh=pending.is_fresh)


def _stage_deletions(ids: pa.Array, table: Table) -> staging.StagedWrite:
    return staging.stage_delete(table, ids=ids.to_pylist())


def _stage_rows(
    rows: pa.Table, type_: SchemaType, table: Table, *, fresh: bool
) -> staging.StagedWrite | None:
    stage = staging.stage_append if fresh else staging.stage_upsert
    return stage(table, to_table(rows, type_))
