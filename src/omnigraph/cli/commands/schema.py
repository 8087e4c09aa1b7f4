"""`omnigraph schema`: show, plan, apply and compare schemas, and list their history."""

from __future__ import annotations

from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, assert_never

import typer

from omnigraph.cli import graphs, options, render
from omnigraph.cli.commands import purging
from omnigraph.cli.commits import subject
from omnigraph.cli.exits import Exit
from omnigraph.cli.schema_warnings import say_warnings
from omnigraph.cli.spark import quick_spark
from omnigraph.wording import format_instant

if TYPE_CHECKING:
    from omnigraph.evolution.results import SchemaResult, SchemaRevision
    from omnigraph.schema.accepted import AcceptedSchema
    from omnigraph.schema.plan import SchemaPlan

group = typer.Typer(help="Show and change the schema of a graph.", no_args_is_help=True)

_POINT_HELP: Final = "A branch, a commit, a tag, or a .pg file."

NewSchema = Annotated[
    Path, typer.Option("--schema", metavar="FILE", help="The new schema, a .pg file.")
]
Fills = Annotated[
    list[str] | None,
    typer.Option(
        "--fill",
        metavar="TYPE.PROPERTY=EXPRESSION",
        help="The values of a new property, from other properties of the same row.",
    ),
]
Conversions = Annotated[
    list[str] | None,
    typer.Option(
        "--convert",
        metavar="TYPE.PROPERTY",
        help="Convert the values of this property, and report those that do not fit.",
    ),
]


class SchemaFormat(StrEnum):
    """The formats of a schema."""

    PG = "pg"
    JSON = "json"
    MERMAID = "mermaid"


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
            "mermaid is a diagram.",
            callback=_remember_format,
        ),
    ] = None,
    json: options.Json = False,
) -> None:
    """Print the schema: as it was written, as JSON, or as a diagram."""
    wanted = _choose_format(format_, json=json)
    handle = graphs.open_graph(store, read_only=True)
    accepted = handle.schema.show(branch=branch, commit=commit, version=version)
    render.show_text(_format_schema(accepted, wanted))
    from omnigraph.schema.embeds import unmade_vectors

    for vector, reason in unmade_vectors(accepted.catalog):
        render.say(f"{vector}: vectors come with the data, because {reason}")


def _choose_format(wanted: SchemaFormat | None, *, json: bool) -> SchemaFormat:
    if json and wanted not in (None, SchemaFormat.JSON):
        message = f"--json cannot be used with --format {wanted}"
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
            from omnigraph.schema.mermaid import schema_mermaid

            return schema_mermaid(accepted.catalog)
        case _:
            assert_never(wanted)


@group.command("plan")
def plan_schema(
    *,
    schema: NewSchema,
    fill: Fills = None,
    convert: Conversions = None,
    store: options.Store = None,
    branch: options.AtBranch = None,
    json: options.Json = False,
) -> None:
    """List the steps to a new schema, and what each costs; nothing is changed."""
    handle = graphs.open_graph(store, read_only=True)
    plan = handle.schema.plan(schema, branch=branch, fill=fill, convert=convert)
    _show_plan(plan, json=json)
    if not json:
        say_warnings(schema)
    if plan.refusals or plan.errors:
        raise typer.Exit(Exit.INVALID)


@group.command("apply")
def apply_schema(
    context: typer.Context,
    *,
    schema: NewSchema,
    fill: Fills = None,
    convert: Conversions = None,
    store: options.Store = None,
    branch: options.OnBranch = None,
    engine: options.OnEngine = None,
    actor: options.Actor = None,
    message: options.Message = None,
    purge: Annotated[
        bool, typer.Option("--purge", help="Remove what is dropped for good; see 'schema purge'.")
    ] = False,
    keep_commits: options.KeepCommits = None,
    older_than: options.OlderThan = None,
    grace: options.Grace = None,
    confirm: Annotated[
        bool, typer.Option("--confirm", help="With --purge: do it, and not only show it.")
    ] = False,
    yes: options.Yes = False,
    json: options.Json = False,
) -> None:
    """Change the schema of a branch, and its rows with it, in one commit."""
    options.tabulate_violations(context)
    rules = purging.PurgeRules(keep_commits, older_than, grace)
    purging.require_purge(rules, purge=purge, confirm=confirm)
    preview = None
    if purge:
        reader = graphs.open_graph(store, read_only=True)
        preview = reader.schema.purge(
            schema, branch=branch, fill=fill, convert=convert, dry_run=True, **asdict(rules)
        )
        if not confirm:
            plan = reader.schema.plan(schema, branch=branch, fill=fill, convert=convert)
            purging.show_preview(preview, plan, json=json)
            return
    handle = graphs.open_graph(store, actor=actor)
    if purge:
        graphs.ask_first(handle, "remove what is dropped for good", yes=yes)
    with quick_spark():
        result = handle.schema.apply(
            schema, branch=branch, fill=fill, convert=convert, engine=engine, message=message
        )
        purged = None
        if purge:
            purged = handle.schema.purge(branch=branch, engine=engine, **asdict(rules))
    if json:
        facts = {} if purged is None else {"purge": purging.purge_facts(purged)}
        render.show_json({**result.to_json(), **facts})
    else:
        _show_result(result, branch or "main")
        say_warnings(schema)
        if purged is not None:
            purging.show_purge(purged)
    if purged is not None and not purged.is_done:
        raise typer.Exit(Exit.CONFLICT)


def _show_result(result: SchemaResult, branch: str) -> None:
    _show_plan(result.plan, json=False)
    if result.commit_id is None:
        render.say(f"branch {branch} has this schema already")
        return
    render.say(f"commit {result.commit_id} on branch {branch}")
    render.say_warnings(result.warnings)


@group.command("purge")
def purge_schema(
    *,
    store: options.Store = None,
    branch: options.OnBranch = None,
    keep_commits: options.KeepCommits = None,
    older_than: options.OlderThan = None,
    grace: options.Grace = None,
    engine: options.OnEngine = None,
    actor: options.Actor = None,
    confirm: options.Confirm = False,
    yes: options.Yes = False,
    json: options.Json = False,
) -> None:
    """Remove for good what a branch has dropped. Without --confirm, show what.

    Commits that hold it expire, and no others. It is refused while a branch, a tag, a merge or
    a rule needs one of them, and waits until none of them was the newest within --grace: then give
    the command again. The exit code is 0 when nothing of it is left.
    """
    rules = purging.PurgeRules(keep_commits, older_than, grace)
    handle = graphs.open_graph(store, actor=actor, read_only=not confirm)
    if confirm:
        graphs.ask_first(handle, "remove what was dropped for good", yes=yes)
    with quick_spark():
        result = handle.schema.purge(
            branch=branch, engine=engine, dry_run=not confirm, **asdict(rules)
        )
    if not confirm:
        purging.show_preview(result, None, json=json)
        return
    if json:
        render.show_json(purging.purge_facts(result))
    else:
        purging.show_purge(result)
    if not result.is_done:
        raise typer.Exit(Exit.CONFLICT)


@group.command("diff")
def diff_schemas(
    before: Annotated[str, typer.Argument(metavar="BEFORE", help=_POINT_HELP)],
    after: Annotated[str, typer.Argument(metavar="AFTER", help=_POINT_HELP)],
    *,
    store: options.Store = None,
    json: options.Json = False,
) -> None:
    """List the steps between two schemas; two files need no graph."""
    if before.endswith(".pg") and after.endswith(".pg"):
        from omnigraph import graph

        plan = graph.diff_schemas(Path(before), Path(after))
    else:
        handle = graphs.open_graph(store, read_only=True)
        plan = handle.schema.diff(before, after)
    if json:
        render.show_json([step.to_json() for step in plan.steps])
        return
    for finding in plan.findings:
        render.say(str(finding))
    if plan.is_empty:
        render.say("the schemas do not differ")
    for step in plan.steps:
        render.show_text(step.describe())


@group.command("history")
def show_history(
    *, store: options.Store = None, branch: options.AtBranch = None, json: options.Json = False
) -> None:
    """List the commits that changed the schema of a branch, newest first."""
    handle = graphs.open_graph(store, read_only=True)
    revisions = handle.schema.history(branch=branch)
    if json:
        render.show_json([_revision_facts(revision) for revision in revisions])
        return
    if not revisions:
        render.say("the schema is the one that the graph was made with")
    for revision in revisions:
        commit = revision.commit
        when = f"{commit.created_at:%Y-%m-%d %H:%M:%S}"
        render.show_text(f"{commit.commit_id}  {when}  {subject(commit)}".rstrip())
        if revision.plan is None:
            render.show_text("  (what it changed expired)")
            continue
        for step in revision.plan.steps:
            render.show_text(f"  {step.describe()}")


def _show_plan(plan: SchemaPlan, *, json: bool) -> None:
    if json:
        render.show_json(plan.to_json())
    else:
        render.show_text(plan.describe())


def _revision_facts(revision: SchemaRevision) -> dict[str, object]:
    commit, plan = revision.commit, revision.plan
    return {
        "commit_id": commit.commit_id,
        "created_at": format_instant(commit.created_at),
        "actor": commit.actor,
        "message": commit.message,
        "schema": commit.schema_digest,
        "steps": None if plan is None else [step.to_json() for step in plan.steps],
    }
