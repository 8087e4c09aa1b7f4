"""The index writer: builds the indexes that lookups use, and extends them to newer rows.

Indexes are derived data: no answer needs one, and a write never waits for one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol, TypeAlias

from omnigraph.choices import EngineName
from omnigraph.clock import Clock
from omnigraph.engine.choose import Choice, Measure, by_size
from omnigraph.limits import INDEX_LOCAL_ROWS_MAX
from omnigraph.model.tables import TableKey
from omnigraph.schema.catalog import ENDPOINTS, EdgeType, SchemaType
from omnigraph.storage.indexes import Gap, IndexSpec, build_segment, find_gaps, stage_segments
from omnigraph.storage.staging import StagedWrite
from omnigraph.storage.tables import Table
from omnigraph.transaction.view import View
from omnigraph.transaction.work import Stage, TransactionResult, Work

Gaps: TypeAlias = "Mapping[TableKey, tuple[Gap, ...]]"
"""The gaps in the indexes of each table; tables without gaps are left out."""

IndexRun: TypeAlias = "Callable[[View, Gaps], Mapping[TableKey, Stage]]"
"""Returns how to stage each table with gaps. Files are written then or before; no head moves."""

Follow: TypeAlias = Callable[[int, int], None]
"""Called with the number of finished build steps, and the number of all steps."""


class IndexBuilder(Protocol):
    """What an engine does for the index writer."""

    def begin_indexing(self, clock: Clock, follow: Follow | None) -> IndexRun:
        """A run that has built nothing. It may be planned several times.

        Raises:
            InvalidInputError: the engine cannot run here.
        """
        ...


@dataclass(frozen=True, slots=True)
class IndexResult:
    """What an index run did.

    Attributes:
        commit_id: The commit that published the indexes; None if nothing was missing.
        built: By type, the columns whose index was built or extended.
        engine: The engine that built the indexes; `why` says why it was chosen.
    """

    commit_id: str | None
    engine: EngineName
    why: str
    built: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class IndexReport:
    """What a plan will do: the columns whose index is built or extended, and the engine."""

    columns: Mapping[TableKey, tuple[str, ...]]
    choice: Choice


@dataclass(frozen=True, slots=True)
class Indexing:
    """One run of the index writer.

    Attributes:
        wanted: `local`, `spark` or `auto`.
        begin: Begins the run on an engine, or continues a run that was begun there.
    """

    wanted: str | None
    begin: Callable[[EngineName], IndexRun]

    def plan(self, view: View) -> Work[IndexReport]:
        """Plan what is missing of the indexes that the catalog requires.

        Raises:
            InvalidParameterError: there is no engine of that name.
        """
        gaps = find_all_gaps(view)
        choice = by_size(self.wanted, measure_gaps(view, gaps))
        columns = {key: tuple(gap.spec.column for gap in own) for key, own in gaps.items()}
        report = IndexReport(columns, choice)
        if not gaps:
            return Work(report)
        return Work(report, self.begin(choice.engine)(view, gaps), replans=True)


def find_all_gaps(view: View) -> Gaps:
    """The gaps in the indexes that the catalog requires."""
    every = {
        type_.table_key: find_gaps(view.data.table(type_.table_key), index_specs(type_))
        for type_ in view.catalog.types
    }
    return {key: gaps for key, gaps in every.items() if gaps}


def measure_gaps(view: View, gaps: Gaps) -> Iterator[Measure]:
    """How many rows indexes lack; a row counts once for each index that lacks it."""
    row_count = sum(count_missing(view.data.table(key), own) for key, own in gaps.items())
    yield Measure(row_count, INDEX_LOCAL_ROWS_MAX, "the indexes lack {:,} rows")


def count_missing(table: Table, gaps: Iterable[Gap]) -> int:
    """How many rows the gaps of a table have; a row counts once for each of them."""
    row_counts = {fragment.id: fragment.num_rows for fragment in table.fragments()}
    return sum(row_counts[fragment_id] for gap in gaps for fragment_id in gap.fragments)


@dataclass(frozen=True, slots=True)
class LocalIndexing:
    """Builds indexes in this process, when a table is staged: one segment for each gap."""

    follow: Follow | None = None

    def __call__(self, view: View, gaps: Gaps) -> dict[TableKey, Stage]:  # noqa: ARG002
        """How to stage each table with gaps."""
        total = sum(map(len, gaps.values()))
        done = 0

        def stage(own: tuple[Gap, ...], table: Table) -> StagedWrite:
            nonlocal done
            segments = []
            for gap in own:
                self._report(done, total)
                segments.append(build_segment(table, gap))
                done += 1
            self._report(done, total)
            return stage_segments(table, segments)

        return {key: partial(stage, own) for key, own in gaps.items()}

    def _report(self, done: int, total: int) -> None:
        if self.follow is not None:
            self.follow(done, total)


def result_of(landed: TransactionResult[IndexReport]) -> IndexResult:
    """The result of a plan that was carried out."""
    choice = landed.report.choice
    if landed.commit is None:
        return IndexResult(None, choice.engine, choice.why)
    built = {str(key.type_name): columns for key, columns in landed.report.columns.items()}
    return IndexResult(landed.commit.commit_id, choice.engine, choice.why, built)


def index_specs(type_: SchemaType) -> list[IndexSpec]:
    """Ids and keys, by which writers find rows; ends, for traversals; unique properties."""
    ends = ENDPOINTS if isinstance(type_, EdgeType) else ()
    unique = [name for members in type_.uniques for name in members]
    return [IndexSpec(name) for name in dict.fromkeys(["id", *ends, *type_.key, *unique])]
