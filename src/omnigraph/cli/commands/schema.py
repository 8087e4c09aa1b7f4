"""`omnigraph schema`: read a graph's schema."""

from __future__ import annotations

import typer

from omnigraph.cli import options, render

group = typer.Typer(help="Read the schema of a graph.", no_args_is_help=True)


@group.command("show")
def show_schema(
    *,
    store: options.Store = None,
    branch: options.AtBranch = None,
    commit: options.AtCommit = None,
    version: options.AtVersion = None,
    json: options.Json = False,
) -> None:
    """Print the schema as it was written; with --json, in the one form that equal schemas share."""
    from omnigraph import graph
    from omnigraph.schema import codec

    opened = graph.open(options.required_store(store), read_only=True)
    accepted = opened.schema.show(branch=branch, commit=commit, version=version)
    render.show_text(codec.encode(accepted.catalog) if json else accepted.text)
