"""The index writer: builds the indexes that lookups use, and extends them to newer rows.

Indexes are derived: no answer needs one, and a write never waits for one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias

from omnigraph.choices import EngineName
from omnigraph.engine.choose import Choice, asked_engine, by_size
from omnigraph.limits import INDEX_LOCAL_ROWS_MAX
from omnigraph.model.tables import TableKey
from omnigraph.schema.catalog import ENDPOINTS, EdgeType, SchemaType
from omnigraph.storage.indexes import Gap, IndexSpec, build_segment, find_gaps, stage_segments
from omnigraph.storage.staging import Staged
from omnigraph.storage.tables import Table
from omnigraph.transaction.view import View
from omnigraph.transaction.work import Stage, TransactionResult, Work

Gaps: TypeAlias = "Mapping[TableKey, tuple[Gap, ...]]"
"""What the indexes of each table lack; tables that lack nothing are not there."""

Builder: TypeAlias = "Callable[[View, Gaps], Mapping[TableKey, Stage]]"
"""Says how to stage each table of the gaps. Files are written then or before; no head moves."""

Follow = Callable[[int, int], None]
"""Told how many steps of building are done, and how many there are."""


@dataclass(frozen=True, slots=True)
class IndexResult:
    """What an index run did.

    Attributes:
        commit_id: The commit that published the indexes; None if nothing was missing.
        built: By type, the columns whose index was built or extended.
        engine: The engine that built them, and `why` it was chosen.
    """

    commit_id: str | None
    engine: EngineName
    why: str
    built: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class IndexReport:
    """What a plan will do: the columns whose index is built or extended, and by whom."""

    columns: Mapping[TableKey, tuple[str, ...]]
    choice: Choice


@dataclass(frozen=True, slots=True)
class Indexing:
    """One run of the index writer.

    Attributes:
        wanted: `local`, `spark` or `auto`.
        on_spark: The builder for more rows than this process takes on.
    """

    wanted: str | None
    on_spark: Callable[[], Builder]
    follow: Follow | None = None

    def plan(self, view: View) -> Work[IndexReport]:
        """What is missing of the indexes that the catalog calls for.

        Raises:
            InvalidParameterError: there is no engine of that name.
        """
        gaps = missing(view)
        choice = choose_engine(view, gaps, self.wanted)
        columns = {key: tuple(each.spec.column for each in found) for key, found in gaps.items()}
        report = IndexReport(columns, choice)
        if not gaps:
            return Work(report)
        if choice.engine is EngineName.SPARK:
            return Work(report, self.on_spark()(view, gaps), replans=True)
        return Work(report, build_here(gaps, self.follow), replans=True)


def missing(view: View) -> Gaps:
    """What the indexes lack that the catalog calls for."""
    found = {
        each.table_key: find_gaps(view.data.table(each.table_key), _wanted(each))
        for each in view.catalog.types
    }
    return {key: gaps for key, gaps in found.items() if gaps}


def choose_engine(view: View, gaps: Gaps, wanted: str | None) -> Choice:
    """The engine that was asked for, by argument or environment, or the one that fits.

    Raises:
        InvalidParameterError: there is no engine of that name.
    """
    if (asked := asked_engine(wanted)) is not None:
        return asked
    count = sum(_count_rows(view.data.table(key), each) for key, each in gaps.items())
    fits = count <= INDEX_LOCAL_ROWS_MAX
    relation = "at most" if fits else "more than"
    why = f"the indexes lack {count:,} rows, {relation} {INDEX_LOCAL_ROWS_MAX:,}"
    return by_size(why, fits=fits)


def _count_rows(table: Table, gaps: tuple[Gap, ...]) -> int:
    """The rows that indexes lack, one time for each that does."""
    rows = {each.id: each.num_rows for each in table.fragments()}
    return sum(rows[each] for gap in gaps for each in gap.fragments)


def build_here(gaps: Gaps, follow: Follow | None = None) -> dict[TableKey, Stage]:
    """Build in this process, when a table is staged: one segment for each gap."""
    total = sum(map(len, gaps.values()))
    done = 0

    def stage(own: tuple[Gap, ...], table: Table) -> Staged:
        nonlocal done
        segments = []
        for each in own:
            if follow is not None:
                follow(done, total)
            segments.append(build_segment(table, each))
            done += 1
        if follow is not None:
            follow(done, total)
        return stage_segments(table, segments)

    return {key: partial(stage, own) for key, own in gaps.items()}


def result_of(landed: TransactionResult[IndexReport]) -> IndexResult:
    """What became of the plan."""
    choice = landed.report.choice
    if landed.commit is None:
        return IndexResult(None, choice.engine, choice.why)
    built = {str(key.type_name): columns for key, columns in landed.report.columns.items()}
    return IndexResult(landed.commit.commit_id, choice.engine, choice.why, built)


def _wanted(type_: SchemaType) -> list[IndexSpec]:
    """Ids and keys, by which writers find rows; ends, which walks follow; what must be unique."""
    ends = ENDPOINTS if isinstance(type_, EdgeType) else ()
    unique = [name for members in type_.uniques for name in members]
    return [IndexSpec(name) for name in dict.fromkeys(["id", *ends, *type_.key, *unique])]
