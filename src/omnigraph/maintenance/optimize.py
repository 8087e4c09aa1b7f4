"""The optimize writer: fewer and fuller fragments, no deleted rows, indexes over every row.

It changes how rows are stored, and no row: diffs, the feed and merges do not see it
(docs/decisions/0013).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Protocol

from omnigraph.choices import EngineName
from omnigraph.clock import Clock
from omnigraph.engine.choose import Choice, Measure, by_size
from omnigraph.limits import INDEX_LOCAL_ROWS_MAX, ROW_ID_BYTES_MAX
from omnigraph.maintenance.groups import Group
from omnigraph.maintenance.indexes import Follow, count_missing, index_specs, plan_upkeep
from omnigraph.maintenance.results import TableOptimization
from omnigraph.model.tables import TableKey
from omnigraph.schema.catalog import SchemaType
from omnigraph.storage import heads
from omnigraph.storage.compaction import (
    FragmentSize,
    Rewrite,
    find_current,
    index_rewrites,
    measure_fragments,
    rewrite_fragments,
    stage_rewrites,
)
from omnigraph.storage.indexes import (
    Gap,
    Segment,
    build_segment,
    find_gaps,
    is_buildable,
    is_slow,
    stage_segments,
)
from omnigraph.storage.segments import SegmentChange, find_dead_segments, plan_segments
from omnigraph.storage.staging import StagedWrite
from omnigraph.storage.tables import Table
from omnigraph.transaction.view import View
from omnigraph.transaction.writes import Stage, WritePlan

OPTIMIZE_LOCAL_ROWS_MAX: Final = 16_000_000
OPTIMIZE_LOCAL_BYTES_MAX: Final = 4 << 30
"""Rows, and their size in files, that an optimize rewrites in this process."""

OPTIMIZE_THREADS_MAX: Final = 4
"""Files that an optimize writes at once in this process."""


@dataclass(frozen=True, slots=True)
class TableRewrite:
    """Fragments of one table that are rewritten together.

    Attributes:
        row_id_bytes_max: The size of their row ids from which on their rows are sorted.
    """

    table: Table
    group: Group
    row_id_bytes_max: int = ROW_ID_BYTES_MAX

    @property
    def fragment_ids(self) -> tuple[int, ...]:
        """The fragments."""
        return tuple(fragment.fragment_id for fragment in self.group)

    @property
    def row_count(self) -> int:
        """How many rows are written."""
        return sum(fragment.row_count for fragment in self.group)

    @property
    def byte_count(self) -> int:
        """The size of the files that are read."""
        return sum(fragment.byte_count for fragment in self.group)


class Compaction(Protocol):
    """One run of an engine that rewrites fragments and indexes them. No head moves."""

    def rewrite(self, rewrites: Sequence[TableRewrite]) -> list[Rewrite]:
        """Write the rows of each group to new files; the results in their order."""
        ...

    def index(self, table: Table, gaps: Sequence[Gap]) -> list[Segment]:
        """Index the fragments of each gap."""
        ...


class Compactor(Protocol):
    """What an engine does for the optimize writer."""

    def begin_compaction(self, clock: Clock, follow: Follow | None) -> Compaction:
        """A run that has rewritten nothing."""
        ...


@dataclass(frozen=True, slots=True)
class Policy:
    """What of a table is worth the work.

    Attributes:
        groups: The fragments to rewrite.
        indexed_rows_min: Rows of a fragment below which no index is extended to it.
        indexes_all: Whether fragments that are not rewritten are indexed, too.
        joined_rows_max: Rows of index segments that are joined; any number if None.
        row_id_bytes_max: The size of row ids of a group from which on its rows are sorted.
    """

    groups: Callable[[Sequence[FragmentSize]], Sequence[Group]]
    indexed_rows_min: int = 0
    indexes_all: bool = True
    joined_rows_max: int | None = None
    row_id_bytes_max: int = ROW_ID_BYTES_MAX


@dataclass(slots=True)
class OptimizeReport:
    """What a plan will do; complete once its tables are staged."""

    choice: Choice
    shared: tuple[str, ...]
    tables: dict[TableKey, TableOptimization] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Optimizing:
    """One run of the optimize writer. It may be planned several times.

    What was rewritten before a table moved is used again where its fragments are still the same.

    Attributes:
        wanted: `local`, `spark` or `auto`.
        begin: Begins the run on an engine, or continues a run that was begun there.
        types: The names of the types whose tables are looked at; all when None.
        takes_shared: Whether tables that belong to another branch become the branch's own, too.
    """

    wanted: str | None
    begin: Callable[[EngineName], Compaction]
    policy: Policy
    types: tuple[str, ...] | None = None
    takes_shared: bool = False
    _rewritten: list[Rewrite] = field(default_factory=list)

    def plan(self, view: View) -> WritePlan[OptimizeReport]:
        """Rewrite what the policy names, and plan to make that the tables' state."""
        snapshot = view.snapshot
        types = view.catalog.types_named(self.types)
        own = [
            type_
            for type_ in types
            if self.takes_shared or snapshot.owns(snapshot.pin(type_.table_key))
        ]
        plans = [self._plan_table(type_, view.data.table(type_.table_key)) for type_ in own]
        needed = [plan for plan in plans if plan.is_needed]
        choice = by_size(self.wanted, measure_plans(needed))
        shared = tuple(str(type_.name) for type_ in types if type_ not in own)
        report = OptimizeReport(choice, shared)
        if not needed:
            return WritePlan(report)
        run = self.begin(choice.engine)
        self._rewrite(run, needed)
        stages: dict[TableKey, Stage] = {
            plan.key: partial(self._stage, plan, run, report) for plan in needed
        }
        return WritePlan(report, stages, can_replan=True)

    def _plan_table(self, type_: SchemaType, table: Table) -> _TablePlan:
        done = find_current(table, self._rewritten)
        replaced = _replaced_ids(done)
        sizes = [size for size in measure_fragments(table) if size.fragment_id not in replaced]
        groups = tuple(group for group in self.policy.groups(sizes) if group)
        is_needed = bool(groups or done)
        if not self.policy.indexes_all:
            return _TablePlan(type_, table, groups, (), is_needed=is_needed)
        upkeep = plan_upkeep(table, index_specs(type_, table))
        is_needed = is_needed or not upkeep.is_complete
        return _TablePlan(type_, table, groups, upkeep.gaps, is_needed=is_needed)

    def _rewrite(self, run: Compaction, plans: Sequence[_TablePlan]) -> None:
        new = [
            TableRewrite(plan.table, group, self.policy.row_id_bytes_max)
            for plan in plans
            for group in plan.groups
        ]
        self._rewritten.extend(run.rewrite(new) if new else ())

    def _stage(
        self, plan: _TablePlan, run: Compaction, report: OptimizeReport, table: Table
    ) -> StagedWrite:
        written = find_current(table, self._rewritten)
        staged = stage_rewrites(table, written) if written else None
        after = self._preview(table, staged, written)
        gaps = () if after is None else tuple(self._gaps(plan, table, after))
        segments = run.index(after, gaps) if after is not None and gaps else []
        replaced = _replaced_ids(written)
        change = SegmentChange((), find_dead_segments(table, without=replaced))
        if after is not None:
            rows_max = self._count_joinable(written)
            specs = index_specs(plan.type, after)
            change = plan_segments(after, specs, segments, rows_max=rows_max)
        before = len(table.handle.fragment_ids())
        report.tables[plan.key] = TableOptimization(
            fragments_before=before,
            fragments_after=before - len(replaced) + sum(len(each.after) for each in written),
            rows_rewritten=sum(rewrite.row_count for rewrite in written),
            bytes_rewritten=sum(rewrite.byte_count for rewrite in written),
            indexed=tuple(dict.fromkeys(gap.spec.column for gap in gaps)),
        )
        if staged is None:
            return stage_segments(table, change.new, removed=change.removed)
        return index_rewrites(staged, change.new, change.removed)

    def _preview(
        self, table: Table, staged: StagedWrite | None, rewrites: Sequence[Rewrite]
    ) -> Table | None:
        """The table with its new fragments; None if none of them is large enough to be indexed."""
        sizes = [part.physical_rows for rewrite in rewrites for part in rewrite.after]
        if staged is None:
            return table
        if max(sizes, default=0) < self.policy.indexed_rows_min:
            return None
        return heads.preview(staged)

    def _count_joinable(self, rewrites: Sequence[Rewrite]) -> int | None:
        """The rows whose index segments may still be joined, after what was rewritten."""
        if self.policy.joined_rows_max is None:
            return None
        rows_rewritten = sum(rewrite.row_count for rewrite in rewrites)
        # A row is rewritten and indexed in about the time in which four are joined.
        return max(0, self.policy.joined_rows_max - 4 * rows_rewritten)

    def _gaps(self, plan: _TablePlan, before: Table, after: Table) -> Iterator[Gap]:
        """The fragments to index: all that are not, or the new ones that are large enough."""
        old = frozenset(before.handle.fragment_ids())
        rows = {fragment.id: fragment.num_rows for fragment in after.fragments()}
        for gap in find_gaps(after, index_specs(plan.type, after)):
            if is_slow(gap.spec) and not self.policy.indexes_all:
                continue
            wanted = tuple(
                fragment_id
                for fragment_id in gap.fragments
                if rows[fragment_id] >= self.policy.indexed_rows_min
                and (self.policy.indexes_all or fragment_id not in old)
            )
            chosen = Gap(gap.spec, wanted)
            if wanted and is_buildable(after, chosen):
                yield chosen


@dataclass(frozen=True, slots=True)
class _TablePlan:
    """What is done to the table of one type."""

    type: SchemaType
    table: Table
    groups: tuple[Group, ...]
    gaps: tuple[Gap, ...]
    is_needed: bool

    @property
    def key(self) -> TableKey:
        """The key of the type's table."""
        return self.type.table_key


def _replaced_ids(rewrites: Sequence[Rewrite]) -> frozenset[int]:
    return frozenset(fragment.id for rewrite in rewrites for fragment in rewrite.before)


def measure_plans(plans: Sequence[_TablePlan]) -> Iterator[Measure]:
    """How much is rewritten, and how much is indexed."""
    groups = [TableRewrite(plan.table, group) for plan in plans for group in plan.groups]
    row_count = sum(group.row_count for group in groups)
    byte_count = sum(group.byte_count for group in groups)
    yield Measure.of_count(row_count, OPTIMIZE_LOCAL_ROWS_MAX, "row to rewrite")
    yield Measure.of_bytes(byte_count, OPTIMIZE_LOCAL_BYTES_MAX, "{} to rewrite")
    missing = sum(count_missing(plan.table, plan.gaps) for plan in plans)
    yield Measure.of_count(missing, INDEX_LOCAL_ROWS_MAX, "row to index")


@dataclass(frozen=True, slots=True)
class LocalCompaction:
    """Rewrites fragments in this process, several groups at once, and indexes them."""

    follow: Follow | None = None

    def rewrite(self, rewrites: Sequence[TableRewrite]) -> list[Rewrite]:
        """Write the rows of each group to new files; the results in their order."""
        if len(rewrites) == 1 and self.follow is None:
            return [_rewrite(rewrites[0])]
        follow = self.follow or (lambda *_: None)
        results: list[Rewrite] = []
        follow(0, len(rewrites))
        with ThreadPoolExecutor(OPTIMIZE_THREADS_MAX) as pool:
            for result in pool.map(_rewrite, rewrites):
                results.append(result)
                follow(len(results), len(rewrites))
        return results

    def index(self, table: Table, gaps: Sequence[Gap]) -> list[Segment]:
        """Index the fragments of each gap."""
        # One after the other: Lance allows one at a time for a handle, and uses every core.
        return [build_segment(table, gap) for gap in gaps]


def _rewrite(rewrite: TableRewrite) -> Rewrite:
    return rewrite_fragments(
        rewrite.table, rewrite.fragment_ids, row_id_bytes_max=rewrite.row_id_bytes_max
    )
