"""`omnigraph export`: write a graph's rows into files."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated, Final

import typer

from omnigraph.choices import ExportFormat
from omnigraph.cli import graphs, options, output, render
from omnigraph.cli.progress import show_progress
from omnigraph.cli.spark import quick_spark

if TYPE_CHECKING:
    from omnigraph.export.results import ExportResult

_STANDARD_OUTPUT: Final = "-"


def export(
    target: Annotated[
        str,
        typer.Argument(
            metavar="TARGET",
            help="A file, such as graph.jsonl or graph.jsonl.zst; a directory for parquet, csv "
            "and Spark; either may be at s3://…; or - for standard output.",
        ),
    ],
    *,
    store: options.Store = None,
    format_: Annotated[
        ExportFormat | None, typer.Option("--format", help="ndjson by default.")
    ] = None,
    types: options.Types = None,
    branch: options.AtBranch = None,
    commit: options.AtCommit = None,
    version: options.AtVersion = None,
    engine: options.OnEngine = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace an earlier export of that name.")
    ] = False,
    quiet: options.Quiet = False,
    json: options.Json = False,
) -> None:
    """Write all rows of one commit to files; ndjson loads again with the same ids."""
    is_piped = target == _STANDARD_OUTPUT
    if is_piped and json:
        message = "standard output cannot have both the rows and what --json tells of them"
        raise typer.BadParameter(message, param_hint="--json")
    handle = graphs.open_graph(store, read_only=True)
    point = handle.at(branch=branch, commit=commit, version=version)
    # Rows on standard output show progress by themselves.
    with (
        quick_spark(),
        show_progress(quiet=quiet or json or is_piped) as progress,
        output.standard_output() if is_piped else nullcontext(),
    ):
        result = point.export(
            target,
            types=types,
            format=format_,
            engine=engine,
            replace=replace,
            progress=progress,
        )
    render.say_hidden(result.hidden)
    if json:
        render.show_json(_facts(result))
        return
    render.say(f"exported commit {result.commit_id}")
    if not is_piped:
        render.say_engine(result.engine, result.why)
        render.show_table(["type", "rows"], result.rows.items())


def _facts(result: ExportResult) -> dict[str, object]:
    return {
        "commit_id": result.commit_id,
        "target": result.target,
        "format": result.format,
        "engine": result.engine,
        "why": result.why,
        "rows": dict(result.rows),
        "files": list(result.files),
        **({"hidden": list(result.hidden)} if result.hidden else {}),
    }
