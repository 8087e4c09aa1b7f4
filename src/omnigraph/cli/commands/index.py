"""`omnigraph index`: build the indexes that lookups use."""

from __future__ import annotations

from omnigraph.cli import options, render
from omnigraph.cli.progress import show_progress
from omnigraph.cli.spark import quick_spark


def index(
    *,
    store: options.Store = None,
    branch: options.OnBranch = None,
    engine: options.OnEngine = None,
    actor: options.Actor = None,
    message: options.Message = None,
    quiet: options.Quiet = False,
    json: options.Json = False,
) -> None:
    """Build missing indexes, and extend the others to new rows."""
    from omnigraph import graph

    handle = graph.open(options.require_store(store), actor=actor)
    with quick_spark(), show_progress(quiet=quiet or json) as progress:
        result = handle.ensure_indices(
            branch=branch, engine=engine, message=message, progress=progress
        )
    if json:
        facts = {"engine": result.engine, "why": result.why, "built": dict(result.built)}
        render.show_json({"commit_id": result.commit_id, **facts})
        return
    if result.commit_id is None:
        render.say("every index is there, and covers every row")
        return
    render.say(f"commit {result.commit_id} on branch {branch or 'main'}")
    render.say(f"built by the {result.engine} engine, because {result.why}")
    rows = [(type_name, ", ".join(columns)) for type_name, columns in result.built.items()]
    render.show_table(["type", "indexed"], rows)
