"""`omnigraph init`: create a graph."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from omnigraph.cli import options, render


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

    created = graph.init(options.required_store(uri or store), schema, actor=actor, message=message)
    snapshot = created.snapshot()
    commit_id = snapshot.head.commit_id
    if json:
        types = [str(key) for key in snapshot.pins]
        render.show_json({"graph": created.uri, "commit_id": commit_id, "types": types})
        return
    render.show_facts({"graph": created.uri, "commit": commit_id, "types": len(snapshot.pins)})
