"""Partitions of an index of vectors: which of them a vector is in, by their centres.

Lance looks into the partitions whose centres are the nearest to what is looked for, and does not
say which of them it found a row in. The centres do (docs/substrate.md, Indexes for search).
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import Final, assert_never

import numpy as np
from lance.file import LanceFileReader

from omnigraph.choices import Metric
from omnigraph.errors import StorageError
from omnigraph.limits import KEPT_CENTRES_BYTES_MAX
from omnigraph.storage.indexes import Segment, TableIndex
from omnigraph.storage.protobuf import parse_message
from omnigraph.storage.tables import Table
from omnigraph.storage.translate import translate_errors

# The numbers that Lance's protobuf messages give to their parts.
_CENTRES: Final = 4
_ITEM_TYPE: Final = 1
_ITEMS: Final = 3
_FLOAT_32: Final = 2

_PLACE_OF_PARTITIONS: Final = b"lance:ivf"

_PRODUCTS_AT_ONCE: Final = 1 << 18
"""Numbers that are multiplied at once. More are divided among threads, which on a busy machine wait
for each other ten times as long as one takes."""


@dataclass(frozen=True, slots=True, eq=False)
class Centres:
    """The centres of the partitions of a segment, in rows, and the square of the length of each."""

    rows: np.ndarray
    squares: np.ndarray

    def rank(self, metric: Metric, query: np.ndarray, vectors: np.ndarray) -> np.ndarray:
        """For each vector, how many centres are nearer to the query than its own."""
        step = max(1, _PRODUCTS_AT_ONCE // self.rows.size)
        starts = range(0, len(vectors), step)
        parts = (self._distances(metric, vectors[start : start + step]) for start in starts)
        own = np.concatenate([np.zeros(0, np.int64), *(part.argmin(axis=1) for part in parts)])
        (asked,) = self._distances(metric, query[None])
        return np.asarray(np.searchsorted(np.sort(asked), asked[own]))

    def _distances(self, metric: Metric, vectors: np.ndarray) -> np.ndarray:
        """How far each vector is from each centre, but for what is the same for all centres."""
        match metric:
            case Metric.COSINE:
                lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
                units = vectors / np.where(lengths > 0, lengths, 1)
                return np.asarray(self.squares - 2 * (units @ self.rows.T))
            case Metric.L2:
                return np.asarray(self.squares - 2 * (vectors @ self.rows.T))
            case Metric.DOT:
                return np.asarray(-(vectors @ self.rows.T))
            case _:
                assert_never(metric)


class CentreShelf:
    """The centres of partitions that were read; threads may share it."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, Centres] = OrderedDict()
        self._byte_count = 0
        self._lock = threading.Lock()

    def count_partitions(self, table: Table, index: TableIndex, dimension: int) -> int:
        """How many partitions the segment with the most of them has.

        Raises:
            StorageError: the index could not be read.
        """
        sizes = (len(self._centres(table, each, dimension).rows) for each in index.segments)
        return max(sizes, default=0)

    def rank_partitions(
        self,
        table: Table,
        index: TableIndex,
        metric: Metric,
        query: np.ndarray,
        *,
        vectors: np.ndarray,
        fragment_ids: np.ndarray,
    ) -> np.ndarray:
        """For each vector, how many partitions of its segment are looked into before its own.

        Args:
            fragment_ids: Where each vector is. Those that no segment covers have 0.

        Raises:
            StorageError: the index could not be read.
        """
        ranks = np.zeros(len(vectors), np.int64)
        for segment in index.segments:
            is_own = np.isin(fragment_ids, np.fromiter(segment.fragment_ids, np.int64))
            if is_own.any():
                centres = self._centres(table, segment, len(query))
                ranks[is_own] = centres.rank(metric, query, vectors[is_own])
        return ranks

    def _centres(self, table: Table, segment: Segment, dimension: int) -> Centres:
        with self._lock:
            if segment.uuid in self._kept:
                self._kept.move_to_end(segment.uuid)
                return self._kept[segment.uuid]
        centres = _read_centres(table, segment, dimension)
        with self._lock:
            if segment.uuid not in self._kept:
                self._kept[segment.uuid] = centres
                self._byte_count += centres.rows.nbytes
            while self._byte_count > KEPT_CENTRES_BYTES_MAX and len(self._kept) > 1:
                _, oldest = self._kept.popitem(last=False)
                self._byte_count -= oldest.rows.nbytes
        return centres


def _read_centres(table: Table, segment: Segment, dimension: int) -> Centres:
    path = f"{table.index_folder(segment.uuid, segment.base_id)}/index.idx"
    with translate_errors("reading an index of", table.address.uri):
        reader = LanceFileReader(path)
        facts = dict(reader.metadata().schema.metadata or {})
        partitions = bytes(reader.read_global_buffer(int(facts[_PLACE_OF_PARTITIONS])))
    # What follows the centres has parts that are neither numbers nor bytes.
    found = next((value for name, value in parse_message(partitions) if name == _CENTRES), b"")
    assert isinstance(found, bytes), "the centres are a message"
    parts = dict(parse_message(found))
    items = parts.get(_ITEMS)
    if parts.get(_ITEM_TYPE) != _FLOAT_32 or not isinstance(items, bytes):
        message = f"the index {segment.name} of {table.address.uri} has another form"
        raise StorageError(message, hint="upgrade omnigraph")
    rows = np.frombuffer(items, np.float32).reshape(-1, dimension)
    return Centres(rows, np.square(rows).sum(axis=1))
