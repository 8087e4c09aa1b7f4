"""`omnigraph diff`: how two points of history differ."""

from __future__ import annotations

from typing import Annotated

import typer

from omnigraph.changes.facts import counts
from omnigraph.cli import diffs, graphs, options, render
from omnigraph.cli.formats import Format
from omnigraph.cli.spark import quick_spark


def diff(
    before: Annotated[str, typer.Argument(metavar="BEFORE", help="A branch, a commit or a tag.")],
    after: Annotated[str, typer.Argument(metavar="AFTER", help="A branch, a commit or a tag.")],
    *,
    store: options.Store = None,
    kinds: diffs.Kinds = None,
    types: options.Types = None,
    ops: diffs.Ops = None,
    rows: diffs.Rows = False,
    engine: options.OnEngine = None,
    format_: options.ResultFormat = None,
    json: options.Json = False,
) -> None:
    """Show inserts, updates and deletes between two points: counts, or rows with --rows.

    Where the schema changed, its steps come first.
    """
    wanted = options.choose_format(format_, json=json)
    handle = graphs.open_graph(store, read_only=True)
    with quick_spark():
        difference = handle.diff(before, after, kinds=kinds, types=types, ops=ops, engine=engine)
    render.say_hidden(difference.hidden)
    if wanted is Format.TABLE:
        render.say(f"from commit {difference.before} to commit {difference.after}")
        render.say_engine(difference.engine, difference.why)
        if not difference.schema and not counts(difference):
            render.say("nothing differs")
            return
    diffs.write_diff(difference, wanted, rows=rows)
