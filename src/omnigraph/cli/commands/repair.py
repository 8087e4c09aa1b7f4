"""`omnigraph repair`: restore tables that something else than omnigraph has written to."""

from __future__ import annotations

from dataclasses import asdict

from omnigraph.cli import graphs, options, render


def repair(
    *,
    store: options.Store = None,
    branch: options.OneBranch = None,
    confirm: options.Confirm = False,
    yes: options.Yes = False,
    json: options.Json = False,
) -> None:
    """Undo what another program wrote to a table. No query's result changes.

    Shows each table whose newest version no branch pins and no write of omnigraph made; with
    --confirm, makes the pinned rows the newest again, so that writes can continue. Interrupted
    writes need no repair: the next command that writes recovers them.
    """
    handle = graphs.open_graph(store, read_only=not confirm)
    if confirm:
        graphs.ask_first(handle, "undo what other programs wrote to tables", yes=yes)
    result = handle.repair(branch=branch, dry_run=not confirm)
    if json:
        render.show_json({**asdict(result), "repaired": confirm})
        return
    if not result.drifts:
        render.say(
            "nothing to repair: every table is at its published version, or a write is in progress"
        )
        return
    render.show_table(
        ["branch", "type", "pinned", "head", "written by", "location"],
        [
            (
                drift.branch,
                drift.table_key,
                drift.pinned,
                drift.head,
                drift.made_by or "unknown",
                drift.location,
            )
            for drift in result.drifts
        ],
    )
    if confirm:
        commits = ", ".join(result.commit_ids)
        render.say(f"restored the published rows: commit {commits}")
    else:
        render.say("readers see the published versions; give --confirm to undo what follows them")
