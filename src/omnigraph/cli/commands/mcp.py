"""`omnigraph mcp`: serve a graph to an agent, by the Model Context Protocol."""

from __future__ import annotations

from typing import Annotated

import typer

from omnigraph.cli import graphs, options, render


def mcp(
    *,
    store: options.Store = None,
    base: Annotated[
        str | None,
        typer.Option("--base", metavar="NAME", help="The branch to start from; main by default."),
    ] = None,
    branch: Annotated[
        str | None,
        typer.Option(
            "--branch",
            metavar="NAME",
            help="The branch to write to, created by the first write; a new one by default.",
        ),
    ] = None,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Offer no tool that writes.")
    ] = False,
    actor: options.Actor = None,
) -> None:
    """Serve a graph to an agent on standard input and output; its writes go to a branch.

    An agent's settings name this command: its tools are the schema, queries, searches, stored
    queries and, on a branch that a person reviews, changes.
    """
    from omnigraph.agents.requirements import require_mcp
    from omnigraph.clock import SystemClock

    require_mcp()
    from omnigraph.agents.protocol import serve_stdio
    from omnigraph.agents.workspace import Workspace

    handle = graphs.open_graph(store, actor=actor).at(branch=base)
    name = f"agent/{SystemClock().ulid().lower()}" if branch is None else branch
    workspace = Workspace.open(handle, name, writes=not read_only)
    render.say(f"serving {handle.uri}; writes go to branch {workspace.branch}")
    serve_stdio(workspace)
