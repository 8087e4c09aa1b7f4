"""`omnigraph index`: build the indexes that lookups use."""

from __future__ import annotations

from dataclasses import asdict

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
        render.show_json(asdict(result))
        return
    if result.commit_id is None:
        render.say("every index is there, and covers every row")
    else:
        render.say(f"commit {result.commit_id} on branch {branch or 'main'}")
        render.say(f"built by the {result.engine} engine, because {result.why}")
        done = {"indexed": result.built, "joined": result.joined, "removed": result.removed}
        shown = {heading: columns for heading, columns in done.items() if columns}
        types = dict.fromkeys(name for columns in shown.values() for name in columns)
        render.show_table(
            ["type", *shown],
            [
                (name, *(", ".join(columns.get(name, ())) for columns in shown.values()))
                for name in types
            ],
        )
    for name, columns in result.waiting.items():
        render.say(f"not built yet, because it comes with search: {name} ({', '.join(columns)})")
