"""Pages of changes: some rows of a diff by their position, without building the others."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from omnigraph.changes.rows import Changes, Chunk
from omnigraph.choices import Op
from omnigraph.model.counts import Counts
from omnigraph.schema.catalog import SchemaType

if TYPE_CHECKING:
    from omnigraph.changes.records import TableChanges


def count_ops(counts: Counts, ops: Collection[Op]) -> Counts:
    """The counts of these kinds of change; the others are zero."""
    return Counts(
        counts.inserted if Op.INSERT in ops else 0,
        counts.updated if Op.UPDATE in ops else 0,
        counts.deleted if Op.DELETE in ops else 0,
    )


@dataclass(frozen=True, slots=True)
class PagedChanges:
    """The rows of some changes from one position to before another, in the order of `chunks`.

    Attributes:
        ops: The kinds of change that positions count.
    """

    changes: Changes
    ops: frozenset[Op]
    start: int
    stop: int

    @property
    def type(self) -> SchemaType:
        """The type of the table."""
        return self.changes.type

    @property
    def counts(self) -> Counts:
        """How many rows of the page were inserted, updated and deleted."""
        counts, place, taken = count_ops(self.changes.counts, self.ops), 0, []
        for count in (counts.inserted, counts.updated, counts.deleted):
            taken.append(_overlap(place, count, self.start, self.stop)[1])
            place += count
        return Counts(*taken)

    def chunks(self, ops: Collection[Op]) -> Iterator[Chunk]:
        """The rows of the page with one of these kinds of change."""
        return (chunk for chunk in self._own_chunks() if chunk.op in ops)

    def _own_chunks(self) -> Iterator[Chunk]:
        from omnigraph.changes.records import TableChanges

        if isinstance(self.changes, TableChanges):
            # Positions are known, so vectors and blobs are read for the page alone.
            yield from self._slice(self.changes).chunks(self.ops)
            return
        place = 0
        for chunk in self.changes.chunks(self.ops):
            rows = chunk.before if chunk.after is None else chunk.after
            assert rows is not None, "a change has rows before it or after it"
            first, count = _overlap(place, rows.num_rows, self.start, self.stop)
            if count:
                before, after = (
                    None if side is None else side.slice(first, count)
                    for side in (chunk.before, chunk.after)
                )
                yield Chunk(chunk.op, before, after)
            place += rows.num_rows
            if place >= self.stop:
                return

    def _slice(self, changes: TableChanges) -> Changes:
        place = 0
        parts: dict[Op, slice] = {}
        for op, rows in (
            (Op.INSERT, changes.inserted),
            (Op.UPDATE, changes.after),
            (Op.DELETE, changes.deleted),
        ):
            count = rows.num_rows if op in self.ops else 0
            first, taken = _overlap(place, count, self.start, self.stop)
            parts[op] = slice(first, first + taken)
            place += count
        return replace(
            changes,
            inserted=changes.inserted[parts[Op.INSERT]],
            deleted=changes.deleted[parts[Op.DELETE]],
            before=changes.before[parts[Op.UPDATE]],
            after=changes.after[parts[Op.UPDATE]],
        )


def page_tables(
    tables: tuple[Changes, ...], ops: frozenset[Op], start: int, stop: int
) -> Iterator[Changes]:
    """The tables that have rows between two positions of a diff, with these rows alone."""
    place = 0
    for table in tables:
        counts = count_ops(table.counts, ops)
        count = counts.inserted + counts.updated + counts.deleted
        first, taken = _overlap(place, count, start, stop)
        if taken:
            yield PagedChanges(table, ops, first, first + taken)
        place += count


def _overlap(place: int, count: int, start: int, stop: int) -> tuple[int, int]:
    """Which of `count` rows that begin at a place are between two positions: the first, how many.

    >>> _overlap(10, 5, 12, 100), _overlap(0, 5, 10, 20)
    ((2, 3), (0, 0))
    """
    first, last = max(start - place, 0), min(stop - place, count)
    return (first, last - first) if last > first else (0, 0)
