"""`omnigraph query`: run a read query."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.cli import graphs, options, queries, render
from omnigraph.cli.formats import Format, write_result
from omnigraph.wording import count_of

if TYPE_CHECKING:
    from omnigraph.engine.query_results import QueryResult


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
    exact: Annotated[
        bool | None,
        typer.Option("--exact/--approximate", help="Search without approximate indexes, or with."),
    ] = None,
    timeout: options.Timeout = None,
    memory: options.Memory = None,
    max_rows: options.MaxRows = None,
    embedding_model: Annotated[
        str | None,
        typer.Option(
            "--embedding-model",
            metavar="MODEL",
            help="Look among the vectors that this model made, instead of the schema's.",
        ),
    ] = None,
    format_: options.ResultFormat = None,
    json: options.Json = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show how the query would run; do not run it.")
    ] = False,
    verbose: Annotated[
        bool,
        typer.Option(
            "--verbose", "-v", help="Print the number of rows, the commit and the engine."
        ),
    ] = False,
) -> None:
    """Run a read query on one commit, and print its rows."""
    wanted = _format(format_, json=json, explain=explain)
    source = queries.Source.read(file, text)
    parameters = source.parameters(document, pairs, name=name)
    handle = graphs.open_graph(store, read_only=True)
    with source.name_diagnostics():
        if explain:
            explanation = handle.explain(
                source.text,
                parameters,
                name=name,
                branch=branch,
                commit=commit,
                version=version,
                engine=engine,
                exact=exact,
                memory=memory,
            )
            if wanted is Format.JSON:
                render.show_json(asdict(explanation))
            else:
                render.show_text(str(explanation))
            return
        result = handle.query(
            source.text,
            parameters,
            name=name,
            branch=branch,
            commit=commit,
            version=version,
            engine=engine,
            exact=exact,
            timeout=timeout,
            memory=memory,
            max_rows=options.max_rows(max_rows),
            embedding_model=embedding_model,
        )
    write_result(result.arrow(), wanted)
    _say_summary(result, wanted, verbose=verbose)


def _format(wanted: Format | None, *, json: bool, explain: bool) -> Format:
    chosen = options.choose_format(wanted, json=json)
    if explain and chosen not in (Format.TABLE, Format.JSON):
        message = f"a plan has no rows to print as {chosen}; use table or json"
        raise typer.BadParameter(message, param_hint="--format")
    return chosen


def _say_summary(result: QueryResult, wanted: Format, *, verbose: bool) -> None:
    for note in result.notes:
        render.say(f"note: {note}")
    rows = count_of(len(result), "row")
    if verbose:
        render.say(f"{rows} at commit {result.commit_id}")
        render.say_engine(result.engine, result.why)
    elif wanted is Format.TABLE and sys.stdout.isatty() and sys.stderr.isatty():
        render.say(rows)
