"""Merging one branch into another: the schemas, every table, the rules that the result keeps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field

from omnigraph.changes.graphs import Side
from omnigraph.clock import Clock
from omnigraph.engine.choose import Choice
from omnigraph.integrity.rules import RuleSet
from omnigraph.manifest.drafts import AddHistory
from omnigraph.manifest.merge_bases import Base
from omnigraph.merge.breaches import MergeChecks
from omnigraph.merge.cascades import Cascades
from omnigraph.merge.conflicts import Conflict, one_per_row, refused
from omnigraph.merge.drops import DroppedUnits
from omnigraph.merge.outcomes import Outcome
from omnigraph.merge.resolutions import Resolutions
from omnigraph.merge.rows import RowMerger
from omnigraph.merge.schemas import MergedSchema, SchemaSides, side_of
from omnigraph.merge.source import MergeSource
from omnigraph.merge.targets import MergeTarget
from omnigraph.merge.versions import TableVersions
from omnigraph.merge.works import FindSchema, MergeWork
from omnigraph.model.commits import Commit
from omnigraph.model.counts import Counts
from omnigraph.model.ids import CommitId
from omnigraph.schema.catalog import Catalog
from omnigraph.schema.steps import SchemaStep
from omnigraph.transaction.view import View
from omnigraph.transaction.writes import WritePlan


@dataclass(frozen=True, slots=True)
class MergeReport:
    """What a merge does, before it is done.

    Attributes:
        counts: By type, what it changes in the target.
        conflicts: What has to be decided first; a merge with any is refused. Of very many, Spark
            names the first, and `conflict_count` says how many there are.
        choice: The engine that it is planned on, and why.
        steps: What it changes in the schema of the target.
    """

    outcome: Outcome
    choice: Choice
    counts: Mapping[str, Counts] = field(default_factory=dict)
    conflicts: tuple[Conflict, ...] = ()
    conflict_count: int = 0
    steps: tuple[SchemaStep, ...] = ()


@dataclass(frozen=True, slots=True)
class SchemaSource:
    """Where a merge finds schemas.

    Attributes:
        catalog: Returns the catalog of a schema by its digest.
        rules: Returns the rules that a merge checks, of a catalog.
        accepted: Returns a schema by its digest, with its text.
    """

    catalog: Callable[[str], Catalog]
    rules: Callable[[Catalog], RuleSet]
    accepted: FindSchema


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
    schemas: SchemaSource
    clock: Clock
    resolutions: Resolutions
    strict_rows: bool = False

    def plan(self, view: View) -> WritePlan[MergeReport]:
        """What the merge changes in the target as it is now."""
        report, work = self.decide(view)
        if work is None or report.conflicts:
            source, target = self.source.snapshot.branch, view.snapshot.branch
            error = refused(source, target, report.conflicts, report.conflict_count)
            if unused := self.resolutions.unused():
                error.add_note(f"the resolutions name what does not conflict so far: {unused}")
            raise error
        self.resolutions.require_used()
        return WritePlan(
            report,
            changes=work.stages(),
            reads=work.reads(),
            locks=work.locks(),
            can_replan=True,
            records=(AddHistory(self.lineage),),
            schema_change=work.schema_change(self.schemas.accepted),
            is_bulk=self.choice.is_bulk,
        )

    def decide(self, view: View) -> tuple[MergeReport, MergeWork | None]:
        """What the merge would do to each table that changes, and what stands in its way.

        There is no work if schemas conflict: rows are not compared before it is known what they
        are rows of.
        """
        # Where only the source went on, the target becomes what the source is, rules and all.
        # Maintenance of the target changed no row.
        is_behind = self.base.commit is not None and (
            self.points[self.base.commit].snapshot.head.rows_from == view.snapshot.head.rows_from
        )
        outcome = Outcome.FAST_FORWARD if is_behind else Outcome.MERGED
        schema = self._schema(view, is_behind=is_behind)
        if not isinstance(schema, MergedSchema):
            return MergeReport(Outcome.CONFLICTED, self.choice, {}, schema, len(schema)), None
        ours, theirs = view.snapshot.head.commit_id, self.source.snapshot.head.commit_id
        target = None
        if not (schema.is_that_of(ours) and schema.is_that_of(theirs)):
            target = MergeTarget(view, self.source, schema, self.merger, self.clock)
        rows = self.merger.begin_merge(
            theirs, view.data, self.resolutions, strict_rows=self.strict_rows
        )
        self.cleanup.callback(rows.close)
        versions = TableVersions(
            schema, self.base, self.points, Side(view.snapshot, view.data), self.source
        )
        tables = {
            sides.type.table_key: merged
            for sides in versions.moved()
            if (merged := rows.decide(sides)) is not None
        }
        undecided, count = list(rows.conflicts), rows.conflict_count
        rule_set = self.schemas.rules(schema.catalog)
        # What is undecided stands as ours has it, so that all other conflicts show at once.
        if not is_behind:
            source = MergeSource(self.source, schema)
            cascades = Cascades(versions, source, self.resolutions, rows)
            checks = MergeChecks(
                versions, target, view, self.merger, self.resolutions, rule_set, rows, cascades
            )
            kept = checks.run(tables)
            tables = kept.tables
            every = one_per_row(cascades.tell(undecided), kept.conflicts)
            repeated = len(undecided) + len(kept.conflicts) - len(every)
            undecided, count = every, count + kept.conflict_count - repeated
        conflicts = sorted(undecided, key=_by_place)[: rows.conflicts_max]
        changes = {
            merged.type.name: counts
            for merged in tables.values()
            if (counts := rows.counts(merged))
        }
        outcome = Outcome.CONFLICTED if count else outcome
        steps = () if target is None else target.steps.steps
        report = MergeReport(outcome, self.choice, changes, tuple(conflicts), count, steps)
        return report, MergeWork(rows, tables, target, rule_set)

    def _schema(self, view: View, *, is_behind: bool) -> MergedSchema | tuple[Conflict, ...]:
        """The schema that the target gets, or the undecided conflicts of schemas."""
        ours = Side(view.snapshot, view.data)
        commits = (*self.points.values(), ours, self.source)
        points = {
            side.snapshot.head.commit_id: side_of(side.snapshot, self.schemas.catalog)
            for side in commits
        }
        ours_id, theirs_id = (side.snapshot.head.commit_id for side in (ours, self.source))
        if is_behind:
            return MergedSchema.of(points[theirs_id], points)
        sides = SchemaSides(self.base, points, ours_id, theirs_id)
        anchor = self.points[self.base.anchor]
        dropped = DroppedUnits(anchor, ours, self.source, self.schemas.catalog, self.merger)
        return sides.merge(self.resolutions, dropped.used())


def _by_place(conflict: Conflict) -> tuple[str, ...]:
    return (conflict.type_name, conflict.id or "", conflict.property or "", conflict.kind)
