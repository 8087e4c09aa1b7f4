"""`omnigraph diff`: how two points of history differ."""

from __future__ import annotations

from typing import Annotated

import typer

from omnigraph.cli import changed, options, render
from omnigraph.cli.formats import Format
from omnigraph.cli.spark import start_spark


def diff(
    before: Annotated[str, typer.Argument(metavar="BEFORE", help="A branch or a commit.")],
    after: Annotated[str, typer.Argument(metavar="AFTER", help="A branch or a commit.")],
    *,
    store: options.Store = None,
    kinds: changed.Kinds = None,
    types: changed.Types = None,
    ops: changed.Ops = None,
    rows: changed.Rows = False,
    engine: options.OnEngine = None,
    format_: options.ResultFormat = None,
    json: options.Json = False,
) -> None:
    """Show what came, changed and went between two points. Counts, or with --rows all."""
    from omnigraph import graph

    wanted = options.chosen_format(format_, json=json)
    opened = graph.open(options.required_store(store), read_only=True)
    if engine is options.Engine.SPARK:
        start_spark()
    found = opened.diff(
        before, after, kinds=kinds, types=types, ops=ops, engine=engine and engine.value
    )
    if wanted is Format.TABLE:
        render.say(f"from commit {found.before} to commit {found.after}")
        render.say(f"compared by the {found.engine} engine, because {found.why}")
        if not changed.counts(found):
            render.say("nothing differs")
            return
    changed.write_diff(found, wanted, rows=rows)
