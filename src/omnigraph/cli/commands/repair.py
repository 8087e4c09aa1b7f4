"""`omnigraph repair`: bring table heads that nobody answers for back to what branches pin."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from omnigraph.cli import options, render


def repair(
    *,
    store: options.Store = None,
    branch: Annotated[
        str | None, typer.Option("--branch", metavar="NAME", help="Only this one; all by default.")
    ] = None,
    confirm: options.Confirm = False,
    json: options.Json = False,
) -> None:
    """Undo what was written to a table behind the graph's back. No answer changes.

    Shows the heads that lie beyond their pins and that no write answers for; with --confirm, makes
    the pinned rows the newest again, so that writes go on. Interrupted writes are not drift: every
    command that writes brings those to an end by itself.
    """
    from omnigraph import graph

    opened = graph.open(options.required_store(store), read_only=not confirm)
    result = opened.repair(branch=branch, dry_run=not confirm)
    if json:
        render.show_json({**asdict(result), "repaired": confirm})
        return
    if not result.drifts:
        render.say("every head is pinned, or a write answers for it: there is nothing to repair")
        return
    render.show_table(
        ["branch", "type", "pinned", "head", "written by", "location"],
        [
            (
                each.branch,
                each.table_key,
                each.pinned,
                each.head,
                each.made_by or "unknown",
                each.location,
            )
            for each in result.drifts
        ],
    )
    if confirm:
        commits = ", ".join(result.commit_ids)
        render.say(f"the pinned rows are the newest again: commit {commits}")
    else:
        render.say("readers see the pinned versions, and will; give --confirm to undo the rest")
