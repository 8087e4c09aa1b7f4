"""Following a table: the topology of one version from that of another one, by what differs.

Only the edges that the versions do not share are read (`storage.differences`). Their ends are found
in the nodes' tables of their own version. Node numbers agree between versions of which one was made
from the other; others, on two branches, give one number to two nodes (docs/substrate.md, Row
versions), and nothing follows from one of them for the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.local.topology.adjacency import join_halves, swap_halves
from omnigraph.engine.local.topology.build import number_ends
from omnigraph.engine.local.topology.numbers import NodeNumbers
from omnigraph.engine.local.topology.topology import Topology
from omnigraph.schema.catalog import ENDPOINTS
from omnigraph.storage.columns import layout_of, read_fragments
from omnigraph.storage.differences import FragmentPart, difference, read_parts
from omnigraph.storage.pairs import (
    ColumnPair,
    Pair,
    common_version_of,
    size_of,
    unequal_pairs,
)
from omnigraph.storage.tables import Table

FOLLOWED_ROWS_MIN: Final = 1 << 16
FOLLOWED_SHARE_MAX: Final = 1 / 4
"""Edges that may differ between two versions, as a number and as a share of them, for arrays of one
to be made from those of the other; for more, all edges are read again."""


@dataclass(frozen=True, slots=True)
class _Ends:
    """How the ends of edges are compared (`storage.differences.ColumnComparison`)."""

    columns: Sequence[ColumnPair] = tuple(ColumnPair(name, name, name) for name in ENDPOINTS)

    def reads(self, names: Sequence[str]) -> tuple[list[str], list[str]]:
        """The columns of either version that have the values of some."""
        return list(names), list(names)

    def unlike(self, names: Sequence[str], before: pa.Table, after: pa.Table) -> np.ndarray:
        """Whether each row differs."""
        unlike = np.zeros(len(before), np.bool_)
        for name in names:
            unlike |= pc.not_equal(before[name], after[name]).to_numpy()
        return unlike


_ENDS: Final = _Ends()
_NO_ENDS: Final = np.empty(0, np.uint32), np.empty(0, np.uint32)


@dataclass(frozen=True, slots=True)
class Step:
    """The way from one version of an edge table to another.

    Attributes:
        before: The table whose topology is known.
        after: Another version of it, on any ref.
        pairs: The fragments that differ.
    """

    before: Table
    after: Table
    pairs: tuple[Pair, ...]

    @classmethod
    def between(cls, before: Table, after: Table) -> Step:
        """The way from one version to another. Reads no data file."""
        return cls(before, after, unequal_pairs(before, after, _ENDS.columns))

    @property
    def row_count(self) -> int:
        """About how many edges differ."""
        return size_of(self.before, self.after, self.pairs).row_count

    @property
    def pays(self) -> bool:
        """Whether few enough edges differ for it to be faster than to read all of them."""
        most = max(FOLLOWED_ROWS_MIN, FOLLOWED_SHARE_MAX * self.after.count_rows())
        return self.row_count <= most

    def read(self) -> tuple[pa.Table, pa.Table]:
        """The ends of the edges that only one of the versions has.

        An edge may be in both: it was written again, with other properties or none.
        """
        found = difference(self.before, self.after, self.pairs, _ENDS)
        return _read(self.before, found.before), _read(self.after, found.after)


def are_in_line(numbers: NodeNumbers, table: Table) -> bool:
    """Whether one version of a table was made from the other, so that their row ids agree."""
    common = common_version_of(numbers.address, table.address, table.owner.forks)
    return common == min(numbers.address.version, table.version)


def follow(
    before: Topology, step: Step, sources: NodeNumbers, targets: NodeNumbers
) -> Topology | None:
    """The topology at the end of a step; None if it does not follow from the one before.

    Args:
        sources: Numbers that agree with those before, and so with `targets`.
    """
    if not step.pairs and (sources, targets) == (before.sources, before.targets):
        return before
    gone, come = step.read()
    # The nodes' tables of the earlier version are opened only where edges are gone.
    old_ends = number_ends(gone, before.sources, before.targets) if len(gone) else _NO_ENDS
    new_ends = number_ends(come, sources, targets)
    if old_ends is None or new_ends is None:
        return None
    keys, differences = _sum_up(join_halves(*old_ends), join_halves(*new_ends))
    swapped = swap_halves(keys)
    order = np.argsort(swapped)
    out = before.out.change(keys, differences, sources.size)
    into = before.into.change(swapped[order], differences[order], targets.size)
    if out is None or into is None:
        return None
    # An edge to a node that was deleted, and perhaps inserted again with another number.
    if out.degrees_of(before.sources.row_ids.without(sources.row_ids)).any():
        return None
    if into.degrees_of(before.targets.row_ids.without(targets.row_ids)).any():
        return None
    symmetric = before.made_symmetric
    if symmetric is not None:
        is_loop = keys == swapped
        every = np.concatenate([keys, swapped[~is_loop]])
        signs = np.concatenate([differences, differences[~is_loop]])
        symmetric = symmetric.change(*_add_up(every, signs), sources.size)
    return Topology(step.after, sources, targets, out, into, symmetric)


def _sum_up(gone: np.ndarray, come: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The pairs that have more or fewer edges, ascending, and how many more each has."""
    signs = np.repeat(np.array([-1, 1]), [len(gone), len(come)])
    return _add_up(np.concatenate([gone, come]), signs)


def _add_up(keys: np.ndarray, signs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    if not len(keys):
        return keys, signs
    order = np.argsort(keys)
    keys, signs = keys[order], signs[order]
    at = np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))
    differences = np.add.reduceat(signs, at)
    is_changed = differences != 0
    return keys[at][is_changed], differences[is_changed]


def _read(table: Table, parts: Sequence[FragmentPart]) -> pa.Table:
    """The ends of some edges. Small fragments stay in memory, like those of queries."""
    fragments = layout_of(table).fragments
    is_small = [part.offsets is None and fragments[part.fragment].is_small for part in parts]
    ids = [fragments[part.fragment].fragment_id for part in compress(parts, is_small)]
    others = [part for part, small in zip(parts, is_small, strict=True) if not small]
    rows = [read_fragments(table, ENDPOINTS, ids)]
    rows += _tables(read_parts(table, others, ENDPOINTS))
    return pa.concat_tables([part.select(list(ENDPOINTS)) for part in rows])


def _tables(batches: Iterable[pa.RecordBatch]) -> list[pa.Table]:
    return [pa.Table.from_batches([batch]) for batch in batches]
