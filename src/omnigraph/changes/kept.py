"""Kept comparisons: what was compared once is returned again, for pages of one diff."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from omnigraph.changes.graphs import Comparer
from omnigraph.changes.lifts import LiftPair
from omnigraph.changes.records import TableChanges
from omnigraph.changes.rows import Changes
from omnigraph.choices import EngineName
from omnigraph.engine.protocol import Data
from omnigraph.schema.catalog import SchemaType
from omnigraph.storage.tables import Table, TableAddress

KEPT_COMPARISONS_BYTES_MAX: Final = 256 << 20
"""Memory that a server spends on differences of tables, whose pages are read one after another."""

KEPT_COMPARISONS_MAX: Final = 1 << 10
"""Differences of tables that a server keeps, however small they are."""


_Key: TypeAlias = tuple[SchemaType, TableAddress | None, TableAddress | None, LiftPair | None]


@dataclass(slots=True)
class _Entry:
    """One comparison, made by the first thread that holds the lock."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    changes: Changes | None = None
    byte_count: int = 0


class KeptComparisons:
    """The newest comparisons of tables, which never change; threads may use it concurrently.

    Who may read a table is decided where it is opened, which is before it is compared: so what one
    actor compared is returned to another only if that one may read the same tables.

    Args:
        byte_count_max: About how much memory to use. The newest comparison is kept whatever its
            size, so that its pages do not compare again.
    """

    def __init__(self, byte_count_max: int = KEPT_COMPARISONS_BYTES_MAX) -> None:
        self._byte_count_max = byte_count_max
        self._entries: OrderedDict[_Key, _Entry] = OrderedDict()
        self._lock = threading.Lock()

    def by(self, comparer: Comparer) -> Comparer:
        """A comparer that compares nothing twice."""
        return _KeepingComparer(comparer, self)

    @property
    def byte_count(self) -> int:
        """About how much memory the kept rows take."""
        with self._lock:
            return sum(entry.byte_count for entry in self._entries.values())

    def entry(self, key: _Key) -> _Entry:
        """The place of a comparison, which becomes the newest."""
        with self._lock:
            entry = self._entries.setdefault(key, _Entry())
            self._entries.move_to_end(key)
            return entry

    def trim(self) -> None:
        """Drop the oldest comparisons beyond the limit."""
        with self._lock:
            total = sum(entry.byte_count for entry in self._entries.values())
            while len(self._entries) > 1 and (
                total > self._byte_count_max or len(self._entries) > KEPT_COMPARISONS_MAX
            ):
                _, oldest = self._entries.popitem(last=False)
                total -= oldest.byte_count


@dataclass(frozen=True, slots=True)
class _KeepingComparer:
    """Implements `Comparer`, and keeps what another one found."""

    comparer: Comparer
    kept: KeptComparisons

    @property
    def name(self) -> EngineName:
        """Which engine this is."""
        return self.comparer.name

    def compare(
        self,
        type_: SchemaType,
        before: Table | None,
        after: Table | None,
        data: Data,
        lifts: LiftPair | None = None,
    ) -> Changes:
        """How the rows of a type differ between two versions of its table."""
        addresses = [None if table is None else table.address for table in (before, after)]
        entry = self.kept.entry((type_, addresses[0], addresses[1], lifts))
        with entry.lock:
            if entry.changes is not None:
                return entry.changes
            changes = self.comparer.compare(type_, before, after, data, lifts)
            if isinstance(changes, TableChanges):
                # Rows that another process has are not kept here.
                entry.changes, entry.byte_count = changes, _size_of(changes)
            self.kept.trim()
            return changes


def _size_of(changes: TableChanges) -> int:
    parts = (changes.inserted, changes.deleted, changes.before, changes.after)
    return sum(part.nbytes for part in parts)
