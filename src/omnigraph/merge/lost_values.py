"""Values that the merged schema has no place for: texts that are no number, and the like.

A side may have converted a property, which it could since all of its values convert. The other side
went on to write values of the former type.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.changes.lifts import ConvertedColumn, Lift
from omnigraph.changes.records import ids_of
from omnigraph.integrity.violations import shorten
from omnigraph.merge.conflicts import Conflict, ConflictKind
from omnigraph.merge.decisions import Merged
from omnigraph.merge.rows import Sides
from omnigraph.model.ids import CommitId
from omnigraph.model.names import BranchName
from omnigraph.storage import lookups
from omnigraph.storage.tables import Table


def partial_conversions(lift: Lift) -> tuple[ConvertedColumn, ...]:
    """The columns of which some values may not convert."""
    return tuple(
        column
        for column in lift.columns
        if isinstance(column, ConvertedColumn) and not column.is_total
    )


def lost_values(
    sides: Sides, merged: Merged, branches: Mapping[CommitId, BranchName]
) -> Iterator[Conflict]:
    """The values of rows that stay or come, and that do not convert to the merged schema.

    Args:
        branches: The names of both sides.
    """
    upserts = pa.concat_tables([merged.added, merged.replaced])
    written = ids_of(upserts)
    for commit, ids in ((sides.theirs, written), (sides.ours, None)):
        for column in partial_conversions(sides.lift(commit)):
            lost = _lost_in(sides, commit, column, ids)
            # Rows that the merge writes may have got their value from elsewhere.
            has_none = ids_of(upserts.filter(upserts[column.name].is_null()))
            elsewhere = written.filter(pc.invert(pc.is_in(written, value_set=has_none)))
            gone = pa.concat_arrays([merged.deleted, elsewhere])
            lost = lost.filter(pc.invert(pc.is_in(lost["id"], value_set=gone)))
            for row in lost.to_pylist():
                yield _conflict(sides, column, row["id"], row["value"], commit, branches)


def _lost_in(
    sides: Sides, commit: CommitId, column: ConvertedColumn, ids: pa.Array | None
) -> pa.Table:
    """The ids and the values of a commit's rows that do not convert."""
    table, lift = sides.tables[commit], sides.lift(commit)
    assert table is not None, "a type without a table has no column to convert"
    rows = _read(table, [*dict.fromkeys(["id", column.source])], ids)
    values = lift.apply(rows, ["id", column.name])[column.name]
    is_lost = pc.and_(rows[column.source].is_valid(), values.is_null())
    lost = rows.filter(is_lost)
    return pa.table({"id": lost["id"], "value": lost[column.source]})


def _read(table: Table, columns: list[str], ids: pa.Array | None) -> pa.Table:
    return table.read(columns) if ids is None else lookups.find(table, "id", ids, columns=columns)


def _conflict(
    sides: Sides,
    column: ConvertedColumn,
    id_: str,
    value: object,
    commit: CommitId,
    branches: Mapping[CommitId, BranchName],
) -> Conflict:
    type_name = sides.type.name
    message = (
        f"{type_name} {id_!r} {column.name}: {shorten(value)} is a {column.source_type} "
        f"that is not a valid {column.type}, which the merged schema declares; "
        "no decision changes it: "
        f"change {column.source} of this row on branch {branches[commit]}, and merge again"
    )
    is_ours = commit == sides.ours
    return Conflict(
        ConflictKind.VALUE_CONSTRAINT_VIOLATION,
        type_name,
        id_,
        column.name,
        ours=value if is_ours else None,
        theirs=None if is_ours else value,
        message=message,
    )
