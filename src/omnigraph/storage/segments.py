"""Segments that a table gets and loses: those not needed go, and where there are many, some join.

Lance joins nothing by itself, and keeps the last segment of an index even if it covers nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from omnigraph.limits import INDEX_SEGMENT_ROWS_MAX, INDEX_SEGMENTS_MAX
from omnigraph.storage.indexes import (
    Gap,
    IndexSpec,
    Segment,
    build_segment,
    discard_segments,
    is_buildable,
    is_slow,
    join_segments,
    name_index,
    read_indexes,
)
from omnigraph.storage.tables import Table

SEARCH_JOIN_WEIGHT: Final = 16
"""How many rows of other indexes are joined in the time in which one row is indexed for search."""


def find_unneeded(table: Table, specs: Iterable[IndexSpec]) -> tuple[Segment, ...]:
    """The segments to remove: of indexes that are not wanted, and those that cover nothing.

    A second index of the same column and kind is not wanted. Indexes of other kinds than ours are
    left alone.
    """
    every = frozenset(table.handle.fragment_ids())
    wanted = set(specs)
    unneeded: list[Segment] = []
    for index in read_indexes(table):
        if index.spec is None:
            continue
        if index.spec in wanted:
            wanted.remove(index.spec)
            dead = (part for part in index.segments if every.isdisjoint(part.fragment_ids))
            unneeded.extend(dead)
        else:
            unneeded.extend(index.segments)
    return tuple(unneeded)


def indexed_by(table: Table, segments: Iterable[Segment]) -> tuple[str, ...]:
    """The columns that these committed segments index, each once, in the order of the indexes."""
    uuids = {segment.uuid for segment in segments}
    columns = (
        index.spec.column
        for index in read_indexes(table)
        if index.spec is not None and uuids & {segment.uuid for segment in index.segments}
    )
    return tuple(dict.fromkeys(columns))


def find_crowds(
    table: Table,
    *,
    built: Sequence[Segment] = (),
    unneeded: Sequence[Segment] = (),
    rows_max: int | None = None,
) -> tuple[Crowd, ...]:
    """Segments to join, those of one index together: a lookup reads every segment of an index.

    Args:
        built: Segments that will be committed.
        unneeded: Segments that will be removed.
        rows_max: The rows of all that is joined; any number if None.
    """
    gone = {segment.uuid for segment in unneeded}
    indexes: dict[str, list[Segment]] = {}
    specs: dict[str, IndexSpec] = {}
    for index in read_indexes(table):
        if index.spec is not None:
            indexes[index.name] = [part for part in index.segments if part.uuid not in gone]
            specs[index.name] = index.spec
    for segment in built:
        indexes.setdefault(segment.name, []).append(segment)
    if all(len(segments) <= INDEX_SEGMENTS_MAX for segments in indexes.values()):
        return ()
    row_counts = {fragment.id: fragment.num_rows for fragment in table.fragments()}
    crowds = []
    left = rows_max
    for name, segments in indexes.items():
        sized = sorted(
            ((sum(row_counts.get(id_, 0) for id_ in part.fragment_ids), part) for part in segments),
            key=lambda pair: pair[0],
        )
        sizes = [row_count for row_count, _ in sized]
        spec = specs.get(name)
        weight = SEARCH_JOIN_WEIGHT if spec is not None and spec.kind.is_for_search else 1
        count = count_joined(sizes, rows_max=None if left is None else left // weight)
        crowd = Crowd(spec, tuple(part for _, part in sized[:count]))
        if crowd.segments and _is_joinable(table, crowd, is_limited=left is not None):
            crowds.append(crowd)
            left = None if left is None else left - weight * sum(sizes[:count])
    return tuple(crowds)


def _is_joinable(table: Table, crowd: Crowd, *, is_limited: bool) -> bool:
    """Whether what is built in place of segments is worth it, and takes no longer than it may."""
    gap = crowd.gap(table)
    if gap is None:
        return True
    return not (is_limited and is_slow(gap.spec)) and is_buildable(table, gap)


def count_joined(row_counts: Sequence[int], *, rows_max: int | None = None) -> int:
    """How many of the smallest segments of an index to join; 0 where they are few enough.

    Half of the places are freed, and segments that are not larger than what is joined are joined
    with it: so rows are joined again a number of times that grows with the logarithm of all rows.

    Args:
        row_counts: The rows of each segment, in ascending order.
        rows_max: The rows of what is joined, if that is less than a joined segment may have.

    >>> count_joined([1] * 8), count_joined([1] * 9), count_joined([1, 1, 1, 1, 1, 1, 50, 60, 70])
    (0, 9, 6)
    """
    if len(row_counts) <= INDEX_SEGMENTS_MAX:
        return 0
    limit = INDEX_SEGMENT_ROWS_MAX if rows_max is None else min(rows_max, INDEX_SEGMENT_ROWS_MAX)
    least = len(row_counts) - INDEX_SEGMENTS_MAX // 2 + 1
    count = row_count = 0
    for own in row_counts:
        is_enough = count >= least and own > row_count
        if is_enough or row_count + own > limit:
            break
        count += 1
        row_count += own
    return count if count > 1 else 0


def expect_segment(table: Table, gap: Gap) -> Segment:
    """What `build_segment` will return, except for the files, of which there are none."""
    return Segment(
        uuid="",
        name=name_index(table, gap.spec),
        fields=[],
        dataset_version=table.version,
        fragment_ids=list(gap.fragments),  # type: ignore[arg-type]  # Lance takes lists, too
        index_version=0,
    )


def find_dead_segments(
    table: Table, *, without: frozenset[int] = frozenset()
) -> tuple[Segment, ...]:
    """The segments whose fragments are all gone: lookups read them for nothing.

    Args:
        without: Fragments that are about to be replaced.
    """
    every = frozenset(table.handle.fragment_ids()) - without
    return tuple(
        segment
        for index in read_indexes(table)
        for segment in index.segments
        if every.isdisjoint(segment.fragment_ids)
    )


@dataclass(frozen=True, slots=True)
class Crowd:
    """Segments of one index that are joined to one.

    Attributes:
        spec: The index, if the table has it already.
    """

    spec: IndexSpec | None
    segments: tuple[Segment, ...]

    def gap(self, table: Table) -> Gap | None:
        """What is built in place of the segments; None if they are joined as they are.

        Indexes for search name rows by their ids. Joined, they would have the former words of rows
        beside the present ones, and nothing would tell which are which (docs/substrate.md).
        """
        if self.spec is None or not self.spec.kind.is_for_search:
            return None
        covered = {id_ for segment in self.segments for id_ in segment.fragment_ids}
        return Gap(self.spec, tuple(sorted(covered.intersection(table.handle.fragment_ids()))))


@dataclass(frozen=True, slots=True)
class SegmentChange:
    """The segments that a table gets, and the committed ones that it loses."""

    new: tuple[Segment, ...]
    removed: tuple[Segment, ...]


def plan_segments(
    table: Table,
    specs: Iterable[IndexSpec],
    built: Sequence[Segment],
    join: Callable[[Table, Sequence[Crowd]], Sequence[Segment]] | None = None,
    *,
    rows_max: int | None = None,
) -> SegmentChange:
    """Join segments where there are many, and find those to remove. No head moves.

    Args:
        specs: The indexes that the table should have.
        built: New segments of these indexes; the files of those that are joined are deleted.
        join: Joins each of these groups of segments to one; in this process if None.
        rows_max: The rows of all that is joined; any number if None.
    """
    unneeded = find_unneeded(table, specs)
    crowds = find_crowds(table, built=built, unneeded=unneeded, rows_max=rows_max)
    joined = (join or _join_each)(table, crowds) if crowds else ()
    replaced = {segment.uuid: segment for crowd in crowds for segment in crowd.segments}
    fresh = {segment.uuid for segment in built}
    discard_segments(table.address, (replaced[uuid] for uuid in replaced.keys() & fresh))
    kept = (segment for segment in built if segment.uuid not in replaced)
    committed = (segment for uuid, segment in replaced.items() if uuid not in fresh)
    return SegmentChange((*kept, *joined), (*unneeded, *committed))


def _join_each(table: Table, crowds: Sequence[Crowd]) -> list[Segment]:
    return [join_crowd(table, crowd.segments, crowd.gap(table)) for crowd in crowds]


def join_crowd(table: Table, segments: Sequence[Segment], gap: Gap | None) -> Segment:
    """One segment in place of several. Safe to run in any process and to run twice.

    Args:
        gap: What it covers if it is built anew; None if the segments are joined.
    """
    return join_segments(table, segments) if gap is None else build_segment(table, gap)
