"""Replacements: which stored rows an upsert replaces, and which have its values already."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.limits import KEYS_PER_LOOKUP_MAX, WIDE_BATCH_BYTES
from omnigraph.storage import lookups
from omnigraph.storage.differences import FragmentPart, read_parts
from omnigraph.storage.equality import are_equal
from omnigraph.storage.places import fragment_ids_of, offsets_of
from omnigraph.storage.tables import KEY, ROW_ADDRESS, ROW_ID, Table


@dataclass(frozen=True, slots=True)
class Replacements:
    """How the rows of an upsert change a table.

    Attributes:
        inserted: Rows whose id the table lacks.
        updated: Rows that replace one with other values.
        row_ids: The row ids of those that they replace, in the same order.
        addresses: The addresses of the rows to delete.
        unchanged: How many rows the table has already, value for value.
    """

    inserted: pa.Table
    updated: pa.Table
    row_ids: pa.ChunkedArray
    addresses: pa.ChunkedArray
    unchanged: int


def find_replacements(table: Table, rows: pa.Table) -> Replacements:
    """Find the stored rows that these rows replace; the ids of the rows are distinct."""
    is_small = len(rows) <= KEYS_PER_LOOKUP_MAX and rows.nbytes <= WIDE_BATCH_BYTES
    values = rows.column_names if is_small else [KEY]
    stored = lookups.find(table, KEY, rows[KEY], columns=[*values, ROW_ID, ROW_ADDRESS])
    places = pc.index_in(rows[KEY].combine_chunks(), value_set=stored[KEY].combine_chunks())
    inserted, replacing = rows.filter(places.is_null()), rows.filter(places.is_valid())
    replaced = stored.take(places.drop_null())
    if is_small:
        is_unchanged = _have_equal_values(replacing, replaced)
    else:
        is_unchanged = find_unchanged(table, replacing, replaced[ROW_ADDRESS])
    is_changed = pa.array(~is_unchanged)
    kept = replaced[ROW_ADDRESS].filter(pa.array(is_unchanged)).combine_chunks()
    addresses = stored[ROW_ADDRESS]
    return Replacements(
        inserted,
        replacing.filter(is_changed),
        replaced[ROW_ID].filter(is_changed),
        # A damaged table may have several rows of one id: one of them stays.
        addresses.filter(pc.invert(pc.is_in(addresses, value_set=kept))),
        len(kept),
    )


def find_unchanged(table: Table, rows: pa.Table, addresses: pa.ChunkedArray) -> np.ndarray:
    """Whether each row has the values of the stored row at its address.

    Columns are read one after another, those of small values first, and each only of rows that
    are equal so far: where every row changes, one column may suffice.
    """
    places = addresses.to_numpy()
    unchanged = np.ones(len(rows), np.bool_)
    for name in _by_width(rows):
        candidates = np.flatnonzero(unchanged)
        order = candidates[np.argsort(places[candidates])]
        ordered = places[order]
        for batch in read_parts(table, list(_parts(table, ordered)), [name, ROW_ADDRESS]):
            stored = pa.Table.from_batches([batch])
            at = order[np.searchsorted(ordered, stored[ROW_ADDRESS].to_numpy())]
            column = rows[name].take(pa.array(at))
            unchanged[at] = are_equal(column, stored[name].cast(column.type))
    return unchanged


def _have_equal_values(rows: pa.Table, stored: pa.Table) -> np.ndarray:
    equal = np.ones(len(rows), np.bool_)
    for field in rows.schema:
        equal &= are_equal(rows[field.name], stored[field.name].cast(field.type))
    return equal


def _by_width(rows: pa.Table) -> list[str]:
    """The columns that may differ, those of small values first."""
    names = [name for name in rows.column_names if name != KEY]
    return sorted(names, key=lambda name: rows[name].nbytes)


def _parts(table: Table, addresses: np.ndarray) -> Iterator[FragmentPart]:
    """The rows at these ascending addresses, by fragment."""
    if not len(addresses):
        return
    positions = {fragment.id: position for position, fragment in enumerate(table.fragments())}
    ids, firsts = np.unique(fragment_ids_of(addresses), return_index=True)
    parts = np.split(offsets_of(addresses), firsts[1:])
    for fragment_id, offsets in zip(ids.tolist(), parts, strict=True):
        yield FragmentPart(positions[fragment_id], len(offsets), offsets)
