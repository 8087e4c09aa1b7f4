"""`omnigraph index`: build the indexes that lookups use, and list them."""

from __future__ import annotations

from dataclasses import asdict
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.cli import graphs, options, render
from omnigraph.cli.on_demand import UsageError
from omnigraph.cli.progress import show_progress
from omnigraph.cli.spark import quick_spark

if TYPE_CHECKING:
    from omnigraph.maintenance.results import IndexResult, IndexStatus
    from omnigraph.schema.catalog import IndexOptions

group = typer.Typer(
    help="Build missing indexes, extend the others to new rows, or list them.",
    invoke_without_command=True,
)


@group.callback()
def build(
    context: typer.Context,
    *,
    store: options.Store = None,
    branch: options.OnBranch = None,
    rebuild: Annotated[
        bool, typer.Option("--rebuild", help="Build all indexes anew, such as a damaged one.")
    ] = False,
    engine: options.OnEngine = None,
    actor: options.Actor = None,
    message: options.Message = None,
    quiet: options.Quiet = False,
    json: options.Json = False,
) -> None:
    """Make the indexes those that the schema asks for, unless a subcommand is named."""
    if context.invoked_subcommand is not None:
        _require_no_options(context)
        return
    handle = graphs.open_graph(store, actor=actor)
    with quick_spark(), show_progress(quiet=quiet or json) as progress:
        result = handle.ensure_indices(
            branch=branch, engine=engine, message=message, rebuild=rebuild, progress=progress
        )
    render.say_hidden(result.hidden)
    if json:
        render.show_json(asdict(result))
        return
    _show_result(result, branch or "main")


def _require_no_options(context: typer.Context) -> None:
    """Reject options before a subcommand: it would not know of them."""
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        if source is not None and source.name == "COMMANDLINE":
            name = context.invoked_subcommand
            message = f"Options of 'index {name}' go after it: index {name} {parameter.opts[0]}"
            raise UsageError(message, ctx=context)


def _show_result(result: IndexResult, branch: str) -> None:
    if result.commit_id is None:
        render.say("every index exists and covers every row")
    else:
        render.say(f"commit {result.commit_id} on branch {branch}")
        render.say_engine(result.engine, result.why)
        done = {"indexed": result.built, "joined": result.joined, "removed": result.removed}
        shown = {heading: columns for heading, columns in done.items() if columns}
        types = dict.fromkeys(name for columns in shown.values() for name in columns)
        render.show_table(
            ["type", *shown],
            [
                (name, *(", ".join(columns.get(name, ())) for columns in shown.values()))
                for name in types
            ],
        )
    for name, columns in result.waiting.items():
        vectors = ", ".join(columns)
        render.say(f"not built, because a scan of so few vectors is as fast: {name} ({vectors})")


@group.command("list")
def list_indexes(
    *,
    store: options.Store = None,
    branch: options.AtBranch = None,
    commit: options.AtCommit = None,
    version: options.AtVersion = None,
    json: options.Json = False,
) -> None:
    """List the indexes that the schema asks for, and how much of each is there."""
    handle = graphs.open_graph(store, read_only=True)
    listed = handle.indexes.list(branch=branch, commit=commit, version=version)
    point = handle.snapshot(branch=branch, commit=commit, version=version)
    render.say_hidden(point.hidden)
    if json:
        render.show_json([_facts(status) for status in listed])
        return
    render.show_table(
        [
            *("type", "column", "kind", "options", "for", "rows", "covered", "segments", "bytes"),
            *("age", "state"),
        ],
        map(_cells, listed),
    )


def _cells(status: IndexStatus) -> tuple[object, ...]:
    sources = ", ".join(status.sources)
    options = _format_options(status.options)
    asked = (status.type_name, status.column, status.kind, options, sources, status.rows)
    if not status.segments:
        return (*asked, None, None, None, None, status.state)
    age = None if status.age is None else _format_age(status.age)
    return (*asked, status.rows_covered, status.segments, status.bytes, age, status.state)


def _facts(status: IndexStatus) -> dict[str, object]:
    facts = asdict(status)
    type_name = facts.pop("type_name")
    age = None if status.age is None else int(status.age.total_seconds())
    return {"type": type_name, **facts, "age": age}


def _format_options(options: IndexOptions | None) -> str | None:
    """The options of an index in the order of the schema, by what they are."""
    if options is None:
        return None
    chosen = ((name, value) for name, value in asdict(options).items() if value)
    return ", ".join(name if value is True else str(value) for name, value in chosen)


def _format_age(age: timedelta) -> str:
    """An age in its largest unit, which is enough for people.

    >>> _format_age(timedelta(seconds=90)), _format_age(timedelta(days=3, hours=7))
    ('1m', '3d')
    """
    seconds = int(age.total_seconds())
    for unit, length in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= length:
            return f"{seconds // length}{unit}"
    return f"{seconds}s"
