"""`omnigraph query`: ask a graph."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.cli import options, render
from omnigraph.cli.formats import Format, write_result
from omnigraph.cli.parameters import declared_types, read_parameters
from omnigraph.cli.texts import read_text, shown_name

if TYPE_CHECKING:
    from omnigraph.engine.queries import QueryResult


class Engine(StrEnum):
    """The engines there are to ask for."""

    AUTO = "auto"
    LOCAL = "local"
    SPARK = "spark"


def _remember_format(context: typer.Context, value: Format | None) -> Format | None:
    if value is Format.JSON:
        options.speak_json(context)
    return value


def query(
    name: Annotated[
        str | None,
        typer.Argument(help="Which query of the text; not needed when it has one."),
    ] = None,
    *,
    store: options.Store = None,
    file: Annotated[
        str | None,
        typer.Option("--query", "-q", metavar="FILE", help="A .gq file, or - to read it."),
    ] = None,
    text: Annotated[
        str | None, typer.Option("--text", "-e", metavar="TEXT", help="The query itself.")
    ] = None,
    document: Annotated[
        str | None,
        typer.Option("--params", metavar="JSON", help="Parameters, as one JSON object."),
    ] = None,
    pairs: Annotated[
        list[str] | None,
        typer.Option(
            "--param",
            "-p",
            metavar="NAME=VALUE",
            help="One parameter: plain text for a String, JSON for a number, a Bool or a list.",
        ),
    ] = None,
    branch: options.AtBranch = None,
    commit: options.AtCommit = None,
    version: options.AtVersion = None,
    engine: Annotated[
        Engine | None,
        typer.Option("--engine", help="What runs it; auto, the default, goes by size."),
    ] = None,
    format_: Annotated[
        Format | None,
        typer.Option(
            "--format", help="How to print the rows; table by default.", callback=_remember_format
        ),
    ] = None,
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
    source, called = _source(file, text)
    types = declared_types(source, name) if pairs else {}
    parameters = read_parameters(document, pairs or (), types=types)
    opened = graph.open(options.required_store(store), read_only=True)
    asked = engine and engine.value
    place = {"branch": branch, "commit": commit}
    with _diagnostics_called(called):
        if explain:
            found = opened.explain(
                source, parameters, name=name, **place, version=version, engine=asked
            )
            if wanted is Format.JSON:
                render.show_json(asdict(found))
            else:
                render.show_text(str(found))
            return
        result = opened.query(source, parameters, name=name, **place, version=version, engine=asked)
    write_result(result.arrow(), wanted)
    _say_what_ran(result, wanted, verbose=verbose)


def _format(wanted: Format | None, *, json: bool, explain: bool) -> Format:
    if json and wanted not in (None, Format.JSON):
        message = f"--json and --format {wanted} ask for two different things"
        raise typer.BadParameter(message, param_hint="--format")
    chosen = Format.JSON if json else wanted or Format.TABLE
    if explain and chosen not in (Format.TABLE, Format.JSON):
        message = f"a plan has no rows to print as {chosen}; use table or json"
        raise typer.BadParameter(message, param_hint="--format")
    if chosen is Format.ARROW and sys.stdout is not None and sys.stdout.isatty():
        message = "arrow is not for terminals: send it to a file or a program"
        raise typer.BadParameter(message, param_hint="--format")
    return chosen


def _source(file: str | None, text: str | None) -> tuple[str, str]:
    """The text of the query, and what to call it in diagnostics."""
    if (file is None) == (text is None):
        message = "give the query by --query FILE or by -e TEXT, one of the two"
        raise typer.BadParameter(message, param_hint="--query")
    if text is not None:
        return text, "query"
    assert file is not None
    return read_text(file), shown_name(file)


@contextmanager
def _diagnostics_called(name: str) -> Iterator[None]:
    """Let diagnostics name the file that the text came from, which the graph was never told."""
    from omnigraph.lang.diagnostics import DiagnosticsError
    from omnigraph.lang.source import Source

    try:
        yield
    except DiagnosticsError as error:
        source = Source(name, error.source.text)
        raise DiagnosticsError(error.diagnostics, source, code=error.code) from error


def _say_what_ran(result: QueryResult, wanted: Format, *, verbose: bool) -> None:
    rows = "1 row" if len(result) == 1 else f"{len(result):,} rows"
    if verbose:
        why = f"by the {result.engine} engine, because {result.why}"
        render.say(f"{rows} at commit {result.commit_id}, {why}")
    elif wanted is Format.TABLE and sys.stdout.isatty() and sys.stderr.isatty():
        render.say(rows)
