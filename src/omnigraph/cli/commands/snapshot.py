"""`omnigraph snapshot`: the tables of a graph at one commit."""

from __future__ import annotations

from omnigraph.cli import graphs, options, render


def snapshot(
    *,
    store: options.Store = None,
    branch: options.AtBranch = None,
    commit: options.AtCommit = None,
    version: options.AtVersion = None,
    json: options.Json = False,
) -> None:
    """Show the version of each table at one commit, and its number of rows."""
    handle = graphs.open_graph(store, read_only=True)
    shown = handle.snapshot(branch=branch, commit=commit, version=version)
    render.say_hidden(shown.hidden)
    if json:
        render.show_json(shown.to_json())
        return
    render.say(
        f"branch {shown.branch} at commit {shown.head.commit_id}, "
        f"manifest version {shown.manifest_version}"
    )
    render.show_table(
        ["type", "rows", "version", "ref", "location"],
        [
            (key, pin.row_count, pin.version, pin.ref or "main", pin.location)
            for key, pin in shown.pins.items()
        ],
    )
