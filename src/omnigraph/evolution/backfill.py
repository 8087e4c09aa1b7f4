"""Back-fill: the values of columns for every fragment of some tables, in files of their own.

No head moves, and nothing refers to the files until they are named in a staged write.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias

import pyarrow as pa

from omnigraph.clock import Clock
from omnigraph.evolution.values import Offender, Recipe, describe_offender
from omnigraph.integrity.violations import Breach, IntegrityReport, Tally
from omnigraph.limits import OFFENDERS_SHOWN_MAX
from omnigraph.storage.column_files import ColumnFile, TableColumn, write_column_file
from omnigraph.storage.tables import Table

BACKFILL_THREADS_MAX: Final = 4
"""Fragments whose columns are filled at once in this process; each holds a few batches."""


Follow: TypeAlias = Callable[[int, int], None]
"""Called with the number of finished fragments or tasks, and the number of all of them."""


@dataclass(frozen=True, slots=True)
class TableFill:
    """The columns that one table gets.

    Attributes:
        copies: Further columns that the files must have (`storage.reshape.plan_reshape`).
    """

    table: Table
    recipes: tuple[Recipe, ...]
    copies: tuple[TableColumn, ...] = ()


@dataclass(frozen=True, slots=True)
class FilledTable:
    """A column file for each fragment of a table, in table order, and the rows without a value.

    If the report has violations, the files have fillers and must not be used.
    """

    files: tuple[ColumnFile, ...]
    report: IntegrityReport


@dataclass(frozen=True, slots=True)
class FilledFragment:
    """The column file of one fragment, and the rows of it without a value."""

    file: ColumnFile
    report: IntegrityReport


class ColumnFiller(Protocol):
    """What an engine does to fill columns."""

    def fill_columns(
        self, fills: Sequence[TableFill], clock: Clock, follow: Follow | None = None
    ) -> list[FilledTable]:
        """Write the columns of all fragments of these tables; the results in their order."""
        ...


class ColumnValues:
    """Makes batches of new columns from batches of rows of one fragment, which come in order.

    Only the columns that recipes name are read. Offenders are known by their places; `report` reads
    the ids of those that it names.

    Attributes:
        reads: The columns that a batch must have.
        fields: The columns that it becomes.
    """

    def __init__(self, recipes: Sequence[Recipe]) -> None:
        self.reads = tuple(dict.fromkeys(name for recipe in recipes for name in recipe.reads))
        self.fields = tuple(recipe.target.field for recipe in recipes)
        self._recipes = tuple(recipes)
        self._schema = pa.schema(self.fields)
        self._row_count = 0
        self._counts: dict[Breach, int] = {}
        self._first: dict[Breach, list[tuple[int, Offender]]] = {}

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The new columns of the next rows of the fragment."""
        results = [recipe.compute(batch) for recipe in self._recipes]
        for fault in (fault for result in results for fault in result.faults):
            self._counts[fault.breach] = self._counts.get(fault.breach, 0) + fault.count
            offenders = self._first.setdefault(fault.breach, [])
            offenders += [(self._row_count + each.row, each) for each in fault.first]
            del offenders[OFFENDERS_SHOWN_MAX:]
        self._row_count += batch.num_rows
        columns = [result.values for result in results]
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)

    def report(self, read_ids: Callable[[list[int]], Sequence[str]]) -> IntegrityReport:
        """The violations so far.

        Args:
            read_ids: Returns the ids of the live rows at these places of the fragment.
        """
        places = sorted({place for first in self._first.values() for place, _ in first})
        ids = dict(zip(places, read_ids(places), strict=True)) if places else {}
        tally = Tally()
        for breach, first in self._first.items():
            violations = (describe_offender(breach, one, ids[place]) for place, one in first)
            tally.add_offenders(breach, self._counts[breach], violations)
        return tally.report()


def fill_fragment(
    table: Table, fragment_id: int, recipes: Sequence[Recipe], copies: Sequence[TableColumn] = ()
) -> FilledFragment:
    """Write the columns of one fragment. Safe to run in any process, and to run twice."""
    values = ColumnValues(recipes)
    file = write_column_file(
        table, fragment_id, values.fields, reading=values.reads, compute=values, copies=copies
    )

    def read_ids(places: list[int]) -> list[str]:
        first = 0
        for fragment in table.fragments():
            if fragment.id == fragment_id:
                break
            first += fragment.num_rows
        ids: list[str] = table.take([first + place for place in places], ["id"])["id"].to_pylist()
        return ids

    return FilledFragment(file, values.report(read_ids))


def join_fragments(fragments: Iterable[FilledFragment]) -> FilledTable:
    """The result of a table from those of its fragments, in table order."""
    files: list[ColumnFile] = []
    tally = Tally()
    for fragment in fragments:
        files.append(fragment.file)
        tally.add_report(fragment.report)
    return FilledTable(tuple(files), tally.report())


def fill_locally(fills: Sequence[TableFill], follow: Follow | None = None) -> list[FilledTable]:
    """Fill columns in this process, a few fragments at a time."""
    units = [(fill, fragment.id) for fill in fills for fragment in fill.table.fragments()]
    filled: list[FilledFragment] = []
    with ThreadPoolExecutor(max_workers=BACKFILL_THREADS_MAX) as pool:
        futures = [
            pool.submit(fill_fragment, fill.table, fragment_id, fill.recipes, fill.copies)
            for fill, fragment_id in units
        ]
        try:
            for done, future in enumerate(futures):
                if follow is not None:
                    follow(done, len(futures))
                filled.append(future.result())
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    if follow is not None:
        follow(len(futures), len(futures))
    results = iter(filled)
    return [join_fragments(next(results) for _ in fill.table.fragments()) for fill in fills]
