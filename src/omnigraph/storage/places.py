"""Places: where rows lie, as addresses, and rows read by them with nothing around them."""

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
    """Where rows lie that are so far into their fragments, or into the one that is named.

    >>> to_addresses(2, offsets=np.array([0, 7], np.uint64)).tolist()
    [8589934592, 8589934599]
    """
    addresses: np.ndarray = (np.asarray(fragment_ids, np.uint64) << _OFFSET_BITS) | offsets
    return addresses


def fragment_ids_of(addresses: np.ndarray) -> np.ndarray:
    """The ids of the fragments that rows lie in.

    >>> fragment_ids_of(np.array([8589934592, 8589934599], np.uint64)).tolist()
    [2, 2]
    """
    fragment_ids: np.ndarray = addresses >> _OFFSET_BITS
    return fragment_ids


def offsets_of(addresses: np.ndarray) -> np.ndarray:
    """How far into their fragments rows lie, those that are deleted counted too.

    >>> offsets_of(np.array([8589934592, 8589934599], np.uint64)).tolist()
    [0, 7]
    """
    offsets: np.ndarray = addresses & _OFFSET_MAX
    return offsets


def read_at(table: Table, addresses: np.ndarray, columns: Sequence[str]) -> pa.Table:
    """The rows at these addresses of this same version, in their order."""
    wanted = f"{ROW_ADDRESS} IN ({', '.join(map(str, addresses.tolist()))})"
    holding = np.unique(fragment_ids_of(addresses)).tolist()
    found = table.read([*columns, ROW_ADDRESS], filter_text=wanted, fragment_ids=holding)
    places = pc.index_in(pa.array(addresses), value_set=found[ROW_ADDRESS].combine_chunks())
    assert not places.null_count, "the addresses were read from this same version"
    rows = found.select(list(columns))
    is_in_order = len(places) == len(rows) and np.array_equal(places, np.arange(len(rows)))
    return rows if is_in_order else rows.take(places)
