"""Other columns for a table, in one staged transaction that rewrites nothing that stays.

Columns that stay keep the numbers that files and indexes know them by, whatever they are called.
The values of new columns are in files of their own (`storage.column_files`). Earlier versions of
the table keep their columns (docs/decisions/0012).

Lance has two operations for it. Project replaces the list of columns and nothing else. Merge
replaces the list of fragments, too, so it is used where files are added. It rejects what might be a
mistake (docs/substrate.md, Other columns): a stored column may change neither its nullability nor
its name to one that another column had, and a new column with such a name must have values in every
fragment. In such a write those columns are new ones, and their values are copied (`plan_reshape`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from lance import LanceOperation
from lance.fragment import DataFile, DeletionFile

from omnigraph.errors import InvalidInputError
from omnigraph.storage.column_files import ColumnFile, TableColumn, describe_columns
from omnigraph.storage.fields import StoredColumn, read_columns, with_columns
from omnigraph.storage.staging import Deletions, StagedWrite
from omnigraph.storage.tables import Fragment, Table


@dataclass(frozen=True, slots=True)
class ReshapePlan:
    """The columns of a table afterwards, such that Lance accepts them.

    Attributes:
        columns: The columns, for `stage_reshape`.
        copies: Columns that every column file must have beside the computed ones: of the values of
            their source, or of nulls. For `write_column_file`.
    """

    columns: tuple[TableColumn, ...]
    copies: tuple[TableColumn, ...] = ()


def plan_reshape(
    table: Table,
    columns: Sequence[TableColumn],
    *,
    filled: Collection[str],
    rows_change: bool = False,
) -> ReshapePlan:
    """How to give the table these columns. Reads nothing.

    Usually nothing is copied. A column is if the same write also has files, of values or of rows,
    and the column changes its nullability or gets the name that another column had. It then loses
    its index.

    Args:
        filled: The new columns whose values will be computed.
        rows_change: Whether `stage_reshaped_rows` will follow.
    """
    if not filled and not rows_change:
        return ReshapePlan(tuple(columns))
    current = table.schema
    # Rules find the nulls of a column that is to have none; it is not the copy that fails.
    copies = [
        column.with_nulls(allowed=True)
        for column in columns
        if column.name not in filled and not _is_merged(column, current)
    ]
    copied = {column.name for column in copies}
    return ReshapePlan(
        tuple(TableColumn(column.field) if column.name in copied else column for column in columns),
        tuple(copies),
    )


def _is_merged(column: TableColumn, current: pa.Schema) -> bool:
    """Whether Lance's Merge accepts a column that no file has values for."""
    if column.name != column.source and column.name in current.names:
        return False
    if column.source is None:
        return True
    return bool(current.field(column.source).nullable == column.field.nullable)


def stage_reshape(
    table: Table, columns: Sequence[TableColumn], files: Sequence[ColumnFile] = ()
) -> StagedWrite:
    """Prepare to give the table exactly these columns, in this order.

    Columns that stay keep their values, their indexes and their rows' ids; the values are not read,
    so nothing checks that a column that loses its nullability has no nulls. A new column has the
    values of the files, and nulls in fragments without one. Other columns are dropped.

    Args:
        columns: At least one of them stays.
        files: Files of `write_column_file` on this same version.
    """
    _require_distinct([column.name for column in columns])
    _require_distinct([column.source for column in columns if column.source is not None])
    fragments = table.fragments()
    _require_values(table, columns, fragments, files)
    stored = _store_columns(table, columns)
    schema = with_columns(table.handle.lance_schema, stored.values())
    operation: LanceOperation.BaseOperation = LanceOperation.Project(schema)
    if files:
        _require_copies(table, stored, fragments, files)
        numbered: dict[int, list[DataFile]] = {}
        for file in files:
            numbered.setdefault(file.fragment_id, []).append(file.numbered(stored))
        changed = [
            replace(fragment, files=[*fragment.files, *numbered.get(fragment.id, ())])
            for fragment in fragments
        ]
        operation = LanceOperation.Merge(changed, schema)
    return StagedWrite(table.address, table, operation, table.count_rows())


def stage_reshaped_rows(
    staged: StagedWrite, *, files: Sequence[Fragment] = (), deletions: Deletions | None = None
) -> StagedWrite:
    """Add changes of rows to a staged reshape, for one transaction that does both.

    The rows have the new columns: they are written and located through the preview of the reshape
    (`heads.preview`). All of them get new row ids, updated rows, too: Lance rejects given ones.

    Args:
        staged: A write of `stage_reshape`, planned with `rows_change`.
        files: Files of `write_files` on the preview.
        deletions: Deletions from the preview.
    """
    deletions = deletions or Deletions()
    if not files and not deletions.row_count:
        return staged
    reshape, base = staged.operation, staged.base
    assert isinstance(base, Table), "it was made by stage_reshape"
    assert isinstance(reshape, LanceOperation.Merge | LanceOperation.Project), "see above"
    if isinstance(reshape, LanceOperation.Merge):
        fragments = tuple(reshape.fragments)
    else:
        fragments = base.fragments()
        _require_copies(base, read_columns(reshape.schema), fragments, ())
    updated = {fragment.id: fragment for fragment in deletions.updated}
    remaining = [
        _without_rows(fragment)
        if fragment.id in deletions.removed
        else updated.get(fragment.id, fragment)
        for fragment in fragments
    ]
    # New fragments come last and keep the id 0 that they are written with: Lance gives them ids
    # that no index ever covered. With an id that one did cover, their rows would not be found by it
    # (docs/substrate.md, Other columns).
    inserted = [replace(file, row_id_meta=None) for file in files]
    operation = LanceOperation.Merge([*remaining, *inserted], reshape.schema)
    inserted_count = sum(file.physical_rows for file in files)
    row_count = staged.row_count + inserted_count - deletions.row_count
    return replace(staged, operation=operation, row_count=row_count)


def _without_rows(fragment: Fragment) -> Fragment:
    """The fragment as Lance's Merge drops it: it must be listed, with all of its rows deleted."""
    # The count decides: the file need not exist (docs/substrate.md, Other columns).
    deletions = DeletionFile(
        read_version=0,
        id=0,
        file_type="array",
        num_deleted_rows=fragment.physical_rows,
        base_id=None,
    )
    return replace(fragment, deletion_file=deletions)


def _require_distinct(names: Sequence[str]) -> None:
    repeated = sorted(name for name, count in Counter(names).items() if count > 1)
    if repeated:
        message = f"duplicate column: the table has two columns named {repeated[0]}"
        raise InvalidInputError(message)


def _require_values(
    table: Table,
    columns: Sequence[TableColumn],
    fragments: Sequence[Fragment],
    files: Sequence[ColumnFile],
) -> None:
    written = {(file.fragment_id, name) for file in files for name in file.columns}
    for column in columns:
        if column.source is not None or column.field.nullable:
            continue
        missing = [each.id for each in fragments if (each.id, column.name) not in written]
        if missing:
            message = (
                f"column {column.name} may not be null, and has no values for "
                f"{len(missing)} of {len(fragments)} fragments of {table.address}"
            )
            raise InvalidInputError(message, hint="write a column file for each fragment")


def _require_copies(
    table: Table,
    stored: Mapping[str, StoredColumn],
    fragments: Sequence[Fragment],
    files: Sequence[ColumnFile],
) -> None:
    """Check that `plan_reshape` was followed: Lance would reject the write when it is applied."""
    written = {(file.fragment_id, name) for file in files for name in file.columns}
    current = read_columns(table.handle.lance_schema)
    by_ids = {column.ids: column for column in current.values()}
    for name, column in stored.items():
        source = by_ids.get(column.ids)
        if source is None:
            is_merged = name not in current or all((each.id, name) in written for each in fragments)
        else:
            is_free = name == source.name or name not in current
            is_merged = is_free and source.is_nullable == column.is_nullable
        assert is_merged, f"column {name} has to be copied, as plan_reshape says"


def _store_columns(table: Table, columns: Sequence[TableColumn]) -> Mapping[str, StoredColumn]:
    """The columns as Lance will store them: by their old numbers, or by numbers never used."""
    current = read_columns(table.handle.lance_schema)
    described = describe_columns(table, [column.field for column in columns])
    # Numbers in files count as well: those still have the values of dropped columns.
    free = table.handle.max_field_id + 1
    stored: dict[str, StoredColumn] = {}
    for column in columns:
        own = described[column.name]
        if column.source is None:
            stored[column.name] = own.renumbered(free)
            free += len(own.fields)
        else:
            source = current[column.source]
            assert source.storage_types == own.storage_types, "its values stay as they are stored"
            stored[column.name] = source.renamed(column.name, nullable=column.field.nullable)
    return stored
