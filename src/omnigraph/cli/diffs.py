"""Diffs as they are printed: steps of the schema, then counts by type, or row by row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from itertools import chain
from typing import TYPE_CHECKING, Annotated, Any

import typer

from omnigraph.choices import Op, TableKind
from omnigraph.cli import render
from omnigraph.cli.formats import Format, write_objects, write_result

if TYPE_CHECKING:
    import pyarrow as pa

    from omnigraph.changes.graphs import GraphDiff
    from omnigraph.changes.records import Chunk
    from omnigraph.model.tables import TableKey


Kinds = Annotated[list[TableKind] | None, typer.Option("--kind", help="Only nodes, or only edges.")]
Types = Annotated[
    list[str] | None, typer.Option("--type", metavar="NAME", help="Only rows of this type.")
]
Ops = Annotated[list[Op] | None, typer.Option("--op", help="Only rows with this change.")]
Rows = Annotated[bool, typer.Option("--rows", help="Every changed row, before and after.")]

_SIDES = ("before", "after")


def write_diff(diff: GraphDiff, wanted: Format, *, rows: bool) -> None:
    """Write the schema steps of a diff, then its counts or rows, to standard output.

    CSV and Arrow have the counts or the rows alone.
    """
    if wanted is Format.TABLE and diff.schema:
        render.show_text("\n".join(step.describe() for step in diff.schema))
        if not counts(diff):
            return
    if rows:
        _write_rows(diff, wanted)
    elif wanted is Format.JSON:
        engine = {"engine": diff.engine, "why": diff.why} if diff.why else {}
        points = {"before": diff.before, "after": diff.after}
        render.show_json({**points, **engine, **schema_facts(diff), "changes": counts(diff)})
    else:
        write_result(_summary(diff), wanted)


def schema_facts(diff: GraphDiff) -> dict[str, list[dict[str, Any]]]:
    """The schema steps under their name; nothing if the schema is the same."""
    return {"schema": [step.to_json() for step in diff.schema]} if diff.schema else {}


def counts(diff: GraphDiff) -> dict[str, dict[str, int]]:
    """Rows inserted, updated and deleted, by type; a type without any is left out."""
    return {name: asdict(count) for name, count in diff.counts.items() if count}


def row_objects(diff: GraphDiff) -> Iterator[dict[str, Any]]:
    """Every changed row, with values that JSON has."""
    for table in diff.tables:
        for chunk in table.chunks(diff.ops):
            yield from _changes(table.type.table_key, chunk)


def row_cells(row: dict[str, Any]) -> tuple[str, ...]:
    """A changed row, for a table; of an updated row, only what differs."""
    from omnigraph.cli.cells import to_json

    before, after = (row[side] for side in _SIDES)
    if before is not None and after is not None:
        changed = [name for name in after if before[name] != after[name]]
        before, after = ({name: side[name] for name in changed} for side in (before, after))
    shown = ("" if side is None else to_json(side) for side in (before, after))
    return (row["type"], row["op"], row["id"], *shown)


def _write_rows(diff: GraphDiff, wanted: Format) -> None:
    objects = row_objects(diff)
    if wanted in (Format.JSON, Format.JSONL):
        steps: Iterator[dict[str, Any]] = ({"schema": step.to_json()} for step in diff.schema)
        write_objects(chain(steps, objects), is_list=wanted is Format.JSON)
    elif wanted is Format.TABLE:
        render.show_table(["type", "op", "id", *_SIDES], map(row_cells, objects))
    else:
        write_result(_texts(objects), wanted)


def _changes(key: TableKey, chunk: Chunk) -> Iterator[dict[str, Any]]:
    rows = chunk.after if chunk.before is None else chunk.before
    assert rows is not None, "a row exists before, or after"
    sides = [_plain(side, rows.num_rows) for side in (chunk.before, chunk.after)]
    for old, new in zip(*sides, strict=True):
        row = new if old is None else old
        assert row is not None, "a row exists before, or after"
        yield {
            "kind": str(key.kind),
            "type": str(key.type_name),
            "op": str(chunk.op),
            "id": row["id"],
            "before": old,
            "after": new,
        }


def _plain(rows: pa.Table | None, count: int) -> Iterator[dict[str, Any] | None]:
    from omnigraph.cli.cells import plain_rows

    if rows is None:
        yield from [None] * count
        return
    for batch in rows.to_batches():
        for row in plain_rows(batch):
            yield dict(zip(rows.column_names, row, strict=True))


def _summary(diff: GraphDiff) -> pa.Table:
    import pyarrow as pa

    schema = pa.schema(
        [
            ("type", pa.string()),
            *((name, pa.int64()) for name in ("inserted", "updated", "deleted")),
        ]
    )
    rows = [{"type": name, **count} for name, count in counts(diff).items()]
    return pa.Table.from_pylist(rows, schema=schema)


def _texts(objects: Iterator[dict[str, Any]]) -> pa.Table:
    """The rows in columns of text; each side is JSON, since types have different properties."""
    import pyarrow as pa

    from omnigraph.cli.cells import to_json

    names = ("kind", "type", "op", "id", *_SIDES)
    schema = pa.schema([(name, pa.string()) for name in names])
    rows = [
        {**row, **{side: row[side] and to_json(row[side]) for side in _SIDES}} for row in objects
    ]
    return pa.Table.from_pylist(rows, schema=schema)
