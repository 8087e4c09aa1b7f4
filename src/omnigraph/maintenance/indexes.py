"""The index writer: builds the indexes that lookups use, and extends them to newer rows.

Indexes are derived data: no answer needs one, and a write never waits for one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeAlias

from omnigraph.choices import EngineName, IndexKind
from omnigraph.clock import Clock
from omnigraph.engine.choose import Choice, Measure, by_size
from omnigraph.limits import INDEX_LOCAL_ROWS_MAX
from omnigraph.maintenance.results import IndexResult
from omnigraph.model.tables import TableKey
from omnigraph.schema.catalog import SchemaType
from omnigraph.schema.indexes import wanted_indexes
from omnigraph.storage.indexes import (
    Gap,
    IndexSpec,
    build_segment,
    find_gaps,
    is_buildable,
    stage_segments,
)
from omnigraph.storage.segments import (
    expect_segment,
    find_crowds,
    find_unneeded,
    indexed_by,
    plan_segments,
)
from omnigraph.storage.staging import StagedWrite
from omnigraph.storage.tables import Table
from omnigraph.storage.vector_kinds import choose_kind
from omnigraph.transaction.view import View
from omnigraph.transaction.writes import Stage, WriteOutcome, WritePlan


@dataclass(frozen=True, slots=True)
class TableUpkeep:
    """What is to be done for the indexes of a table.

    Attributes:
        specs: The indexes that it should have.
        gaps: What they lack; empty if segments are only joined or removed.
        rebuilds: Whether nothing of the indexes that are there is kept.
        unneeded: The indexes of which segments are removed, by their columns.
        crowded: The indexes of which segments are joined, by their columns.
    """

    specs: tuple[IndexSpec, ...]
    gaps: tuple[Gap, ...] = ()
    unneeded: tuple[str, ...] = ()
    crowded: tuple[str, ...] = ()
    rebuilds: bool = False

    @property
    def kept_specs(self) -> tuple[IndexSpec, ...]:
        """The indexes that are extended and not replaced."""
        return () if self.rebuilds else self.specs

    @property
    def is_complete(self) -> bool:
        """Whether nothing is to be done."""
        return not (self.gaps or self.unneeded or self.crowded)


Upkeep: TypeAlias = "Mapping[TableKey, TableUpkeep]"
"""What is to be done for each table; tables whose indexes are complete are left out."""

IndexRun: TypeAlias = "Callable[[View, Upkeep], Mapping[TableKey, Stage]]"
"""Returns how to stage each of these tables. Files are written then or before; no head moves."""

Follow: TypeAlias = Callable[[int, int], None]
"""Called with the number of finished build steps, and the number of all steps."""


class IndexBuilder(Protocol):
    """What an engine does for the index writer."""

    def begin_indexing(self, clock: Clock, follow: Follow | None) -> IndexRun:
        """A run that has built nothing. It may be planned several times."""
        ...


@dataclass(frozen=True, slots=True)
class IndexReport:
    """What a plan will do, which vectors are too few for an index, and the engine."""

    upkeep: Upkeep
    waiting: Mapping[TableKey, tuple[str, ...]]
    choice: Choice


@dataclass(frozen=True, slots=True)
class Indexing:
    """One run of the index writer.

    Attributes:
        wanted: `local`, `spark` or `auto`.
        begin: Begins the run on an engine, or continues a run that was begun there.
        rebuilds: Whether indexes that are there are built anew.
    """

    wanted: str | None
    begin: Callable[[EngineName], IndexRun]
    rebuilds: bool = False

    def plan(self, view: View) -> WritePlan[IndexReport]:
        """Plan what makes the indexes those that the catalog asks for."""
        upkeep = find_upkeep(view, rebuilds=self.rebuilds)
        choice = by_size(self.wanted, measure_gaps(view, upkeep))
        report = IndexReport(upkeep, find_waiting(view), choice)
        if not upkeep:
            return WritePlan(report)
        return WritePlan(report, self.begin(choice.engine)(view, upkeep), can_replan=True)


def index_specs(type_: SchemaType, table: Table) -> tuple[IndexSpec, ...]:
    """The indexes that the table of a type should have, as many rows as it has."""
    wanted = (IndexSpec(each.column, each.kind, each.options) for each in wanted_indexes(type_))
    chosen = (choose_kind(table, spec) for spec in wanted)
    return tuple(spec for spec in chosen if spec is not None)


def find_upkeep(view: View, *, rebuilds: bool = False) -> Upkeep:
    """What is to be done so that every table has the indexes that the catalog asks for."""
    plan = plan_rebuild if rebuilds else plan_upkeep
    every: dict[TableKey, TableUpkeep] = {}
    for type_ in view.catalog.types:
        table = view.data.table(type_.table_key)
        every[type_.table_key] = plan(table, index_specs(type_, table))
    return {key: upkeep for key, upkeep in every.items() if not upkeep.is_complete}


def plan_upkeep(table: Table, specs: tuple[IndexSpec, ...]) -> TableUpkeep:
    """What is to be done so that a table has these indexes."""
    gaps = find_gaps(table, specs)
    unneeded = find_unneeded(table, specs)
    expected = [expect_segment(table, gap) for gap in gaps]
    crowds = find_crowds(table, built=expected, unneeded=unneeded)
    return TableUpkeep(
        specs,
        gaps,
        indexed_by(table, unneeded),
        indexed_by(table, (segment for crowd in crowds for segment in crowd.segments)),
    )


def plan_rebuild(table: Table, specs: tuple[IndexSpec, ...]) -> TableUpkeep:
    """What is to be done so that a table has these indexes, with nothing of what is there."""
    every = tuple(sorted(table.handle.fragment_ids()))
    all_gaps = (Gap(spec, every) for spec in specs) if every else ()
    gaps = tuple(gap for gap in all_gaps if is_buildable(table, gap))
    wanted = {spec.column for spec in specs}
    removed = indexed_by(table, find_unneeded(table, ()))
    unneeded = tuple(column for column in removed if column not in wanted)
    return TableUpkeep(specs, gaps, unneeded, rebuilds=True)


def find_waiting(view: View) -> dict[TableKey, tuple[str, ...]]:
    """The columns whose vectors are too few for an index, of each type that has such."""
    every: dict[TableKey, tuple[str, ...]] = {}
    for type_ in view.catalog.types:
        table = view.data.table(type_.table_key)
        wanted = (each.column for each in wanted_indexes(type_) if each.kind is IndexKind.VECTOR)
        has = {spec.column for spec in index_specs(type_, table) if spec.kind is IndexKind.VECTOR}
        every[type_.table_key] = tuple(column for column in wanted if column not in has)
    return {key: columns for key, columns in every.items() if columns}


def measure_gaps(view: View, upkeep: Upkeep) -> Iterator[Measure]:
    """How many rows indexes lack; a row counts once for each index that lacks it."""
    row_count = sum(count_missing(view.data.table(key), own.gaps) for key, own in upkeep.items())
    yield Measure.of_count(row_count, INDEX_LOCAL_ROWS_MAX, "row to index")


def count_missing(table: Table, gaps: Iterable[Gap]) -> int:
    """How many rows the gaps of a table have; a row counts once for each of them."""
    row_counts = {fragment.id: fragment.num_rows for fragment in table.fragments()}
    return sum(row_counts[fragment_id] for gap in gaps for fragment_id in gap.fragments)


@dataclass(frozen=True, slots=True)
class LocalIndexing:
    """Builds indexes in this process, when a table is staged: one segment for each gap."""

    follow: Follow | None = None

    def __call__(self, view: View, upkeep: Upkeep) -> dict[TableKey, Stage]:  # noqa: ARG002
        """How to stage each table."""
        total = sum(len(own.gaps) for own in upkeep.values())
        done = 0

        def stage(own: TableUpkeep, table: Table) -> StagedWrite:
            nonlocal done
            segments = []
            for gap in own.gaps:
                self._report(done, total)
                segments.append(build_segment(table, gap))
                done += 1
            self._report(done, total)
            change = plan_segments(table, own.kept_specs, segments)
            return stage_segments(table, change.new, removed=change.removed)

        return {key: partial(stage, own) for key, own in upkeep.items()}

    def _report(self, done: int, total: int) -> None:
        if self.follow is not None:
            self.follow(done, total)


def result_of(landed: WriteOutcome[IndexReport]) -> IndexResult:
    """The result of a plan that was carried out."""
    report = landed.report
    upkeep = report.upkeep if landed.commit is not None else {}
    return IndexResult(
        commit_id=None if landed.commit is None else landed.commit.commit_id,
        engine=report.choice.engine,
        why=report.choice.why,
        built=_by_type({key: _gap_columns(own) for key, own in upkeep.items()}),
        joined=_by_type({key: own.crowded for key, own in upkeep.items()}),
        removed=_by_type({key: own.unneeded for key, own in upkeep.items()}),
        waiting=_by_type(report.waiting),
    )


def _gap_columns(upkeep: TableUpkeep) -> tuple[str, ...]:
    return tuple(gap.spec.column for gap in upkeep.gaps)


def _by_type(columns: Mapping[TableKey, tuple[str, ...]]) -> Mapping[str, tuple[str, ...]]:
    return {str(key.type_name): own for key, own in columns.items() if own}
