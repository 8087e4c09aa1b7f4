"""Columns of tables, read from memory as far as their fragments' files are there.

A version that adds a fragment reads that fragment only, and a version that deletes rows reads which
ones. The rows are those of a scan, in its order: the memory affects cost, never a result.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa

from omnigraph.limits import KEPT_FRAGMENT_ROWS_MAX, KEPT_TABLE_BYTES_MAX, OPENED_FRAGMENTS_MAX
from omnigraph.schema.arrow import BLOB_MARK
from omnigraph.storage.chunks import ColumnChunk, find_reusable, join_neighbours
from omnigraph.storage.pieces import (
    WHOLE,
    Assembly,
    ColumnKey,
    FragmentFiles,
    Layout,
    Piece,
    RowsKey,
    Slot,
)
from omnigraph.storage.places import fragment_ids_of, offsets_of
from omnigraph.storage.tables import ROW_ADDRESS, Table

SCANNED_RUNS_MAX: Final = 16
"""Runs of small and of large fragments that are read separately; for more, all are scanned."""


@dataclass(frozen=True, slots=True)
class _Column:
    """A column of a table.

    Attributes:
        numbers: The numbers of its field and of the fields below it; files name the lowest.
    """

    name: str
    kind: pa.DataType
    key: ColumnKey
    numbers: frozenset[int]

    def paths(self, fragment: FragmentFiles) -> list[str]:
        """The files with its values; none where it was added later, and is all null."""
        return [path for path, fields in fragment.files if not self.numbers.isdisjoint(fields)]


@dataclass(frozen=True, slots=True)
class Run:
    """Consecutive fragments: all of them in memory, or all to be scanned.

    Attributes:
        rows: Their rows; None if they are to be scanned.
    """

    fragment_ids: tuple[int, ...]
    rows: pa.Table | None


@dataclass(frozen=True, slots=True)
class _Place:
    """The rows of one fragment in the result of a scan."""

    start: int
    offsets: np.ndarray


_Values = dict[tuple[int, str], pa.ChunkedArray]
"""Values by fragment and column."""

_NO_ROWS: Final = _Place(0, np.array([], np.uint32))


def read_all_fragments(table: Table, names: Sequence[str]) -> pa.Table:
    """All rows of these columns in the order of a scan; they stay in memory for the next reader."""
    layout = layout_of(table)
    blobs = [name for name in names if is_blob(table.schema.field(name))]
    plain = [name for name in names if name not in blobs]
    columns = _read(table, plain, layout.fragments, (table.address.ref, WHOLE))
    if blobs:
        columns |= dict(zip(blobs, table.read(blobs).columns, strict=True))
    return _to_table(table, {name: columns[name] for name in names})


def read_fragments(table: Table, names: Sequence[str], fragment_ids: Iterable[int]) -> pa.Table:
    """The rows of some fragments, one after the other; no column may have blobs."""
    fragments = list(fragment_files(table, fragment_ids))
    columns = _columns(table, names)
    bytes_max = table.owner.lookup_bytes_max
    values = _collect(table, dict.fromkeys(columns, fragments), whole_bytes_max=bytes_max)
    read = {}
    for column in columns:
        parts = [values[fragment.fragment_id, column.name] for fragment in fragments]
        read[column.name] = pa.chunked_array(
            [array for part in parts for array in part.chunks], column.kind
        )
    return _to_table(table, {name: read[name] for name in names})


def read_values(
    table: Table, name: str, fragments: Iterable[FragmentFiles]
) -> dict[int, tuple[Any, ...]]:
    """By fragment id, the values of a column at each offset; None for deleted rows."""
    wanted = list(fragments)
    [column] = _columns(table, [name])
    values = _collect(table, {column: wanted})
    deleted = deleted_offsets(table, wanted)
    read: dict[int, tuple[Any, ...]] = {}
    for fragment in wanted:
        live = iter(values[fragment.fragment_id, name].to_pylist())
        gone = set(deleted.get(fragment.fragment_id, _NO_ROWS.offsets).tolist())
        read[fragment.fragment_id] = tuple(
            None if offset in gone else next(live) for offset in range(fragment.physical_rows)
        )
    return read


def split_runs(
    table: Table, names: Sequence[str], *, scanned: frozenset[int] = frozenset()
) -> list[Run] | None:
    """The fragments in the order of a scan: small ones with their rows, others to be scanned.

    None if a scan of the whole table is as good: it has no small fragments, or they are too many
    bytes, or too scattered. No column may have blobs.

    Args:
        scanned: Fragments that are to be scanned unless they are in memory.
    """
    layout, columns = layout_of(table), _columns(table, names)
    small = [
        fragment
        for fragment in layout.fragments
        if fragment.is_small
        and (fragment.fragment_id not in scanned or _is_in_memory(table, columns, fragment))
    ]
    if not small or sum(fragment.byte_count or 0 for fragment in small) > KEPT_TABLE_BYTES_MAX:
        return None
    ids = {fragment.fragment_id for fragment in small}
    groups: list[tuple[bool, list[FragmentFiles]]] = []
    for fragment in layout.fragments:
        is_small = fragment.fragment_id in ids
        if not groups or groups[-1][0] is not is_small:
            groups.append((is_small, []))
        groups[-1][1].append(fragment)
    if len(groups) > SCANNED_RUNS_MAX:
        return None
    runs = []
    for number, (is_small, fragments) in enumerate(groups):
        rows = None
        if is_small:
            read = _read(table, names, fragments, (table.address.ref, number))
            rows = _to_table(table, {name: read[name] for name in names})
        runs.append(Run(tuple(fragment.fragment_id for fragment in fragments), rows))
    return runs


def are_read_cheaply(table: Table, names: Sequence[str], fragment_ids: Iterable[int]) -> bool:
    """Whether `read_fragments` has no more to read than a lookup: what one request fetches."""
    every = _every_column(table)
    if not all(name in every for name in names):
        return False
    columns = [every[name] for name in names]
    return all(
        not fragment.has_overlays
        and (
            fragment.is_at_most(table.owner.lookup_bytes_max)
            or _is_in_memory(table, columns, fragment)
        )
        for fragment in fragment_files(table, fragment_ids)
    )


def fragment_files(table: Table, fragment_ids: Iterable[int]) -> Iterator[FragmentFiles]:
    """The files of some fragments, in this order. Reads nothing; few cost nothing for others."""
    wanted = list(fragment_ids)
    if len(wanted) > OPENED_FRAGMENTS_MAX:
        by_id = layout_of(table).by_id
        yield from (by_id[fragment_id] for fragment_id in wanted)
        return
    for fragment_id in wanted:
        yield table.fact(("files", fragment_id), partial(_read_files, table, fragment_id))


def _read_files(table: Table, fragment_id: int) -> FragmentFiles:
    fragment = table.handle.get_fragment(fragment_id)
    assert fragment is not None, "the ids are of this same version"
    return FragmentFiles.of(fragment.metadata)


def layout_of(table: Table) -> Layout:
    """The fragments of a version. Reads nothing."""
    address = table.address
    return table.owner.pieces.layout(address.location, address.ref, table.handle)


def deleted_offsets(table: Table, fragments: Iterable[FragmentFiles]) -> dict[int, np.ndarray]:
    """By fragment id, the deleted offsets of those fragments that have deletion files."""
    pieces = table.owner.pieces
    deleted: dict[int, np.ndarray] = {}
    missing: dict[int, FragmentFiles] = {}
    for fragment in fragments:
        if fragment.deletions is not None:
            known = pieces.deleted(fragment)
            if known is None:
                missing[fragment.fragment_id] = fragment
            else:
                deleted[fragment.fragment_id] = known
    if missing:
        # This reads the deletion files, and no data.
        places = _places(table.read([ROW_ADDRESS], fragment_ids=missing))
        for fragment_id, fragment in missing.items():
            deleted[fragment_id] = _keep_deleted(table, fragment, places.get(fragment_id, _NO_ROWS))
    return deleted


def keep_rows(table: Table, fragments: Iterable[FragmentFiles], rows: pa.Table) -> None:
    """Keep rows just written, in columns that this process reads, so that nobody reads them."""
    if len(rows) > KEPT_FRAGMENT_ROWS_MAX:
        return
    pieces = table.owner.pieces
    columns = [
        column
        for column in _columns(table, rows.column_names)
        if pieces.has_column(column.key) and rows.schema.field(column.name).type == column.kind
    ]
    first = 0
    for fragment in fragments:
        part = rows.slice(first, fragment.physical_rows)
        first += fragment.physical_rows
        for column in columns:
            if len(paths := column.paths(fragment)) == 1:
                pieces.keep(column.key, paths[0], Piece.of(part[column.name], None))


def keep_deletions(
    table: Table, before: FragmentFiles, after: FragmentFiles, offsets: Sequence[int]
) -> None:
    """Keep which offsets of a fragment are deleted now, if it is known which were before."""
    known = _NO_ROWS.offsets if before.deletions is None else table.owner.pieces.deleted(before)
    if known is not None:
        gone = np.union1d(known, np.array(offsets, np.uint32)).astype(np.uint32)
        table.owner.pieces.keep_deleted(after, gone)


def is_blob(field: pa.Field) -> bool:
    """Whether a column has blobs: a plain scan returns descriptors in the place of their bytes."""
    if pa.types.is_list(field.type):
        return is_blob(field.type.value_field)
    # A table that was created without rows has only the mark (docs/substrate.md, Other columns).
    if BLOB_MARK.keys() & (field.metadata or {}).keys():
        return True
    return isinstance(field.type, pa.BaseExtensionType) or bool(pa.types.is_struct(field.type))


def _columns(table: Table, names: Iterable[str]) -> list[_Column]:
    """Those of the named columns whose values can be kept."""
    wanted = set(names)
    return [column for name, column in _every_column(table).items() if name in wanted]


def _every_column(table: Table) -> Mapping[str, _Column]:
    """The columns whose values can be kept, in the order of the table."""
    return table.fact("columns", lambda: _read_columns(table))


def _read_columns(table: Table) -> dict[str, _Column]:
    return {
        lance_field.name(): _Column(
            lance_field.name(),
            table.schema.field(lance_field.name()).type,
            (table.address.location, lance_field.id()),
            frozenset(_numbers(lance_field)),
        )
        for lance_field in table.handle.lance_schema.fields()
        if not is_blob(table.schema.field(lance_field.name()))
    }


def _numbers(lance_field: Any) -> Iterator[int]:
    yield lance_field.id()
    for child in lance_field.children():
        yield from _numbers(child)


def _read(
    table: Table, names: Sequence[str], fragments: Sequence[FragmentFiles], slot: Slot
) -> dict[str, pa.ChunkedArray]:
    """Columns of some fragments: chunks of the version before, and what they lack from pieces."""
    pieces = table.owner.pieces
    ids = tuple(fragment.fragment_id for fragment in fragments)
    keys = [fragment.key for fragment in fragments]
    read: dict[str, pa.ChunkedArray] = {}
    parts: dict[_Column, list[ColumnChunk[RowsKey] | int]] = {}
    for column in _columns(table, names):
        assembly = pieces.assembly(column.key, slot)
        if assembly is not None and assembly.serves(table.handle, ids):
            read[column.name] = assembly.column
            continue
        parts[column] = find_reusable(() if assembly is None else assembly.chunks, keys)
    if parts:
        missing = {
            column: [fragments[part] for part in chunks if isinstance(part, int)]
            for column, chunks in parts.items()
        }
        values = _collect(table, missing)
        for column, chunks in parts.items():
            filled = [
                _chunk(column, fragments[part], values) if isinstance(part, int) else part
                for part in chunks
            ]
            joined = join_neighbours(filled)
            assembly = Assembly.of(table.handle, ids, joined, column.kind)
            pieces.keep_assembly(column.key, slot, assembly)
            read[column.name] = assembly.column
        pieces.prune(table.address.location, layout_of(table))
    return read


def _chunk(column: _Column, fragment: FragmentFiles, values: _Values) -> ColumnChunk[RowsKey]:
    return ColumnChunk.of(fragment.key, values[fragment.fragment_id, column.name])


def _collect(
    table: Table,
    wanted: Mapping[_Column, Sequence[FragmentFiles]],
    *,
    whole_bytes_max: int | None = None,
) -> _Values:
    """The live values of columns in fragments: from pieces, else read and kept as pieces.

    Args:
        whole_bytes_max: The size of files of which every column is read, if more than usual.
    """
    values: _Values = {}
    held: list[tuple[_Column, FragmentFiles, Piece | None]] = []
    missing: dict[int, list[_Column]] = {}
    for column, fragments in wanted.items():
        for fragment in fragments:
            piece = _find_piece(table, column, fragment)
            if piece is None and (fragment.has_overlays or column.paths(fragment)):
                missing.setdefault(fragment.fragment_id, []).append(column)
            else:
                held.append((column, fragment, piece))
    deleted = deleted_offsets(table, (fragment for _, fragment, _ in held))
    for column, fragment, piece in held:
        gone = deleted.get(fragment.fragment_id)
        part = _pick(column, fragment, piece, gone)
        if part is None:
            missing.setdefault(fragment.fragment_id, []).append(column)
        else:
            values[fragment.fragment_id, column.name] = part
    if missing:
        values |= _fetch(table, missing, whole_bytes_max or table.owner.whole_bytes_max)
    return values


def _pick(
    column: _Column, fragment: FragmentFiles, piece: Piece | None, gone: np.ndarray | None
) -> pa.ChunkedArray | None:
    """The live values of a fragment from its piece; without a piece, the column is all null."""
    if piece is not None:
        return piece.without(gone, physical_rows=fragment.physical_rows)
    count = fragment.physical_rows - (0 if gone is None else len(gone))
    return pa.chunked_array([pa.nulls(count, column.kind)])


def _find_piece(table: Table, column: _Column, fragment: FragmentFiles) -> Piece | None:
    paths = column.paths(fragment)
    if len(paths) != 1 or fragment.has_overlays:
        return None
    return table.owner.pieces.find(column.key, paths[0])


def _is_in_memory(table: Table, columns: Iterable[_Column], fragment: FragmentFiles) -> bool:
    return all(
        not column.paths(fragment) or _find_piece(table, column, fragment) is not None
        for column in columns
    )


def _fetch(table: Table, missing: Mapping[int, Sequence[_Column]], whole_bytes_max: int) -> _Values:
    """Read columns of fragments, in one scan for all fragments that lack the same ones.

    Of small files every column is read: that takes no more requests, and the next query needs none.
    """
    by_id = layout_of(table).by_id
    every = _columns(table, table.schema.names)
    groups: dict[tuple[str, ...], list[FragmentFiles]] = {}
    for fragment_id, columns in sorted(missing.items()):
        fragment = by_id[fragment_id]
        # Reading one column of these takes as many requests as reading all.
        read = every if fragment.is_at_most(whole_bytes_max) else columns
        groups.setdefault(tuple(column.name for column in read), []).append(fragment)
    values: _Values = {}
    for names, fragments in groups.items():
        ids = [fragment.fragment_id for fragment in fragments]
        is_large = any(
            fragment.is_at_most(whole_bytes_max)
            and not fragment.is_at_most(table.owner.whole_bytes_max)
            for fragment in fragments
        )
        opened = table.owner.in_large_blocks(table) if is_large else table
        rows = opened.read([*names, ROW_ADDRESS], fragment_ids=ids)
        places = _places(rows)
        for column in (column for column in every if column.name in names):
            whole = rows[column.name]
            for fragment in fragments:
                place = places.get(fragment.fragment_id, _NO_ROWS)
                part = whole.slice(place.start, len(place.offsets))
                values[fragment.fragment_id, column.name] = part
                _keep(table, column, fragment, part, place)
        for fragment in fragments:
            if fragment.deletions is not None:
                _keep_deleted(table, fragment, places.get(fragment.fragment_id, _NO_ROWS))
    return values


def _keep(
    table: Table, column: _Column, fragment: FragmentFiles, values: pa.ChunkedArray, place: _Place
) -> None:
    paths = column.paths(fragment)
    if len(paths) == 1 and not fragment.has_overlays:
        offsets = None if fragment.deletions is None else place.offsets
        table.owner.pieces.keep(column.key, paths[0], Piece.of(values, offsets))


def _keep_deleted(table: Table, fragment: FragmentFiles, live: _Place) -> np.ndarray:
    every = np.arange(fragment.physical_rows, dtype=np.uint32)
    gone: np.ndarray = np.setdiff1d(every, live.offsets, assume_unique=True)
    table.owner.pieces.keep_deleted(fragment, gone)
    return gone


def _places(rows: pa.Table) -> dict[int, _Place]:
    """Where the rows of each fragment are in the result of a scan, which keeps them together."""
    addresses = rows[ROW_ADDRESS].to_numpy()
    if not len(addresses):
        return {}
    ids, offsets = fragment_ids_of(addresses), offsets_of(addresses).astype(np.uint32)
    starts = np.flatnonzero(np.diff(ids, prepend=ids[0] + np.uint64(1)))
    ends = [*starts[1:].tolist(), len(ids)]
    places = {
        int(ids[start]): _Place(start, offsets[start:end])
        for start, end in zip(starts.tolist(), ends, strict=True)
    }
    assert len(places) == len(starts), "a scan reads one fragment after the other"
    return places


def _to_table(table: Table, columns: Mapping[str, pa.ChunkedArray]) -> pa.Table:
    schema = pa.schema([table.schema.field(name) for name in columns])
    return pa.Table.from_arrays(list(columns.values()), schema=schema)
