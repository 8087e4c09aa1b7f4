"""`omnigraph schema`: show the schema of a graph."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, assert_never

import typer

from omnigraph.cli import options, render

if TYPE_CHECKING:
    from omnigraph.manifest.schemas import AcceptedSchema

group = typer.Typer(help="Show the schema of a graph.", no_args_is_help=True)


class SchemaFormat(StrEnum):
    """The formats of a schema."""

    PG = "pg"
    JSON = "json"
    MERMAID = "mermaid"
    SVG = "svg"


def _remember_format(context: typer.Context, value: SchemaFormat | None) -> SchemaFormat | None:
    if value is SchemaFormat.JSON:
        options.report_errors_as_json(context)
    return value


@group.command("show")
def show_schema(
    *,
    store: options.Store = None,
    branch: options.AtBranch = None,
    commit: options.AtCommit = None,
    version: options.AtVersion = None,
    format_: Annotated[
        SchemaFormat | None,
        typer.Option(
            "--format",
            help="pg is the text as it was written, the default; json is equal for equal schemas; "
            "mermaid and svg are pictures.",
            callback=_remember_format,
        ),
    ] = None,
    json: options.Json = False,
) -> None:
    """Print the schema: as it was written, as JSON, or as a picture."""
    from omnigraph import graph

    wanted = _choose_format(format_, json=json)
    handle = graph.open(options.require_store(store), read_only=True)
    accepted = handle.schema.show(branch=branch, commit=commit, version=version)
    render.show_text(_format_schema(accepted, wanted))


def _choose_format(wanted: SchemaFormat | None, *, json: bool) -> SchemaFormat:
    if json and wanted not in (None, SchemaFormat.JSON):
        message = f"--json and --format {wanted} ask for two different things"
        raise typer.BadParameter(message, param_hint="--format")
    return SchemaFormat.JSON if json else wanted or SchemaFormat.PG


def _format_schema(accepted: AcceptedSchema, wanted: SchemaFormat) -> str:
    match wanted:
        case SchemaFormat.PG:
            return accepted.text
        case SchemaFormat.JSON:
            from omnigraph.schema import codec

            return codec.encode(accepted.catalog)
        case SchemaFormat.MERMAID:
            from omnigraph.drawings.mermaid import schema_mermaid

            return schema_mermaid(accepted.catalog)
        case SchemaFormat.SVG:
            from omnigraph.drawings.schemas import schema_svg

            return schema_svg(accepted.catalog, title="schema")
        case _:
            assert_never(wanted)
