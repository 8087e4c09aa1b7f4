"""Diffs as they are printed: steps of the schema, then counts by type, or row by row."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING, Annotated, Any

import typer

from omnigraph.changes.facts import counts, row_objects, schema_facts
from omnigraph.choices import Op, TableKind
from omnigraph.cli import render
from omnigraph.cli.formats import Format, write_objects, write_result

if TYPE_CHECKING:
    import pyarrow as pa

    from omnigraph.changes.diffs import GraphDiff


Kinds = Annotated[list[TableKind] | None, typer.Option("--kind", help="Only nodes, or only edges.")]
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


def row_cells(row: dict[str, Any]) -> tuple[str, ...]:
    """A changed row, for a table; of an updated row, only what differs."""
    from omnigraph.formats.cells import to_json

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

    from omnigraph.formats.cells import to_json

    names = ("kind", "type", "op", "id", *_SIDES)
    schema = pa.schema([(name, pa.string()) for name in names])
    rows = [
        {**row, **{side: row[side] and to_json(row[side]) for side in _SIDES}} for row in objects
    ]
    return pa.Table.from_pylist(rows, schema=schema)
