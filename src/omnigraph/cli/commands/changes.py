"""`omnigraph changes`: follow what happens on a branch, commit by commit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from omnigraph.cli import diffs, options, render
from omnigraph.cli.commits import commit_facts

if TYPE_CHECKING:
    from omnigraph.changes.feed import Batch, CommitChanges

group = typer.Typer(help="Follow what changes, commit by commit.", no_args_is_help=True)


@group.command("poll")
def poll(
    *,
    store: options.Store = None,
    after: Annotated[
        str | None,
        typer.Option(
            "--after", metavar="CURSOR", help="Where to go on; from the first commit without."
        ),
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", "-n", metavar="N", min=1, help="Commits at most.")
    ] = 100,
    branch: options.AtBranch = None,
    kinds: diffs.Kinds = None,
    types: diffs.Types = None,
    ops: diffs.Ops = None,
    rows: diffs.Rows = False,
    json: options.Json = False,
) -> None:
    """Show the commits after a cursor, and what each changed. Oldest first."""
    from omnigraph import graph

    opened = graph.open(options.required_store(store), read_only=True)
    found = opened.changes(
        after=after, branch=branch, limit=limit, kinds=kinds, types=types, ops=ops
    )
    if json:
        render.show_json(_facts(found, rows=rows))
        return
    _show(found, rows=rows)
    more = "that is all for now" if found.is_newest else "there is more"
    render.say(f"{more}; go on with --after {found.cursor}")


@group.command("baseline")
def baseline(
    *,
    store: options.Store = None,
    branch: options.AtBranch = None,
    json: options.Json = False,
) -> None:
    """Print the cursor of a branch as it is now. For who starts from a copy of it."""
    from omnigraph import graph

    opened = graph.open(options.required_store(store), read_only=True)
    cursor = opened.baseline(branch=branch)
    if json:
        render.show_json({"branch": branch or "main", "cursor": cursor})
    else:
        render.show_text(cursor)


def _show(batch: Batch, *, rows: bool) -> None:
    if rows:
        render.show_table(
            ["commit", "type", "op", "id", "before", "after"],
            [
                (each.commit.commit_id, *diffs.row_cells(row))
                for each in batch.commits
                for row in diffs.row_objects(each.diff)
            ],
        )
        return
    render.show_table(
        ["commit", "created", "operation", "actor", "changes"],
        [
            (
                each.commit.commit_id,
                f"{each.commit.created_at:%Y-%m-%d %H:%M:%S}",
                each.commit.operation,
                each.commit.actor,
                _told(each),
            )
            for each in batch.commits
        ],
    )


def _told(changes: CommitChanges) -> str:
    """What a commit changed, on one line: `Person +2 ~1, Knows -3`."""
    marks = {"inserted": "+", "updated": "~", "deleted": "-"}
    told = (
        " ".join([name, *(f"{marks[kind]}{count}" for kind, count in each.items() if count)])
        for name, each in diffs.counts(changes.diff).items()
    )
    return ", ".join(told)


def _facts(batch: Batch, *, rows: bool) -> dict[str, Any]:
    commits = []
    for each in batch.commits:
        facts = {"commit": commit_facts(each.commit), "changes": diffs.counts(each.diff)}
        commits.append({**facts, "rows": list(diffs.row_objects(each.diff))} if rows else facts)
    return {"commits": commits, "cursor": batch.cursor, "is_newest": batch.is_newest}
