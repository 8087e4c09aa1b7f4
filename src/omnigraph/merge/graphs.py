"""Merging one branch into another: every table, then the rules that the result must keep."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING

from omnigraph.changes.graphs import Side, has_moved, require_one_schema
from omnigraph.changes.records import TableChanges
from omnigraph.changes.tables import compare_tables
from omnigraph.changes.wide import WideValues, referring
from omnigraph.choices import EngineName
from omnigraph.engine.choose import Choice
from omnigraph.engine.protocol import Engine
from omnigraph.integrity import footprint
from omnigraph.integrity.deltas import Shape
from omnigraph.integrity.rules import RuleSet
from omnigraph.limits import MERGE_CONFLICTS_MAX
from omnigraph.merge.bases import Base
from omnigraph.merge.conflicts import Conflict, refused
from omnigraph.merge.decisions import Merged, ThreeWay, adopt
from omnigraph.merge.resolutions import Resolutions
from omnigraph.merge.rules import Rules
from omnigraph.merge.virtual import TableFolds
from omnigraph.model.commits import Commit
from omnigraph.model.counts import Counts
from omnigraph.model.ids import CommitId
from omnigraph.model.tables import TableKey
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.catalog import SchemaType
from omnigraph.storage.staging import Staged, stage_rows
from omnigraph.storage.tables import Table
from omnigraph.transaction.view import View
from omnigraph.transaction.work import Stage, Work

if TYPE_CHECKING:
    from omnigraph.merge.spark.tables import SparkRows


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
        conflicts: What has to be decided first; a merge with any is refused. Of very many, Spark
            names the first, and `conflict_count` says how many there are.
        choice: The engine that it is planned on, and why.
    """

    outcome: Outcome
    choice: Choice
    counts: Mapping[str, Counts] = field(default_factory=dict)
    conflicts: tuple[Conflict, ...] = ()
    conflict_count: int = 0


@dataclass(frozen=True, slots=True)
class TableWork:
    """What a merge does to one table, and how to stage it."""

    type: SchemaType
    counts: Counts
    stage: Stage


@dataclass(frozen=True, slots=True)
class _Decided:
    """What was decided about rows, before the rules are looked at.

    Attributes:
        tables: What is done to each table that changes, as far as its rows are in this process.
        spark: The rows that are not.
    """

    tables: dict[TableKey, Merged]
    conflicts: list[Conflict]
    conflict_count: int
    spark: SparkRows | None = None


@dataclass(frozen=True, slots=True)
class Merge:
    """One merge to be planned: what is brought in, since where, and how to decide.

    Attributes:
        base: What both sides come from.
        points: The commits of the base, opened.
        lineage: The commits that only the source has.
        choice: Why it is planned on this engine.
        cleanup: Runs when the merge has ended, or is planned again.
    """

    source: Side
    base: Base
    points: Mapping[CommitId, Side]
    lineage: tuple[Commit, ...]
    engine: Engine
    choice: Choice
    cleanup: ExitStack
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
            error = refused(source, target, report.conflicts, report.conflict_count)
            if unused := self.resolutions.unused():
                error.add_note(f"the resolutions name what does not conflict so far: {unused}")
            raise error
        self.resolutions.require_used()
        shape = _shape(tables)
        rules = tuple(self.rule_set.set_rules_for(shape))
        return Work(
            report,
            changes={key: each.stage for key, each in tables.items()},
            reads=footprint.reads(rules, shape),
            guards=footprint.guards(rules, shape),
            replans=True,
            is_history=True,
            lineage=self.lineage,
        )

    def decide(self, view: View) -> tuple[MergeReport, dict[TableKey, TableWork]]:
        """What the merge would do to each table that changes, and what stands in its way."""
        for side in (self.source, *self.points.values()):
            require_one_schema(side.snapshot, view.snapshot)
        is_local = self.engine.name is EngineName.LOCAL
        decided = self._here(view) if is_local else self._on_spark(view)
        tables, spark = decided.tables, decided.spark
        undecided, count = decided.conflicts, decided.conflict_count
        # What is undecided stands as ours has it, so that all other conflicts show at once.
        is_behind = self.base.commit == view.snapshot.head.commit_id
        if not is_behind:
            rules = Rules(self.rule_set, self.source, view, self.engine, self.resolutions, spark)
            kept = rules.keep(tables)
            tables = kept.tables
            undecided, count = [*undecided, *kept.conflicts], count + kept.conflict_count
        # Where only the source went on, the target becomes what the source is, rules and all.
        outcome = Outcome.FAST_FORWARD if is_behind else Outcome.MERGED
        works = {key: _work(each, spark) for key, each in tables.items()}
        works = {key: each for key, each in works.items() if each.counts}
        conflicts = sorted(undecided, key=_by_place)
        if spark is not None:
            conflicts = conflicts[:MERGE_CONFLICTS_MAX]
        counts = {each.type.name: each.counts for each in works.values()}
        return MergeReport(outcome, self.choice, counts, tuple(conflicts), count), works

    def _here(self, view: View) -> _Decided:
        tables = {
            type_.table_key: merged
            for type_ in view.catalog.types
            if (merged := self._table(type_, view)) is not None
        }
        conflicts = [each for merged in tables.values() for each in merged.conflicts]
        return _Decided(tables, conflicts, len(conflicts))

    def _on_spark(self, view: View) -> _Decided:
        # Imported here: a merge in this process must not pay for Spark.
        from omnigraph.merge.spark.tables import Sides, SparkRows

        rows = SparkRows.begin(self.engine, str(self.source.snapshot.head.commit_id))
        self.cleanup.callback(rows.close)
        tables = {}
        for type_ in view.catalog.types:
            key = type_.table_key
            base = self._base_of(key)
            anchor = self.points[base.anchor]
            if base.commit is not None and not has_moved(
                anchor.snapshot, self.source.snapshot, key
            ):
                continue
            sides = Sides(
                type_,
                base,
                self._tables(base, view, key),
                self.source.snapshot.head.commit_id,
                view.snapshot.head.commit_id,
                is_target_base=base.commit is not None
                and not has_moved(anchor.snapshot, view.snapshot, key),
            )
            if rows.decide(sides, self.resolutions, strict_rows=self.strict_rows):
                tables[key] = Merged.nothing(type_)
        return _Decided(tables, rows.conflicts, rows.conflict_count, rows)

    def _base_of(self, key: TableKey) -> Base:
        """The base of one table: most are alike in all commits of a virtual base."""
        return self.base.for_table(lambda each: self.points[each].snapshot.pin(key).place)

    def _tables(self, base: Base, view: View, key: TableKey) -> dict[CommitId, Table]:
        """The table at every commit that a merge of it looks at."""
        found = {each: self.points[each].data.table(key) for each in base.commits}
        for side in (self.source, view):
            found[side.snapshot.head.commit_id] = side.data.table(key)
        return found

    def _table(self, type_: SchemaType, view: View) -> Merged | None:
        key = type_.table_key
        source = self.source
        base = self._base_of(key)
        if base.commit is None:
            return self._virtual_table(type_, base, view)
        point = self.points[base.commit]
        if not has_moved(point.snapshot, source.snapshot, key):
            return None
        before, ours, theirs = (each.data.table(key) for each in (point, view, source))
        wide = WideValues(before, ours, theirs)
        compare = partial(compare_tables, type_, before, engine=self.engine, data=view.data)
        if not has_moved(point.snapshot, view.snapshot, key):
            adopted = compare(theirs, wide=wide)
            return adopt(adopted) if adopted.counts else None
        with ThreadPoolExecutor(max_workers=1) as beside:
            comparing = beside.submit(compare, ours, wide=wide)
            their_changes = compare(theirs, wide=wide)
        our_changes = comparing.result()
        if not their_changes.counts:
            return None
        return self._decider(view).merge(our_changes, their_changes)

    def _virtual_table(self, type_: SchemaType, base: Base, view: View) -> Merged:
        """A table of which the commits of a virtual base have several versions."""
        tables = self._tables(base, view, type_.table_key)
        wide = WideValues(*tables.values())

        def compare(before: CommitId, after: CommitId) -> TableChanges:
            sides = tables[before], tables[after]
            return compare_tables(type_, *sides, engine=self.engine, data=view.data, wide=wide)

        nothing = referring(table_schema(type_)).empty_table()
        folds = TableFolds(type_, compare, self.engine, view.data, nothing, wide)
        folded = folds.fold(base)
        ours = folded.changes_to(view.snapshot.head.commit_id)
        theirs = folded.changes_to(self.source.snapshot.head.commit_id)
        return self._decider(view).merge(ours, theirs, folded.unsettled)

    def _decider(self, view: View) -> ThreeWay:
        return ThreeWay(self.engine, view.data, self.resolutions, self.strict_rows)


def _work(merged: Merged, spark: SparkRows | None) -> TableWork:
    if spark is None:
        return TableWork(merged.type, merged.counts, partial(_stage, merged))
    return TableWork(merged.type, spark.counts(merged), partial(spark.stage, merged))


def _stage(merged: Merged, table: Table) -> Staged:
    wide, schema = merged.wide, table_schema(merged.type)
    return stage_rows(
        table,
        added=wide.in_order(merged.added),
        replaced=wide.in_order(merged.replaced),
        deleted=merged.deleted,
        whole=partial(wide.whole, schema) if merged.is_referring else None,
    )


def _by_place(conflict: Conflict) -> tuple[str, ...]:
    return (conflict.type_name, conflict.id or "", conflict.property or "", conflict.kind)


def _shape(changed: Mapping[TableKey, TableWork]) -> Shape:
    """What the merge brings to the tables, for the rules that apply to it."""
    return Shape(
        upserted=frozenset(
            key for key, work in changed.items() if work.counts.inserted or work.counts.updated
        ),
        deleted=frozenset(key for key, work in changed.items() if work.counts.deleted),
    )
