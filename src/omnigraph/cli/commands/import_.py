"""`omnigraph import`: make graphs of other systems again."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from omnigraph.cli import options, render

group = typer.Typer(help="Import a graph of a Rust release.", no_args_is_help=True)


@group.callback()
def _group() -> None:
    """Keep `original` a subcommand: typer would take the only one for the whole group."""


@group.command("original")
def import_original(
    source: Annotated[
        str,
        typer.Argument(metavar="SOURCE", help="The graph of a Rust release. It is only read."),
    ],
    target: Annotated[
        str, typer.Argument(metavar="TARGET", help="An empty or a new place for the graph.")
    ],
    *,
    json: options.Json = False,
) -> None:
    """Make a graph of a Rust release (0.4 to 0.8) again, with its whole history.

    Brings every branch, commit, actor, time, merge parent and row. Writes that were interrupted
    there are recovered. If the import is interrupted, the same command continues it.
    """
    from omnigraph import graph

    result = graph.import_original(source, target)
    with render.report_of(f"the graph {result.target} was imported"):
        if json:
            render.show_json(asdict(result))
            return
        render.say(f"imported from {result.release} (internal schema {result.internal_schema})")
        render.show_table(["branch", "commits"], result.commits.items())
        for operation_id, outcome in result.recovered.items():
            render.say(f"interrupted write {operation_id}: {outcome}")
