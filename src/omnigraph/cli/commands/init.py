"""`omnigraph init`: create a graph."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from omnigraph.cli import graphs, options, render
from omnigraph.cli.schema_warnings import find_warnings, say_warnings


def init(
    schema: Annotated[
        Path, typer.Option("--schema", metavar="FILE", help="The schema, a .pg file.")
    ],
    uri: Annotated[
        str | None, typer.Argument(metavar="URI", help="Where to create it.", show_default=False)
    ] = None,
    *,
    store: options.Store = None,
    actor: options.Actor = None,
    message: options.Message = None,
    json: options.Json = False,
) -> None:
    """Create a graph: one empty table per type, and a first commit."""
    from omnigraph import graph

    place = graphs.find_place(store, uri).require_stored()
    created = graph.init(place, schema, actor=actor, message=message)
    snapshot = created.snapshot()
    commit_id = snapshot.head.commit_id
    if json:
        types = [str(key) for key in snapshot.pins]
        facts = {"graph": created.uri, "commit_id": commit_id, "types": types}
        render.show_json({**facts, "warnings": find_warnings(schema)})
        return
    render.show_facts({"graph": created.uri, "commit": commit_id, "types": len(snapshot.pins)})
    say_warnings(schema)
