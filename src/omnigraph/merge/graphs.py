"""Merging one branch into another: every table, then the rules that the result must keep."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial

from omnigraph.changes.graphs import Side, has_moved, require_one_schema
from omnigraph.changes.tables import compare_tables
from omnigraph.engine.protocol import Engine
from omnigraph.integrity.rules import RuleSet
from omnigraph.merge.conflicts import Conflict, refused
from omnigraph.merge.decisions import Merged, ThreeWay, adopt
from omnigraph.merge.resolutions import Resolutions
from omnigraph.merge.rules import Rules
from omnigraph.model.commits import Commit
from omnigraph.model.counts import Counts
from omnigraph.model.tables import TableKey
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
    """One merge to be planned: what is brought in, since where, and how to decide.

    Attributes:
        lineage: The commits that only the source has.
    """

    source: Side
    base: Side
    lineage: tuple[Commit, ...]
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
        changed = {key: each for key, each in tables.items() if each.counts}
        return Work(
            report,
            changes={key: partial(_stage, each) for key, each in changed.items()},
            reads=_ends(changed.values(), view.catalog) - changed.keys(),
            guards=_touching(changed.values(), view.catalog) - changed.keys(),
            replans=True,
            is_history=True,
            lineage=self.lineage,
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
        is_behind = self.base.snapshot.head.commit_id == view.snapshot.head.commit_id
        if not is_behind:
            rules = Rules(self.rule_set, self.source, view, self.engine, self.resolutions)
            tables, broken_rules = rules.keep(tables)
            undecided += broken_rules
        # Where only the source went on, the target becomes what the source is, rules and all.
        outcome = Outcome.FAST_FORWARD if is_behind else Outcome.MERGED
        counts = {each.type.name: each.counts for each in tables.values() if each.counts}
        conflicts = tuple(sorted(undecided, key=_by_place))
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


def _stage(merged: Merged, table: Table) -> Staged:
    return stage_rows(table, added=merged.added, replaced=merged.replaced, deleted=merged.deleted)


def _by_place(conflict: Conflict) -> tuple[str, ...]:
    return (conflict.type_name, conflict.id or "", conflict.property or "", conflict.kind)


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
