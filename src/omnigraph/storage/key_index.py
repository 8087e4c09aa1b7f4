"""Rows by their ids through the pages of an index, without a scan.

Lance plans a scan for every lookup, which takes longer than the lookup itself. So on a local disk
the pages of an index of ids are read here, and the row is taken from its fragment. What is read of
an index stays in memory, up to a number of bytes.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import accumulate, count
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
from lance import LanceFragment

from omnigraph.limits import KEPT_TABLE_BYTES_MAX, OPENED_FRAGMENTS_MAX, ROWS_READ_PER_TAKE
from omnigraph.storage.columns import (
    are_plain,
    are_read_cheaply,
    deleted_offsets,
    fragment_files,
    read_all_fragments,
)
from omnigraph.storage.tables import Table
from omnigraph.storage.translate import translate_errors

if TYPE_CHECKING:
    from lance.lance.indices import IndexSegmentDescription

_ID: Final = "id"
_ROWS_OF_FRAGMENT: Final = 1 << 32
"""An index has addresses of rows: this times the number of the fragment, plus the offset there."""


def find_row(table: Table, id_: str, columns: Sequence[str]) -> pa.Table | None:
    """The row with an id in the fragments that the index of ids covers; no rows if there is none.

    None where a scan has to find it: on S3, in a table with many fragments, for values that no
    fragment stores as they are read, and if the index is not as this module knows indexes.

    Raises:
        StorageError: the index, or the row, could not be read.
    """
    if not are_plain(table, columns):
        return None
    places = _find_places(table, id_)
    return None if places is None else _take(table, places, id_, columns)


def find_position(table: Table, id_: str) -> int | None:
    """The position of the row with an id in a scan; None where it is not found here.

    Then there is no such row, or a scan has to find it.

    Raises:
        StorageError: the index, or the row, could not be read.
    """
    firsts = table.fact("first positions", lambda: _find_firsts(table))
    places = _find_places(table, id_) if firsts else None
    if not places:
        return None
    [(fragment_id, place)] = places
    position = firsts[fragment_id] + place
    if _has_ids_in_memory(table, firsts):
        is_there = read_all_fragments(table, [_ID])[_ID][position].as_py() == id_
    else:
        is_there = _take(table, places, id_, [_ID]) is not None
    return position if is_there else None


def _has_ids_in_memory(table: Table, fragment_ids: Collection[int]) -> bool:
    """Whether ids are compared in memory: they are there, or were taken as often as reading costs.

    An index that is not what it seems to be must not affect a result, so each id is compared.
    """
    if table.count_bytes() > KEPT_TABLE_BYTES_MAX:
        return False
    if are_read_cheaply(table, [_ID], fragment_ids):
        return True
    row_count = table.fact("row count", table.count_rows)
    taken = table.fact("ids taken", count)
    return next(taken) >= row_count // ROWS_READ_PER_TAKE


def _find_firsts(table: Table) -> dict[int, int]:
    """The position of the first row of each fragment; nothing if the index does not cover all."""
    segments = table.fact("key segments", lambda: _find_segments(table)) or []
    covered = frozenset[int]().union(*(fragment_ids for _, fragment_ids in segments))
    fragments = table.fragments() if covered.issuperset(table.handle.fragment_ids()) else ()
    counts = [fragment.num_rows for fragment in fragments]
    firsts = accumulate(counts, initial=0)
    return {fragment.id: first for fragment, first in zip(fragments, firsts, strict=False)}


def _find_places(table: Table, id_: str) -> list[tuple[int, int]] | None:
    """The fragment of the row with an id and its position there, or nothing; None if unknown."""
    segments = table.fact("key segments", lambda: _find_segments(table))
    if not segments:
        return None
    places: set[tuple[int, int]] = set()
    with translate_errors("reading", str(table.address)):
        for folder, fragment_ids in segments:
            addresses = table.owner.key_pages.find(folder, id_)
            if addresses is None:
                return None
            for address in addresses:
                fragment_id, offset = divmod(address, _ROWS_OF_FRAGMENT)
                if fragment_id not in fragment_ids:
                    return None
                place = _find_place(table, fragment_id, offset)
                places |= set() if place is None else {(fragment_id, place)}
    return None if len(places) > 1 else list(places)


def _find_place(table: Table, fragment_id: int, offset: int) -> int | None:
    """The position of a row among the live rows of its fragment; None if it is gone.

    An index also has rows that were deleted since, and rows of fragments that are gone.
    """
    if table.handle.get_fragment(fragment_id) is None:
        return None
    fragments = list(fragment_files(table, [fragment_id]))
    deleted = deleted_offsets(table, fragments).get(fragment_id)
    if deleted is None:
        return offset
    before = int(np.searchsorted(deleted, np.uint32(offset)))
    is_deleted = before < len(deleted) and int(deleted[before]) == offset
    return None if is_deleted else offset - before


def _take(
    table: Table, places: Sequence[tuple[int, int]], id_: str, columns: Sequence[str]
) -> pa.Table | None:
    if not places:
        return pa.schema([table.schema.field(name) for name in columns]).empty_table()
    [(fragment_id, place)] = places
    fragment = table.fact(("opened", fragment_id), lambda: _open(table, fragment_id))
    with translate_errors("reading", str(table.address)):
        row = fragment.take([place], columns=[*dict.fromkeys([*columns, _ID])])
    # An index that is not what it seems to be must not affect a result.
    return row.select(list(columns)) if row[_ID].to_pylist() == [id_] else None


def _open(table: Table, fragment_id: int) -> LanceFragment:
    [fragment] = table.open_fragments([fragment_id])
    return fragment


def _find_segments(table: Table) -> list[tuple[str, frozenset[int]]] | None:
    """The folder and the fragments of each segment of the index, if they are to be read here."""
    if not table.address.root.is_local or table.count_fragments() > OPENED_FRAGMENTS_MAX:
        return None
    return [
        (table.index_folder(segment.uuid, segment.base_id), frozenset(segment.fragment_ids))
        for segment in find_segments(table, _ID)
    ]


def find_segments(table: Table, column: str) -> list[IndexSegmentDescription]:
    """The segments of the index for lookups of a column; none if it is not to be used."""
    if table.ignores_indexes:
        return []
    with translate_errors("reading the indexes of", table.address.uri):
        indexes = [
            index
            for index in table.handle.describe_indices()
            if index.index_type == "BTree" and index.field_names == [column]
        ]
    # Which of several indexes Lance would use is unknown.
    return list(indexes[0].segments) if len(indexes) == 1 else []
