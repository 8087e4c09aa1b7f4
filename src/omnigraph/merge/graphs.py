"""Merging one branch into another: every table, then the rules that the result must keep."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial

from omnigraph.changes.graphs import Side, has_moved, require_one_schema
from omnigraph.engine.choose import Choice
from omnigraph.integrity import footprint
from omnigraph.integrity.deltas import Shape
from omnigraph.integrity.rules import RuleSet
from omnigraph.merge.bases import Base
from omnigraph.merge.conflicts import Conflict, refused
from omnigraph.merge.resolutions import Resolutions
from omnigraph.merge.rows import RowMerger, Sides
from omnigraph.merge.rules import Rules
from omnigraph.model.commits import Commit
from omnigraph.model.counts import Counts
from omnigraph.model.ids import CommitId
from omnigraph.model.tables import TableKey
from omnigraph.schema.catalog import SchemaType
from omnigraph.storage.tables import Table
from omnigraph.transaction.view import View
from omnigraph.transaction.work import Stage, Work


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
class Merge:
    """One merge to be planned: what is brought in, since where, and how to decide.

    Attributes:
        base: What both sides come from.
        points: The commits of the base, opened.
        lineage: The commits that only the source has.
        merger: The engine that merges, and `choice` why it was chosen.
        cleanup: Runs when the merge has ended, or is planned again.
    """

    source: Side
    base: Base
    points: Mapping[CommitId, Side]
    lineage: tuple[Commit, ...]
    merger: RowMerger
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
        footprints = footprint.footprints(self.rule_set, _shape(tables))
        return Work(
            report,
            changes={key: work.stage for key, work in tables.items()},
            reads=footprint.reads(footprints),
            guards=footprint.guards(footprints),
            replans=True,
            is_history=True,
            lineage=self.lineage,
        )

    def decide(self, view: View) -> tuple[MergeReport, dict[TableKey, TableWork]]:
        """What the merge would do to each table that changes, and what stands in its way."""
        for side in (self.source, *self.points.values()):
            require_one_schema(side.snapshot, view.snapshot)
        rows = self.merger.begin_merge(
            self.source.snapshot.head.commit_id,
            view.data,
            self.resolutions,
            strict_rows=self.strict_rows,
        )
        self.cleanup.callback(rows.close)
        tables = {
            sides.type.table_key: merged
            for sides in self._moved_tables(view)
            if (merged := rows.decide(sides)) is not None
        }
        undecided, count = list(rows.conflicts), rows.conflict_count
        # What is undecided stands as ours has it, so that all other conflicts show at once.
        is_behind = self.base.commit == view.snapshot.head.commit_id
        if not is_behind:
            rules = Rules(self.rule_set, self.source, view, self.merger, self.resolutions, rows)
            kept = rules.keep(tables)
            tables = kept.tables
            undecided, count = [*undecided, *kept.conflicts], count + kept.conflict_count
        # Where only the source went on, the target becomes what the source is, rules and all.
        outcome = Outcome.FAST_FORWARD if is_behind else Outcome.MERGED
        works = {
            key: TableWork(merged.type, counts, partial(rows.stage, merged))
            for key, merged in tables.items()
            if (counts := rows.counts(merged))
        }
        conflicts = sorted(undecided, key=_by_place)[: rows.conflicts_max]
        changes = {work.type.name: work.counts for work in works.values()}
        return MergeReport(outcome, self.choice, changes, tuple(conflicts), count), works

    def _moved_tables(self, view: View) -> Iterator[Sides]:
        """The tables that the source, or a commit of a virtual base, has at another version."""
        ours, theirs = view.snapshot.head.commit_id, self.source.snapshot.head.commit_id
        for type_ in view.catalog.types:
            key = type_.table_key
            base = self._base_of(key)
            anchor, is_commit = self.points[base.anchor].snapshot, base.commit is not None
            if is_commit and not has_moved(anchor, self.source.snapshot, key):
                continue
            is_target_base = is_commit and not has_moved(anchor, view.snapshot, key)
            tables = self._tables(base, view, key)
            yield Sides(type_, base, tables, theirs, ours, is_target_base=is_target_base)

    def _base_of(self, key: TableKey) -> Base:
        """The base of one table: most are alike in all commits of a virtual base."""
        return self.base.for_table(lambda commit: self.points[commit].snapshot.pin(key).place)

    def _tables(self, base: Base, view: View, key: TableKey) -> dict[CommitId, Table]:
        """The table at every commit that a merge of it looks at."""
        tables = {commit: self.points[commit].data.table(key) for commit in base.commits}
        for side in (self.source, view):
            tables[side.snapshot.head.commit_id] = side.data.table(key)
        return tables


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
