"""`omnigraph cleanup`: remove what killed processes left behind."""

from __future__ import annotations

from dataclasses import asdict

import typer

from omnigraph.cli import options, render
from omnigraph.cli.exits import Exit


def cleanup(
    *, store: options.Store = None, confirm: options.Confirm = False, json: options.Json = False
) -> None:
    """Remove what killed processes left and nothing uses. Without --confirm, show what."""
    from omnigraph import graph

    handle = graph.open(options.require_store(store), read_only=not confirm)
    result = handle.cleanup(dry_run=not confirm)
    if json:
        render.show_json({**asdict(result), "removed": confirm})
    else:
        refs = [("ref", leftover.ref, leftover.location) for leftover in result.refs]
        folders = [path.rpartition("/") for path in result.scratch]
        tables = [path.rpartition("/") for path in result.tables]
        leftovers = [
            *refs,
            *(("scratch", name, place) for place, _, name in folders),
            *(("table", name, place) for place, _, name in tables),
        ]
        if leftovers:
            render.show_table(["kind", "name", "in"], leftovers)
        render.say(_summary(len(leftovers), confirm=confirm))
        for trouble in result.troubles:
            place = trouble.location
            what = place if trouble.ref is None else f"{trouble.ref} in {place}"
            render.say(f"{what} stays, because {trouble.message}")
    if result.troubles:
        raise typer.Exit(Exit.FAILED)


def _summary(count: int, *, confirm: bool) -> str:
    if not count:
        return "there is nothing to remove"
    return "removed" if confirm else "nothing was removed: give --confirm to remove it"
