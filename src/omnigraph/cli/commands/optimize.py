"""`omnigraph optimize`: store the rows of a branch in fewer files, and index them."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from omnigraph.cli import graphs, options, render
from omnigraph.cli.progress import show_progress
from omnigraph.cli.spark import quick_spark


def optimize(
    *,
    store: options.Store = None,
    branch: options.OnBranch = None,
    type_names: options.Types = None,
    if_needed: Annotated[
        bool,
        typer.Option("--if-needed", help="Leave tables that are read almost as fast already."),
    ] = False,
    engine: options.OnEngine = None,
    actor: options.Actor = None,
    message: options.Message = None,
    quiet: options.Quiet = False,
    json: options.Json = False,
) -> None:
    """Store rows in fewer and fuller files, without deleted rows, and index all of them."""
    handle = graphs.open_graph(store, actor=actor)
    with quick_spark(), show_progress(quiet=quiet or json) as progress:
        result = handle.optimize(
            branch=branch,
            types=type_names or None,
            if_needed=if_needed,
            engine=engine,
            message=message,
            progress=progress,
        )
    render.say_hidden(result.hidden)
    if json:
        tables = {name: asdict(done) for name, done in result.tables.items()}
        facts = {"engine": result.engine, "why": result.why, "shared": result.shared}
        render.show_json({"commit_id": result.commit_id, "tables": tables, **facts})
        return
    if result.shared:
        names = ", ".join(result.shared)
        render.say(f"not optimized, because another branch wrote them: {names}")
    if result.commit_id is None:
        render.say("nothing to do")
        return
    render.say(f"commit {result.commit_id} on branch {branch or 'main'}")
    render.say_engine(result.engine, result.why)
    rows = [
        (
            name,
            f"{done.fragments_before:,}",
            f"{done.fragments_after:,}",
            f"{done.rows_rewritten:,}",
            ", ".join(done.indexed),
        )
        for name, done in result.tables.items()
    ]
    render.show_table(["type", "fragments before", "after", "rows rewritten", "indexed"], rows)
