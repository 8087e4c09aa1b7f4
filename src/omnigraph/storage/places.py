"""Places: rows read by where they lie, a few at a time, and nothing around them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.storage.tables import ROW_ADDRESS, Table


def read_at(table: Table, addresses: np.ndarray, columns: Sequence[str]) -> pa.Table:
    """The rows at these addresses of this same version, in their order."""
    wanted = f"{ROW_ADDRESS} IN ({', '.join(map(str, addresses.tolist()))})"
    holding = np.unique(addresses >> np.uint64(32)).tolist()
    found = table.read([*columns, ROW_ADDRESS], filter_text=wanted, fragment_ids=holding)
    places = pc.index_in(pa.array(addresses), value_set=found[ROW_ADDRESS].combine_chunks())
    assert not places.null_count, "the addresses were read from this same version"
    rows = found.select(list(columns))
    is_in_order = len(places) == len(rows) and np.array_equal(places, np.arange(len(rows)))
    return rows if is_in_order else rows.take(places)
