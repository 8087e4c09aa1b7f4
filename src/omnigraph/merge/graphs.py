"""Merging one branch into another: every table, then the rules that the result must keep."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial

import pyarrow as pa

from omnigraph.changes.graphs import Side, has_moved, require_one_schema
from omnigraph.changes.records import Counts, excluding
from omnigraph.changes.tables import compare_tables
from omnigraph.engine.protocol import Engine
from omnigraph.integrity.deltas import ORIGIN, Delta, TableDelta, delta_schema
from omnigraph.integrity.evaluate import evaluate
from omnigraph.integrity.rules import RuleSet
from omnigraph.integrity.violations import Rule, Violation
from omnigraph.merge.conflicts import Conflict, broken, refused
from omnigraph.merge.decisions import Merged, ThreeWay, adopt
from omnigraph.merge.resolutions import Choice, Resolutions
from omnigraph.model.tables import TableKey
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.catalog import Catalog, EdgeType, NodeType, SchemaType
from omnigraph.storage.staging import Staged, stage_rows
from omnigraph.storage.tables import Table
from omnigraph.transaction.work import View, Work


class Outcome(StrEnum):
    """How a merge ended."""

    ALREADY_UP_TO_DATE = "already up to date"
    FAST_FORWARD = "fast-forward"
    MERGED = "merged"


@dataclass(frozen=True, slots=True)
class MergeReport:
    """What a merge does, before it is done.

    Attributes:
        counts: By type, what it changes in the target.
        conflicts: What has to be decided first; a merge with any is refused.
    """

    outcome: Outcome
    counts: Mapping[str, Counts] = field(default_factory=dict)
    conflicts: tuple[Conflict, ...] = ()


@dataclass(frozen=True, slots=True)
class Merge:
    """One merge to be planned: what is brought in, since where, and how to decide."""

    source: Side
    base: Side
    engine: Engine
    rule_set: RuleSet
    resolutions: Resolutions
    strict_rows: bool = False

    def plan(self, view: View) -> Work[MergeReport]:
        """What the merge changes in the target as it is now.

        Raises:
            MergeConflictError: both sides changed what only one can have, or the result would
                break a rule, and nobody decided. Nothing was written.
            InvalidInputError: a resolution is about what does not conflict.
        """
        report, tables = self.decide(view)
        if report.conflicts:
            source, target = self.source.snapshot.branch, view.snapshot.branch
            raise refused(source, target, report.conflicts)
        self.resolutions.require_used()
        changed = {key: each for key, each in tables.items() if _counts(each)}
        return Work(
            report,
            changes={key: partial(_stage, each) for key, each in changed.items()},
            reads=_ends(changed.values(), view.catalog) - changed.keys(),
            guards=_touching(changed.values(), view.catalog) - changed.keys(),
            replans=True,
            is_history=True,
        )

    def decide(self, view: View) -> tuple[MergeReport, dict[TableKey, Merged]]:
        """What the merge would do to each table, and what stands in its way."""
        require_one_schema(self.source.snapshot, view.snapshot)
        require_one_schema(self.base.snapshot, view.snapshot)
        tables = {
            type_.table_key: merged
            for type_ in view.catalog.types
            if (merged := self._table(type_, view)) is not None
        }
        undecided = [each for merged in tables.values() for each in merged.conflicts]
        # What is undecided stands as ours has it, so that all other conflicts show at once.
        tables, broken_rules = self._kept_rules(tables, view)
        conflicts = (*undecided, *broken_rules)
        is_behind = self.base.snapshot.head.commit_id == view.snapshot.head.commit_id
        outcome = Outcome.FAST_FORWARD if is_behind else Outcome.MERGED
        counts = {
            merged.type.name: counted for merged in tables.values() if (counted := _counts(merged))
        }
        return MergeReport(outcome, counts, conflicts), tables

    def _table(self, type_: SchemaType, view: View) -> Merged | None:
        key = type_.table_key
        base, source = self.base, self.source
        if not has_moved(base.snapshot, source.snapshot, key):
            return None
        before = base.data.table(key)
        theirs = compare_tables(type_, before, source.data.table(key), self.engine, view.data)
        if not theirs.counts:
            return None
        if not has_moved(base.snapshot, view.snapshot, key):
            return adopt(theirs)
        ours = compare_tables(type_, before, view.data.table(key), self.engine, view.data)
        decider = ThreeWay(self.engine, view.data, self.resolutions, self.strict_rows)
        return decider.merge(ours, theirs)

    def _kept_rules(
        self, tables: dict[TableKey, Merged], view: View
    ) -> tuple[dict[TableKey, Merged], list[Conflict]]:
        """The merge with what breaks a rule left out, where that was decided; else the conflicts.

        Leaving a row out may break another rule, so it goes on until nothing more can be decided.
        """
        while True:
            delta = Delta({key: _delta(each) for key, each in tables.items() if _counts(each)})
            report = evaluate(self.rule_set, delta, view.data, self.engine)
            conflicts, decided = [], []
            for violation in report.violations:
                choice = self.resolutions.decide(broken(violation))
                if choice is None or not _can_follow(violation, choice):
                    conflicts.append(broken(violation))
                else:
                    decided.append((violation, choice))
            if not decided:
                return tables, conflicts
            for violation, choice in decided:
                tables = _following(violation, choice, tables, view.catalog)


def _can_follow(violation: Violation, choice: object) -> bool:
    if choice is Choice.OURS:
        return violation.id is not None and violation.rule is not Rule.CARDINALITY
    return choice is Choice.THEIRS and violation.rule is Rule.STRANDED


def _following(
    violation: Violation, choice: object, tables: dict[TableKey, Merged], catalog: Catalog
) -> dict[TableKey, Merged]:
    """The merge after a decision about one offender."""
    type_ = catalog.type_named(violation.type_name)
    offender = pa.array([violation.id], pa.utf8())
    if violation.rule is not Rule.STRANDED:
        # The offender came with the source: ours is to leave it out.
        merged = tables[type_.table_key]
        return tables | {type_.table_key: _leaving_out(merged, offender)}
    assert isinstance(type_, EdgeType), "only edges can be stranded"
    if choice is Choice.THEIRS:
        # The node goes with the source, and the edge, which only the target has, goes with it.
        known = tables.get(type_.table_key) or _nothing(type_)
        gone = pa.concat_arrays([known.deleted, offender])
        return tables | {type_.table_key: Merged(type_, known.added, known.replaced, gone)}
    # The node stays with the target.
    (end,) = violation.properties
    node = catalog.node_type(type_.source if end == "src" else type_.target)
    merged = tables[node.table_key]
    return tables | {node.table_key: _leaving_out(merged, pa.array([violation.value], pa.utf8()))}


def _leaving_out(merged: Merged, ids: pa.Array) -> Merged:
    kept = pa.table({"id": merged.deleted})
    return Merged(
        merged.type,
        excluding(merged.added, ids),
        excluding(merged.replaced, ids),
        excluding(kept, ids)["id"].combine_chunks(),
    )


def _nothing(type_: SchemaType) -> Merged:
    empty = table_schema(type_).empty_table()
    return Merged(type_, empty, empty, pa.array([], pa.utf8()))


def _counts(merged: Merged) -> Counts:
    return Counts(merged.added.num_rows, merged.replaced.num_rows, len(merged.deleted))


def _delta(merged: Merged) -> TableDelta:
    schema = delta_schema(merged.type)
    rows = pa.concat_tables([merged.replaced, merged.added])
    origin = pa.nulls(rows.num_rows, pa.utf8())
    columns = [
        origin if each.name == ORIGIN else rows[each.name].cast(each.type) for each in schema
    ]
    return TableDelta(pa.Table.from_arrays(columns, schema=schema), merged.deleted)


def _stage(merged: Merged, table: Table) -> Staged:
    return stage_rows(table, added=merged.added, replaced=merged.replaced, deleted=merged.deleted)


def _ends(changed: Iterable[Merged], catalog: Catalog) -> frozenset[TableKey]:
    """The nodes that edges need which come: another write may not take them away meanwhile."""
    return frozenset(
        catalog.node_type(name).table_key
        for each in changed
        if isinstance(each.type, EdgeType) and (each.added.num_rows or each.replaced.num_rows)
        for name in (each.type.source, each.type.target)
    )


def _touching(changed: Iterable[Merged], catalog: Catalog) -> frozenset[TableKey]:
    """The edges that a node which goes might get meanwhile."""
    losing = (each.type for each in changed if len(each.deleted))
    names = {type_.name for type_ in losing if isinstance(type_, NodeType)}
    return frozenset(
        edge.table_key for edge in catalog.edge_types if {edge.source, edge.target} & names
    )
