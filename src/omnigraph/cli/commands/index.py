"""`omnigraph index`: build the indexes that lookups use."""

from __future__ import annotations

from omnigraph.cli import options, render


def index(
    *,
    store: options.Store = None,
    branch: options.OnBranch = None,
    actor: options.Actor = None,
    message: options.Message = None,
    json: options.Json = False,
) -> None:
    """Build missing indexes, and extend the others to rows that they do not cover yet."""
    from omnigraph import graph

    opened = graph.open(options.required_store(store), actor=actor)
    result = opened.ensure_indices(branch=branch, message=message)
    if json:
        render.show_json({"commit_id": result.commit_id, "built": dict(result.built)})
        return
    if result.commit_id is None:
        render.say("every index is there, and covers every row")
        return
    render.say(f"commit {result.commit_id} on branch {branch or 'main'}")
    rows = [(type_name, ", ".join(columns)) for type_name, columns in result.built.items()]
    render.show_table(["type", "indexed"], rows)
