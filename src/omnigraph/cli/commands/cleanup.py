"""`omnigraph cleanup`: remove what killed processes left behind."""

from __future__ import annotations

from dataclasses import asdict

import typer

from omnigraph.cli import options, render
from omnigraph.cli.exits import Exit


def cleanup(
    *, store: options.Store = None, confirm: options.Confirm = False, json: options.Json = False
) -> None:
    """Remove what killed processes left and nothing names. Without --confirm, show what."""
    from omnigraph import graph

    opened = graph.open(options.required_store(store), read_only=not confirm)
    result = opened.cleanup(dry_run=not confirm)
    if json:
        render.show_json({**asdict(result), "removed": confirm})
    else:
        refs = [("ref", each.ref, each.location) for each in result.refs]
        folders = [each.rpartition("/") for each in result.scratch]
        found = [*refs, *(("scratch", name, place) for place, _, name in folders)]
        if found:
            render.show_table(["kind", "name", "in"], found)
        render.say(_summary(len(found), confirm=confirm))
        for each in result.troubles:
            what = each.location if each.ref is None else f"{each.ref} in {each.location}"
            render.say(f"{what} stays, because {each.message}")
    if result.troubles:
        raise typer.Exit(Exit.FAILED)


def _summary(count: int, *, confirm: bool) -> str:
    if not count:
        return "there is nothing to remove"
    return "removed" if confirm else "nothing was removed: give --confirm to remove it"
