"""Places: row addresses, their parts, and reading rows by address."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.storage.tables import ROW_ADDRESS, Table

_OFFSET_BITS: Final = np.uint64(32)
_OFFSET_MAX: Final = np.uint64(0xFFFF_FFFF)


def to_addresses(fragment_ids: np.ndarray | int, *, offsets: np.ndarray) -> np.ndarray:
    """The addresses of rows at these offsets, each in its own fragment or all in one.

    >>> to_addresses(2, offsets=np.array([0, 7], np.uint64)).tolist()
    [8589934592, 8589934599]
    """
    addresses: np.ndarray = (np.asarray(fragment_ids, np.uint64) << _OFFSET_BITS) | offsets
    return addresses


def fragment_ids_of(addresses: np.ndarray) -> np.ndarray:
    """The ids of the fragments that these addresses are in.

    >>> fragment_ids_of(np.array([8589934592, 8589934599], np.uint64)).tolist()
    [2, 2]
    """
    fragment_ids: np.ndarray = addresses >> _OFFSET_BITS
    return fragment_ids


def offsets_of(addresses: np.ndarray) -> np.ndarray:
    """The offsets of these addresses in their fragments, counting deleted rows.

    >>> offsets_of(np.array([8589934592, 8589934599], np.uint64)).tolist()
    [0, 7]
    """
    offsets: np.ndarray = addresses & _OFFSET_MAX
    return offsets


def sort_distinct(numbers: np.ndarray) -> np.ndarray:
    """The numbers in their order, each once.

    >>> sort_distinct(np.array([3, 1, 3], np.uint64)).tolist()
    [1, 3]
    """
    # Not `np.unique`: of a million different numbers it takes seconds, since it hashes them.
    ordered = np.sort(numbers)
    is_first = np.ones(len(ordered), np.bool_)
    is_first[1:] = ordered[1:] != ordered[:-1]
    distinct: np.ndarray = ordered[is_first]
    return distinct


def read_at(table: Table, addresses: np.ndarray, columns: Sequence[str]) -> pa.Table:
    """The rows at these addresses of this same version, in their order."""
    wanted = f"{ROW_ADDRESS} IN ({', '.join(map(str, addresses.tolist()))})"
    fragment_ids = np.unique(fragment_ids_of(addresses)).tolist()
    addressed = table.read([*columns, ROW_ADDRESS], filter_text=wanted, fragment_ids=fragment_ids)
    places = pc.index_in(pa.array(addresses), value_set=addressed[ROW_ADDRESS].combine_chunks())
    assert not places.null_count, "the addresses were read from this same version"
    rows = addressed.select(list(columns))
    is_in_order = len(places) == len(rows) and np.array_equal(places, np.arange(len(rows)))
    return rows if is_in_order else rows.take(places)
