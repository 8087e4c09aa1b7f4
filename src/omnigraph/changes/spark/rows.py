"""Changed rows on Spark: read where versions of a table differ, and brought together by id."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from omnigraph.changes.lifts import LiftPair
from omnigraph.changes.records import ids_of
from omnigraph.changes.tables import rows_of
from omnigraph.engine.spark.cores import core_count
from omnigraph.engine.spark.failures import report_errors
from omnigraph.engine.spark.messages import MESSAGE, collect_messages, to_message
from omnigraph.engine.spark.pieces import by_key, by_place, of_units, route_pieces, task_numbers
from omnigraph.engine.spark.relations import pack
from omnigraph.schema.catalog import SchemaType
from omnigraph.storage.differences import difference, read_parts
from omnigraph.storage.pairs import DataSize, Pair, size_of, unequal_pairs
from omnigraph.storage.scans import open_address
from omnigraph.storage.tables import Table, TableAddress

CHANGED_BUCKET_ROWS_MAX: Final = 1 << 18
CHANGED_BUCKET_BYTES_MAX: Final = 32 << 20
"""Rows that one Spark task compares, and their size in files: it holds all of them."""

CHANGED_BATCH_BYTES: Final = 32 << 20
"""About how much of a difference a Spark task reads before it passes it on."""

CHANGED_SAMPLES_PER_TASK: Final = 256
"""Ids that a Spark task samples, so that a difference is cut into ordered parts of similar size."""


Cut = Callable[[pa.Table, int], Iterator[pa.RecordBatch]]
"""Makes pieces of rows that are one part. Goes to executors, so it holds no handle."""


@dataclass(frozen=True, slots=True)
class Versions:
    """Two versions of a table, and the fragments that are unequal in them.

    Attributes:
        before: The earlier version, or None; so with `after`.
        lifts: How rows of either version become rows of one type; when None, they are such rows.
    """

    before: TableAddress | None
    after: TableAddress | None
    pairs: tuple[Pair, ...]
    sizes: tuple[DataSize, ...]
    lifts: LiftPair | None = None

    @classmethod
    def of(cls, before: Table | None, after: Table | None, lifts: LiftPair | None = None) -> Self:
        """What is unequal in two versions. Reads nothing."""
        pairs = unequal_pairs(before, after, None if lifts is None else lifts.columns)
        sizes = tuple(size_of(before, after, [pair]) for pair in pairs)
        return cls(
            None if before is None else before.address,
            None if after is None else after.address,
            pairs,
            sizes,
            lifts,
        )

    @property
    def size(self) -> DataSize:
        """About how much differs."""
        return sum(self.sizes, DataSize())

    @property
    def only_adds(self) -> bool:
        """Whether every row of the one version is in its place in the other."""
        return all(pair.before is None for pair in self.pairs)

    @property
    def only_removes(self) -> bool:
        """Whether every row of the other version is in its place in the one."""
        return all(pair.after is None for pair in self.pairs)


@dataclass(frozen=True, slots=True)
class ChangedRows:
    """Rows of a type that versions of its table do not share; small, and sent to executors.

    Attributes:
        versions: What is compared. Of the n-th of these, rows as they were are part 2n, and rows as
            they are part 2n + 1.
        units: What each task reads: of which versions, and which pairs of fragments.
        also: Columns that are read beside those of the type.
    """

    type: SchemaType
    versions: tuple[Versions, ...]
    units: tuple[tuple[int, tuple[Pair, ...]], ...]
    also: tuple[pa.Field, ...] = ()

    @classmethod
    def of(
        cls, type_: SchemaType, versions: Sequence[Versions], also: Sequence[pa.Field] = ()
    ) -> Self:
        """The rows, in shares for tasks that are neither tiny nor huge."""
        units = []
        for number, each in enumerate(versions):
            groups = pack([size.row_count for size in each.sizes], cores=1)
            units += [(number, tuple(each.pairs[at] for at in group)) for group in groups]
        return cls(type_, tuple(versions), tuple(units), tuple(also))

    def bucket_count(self, cores: int) -> int:
        """How many tasks compare them, so that each can hold its share."""
        size = sum((each.size for each in self.versions), DataSize())
        count = max(
            -(-size.row_count // CHANGED_BUCKET_ROWS_MAX),
            -(-size.byte_count // CHANGED_BUCKET_BYTES_MAX),
        )
        return 1 if count <= 1 else max(count, cores)

    def by_id(self, session: SparkSession) -> DataFrame:
        """Pieces of the rows, all of one id in one partition."""
        count = self.bucket_count(core_count(session))
        return self._sent(session, partial(cut_by_id, count), count)

    def in_order(self, session: SparkSession) -> DataFrame:
        """Pieces of the rows, all of one id in one partition, and partitions in their order."""
        count = self.bucket_count(core_count(session))
        bounds = self._bounds(session, count) if count > 1 else ()
        return self._sent(session, partial(cut_in_order, bounds), len(bounds) + 1)

    def _sent(self, session: SparkSession, cut: Cut, count: int) -> DataFrame:
        return route_pieces(
            of_units(session, len(self.units), partial(read_changed, self, cut)), count
        )

    def _bounds(self, session: SparkSession, count: int) -> tuple[str, ...]:
        """Ids that cut all of them into so many parts of like size."""
        units = len(self.units)
        numbers = session.range(0, units, 1, numPartitions=max(1, units))
        # A few ids of each task.
        messages = collect_messages(numbers.mapInArrow(partial(sample_ids, self), MESSAGE))
        sampled = sorted(each for ids in messages for each in ids)
        places = {len(sampled) * number // count for number in range(1, count)}
        return tuple(sorted({sampled[place] for place in places if place < len(sampled)}))


def cut_by_id(count: int, rows: pa.Table, part: int) -> Iterator[pa.RecordBatch]:
    """Pieces for as many tasks, all rows of one id for the same."""
    return by_key(rows, "id", count, part)


def cut_in_order(bounds: tuple[str, ...], rows: pa.Table, part: int) -> Iterator[pa.RecordBatch]:
    """Pieces for tasks in the order of their ids."""
    ids = rows["id"].to_numpy()
    places = np.searchsorted(np.array(bounds, object), ids, side="right")
    return by_place(rows, places, part)


def read_changed(
    changed: ChangedRows, cut: Cut, numbers: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Cut the rows of the units with these numbers. Runs in an executor; safe to run twice."""
    with report_errors():
        for number in task_numbers(numbers):
            for part, rows in _read(changed, number):
                yield from cut(rows, part)


def sample_ids(changed: ChangedRows, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Some ids of the units with these numbers. Runs in an executor; safe to run twice."""
    with report_errors():
        for number in task_numbers(numbers):
            found = [ids_of(rows) for _, rows in _read(changed, number, ids_alone=True)]
            ids = pa.concat_arrays(found) if found else pa.array([], pa.utf8())
            places = np.linspace(0, len(ids) - 1, min(len(ids), CHANGED_SAMPLES_PER_TASK))
            some = ids.take(pc.sort_indices(ids)).take(pa.array(places.astype(np.int64)))
            yield to_message(some.to_pylist())


def _read(
    changed: ChangedRows, number: int, *, ids_alone: bool = False
) -> Iterator[tuple[int, pa.Table]]:
    """The rows of one unit, with what part of the whole they are."""
    place, pairs = changed.units[number]
    versions = changed.versions[place]
    before, after = (
        None if address is None else open_address(address)
        for address in (versions.before, versions.after)
    )
    lifts = versions.lifts or LiftPair.identity(changed.type)
    found = difference(before, after, pairs, lifts)
    names = ["id"] if ids_alone else rows_of(changed.type, (), changed.also).column_names
    sides = ((before, lifts.before, found.before), (after, lifts.after, found.after))
    for part, (table, lift, parts) in enumerate(sides):
        if table is None:
            continue
        for some in _gathered(read_parts(table, parts, lift.sources(names))):
            if ids_alone:
                yield 2 * place + part, some
            else:
                rows = rows_of(changed.type, some.to_batches(), changed.also, lift)
                yield 2 * place + part, rows


def _gathered(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Batches in tables of some size: each becomes a piece for every task."""
    held: list[pa.RecordBatch] = []
    for batch in batches:
        held.append(batch)
        if sum(each.nbytes for each in held) > CHANGED_BATCH_BYTES:
            yield pa.Table.from_batches(held)
            held = []
    if held:
        yield pa.Table.from_batches(held)
