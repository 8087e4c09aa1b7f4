"""`omnigraph query`: ask a graph."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.cli import options, queries, render
from omnigraph.cli.formats import Format, write_result

if TYPE_CHECKING:
    from omnigraph.engine.queries import QueryResult


def query(
    name: queries.Name = None,
    *,
    store: options.Store = None,
    file: queries.File = None,
    text: queries.Text = None,
    document: queries.Document = None,
    pairs: queries.Pairs = None,
    branch: options.AtBranch = None,
    commit: options.AtCommit = None,
    version: options.AtVersion = None,
    engine: options.OnEngine = None,
    format_: options.ResultFormat = None,
    json: options.Json = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show how it would run; do not run it.")
    ] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Say how many rows, from where, by what.")
    ] = False,
) -> None:
    """Answer a read query, all of it from one commit."""
    from omnigraph import graph

    wanted = _format(format_, json=json, explain=explain)
    source = queries.Source.read(file, text)
    parameters = source.parameters(document, pairs, name=name)
    opened = graph.open(options.required_store(store), read_only=True)
    place = {"branch": branch, "commit": commit}
    with source.named():
        if explain:
            found = opened.explain(
                source.text, parameters, name=name, **place, version=version, engine=engine
            )
            if wanted is Format.JSON:
                render.show_json(asdict(found))
            else:
                render.show_text(str(found))
            return
        result = opened.query(
            source.text, parameters, name=name, **place, version=version, engine=engine
        )
    write_result(result.arrow(), wanted)
    _say_what_ran(result, wanted, verbose=verbose)


def _format(wanted: Format | None, *, json: bool, explain: bool) -> Format:
    chosen = options.chosen_format(wanted, json=json)
    if explain and chosen not in (Format.TABLE, Format.JSON):
        message = f"a plan has no rows to print as {chosen}; use table or json"
        raise typer.BadParameter(message, param_hint="--format")
    return chosen


def _say_what_ran(result: QueryResult, wanted: Format, *, verbose: bool) -> None:
    rows = "1 row" if len(result) == 1 else f"{len(result):,} rows"
    if verbose:
        why = f"by the {result.engine} engine, because {result.why}"
        render.say(f"{rows} at commit {result.commit_id}, {why}")
    elif wanted is Format.TABLE and sys.stdout.isatty() and sys.stderr.isatty():
        render.say(rows)
