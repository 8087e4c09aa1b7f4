"""Lookups: rows by the values of a text column, without reading fragments that cannot hold them.

Lance's indexes cover the fragments that existed when they were built. A filtered scan reads all
other fragments, so each small write makes the next lookup more expensive. Therefore the values of
small fragments are kept in memory (`storage.values`), and only fragments that hold a wanted value
are opened, or read from memory (`storage.columns`). What is opened or read is still filtered, so
the memory affects cost, never a result.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.limits import (
    KEPT_FRAGMENT_ROWS_MAX,
    KEPT_LOOKUP_ROWS_MAX,
    KEYS_PER_LOOKUP_MAX,
    OPENED_FRAGMENTS_MAX,
)
from omnigraph.storage import filters
from omnigraph.storage.columns import (
    are_read_cheaply,
    fragment_files,
    keep_deletions,
    read_fragments,
    read_values,
)
from omnigraph.storage.index_damage import avoid_damaged_indexes
from omnigraph.storage.pieces import ColumnKey, FragmentFiles, RowsKey
from omnigraph.storage.tables import Fragment, Table
from omnigraph.storage.translate import translate_errors
from omnigraph.storage.values import KnownFragments, Places, files_key

KEYS_PER_INDEX_LOOKUP_MAX: Final = 200_000
"""The same if an index covers them and the table has many rows per key; one filter has them all."""

ROWS_READ_PER_KEY: Final = 64
"""About how many rows of one column are read in the time of one lookup in an index."""

SIFTED_BYTES: Final = 128 << 20
"""About how much of a table is held while it is filtered by many ids.

The ids are hashed again for each part, so small parts are expensive."""

STALE_VALUES_MAX: Final = 1 << 12
"""Values of files that a version has no more, beyond as many as it has, before they are dropped."""

WHOLE_FRAGMENTS_MAX: Final = 2
"""Indexed fragments, each of one request, that a lookup reads whole: an index takes as many."""


KEY_COLUMNS: Final = ("id", "src", "dst")
"""The columns that every write looks rows up by; their values are kept as they are written."""


def find(
    table: Table,
    column: str,
    values: Iterable[str | None] | pa.Array | pa.ChunkedArray,
    *,
    columns: Sequence[str],
) -> pa.Table:
    """The rows whose `column` holds one of `values`, in any order: the same rows as a filter.

    Few values are looked up, in the index where it covers and in memory for small fragments. For
    values that are many relative to the table, the table is scanned once. Null equals nothing.
    """
    return avoid_damaged_indexes(table, lambda readable: _find(readable, column, values, columns))


def _find(
    table: Table,
    column: str,
    values: Iterable[str | None] | pa.Array | pa.ChunkedArray,
    columns: Sequence[str],
) -> pa.Table:
    if isinstance(values, (pa.Array, pa.ChunkedArray)):
        if _is_read_once(table, column, len(values)):
            return _sift(table, column, values, columns)
        values = values.to_pylist()
    wanted = frozenset(value for value in values if value is not None)
    if _is_read_once(table, column, len(wanted)):
        return _sift(table, column, pa.array(wanted, pa.string()), columns)
    if not wanted:
        return table.read(columns, filter_text=filters.NOTHING)
    filter_text = filters.text_in(column, sorted(wanted))
    names = [*columns, column]
    covered, loose = _coverage(table, column)
    chosen, small = _find_holders(table, column, loose, wanted) if loose else (set(), set())
    if 0 < len(covered) <= WHOLE_FRAGMENTS_MAX and are_read_cheaply(table, names, covered):
        small, covered = small | covered, frozenset()
    parts = []
    if small and are_read_cheaply(table, names, small):
        parts.append(_pick(table, column, wanted, columns, sorted(small)))
    else:
        chosen |= small
    if len(covered) <= OPENED_FRAGMENTS_MAX:
        chosen |= covered
    else:
        parts.append(table.read(columns, filter_text=filter_text, indexed_only=True))
    if chosen or not parts:
        # To name all fragments takes Lance longer than to name none.
        opened = None if len(chosen) == table.count_fragments() else sorted(chosen)
        parts.append(table.read(columns, filter_text=filter_text, fragment_ids=opened))
    return parts[0] if len(parts) == 1 else pa.concat_tables(parts)


def is_found_cheaply(table: Table, column: str) -> bool:
    """Whether `find` avoids a full scan: it has an index, or keeps every fragment in memory."""
    covered, loose = _coverage(table, column)
    return bool(covered) or not _learn(table, column, loose).large


def uses_index(table: Table, column: str, count: int) -> bool:
    """Whether `find` looks up that many values in an index, and does not read the whole column."""
    if count > min(KEYS_PER_INDEX_LOOKUP_MAX, table.count_rows() // ROWS_READ_PER_KEY):
        return False
    covered, _ = _coverage(table, column)
    return bool(covered)


def remember_rows(table: Table, fragments: Sequence[Fragment], rows: pa.Table) -> None:
    """Keep the key values of rows just written, so that the next lookup need not read them."""
    columns = [(name, key) for name, key in _columns(table).items() if name in KEY_COLUMNS]
    first = 0
    for fragment in fragments:
        part = rows.slice(first, fragment.physical_rows)
        first += fragment.physical_rows
        if fragment.physical_rows > KEPT_FRAGMENT_ROWS_MAX:
            continue
        for name, column in columns:
            key = files_key(FragmentFiles.of(fragment), column[1])
            if key is not None:
                _keep(table, column, key, part[name].to_pylist())


def remember_deletions(table: Table, left: Fragment, offsets: Sequence[int]) -> None:
    """Keep which rows of a fragment remain, and their values, if its values were in memory."""
    fragment = table.handle.get_fragment(left.id)
    assert fragment is not None, "the rows were deleted from this same version"
    before, after = FragmentFiles.of(fragment.metadata), FragmentFiles.of(left)
    keep_deletions(table, before, after, offsets)
    for column in _columns(table).values():
        old, new = files_key(before, column[1]), files_key(after, column[1])
        values = table.owner.values.peek(column, old) if old is not None else None
        if values is not None and new is not None:
            places = list(values)
            for offset in offsets:
                places[offset] = None
            _keep(table, column, new, places)


def _coverage(table: Table, column: str) -> tuple[frozenset[int], frozenset[int]]:
    """The ids of the fragments that an index of the column covers, and of the others."""
    return table.fact(("covered", column), lambda: _find_coverage(table, column))


def _find_coverage(table: Table, column: str) -> tuple[frozenset[int], frozenset[int]]:
    every = frozenset(table.handle.fragment_ids())
    if table.ignores_indexes:
        return frozenset(), every
    with translate_errors("reading the indexes of", table.address.uri):
        indexes = [
            index
            for index in table.handle.describe_indices()
            if index.index_type == "BTree" and index.field_names == [column]
        ]
    # Which of several indexes Lance would use is unknown.
    segments = indexes[0].segments if len(indexes) == 1 else []
    covered = every & frozenset(id_ for segment in segments for id_ in segment.fragment_ids)
    return covered, every - covered


def _find_holders(
    table: Table, column: str, loose: frozenset[int], wanted: frozenset[str]
) -> tuple[set[int], set[int]]:
    """The fragments too large to be kept in memory, and the small ones that hold a wanted value."""
    known = _learn(table, column, loose)
    keys = table.owner.values.find_holders(known.shelf, wanted, among=known.fragment_ids)
    holders = {known.fragment_ids[key] for key in keys}
    return set(known.large & loose), holders & loose


def _pick(
    table: Table,
    column: str,
    wanted: frozenset[str],
    columns: Sequence[str],
    fragment_ids: Sequence[int],
) -> pa.Table:
    """The rows of small fragments that hold a wanted value."""
    names = [*columns] if column in columns else [*columns, column]
    rows = read_fragments(table, names, fragment_ids)
    matches = pc.is_in(rows[column], value_set=pa.array(wanted, pa.string()))
    return rows.filter(matches).select(list(columns))


def _learn(table: Table, column: str, loose: frozenset[int]) -> KnownFragments:
    """Read the values of small fragments that are not in memory yet, in one scan.

    The result is passed on to the next version, so a series of small writes never starts over.
    """
    column_key = _columns(table)[column]
    values = table.owner.values
    shelf = values.shelf(column_key)
    known = table.known.get(column)
    if known is None or known.shelf is not shelf:
        known = KnownFragments(shelf)
    new = loose - known.keys.keys() - known.large
    if not new:
        return known
    # Another thread may be reading the current object.
    known = known.without(())
    missing = _classify(table, known, column_key, new)
    if missing:
        for key, places in _read(table, column, missing):
            values.keep(column_key, shelf, key, places)
    if shelf.row_count > 2 * known.row_count + STALE_VALUES_MAX:
        known = replace(known, shelf=values.renew(column_key, shelf, known.fragment_ids))
    table.known[column] = known
    return known


def _classify(
    table: Table, known: KnownFragments, column: ColumnKey, new: Iterable[int]
) -> dict[int, FragmentFiles]:
    """Record each fragment as small or large; return the small ones that must still be read."""
    missing = {}
    large = set()
    for fragment in fragment_files(table, sorted(new)):
        fragment_id = fragment.fragment_id
        key = files_key(fragment, column[1])
        row_count = 0 if key is None else fragment.physical_rows
        if fragment.has_overlays or not _fits(known, row_count):
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


def _fits(known: KnownFragments, row_count: int) -> bool:
    return (
        row_count <= KEPT_FRAGMENT_ROWS_MAX and known.row_count + row_count <= KEPT_LOOKUP_ROWS_MAX
    )


def _read(
    table: Table, column: str, missing: Mapping[int, FragmentFiles]
) -> Iterator[tuple[RowsKey, Places]]:
    places = read_values(table, column, missing.values())
    field_id = _columns(table)[column][1]
    for fragment_id, fragment in missing.items():
        key = files_key(fragment, field_id)
        assert key is not None, "a fragment without the column has nothing to read"
        yield key, places[fragment_id]


def _keep(table: Table, column: ColumnKey, key: RowsKey, places: Iterable[str | None]) -> None:
    values = table.owner.values
    values.keep(column, values.shelf(column), key, tuple(places))


def _is_read_once(table: Table, column: str, count: int) -> bool:
    """Whether a scan of the whole column is faster than `count` single lookups."""
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
    names = [*columns] if column in columns else [*columns, column]
    reader = table.scan(names)
    matches = [rows.filter(_are_wanted(rows[column], wanted)) for rows in _gather(reader)]
    return pa.concat_tables([reader.schema.empty_table(), *matches]).select(list(columns))


def _are_wanted(values: pa.ChunkedArray, wanted: pa.Table) -> pa.Array:
    """Whether each value is wanted: by a join, which uses every core where `is_in` uses one."""
    numbered = pa.table({"value": values, "place": np.arange(len(values))})
    matches = numbered.join(wanted, "value", join_type="left semi")
    are_wanted = np.zeros(len(values), dtype=bool)
    are_wanted[matches["place"].to_numpy()] = True
    return pa.array(are_wanted)


def _gather(reader: pa.RecordBatchReader) -> Iterator[pa.Table]:
    """The batches of a scan, many at a time: each join hashes the wanted values again."""
    batches: list[pa.RecordBatch] = []
    size = 0
    for batch in reader:
        batches.append(batch)
        size += batch.nbytes
        if size >= SIFTED_BYTES:
            yield pa.Table.from_batches(batches)
            batches, size = [], 0
    if batches:
        yield pa.Table.from_batches(batches)


def _columns(table: Table) -> Mapping[str, ColumnKey]:
    return table.fact("column keys", lambda: _read_columns(table))


def _read_columns(table: Table) -> dict[str, ColumnKey]:
    fields = table.handle.lance_schema.fields()
    return {field.name(): (table.address.location, field.id()) for field in fields}
