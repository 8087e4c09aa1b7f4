"""Staged writes: files exist, no head has moved. One staged write is one Lance transaction."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NoReturn, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from lance import LanceDataset, LanceOperation
from lance.dataset import Transaction
from lance.fragment import RowIdSequence, write_fragments
from lance.schema import LanceSchema

from omnigraph.errors import InvalidInputError
from omnigraph.limits import BYTES_PER_FILE_MAX, ROWS_PER_FILE_MAX
from omnigraph.storage import lookups, truncation
from omnigraph.storage.columns import keep_rows
from omnigraph.storage.pieces import FragmentFiles
from omnigraph.storage.places import fragment_ids_of, offsets_of, sort_distinct
from omnigraph.storage.replacements import find_replacements
from omnigraph.storage.streams import Relay
from omnigraph.storage.tables import (
    KEY,
    ROW_ADDRESS,
    ROW_ID,
    Fragment,
    Table,
    TableAddress,
    Tables,
)
from omnigraph.storage.translate import translate_errors

_PLACES: Final = pa.schema([(KEY, pa.utf8()), (ROW_ID, pa.uint64()), (ROW_ADDRESS, pa.uint64())])

Rows: TypeAlias = "pa.Table | pa.RecordBatchReader"


@dataclass(frozen=True, slots=True)
class StagedWrite:
    """One table's transaction, ready for `heads.apply`.

    Each operation makes one version of the table.

    Attributes:
        address: The table at the version it was staged on: its pin. A table that does not exist
            yet has version 0.
        base: What the transaction is committed through: the pinned version, or, for a table that
            does not exist yet, the tables it will belong to.
        row_count: How many rows the table will hold.
        followed_by: Operations after the first one that change no row.
        unchanged: Rows of an upsert that the table has already, value for value.
    """

    address: TableAddress
    base: Table | Tables
    operation: LanceOperation.BaseOperation
    row_count: int
    followed_by: tuple[LanceOperation.BaseOperation, ...] = ()
    unchanged: int = 0

    @property
    def version(self) -> int:
        """The version of the table once everything is applied."""
        return self.address.version + 1 + len(self.followed_by)

    def __reduce__(self) -> NoReturn:
        # Like a Table: its handle would be unpickled as one of main (docs/substrate.md, Branches of
        # a table).
        message = (
            "a StagedWrite cannot be pickled; ship Deletions and fragments, and stage them here"
        )
        raise TypeError(message)


@dataclass(frozen=True, slots=True)
class Deletions:
    """The fragments that a deletion of rows changes or removes."""

    updated: tuple[Fragment, ...] = ()
    removed: tuple[int, ...] = ()
    row_count: int = 0


def combine_deletions(parts: Iterable[Deletions]) -> Deletions:
    """The deletions of several tasks, each of which deleted from fragments of its own."""
    parts = tuple(parts)
    return Deletions(
        updated=tuple(fragment for part in parts for fragment in part.updated),
        removed=tuple(number for part in parts for number in part.removed),
        row_count=sum(part.row_count for part in parts),
    )


def stage_create(tables: Tables, location: str, rows: pa.Table) -> StagedWrite:
    """Prepare a table that does not exist yet; `rows` gives its schema and may be empty."""
    uri = tables.uri(location)
    address = tables.address(location, ref=None, version=0)
    operation = LanceOperation.Overwrite(rows.schema, [])
    if rows.num_rows:
        operation = _write_whole(uri, address, rows, rows.schema, mode="create")
    return StagedWrite(address, tables, operation, rows.num_rows)


def stage_append(table: Table, rows: Rows) -> StagedWrite:
    """Prepare to insert `rows`, without looking at what the table holds."""
    return stage_change(table, files=write_files(table, rows))


def stage_upsert(table: Table, rows: pa.Table) -> StagedWrite | None:
    """Prepare to update the rows whose id exists, keeping their row ids, and to insert the others.

    Rows that the table has already, value for value, are not written. If it has all of them, there
    is nothing to stage, and the result is None.
    """
    _require_distinct_ids(rows)
    found = find_replacements(table, rows)
    if not (len(found.inserted) or len(found.addresses)):
        return None
    # Updated rows come first: Lance binds the given row ids to the leading rows of the new files.
    files = write_files(
        table,
        pa.concat_tables([found.updated, found.inserted]),
        row_ids=found.row_ids.to_pylist(),
    )
    deletions = delete_rows(table, found.addresses)
    staged = stage_change(table, files=files, deletions=deletions)
    return dataclasses.replace(staged, unchanged=found.unchanged)


def stage_rows(
    table: Table,
    *,
    inserted: pa.Table,
    updated: pa.Table,
    deleted: pa.Array,
    complete: Callable[[pa.Table], Rows] | None = None,
) -> StagedWrite:
    """Prepare to insert rows, to update others, which keep their row ids, and to delete others.

    Only updated and deleted rows are looked up; ids of `inserted` are assumed to be new.

    Args:
        complete: Completes partial rows, keeping their order; None where all rows are complete.
    """
    files, doomed = write_rows(
        table, inserted=inserted, updated=updated, deleted=deleted, complete=complete
    )
    return stage_change(table, files=files, deletions=delete_rows(table, doomed))


def write_rows(
    table: Table,
    *,
    inserted: pa.Table,
    updated: pa.Table,
    deleted: pa.Array,
    complete: Callable[[pa.Table], Rows] | None = None,
) -> tuple[tuple[Fragment, ...], pa.ChunkedArray]:
    """Like `stage_rows`, but deletes nothing: the files, and the addresses of rows to delete."""
    wanted = pa.concat_arrays([updated[KEY].combine_chunks(), deleted])
    existing = locate(table, wanted) if len(wanted) else _PLACES.empty_table()
    places = pc.index_in(updated[KEY].combine_chunks(), value_set=existing[KEY].combine_chunks())
    assert not places.null_count, "updated rows were read from this version"
    rows = pa.concat_tables([updated, inserted])
    row_ids = existing[ROW_ID].take(places).to_pylist()
    files = write_files(table, rows if complete is None else complete(rows), row_ids=row_ids)
    if complete is not None:
        lookups.remember_rows(table, files, rows)
    return files, existing[ROW_ADDRESS]


def stage_delete(
    table: Table, *, ids: Sequence[str] | None = None, filter_text: str | None = None
) -> StagedWrite:
    """Prepare to delete the rows with these ids, or the rows a filter matches; give one of them."""
    if (ids is None) == (filter_text is None):
        message = "a deletion needs ids or a filter, and not both"
        raise InvalidInputError(message)
    if ids is not None:
        doomed = locate(table, pa.array(ids, pa.string()))
    else:
        doomed = table.read([ROW_ADDRESS], filter_text=filter_text)
    return stage_change(table, deletions=delete_rows(table, doomed[ROW_ADDRESS]))


def stage_change(
    table: Table, *, files: Sequence[Fragment] = (), deletions: Deletions | None = None
) -> StagedWrite:
    """Assemble one transaction from files already written and rows already located.

    This is what bulk writers use: their executors call `write_files` and `delete_rows`, and only
    fragment metadata reaches the driver.
    """
    deletions = deletions or Deletions()
    inserted = sum(file.physical_rows for file in files)
    row_count = table.count_rows() + inserted - deletions.row_count
    return _stage(table, _change(table, files, deletions), row_count)


def _change(
    table: Table, files: Sequence[Fragment], deletions: Deletions
) -> LanceOperation.Append | LanceOperation.Update:
    keeps_row_ids = any(file.row_id_meta is not None for file in files)
    if not (keeps_row_ids or deletions.updated or deletions.removed):
        # To commit an Update, Lance holds the row id of every new row, to look up the version that
        # made it: 22 bytes per row, in the committing process (docs/substrate.md, Memory of a
        # commit).
        return LanceOperation.Append(list(files))
    return LanceOperation.Update(
        removed_fragment_ids=list(deletions.removed),
        updated_fragments=list(deletions.updated),
        new_fragments=list(files),
        fields_modified=[],
        fields_for_preserving_frag_bitmap=_field_ids(table.handle.lance_schema),
        update_mode="rewrite_rows",
    )


def stage_overwrite(
    table: Table,
    rows: Rows,
    *,
    schema: pa.Schema | None = None,
    carrying: Sequence[Fragment] = (),
) -> StagedWrite:
    """Prepare to replace the table's content by `rows`, then the rows of the carried fragments.

    The new rows come first, in fragments of their own. Zero rows are allowed. Of all staged writes
    only this one is a true compare-and-swap on the head (docs/decisions/0002).

    Args:
        schema: The table's new schema, with its metadata; when None, the columns are those of the
            rows and the metadata is kept.
        carrying: Fragments of this same table, kept by reference and without deletions. The
            table must never have dropped a column.
    """
    assert not carrying or _is_numbered_by_position(table), "carried columns would be mixed up"
    schema = rows.schema.with_metadata(table.schema.metadata) if schema is None else schema
    operation = _write_whole(table.handle, table.address, rows, schema, mode="overwrite")
    if carrying:
        fragments = [*operation.fragments, *carrying]
        operation = LanceOperation.Overwrite(schema, fragments)
    row_count = sum(fragment.physical_rows for fragment in operation.fragments)
    return _stage(table, operation, row_count)


def stage_whole(table: Table, files: Sequence[Fragment], *, schema: pa.Schema) -> StagedWrite:
    """Assemble the transaction that replaces the table's content by files of `write_whole`.

    Args:
        schema: The columns of the rows in the files; the table's metadata is kept.
    """
    operation = _write_whole(
        table.handle,
        table.address,
        schema.empty_table(),
        schema.with_metadata(table.schema.metadata),
        mode="overwrite",
    )
    operation = LanceOperation.Overwrite(operation.new_schema, list(files))
    return _stage(table, operation, sum(file.physical_rows for file in files))


def write_whole(table: Table, rows: pa.Table) -> tuple[Fragment, ...]:
    """Like `write_files`, for files that will replace the table's content (`stage_whole`)."""
    schema = rows.schema.with_metadata(table.schema.metadata)
    operation = _write_whole(table.handle, table.address, rows, schema, mode="overwrite")
    return tuple(operation.fragments)


def write_files(table: Table, rows: Rows, *, row_ids: Sequence[int] = ()) -> tuple[Fragment, ...]:
    """Write `rows` as data files that are still unreferenced.

    Safe to run in any process and to run twice: only files named in a staged write count.

    Args:
        row_ids: Stable row ids for the leading rows; the rest get fresh ones.
    """
    # The handle and not the URI: a branch handle's uri is the table's, and files written there
    # would land among main's (docs/substrate.md, Branches of a table).
    relay = Relay()
    with relay.reraise(), translate_errors("staging rows in", table.address.uri):
        fragments = write_fragments(
            rows if isinstance(rows, pa.Table) else relay.carry(rows),
            table.handle,
            schema=rows.schema,
            mode="append",
            max_rows_per_file=ROWS_PER_FILE_MAX,
            max_bytes_per_file=BYTES_PER_FILE_MAX,
            enable_stable_row_ids=True,
        )
    assert isinstance(fragments, list), "no transaction was requested"
    truncation.require_data(table.address, fragments)
    if isinstance(rows, pa.Table):
        lookups.remember_rows(table, fragments, rows)
        keep_rows(table, map(FragmentFiles.of, fragments), rows)
    numbered, start = [], 0
    for fragment in fragments:
        ids = row_ids[start : start + fragment.physical_rows]
        start += fragment.physical_rows
        meta = RowIdSequence(list(ids)).to_inline_metadata() if ids else None
        numbered.append(dataclasses.replace(fragment, row_id_meta=meta) if ids else fragment)
    return tuple(numbered)


def delete_rows(table: Table, addresses: pa.ChunkedArray) -> Deletions:
    """Write deletion files for the rows at these addresses; no head moves."""
    rows = sort_distinct(addresses.to_numpy().astype(np.uint64))
    if not len(rows):
        return Deletions()
    fragment_ids, firsts = np.unique(fragment_ids_of(rows), return_index=True)
    parts = np.split(offsets_of(rows), firsts[1:])
    updated, removed = [], []
    with translate_errors("deleting from", table.address.uri):
        for fragment_id, part in zip(fragment_ids.tolist(), parts, strict=True):
            offsets = part.tolist()
            fragment = table.handle.get_fragment(fragment_id)
            assert fragment is not None, "the addresses were read from this same version"
            remaining = fragment.delete_rows(offsets)
            if remaining is None:
                removed.append(fragment_id)
            else:
                truncation.require_deletions(table.address, remaining)
                updated.append(remaining)
                lookups.remember_deletions(table, remaining, offsets)
    return Deletions(tuple(updated), tuple(removed), len(rows))


def locate(table: Table, ids: pa.Array | pa.ChunkedArray) -> pa.Table:
    """Locate the rows with these ids: columns id, row id and row address."""
    return lookups.find(table, KEY, ids, columns=[KEY, ROW_ID, ROW_ADDRESS])


def _require_distinct_ids(rows: pa.Table) -> None:
    ids = rows[KEY]
    if ids.null_count:
        message = f"{ids.null_count} of {len(ids)} rows have no id"
        raise InvalidInputError(message)
    if pc.count_distinct(ids).as_py() == len(ids):
        return
    counts = ids.value_counts()
    repeated = counts.filter(pc.greater(counts.field("counts"), 1)).field("values")
    message = f"duplicate id: {repeated[0].as_py()!r} occurs twice in the rows to write"
    raise InvalidInputError(message)


def _write_whole(
    base: LanceDataset | str, address: TableAddress, rows: Rows, schema: pa.Schema, *, mode: str
) -> LanceOperation.Overwrite:
    """Write `rows` as a table's whole content, with newly numbered columns.

    Lance's own operation is used and not one made of Arrow's schema: it knows how columns were
    numbered in the files, which a dropped column or a blob changes (docs/substrate.md, Columns).
    """
    relay = Relay()
    # Lance takes the metadata from the rows and ignores that of the schema argument.
    rows = (
        rows.cast(schema)
        if isinstance(rows, pa.Table)
        else relay.carry(pa.RecordBatchReader.from_batches(schema, rows))
    )
    with relay.reraise(), translate_errors("staging rows in", address.uri):
        transaction = write_fragments(
            rows,
            base,
            schema=schema,
            mode=mode,
            max_rows_per_file=ROWS_PER_FILE_MAX,
            max_bytes_per_file=BYTES_PER_FILE_MAX,
            enable_stable_row_ids=True,
            return_transaction=True,
        )
    assert isinstance(transaction, Transaction), "it was requested"
    operation = transaction.operation
    assert isinstance(operation, LanceOperation.Overwrite), "that is what these modes make"
    truncation.require_data(address, operation.fragments)
    return operation


def _is_numbered_by_position(table: Table) -> bool:
    """Whether renumbering this schema's fields by position would change no number.

    A table that once dropped a column fails this; committing its schema as plain Arrow would then
    make columns read each other's data (docs/substrate.md, Columns). Its files still hold the
    dropped column, and a new one must not take its number, even if the numbers in use have no gap.
    """
    renumbered = _field_ids(LanceSchema.from_pyarrow(table.schema))
    files = [file for fragment in table.fragments() for file in fragment.files]
    stored = {number for file in files for number in file.fields}
    return renumbered == _field_ids(table.handle.lance_schema) and stored <= set(renumbered)


def _field_ids(schema: LanceSchema) -> list[int]:
    pending = list(reversed(schema.fields()))
    ids = []
    while pending:
        field = pending.pop()
        ids.append(field.id())
        pending.extend(reversed(field.children()))
    return ids


def _stage(table: Table, operation: LanceOperation.BaseOperation, row_count: int) -> StagedWrite:
    return StagedWrite(table.address, table, operation, row_count)
