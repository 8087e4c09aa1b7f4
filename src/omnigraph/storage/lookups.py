"""Finding rows by the values of a text column, without reading what cannot hold them.

Lance's indexes cover the fragments that were there when they were built. Of the others, a scan with
a filter reads every one: each small write makes the next one dearer. So the values of small
fragments are kept in memory (`storage.values`), and only fragments that hold a wanted value are
opened. What is opened is still filtered by Lance, so what is kept decides cost, never an answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from omnigraph.limits import (
    KEPT_FRAGMENT_ROWS_MAX,
    KEPT_LOOKUP_ROWS_MAX,
    KEYS_PER_INDEX_LOOKUP_MAX,
    KEYS_PER_LOOKUP_MAX,
    OPENED_FRAGMENTS_MAX,
    ROWS_READ_PER_KEY,
    SIFTED_BYTES,
)
from omnigraph.storage import filters
from omnigraph.storage.places import fragment_ids_of, offsets_of
from omnigraph.storage.tables import ROW_ADDRESS, Fragment, Table
from omnigraph.storage.translate import translating
from omnigraph.storage.values import ColumnKey, FilesKey, Known, Places, files_key

WRITTEN: Final = ("id", "src", "dst")
"""The columns that every write looks rows up by: what is written in them is kept at once."""


def find(
    table: Table,
    column: str,
    values: Iterable[str | None] | pa.Array | pa.ChunkedArray,
    *,
    columns: Sequence[str],
) -> pa.Table:
    """The rows whose `column` holds one of `values`, in any order: just what a filter would give.

    Few values are looked up: in the index where it covers, in memory where fragments are small. For
    many, as the table goes, it is read once, a part at a time. Null equals nothing.
    """
    if isinstance(values, (pa.Array, pa.ChunkedArray)):
        if _is_read_once(table, column, len(values)):
            return _sift(table, column, values, columns)
        values = values.to_pylist()
    wanted = frozenset(each for each in values if each is not None)
    if _is_read_once(table, column, len(wanted)):
        return _sift(table, column, pa.array(wanted, pa.string()), columns)
    if not wanted:
        return table.read(columns, filter_text=filters.NOTHING)
    filter_text = filters.text_in(column, sorted(wanted))
    covered, loose = _coverage(table, column)
    chosen = _holding(table, column, loose, wanted)
    if len(covered) <= OPENED_FRAGMENTS_MAX:
        opened = sorted(covered | chosen)
        return table.read(columns, filter_text=filter_text, fragment_ids=opened)
    indexed = table.read(columns, filter_text=filter_text, indexed_only=True)
    if not chosen:
        return indexed
    others = table.read(columns, filter_text=filter_text, fragment_ids=sorted(chosen))
    return pa.concat_tables([indexed, others])


def is_found_cheaply(table: Table, column: str) -> bool:
    """Whether `find` reads less than the table: through an index, or all of it through memory."""
    covered, loose = _coverage(table, column)
    return bool(covered) or not _known(table, column, loose).large


def know_written(table: Table, fragments: Sequence[Fragment], rows: pa.Table) -> None:
    """Keep what was just written: the next lookup then need not read it."""
    columns = [each for each in _columns(table).items() if each[0] in WRITTEN]
    first = 0
    for fragment in fragments:
        part = rows.slice(first, fragment.physical_rows)
        first += fragment.physical_rows
        if fragment.physical_rows > KEPT_FRAGMENT_ROWS_MAX:
            continue
        for name, column in columns:
            key = files_key(fragment, column[1])
            if key is not None:
                _keep(table, column, key, part[name].to_pylist())


def know_deleted(table: Table, left: Fragment, offsets: Iterable[int]) -> None:
    """Keep what is left of a fragment, if what it held was known."""
    fragment = table.handle.get_fragment(left.id)
    assert fragment is not None, "the rows were deleted from this same version"
    before = fragment.metadata
    for column in _columns(table).values():
        old, new = files_key(before, column[1]), files_key(left, column[1])
        held = table.owner.values.peek(column, old) if old is not None else None
        if held is not None and new is not None:
            places = list(held)
            for offset in offsets:
                places[offset] = None
            _keep(table, column, new, places)


def _coverage(table: Table, column: str) -> tuple[set[int], set[int]]:
    """The ids of the fragments that an index finds values of the column in, and of the others."""
    every = table.handle.fragment_ids()
    with translating("reading the indexes of", table.address.uri):
        found = [
            each
            for each in table.handle.describe_indices()
            if each.index_type == "BTree" and each.field_names == [column]
        ]
    # Of several, it is not ours to say which one Lance would ask.
    segments = found[0].segments if len(found) == 1 else []
    covered: set[int] = set()
    for segment in segments:
        covered |= set(every.intersection(segment.fragment_ids))
    return covered, set(every.difference(covered))


def _holding(table: Table, column: str, loose: set[int], wanted: frozenset[str]) -> set[int]:
    """Those of the fragments that hold a wanted value, and those that are too large to know."""
    known = _known(table, column, loose)
    keys = table.owner.values.holding(known.shelf, wanted)
    found = {known.fragment_ids[key] for key in keys if key in known.fragment_ids}
    return (found | known.large) & loose


def _known(table: Table, column: str, loose: set[int]) -> Known:
    """Learn what the fragments hold that are not known yet; all of them small enough in one scan.

    What one version has learnt goes on to the next, so a run of small writes never starts again.
    """
    column_key = _columns(table)[column]
    values = table.owner.values
    shelf = values.shelf(column_key)
    known = table.known.get(column)
    if known is None or known.shelf is not shelf:
        known = Known(shelf)
    new = loose - known.keys.keys() - known.large
    if not new:
        return known
    # Another thread may be reading what is known so far.
    known = known.without(())
    missing = _sort_in(table, known, column_key, new)
    if missing:
        for key, places in _read(table, column, missing):
            values.keep(column_key, shelf, key, places)
    table.known[column] = known
    return known


def _sort_in(
    table: Table, known: Known, column: ColumnKey, new: Iterable[int]
) -> dict[int, Fragment]:
    """Tell small fragments from large ones; those that are still to be read are returned."""
    missing = {}
    large = set()
    for fragment_id in sorted(new):
        opened = table.handle.get_fragment(fragment_id)
        assert opened is not None, "the ids are of this same version"
        fragment = opened.metadata
        key = files_key(fragment, column[1])
        row_count = 0 if key is None else fragment.physical_rows
        if fragment.overlays or not _fits(known, row_count):
            large.add(fragment_id)
            continue
        known.keys[fragment_id] = key
        known.row_count += row_count
        if key is not None:
            known.fragment_ids[key] = fragment_id
            if key not in known.shelf.columns:
                missing[fragment_id] = fragment
    known.large |= large
    return missing


def _fits(known: Known, row_count: int) -> bool:
    return (
        row_count <= KEPT_FRAGMENT_ROWS_MAX and known.row_count + row_count <= KEPT_LOOKUP_ROWS_MAX
    )


def _read(
    table: Table, column: str, missing: Mapping[int, Fragment]
) -> Iterator[tuple[FilesKey, Places]]:
    found = table.read([column, ROW_ADDRESS], fragment_ids=missing)
    places: dict[int, list[str | None]] = {
        fragment_id: [None] * fragment.physical_rows for fragment_id, fragment in missing.items()
    }
    addresses = found[ROW_ADDRESS].to_numpy()
    fragment_ids, offsets = fragment_ids_of(addresses), offsets_of(addresses)
    held = zip(fragment_ids.tolist(), offsets.tolist(), found[column].to_pylist(), strict=True)
    for fragment_id, offset, value in held:
        places[fragment_id][offset] = value
    field_id = _columns(table)[column][1]
    for fragment_id, fragment in missing.items():
        key = files_key(fragment, field_id)
        assert key is not None, "a fragment without the column has nothing to read"
        yield key, tuple(places[fragment_id])


def _keep(table: Table, column: ColumnKey, key: FilesKey, places: Iterable[str | None]) -> None:
    values = table.owner.values
    values.keep(column, values.shelf(column), key, tuple(places))


def _is_read_once(table: Table, column: str, count: int) -> bool:
    """Whether so many values are found sooner in all of the column than one by one."""
    if count <= KEYS_PER_LOOKUP_MAX:
        return False
    if count > min(KEYS_PER_INDEX_LOOKUP_MAX, table.count_rows() // ROWS_READ_PER_KEY):
        return True
    covered, _ = _coverage(table, column)
    return not covered


def _sift(
    table: Table, column: str, values: pa.Array | pa.ChunkedArray, columns: Sequence[str]
) -> pa.Table:
    wanted = pa.table({"value": values.drop_null()})
    named = [*columns] if column in columns else [*columns, column]
    reader = table.scan(named)
    found = [rows.filter(_are_wanted(rows[column], wanted)) for rows in _gathered(reader)]
    return pa.concat_tables([reader.schema.empty_table(), *found]).select(list(columns))


def _are_wanted(values: pa.ChunkedArray, wanted: pa.Table) -> pa.Array:
    """Whether each value is wanted: by a join, which uses every core where `is_in` uses one."""
    numbered = pa.table({"value": values, "place": np.arange(len(values))})
    met = numbered.join(wanted, "value", join_type="left semi")
    are_wanted = np.zeros(len(values), dtype=bool)
    are_wanted[met["place"].to_numpy()] = True
    return pa.array(are_wanted)


def _gathered(reader: pa.RecordBatchReader) -> Iterator[pa.Table]:
    """The batches of a scan, many at a time: what they are looked up in is hashed each time."""
    held: list[pa.RecordBatch] = []
    size = 0
    for batch in reader:
        held.append(batch)
        size += batch.nbytes
        if size >= SIFTED_BYTES:
            yield pa.Table.from_batches(held)
            held, size = [], 0
    if held:
        yield pa.Table.from_batches(held)


def _columns(table: Table) -> dict[str, ColumnKey]:
    fields = table.handle.lance_schema.fields()
    return {each.name(): (table.address.location, each.id()) for each in fields}
