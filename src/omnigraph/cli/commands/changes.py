"""`omnigraph changes`: follow what happens on a branch, commit by commit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.changes.facts import batch_facts, row_objects
from omnigraph.changes.facts import counts as counts_of
from omnigraph.cli import diffs, graphs, options, render

if TYPE_CHECKING:
    from omnigraph.changes.diffs import Batch, CommitChanges

group = typer.Typer(help="Follow what changes, commit by commit.", no_args_is_help=True)


@group.command("poll")
def poll(
    *,
    store: options.Store = None,
    after: Annotated[
        str | None,
        typer.Option(
            "--after", metavar="CURSOR", help="Where to continue; the first commit by default."
        ),
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", "-n", metavar="N", min=1, help="How many commits at most.")
    ] = 100,
    branch: options.AtBranch = None,
    kinds: diffs.Kinds = None,
    types: options.Types = None,
    ops: diffs.Ops = None,
    rows: diffs.Rows = False,
    json: options.Json = False,
) -> None:
    """Show the commits after a cursor, and what each changed. Oldest first."""
    handle = graphs.open_graph(store, read_only=True)
    batch = handle.changes(
        after=after, branch=branch, limit=limit, kinds=kinds, types=types, ops=ops
    )
    render.say_hidden(batch.hidden)
    if json:
        render.show_json(batch_facts(batch, rows=rows))
        return
    _show(batch, rows=rows)
    more = "that is all for now" if batch.is_newest else "there is more"
    render.say(f"{more}; go on with --after {batch.cursor}")


@group.command("baseline")
def baseline(
    *,
    store: options.Store = None,
    branch: options.AtBranch = None,
    json: options.Json = False,
) -> None:
    """Print the cursor of a branch as it is now, to follow changes from there on."""
    handle = graphs.open_graph(store, read_only=True)
    cursor = handle.baseline(branch=branch)
    if json:
        render.show_json({"branch": branch or "main", "cursor": cursor})
    else:
        render.show_text(cursor)


def _show(batch: Batch, *, rows: bool) -> None:
    if rows:
        render.show_table(
            ["commit", "type", "op", "id", "before", "after"],
            [
                (changes.commit.commit_id, *cells)
                for changes in batch.commits
                for cells in _cells(changes)
            ],
        )
        return
    render.show_table(
        ["commit", "created", "operation", "actor", "changes"],
        [
            (
                changes.commit.commit_id,
                f"{changes.commit.created_at:%Y-%m-%d %H:%M:%S}",
                changes.commit.operation,
                changes.commit.actor,
                _summary(changes),
            )
            for changes in batch.commits
        ],
    )


def _summary(changes: CommitChanges) -> str:
    """What a commit changed, on one line: `schema 1 step, Person +2 ~1, Knows -3`."""
    count = len(changes.diff.schema)
    steps = [f"schema {count} step{'s' if count > 1 else ''}"] if count else []
    marks = {"inserted": "+", "updated": "~", "deleted": "-"}
    types = (
        " ".join([name, *(f"{marks[kind]}{count}" for kind, count in counts.items() if count)])
        for name, counts in counts_of(changes.diff).items()
    )
    return ", ".join([*steps, *types])


def _cells(changes: CommitChanges) -> Iterator[tuple[str, ...]]:
    """The lines of a commit in a table of rows: steps of the schema first."""
    for step in changes.diff.schema:
        yield "", "schema", "", "", step.describe()
    yield from map(diffs.row_cells, row_objects(changes.diff))
