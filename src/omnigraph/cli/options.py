"""Options that several commands share."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from omnigraph.choices import EmbedWhen, EngineRequest
from omnigraph.cli.formats import Format
from omnigraph.cli.render import ErrorStyle


def report_errors_as_json(context: typer.Context) -> None:
    """Print errors of this run as JSON from here on."""
    style = context.find_object(ErrorStyle)
    if style is not None:
        style.json = True


def tabulate_violations(context: typer.Context) -> None:
    """Print violations of this run as a table, one line each: there may be many to be fixed."""
    style = context.find_object(ErrorStyle)
    if style is not None:
        style.tabulates = True


def _remember_json(context: typer.Context, value: bool) -> bool:  # noqa: FBT001  # typer's call
    if value:
        report_errors_as_json(context)
    return value


Json = Annotated[
    bool, typer.Option("--json", help="Print JSON.", callback=_remember_json, is_eager=True)
]


def _remember_format(context: typer.Context, value: Format | None) -> Format | None:
    if value is Format.JSON:
        report_errors_as_json(context)
    return value


ResultFormat = Annotated[
    Format | None,
    typer.Option(
        "--format", help="How to print the rows; table by default.", callback=_remember_format
    ),
]
OnEngine = Annotated[
    EngineRequest | None,
    typer.Option("--engine", help="The engine; auto, the default, decides by size."),
]
Timeout = Annotated[
    str | None,
    typer.Option(
        "--timeout",
        metavar="TIME",
        help="End the query when it has run for this long, such as 30s or 2m.",
    ),
]
Memory = Annotated[
    str | None,
    typer.Option(
        "--memory", metavar="SIZE", help="End the query when it needs more, such as 512MB or 2GiB."
    ),
]
MaxRows = Annotated[
    str | None,
    typer.Option("--max-rows", metavar="N", help="Refuse the query when it has more rows."),
]
Store = Annotated[
    str | None,
    typer.Option(
        "--store",
        envvar="OMNIGRAPH_STORE",
        metavar="URI",
        help="The graph: a directory, s3://bucket/prefix, or https://host/graphs/NAME.",
        show_default=False,
    ),
]
AtBranch = Annotated[
    str | None, typer.Option("--branch", metavar="NAME", help="The branch; main by default.")
]
AtCommit = Annotated[
    str | None,
    typer.Option("--commit", metavar="ID", help="A commit of any branch: its id, or a tag."),
]
AtVersion = Annotated[
    int | None, typer.Option("--version", metavar="N", help="A manifest version.")
]
OneBranch = Annotated[
    str | None,
    typer.Option("--branch", metavar="NAME", help="Only this branch; all by default."),
]
OnBranch = Annotated[
    str | None,
    typer.Option("--branch", metavar="NAME", help="The branch to write; main by default."),
]
Types = Annotated[
    list[str] | None,
    typer.Option("--type", metavar="NAME", help="Only this type."),
]
Confirm = Annotated[
    bool, typer.Option("--confirm", help="Do it; without this, only show what would happen.")
]
KeepCommits = Annotated[
    int | None,
    typer.Option("--keep-commits", metavar="N", help="Keep the newest N commits of each branch."),
]
OlderThan = Annotated[
    str | None,
    typer.Option("--older-than", metavar="AGE", help="Keep younger commits: 30d, 12h or 90m."),
]
Grace = Annotated[
    str | None,
    typer.Option(
        "--grace",
        metavar="AGE",
        help="Keep a commit this long after it stopped being the newest; 1h by default.",
    ),
]
Actor = Annotated[
    str | None,
    typer.Option(
        "--actor",
        metavar="NAME",
        envvar="OMNIGRAPH_ACTOR",
        help="Who makes the change; kept in history.",
    ),
]
Message = Annotated[
    str | None,
    typer.Option(
        "--message", "-m", metavar="TEXT", help="Why the change is made; kept in history."
    ),
]
ServerState = Annotated[
    Path | None,
    typer.Option(
        "--state",
        metavar="FOLDER",
        help="Where a server keeps tokens, jobs and uploads; ./omnigraph-server by default.",
    ),
]
Yes = Annotated[
    bool,
    typer.Option("--yes", "-y", help="Do not ask, at a terminal, if the graph is a served one."),
]
Quiet = Annotated[bool, typer.Option("--quiet", help="Show no progress.")]


def max_rows(text: str | None) -> str | int | None:
    """The number that `--max-rows` names, or the word."""
    return int(text) if text is not None and text.isascii() and text.isdigit() else text


Embed = Annotated[
    EmbedWhen,
    typer.Option(
        "--embed",
        help="When texts are embedded: now, later by 'omnigraph embed', or auto, now unless "
        "there are many.",
    ),
]


def choose_format(wanted: Format | None, *, json: bool) -> Format:
    """The format that `--format` and `--json` together name."""
    if json and wanted not in (None, Format.JSON):
        message = f"--json cannot be used with --format {wanted}"
        raise typer.BadParameter(message, param_hint="--format")
    chosen = Format.JSON if json else wanted or Format.TABLE
    if chosen is Format.ARROW and sys.stdout is not None and sys.stdout.isatty():
        message = "arrow is not for terminals: send it to a file or a program"
        raise typer.BadParameter(message, param_hint="--format")
    return chosen


def require_one_store(context: typer.Context, given: str | None, store: str | None) -> str:
    """The graph's URI, as an argument or as `--store`; either overrides the environment."""
    source = context.get_parameter_source("store")
    if given is not None and store != given and source is not None and source.name == "COMMANDLINE":
        message = f"it names {store}, but the argument names {given}"
        raise typer.BadParameter(message, param_hint="--store")
    return require_store(given if given is not None else store)


def require_store(store: str | None) -> str:
    """The graph's URI."""
    if store is None:
        message = "no graph was named: give it, or set OMNIGRAPH_STORE"
        raise typer.BadParameter(message, param_hint="--store")
    return store
