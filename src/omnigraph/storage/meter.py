"""I/O counters, so that cost tests count reads and writes instead of timing them."""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass
from typing import Any

from lance import LanceDataset

from omnigraph.limits import PINNED_TABLES_MAX


@dataclass(frozen=True, slots=True)
class IOCount:
    """How much was read and written."""

    reads: int = 0
    writes: int = 0
    bytes_read: int = 0
    bytes_written: int = 0

    def __add__(self, other: IOCount) -> IOCount:
        return IOCount(
            self.reads + other.reads,
            self.writes + other.writes,
            self.bytes_read + other.bytes_read,
            self.bytes_written + other.bytes_written,
        )


class Meter:
    """Adds up the requests of every table handle and of the object store below one root.

    Lance counts per family of handles (docs/substrate.md, Counting reads and writes): a handle, its
    checkouts and its commits share one counter, so each family is registered once, by the handle it
    started from.
    """

    def __init__(self) -> None:
        self._families: list[LanceDataset] = []
        self._new_refs: deque[LanceDataset] = deque()
        self._total = IOCount()
        self._lock = threading.Lock()

    def watch(self, handle: LanceDataset) -> None:
        """Count what `handle`, and every handle derived from it, reads and writes."""
        with self._lock:
            self._families.append(handle)

    def watch_new_ref(self, handle: LanceDataset) -> None:
        """Like `watch`, for the handle that made a ref: only those of the newest refs are kept."""
        with self._lock:
            if len(self._new_refs) >= PINNED_TABLES_MAX:
                self._total += _from_lance(self._new_refs.popleft().io_stats_incremental())
            self._new_refs.append(handle)

    def count(self, *, reads: int = 0, writes: int = 0) -> None:
        """Add requests that did not go through a table handle."""
        with self._lock:
            self._total += IOCount(reads, writes)

    def take(self) -> IOCount:
        """What was read and written since the last call."""
        with self._lock:
            for handle in (*self._families, *self._new_refs):
                self._total += _from_lance(handle.io_stats_incremental())
            total, self._total = self._total, IOCount()
            return total


def _from_lance(stats: Any) -> IOCount:
    return IOCount(stats.read_iops, stats.write_iops, stats.read_bytes, stats.written_bytes)
