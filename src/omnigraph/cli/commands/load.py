"""`omnigraph load`: write the rows of files to a graph."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from omnigraph.choices import EmbedWhen, Mode, OnDuplicate, OnError
from omnigraph.cli import graphs, options, render
from omnigraph.cli.progress import show_progress
from omnigraph.cli.spark import check_master, quick_spark
from omnigraph.errors import InvalidParameterError, OmnigraphError
from omnigraph.wording import count_of

if TYPE_CHECKING:
    from omnigraph.load.results import LoadResult
    from omnigraph.load.sources import Source
    from omnigraph.remote.graph import AnyGraph

_RECENT_COMMITS: Final = 100
"""Commits among which an interrupted load is looked for, since others may write meanwhile."""


@dataclass(frozen=True, slots=True)
class Place:
    """The branch to write, and the one to create it from if it does not exist."""

    branch: str | None
    start: str | None


def load(
    context: typer.Context,
    graph_uri: Annotated[
        list[str] | None,
        typer.Argument(metavar="GRAPH", help="The graph, instead of --store."),
    ] = None,
    *,
    data: Annotated[
        list[str] | None,
        typer.Option(
            "--data",
            metavar="PATH",
            help="A file, a directory or a pattern in quotes, here or at s3://…, or - for standard "
            "input.",
        ),
    ] = None,
    maps: Annotated[
        list[str] | None,
        typer.Option(
            "--map",
            metavar="TYPE=PATH",
            help="A file with rows of this type; with columns of other names, "
            "TYPE=PATH:property=column,…",
        ),
    ] = None,
    csv: Annotated[
        list[str] | None,
        typer.Option(
            "--csv",
            metavar="OPTIONS",
            help="How CSV files are read: delimiter=;,quote=',escape=\\,header=name,age,null=NA,"
            "encoding=latin-1. Those of one type: Person:header=name,age.",
        ),
    ] = None,
    mode: Annotated[
        Mode,
        typer.Option(
            "--mode",
            help="append adds new rows, merge replaces rows that have the same id, overwrite "
            "replaces all rows of the types that the input names.",
        ),
    ],
    store: options.Store = None,
    branch: options.OnBranch = None,
    start: Annotated[
        str | None,
        typer.Option(
            "--from", metavar="BRANCH", help="Create the branch from this one if it does not exist."
        ),
    ] = None,
    engine: options.OnEngine = None,
    master: Annotated[
        str | None,
        typer.Option("--master", metavar="URL", help="The master of Spark, if Spark is used."),
    ] = None,
    on_error: Annotated[
        OnError,
        typer.Option(
            "--on-error",
            help="fail loads nothing; quarantine writes rows that break rules to --rejects.",
        ),
    ] = OnError.FAIL,
    rejects: Annotated[
        Path | None,
        typer.Option(
            "--rejects", metavar="PATH", help="A new file for rejected rows and their reasons."
        ),
    ] = None,
    on_duplicate: Annotated[
        OnDuplicate | None,
        typer.Option(
            "--on-duplicate",
            help="Which of several rows of one id is loaded: first, last, or none (reject). merge "
            "loads the last one by default; append and overwrite reject them.",
            show_default=False,
        ),
    ] = None,
    ignore_unknown: Annotated[
        bool, typer.Option("--ignore-unknown", help="Drop values that no property takes.")
    ] = False,
    without_index: Annotated[
        bool, typer.Option("--no-index", help="Do not update the indexes.")
    ] = False,
    embed: options.Embed = EmbedWhen.AUTO,
    actor: options.Actor = None,
    message: options.Message = None,
    yes: options.Yes = False,
    quiet: options.Quiet = False,
    json: options.Json = False,
) -> None:
    """Load files of any size in one commit: all rows or none."""
    options.tabulate_violations(context)
    graph = graphs.find_place(store, _graph_argument(graph_uri or ()))
    source = _source(data or (), maps or ())
    place = Place(branch, start)
    check_master(master, engine, is_served=graph.is_served)
    _check_pairs(on_error, rejects, place)
    handle = graphs.open_place(graph, actor=actor)
    if mode is Mode.OVERWRITE:
        graphs.ask_first(handle, "replace all rows of the types of the input", yes=yes)
    with (
        quick_spark(master),
        show_progress(quiet=quiet or json, unit="bytes") as progress,
        render.show_notes_on_interrupt(),
        _report_interrupt(handle, place),
    ):
        result = handle.load(
            source,
            mode=mode,
            branch=branch,
            start=start,
            on_error=on_error,
            rejects=rejects,
            on_duplicate=on_duplicate,
            ignore_unknown=ignore_unknown,
            csv=csv,
            engine=engine,
            index=not without_index,
            embed=embed,
            message=message,
            progress=progress,
        )
    with render.report_of_commit(result.commit_id):
        render.say_hidden(result.hidden)
        if json:
            render.show_json({**result.to_json(), "rejects": rejects})
        else:
            _show(result, rejects)
        render.say_warnings(result.warnings)


def _graph_argument(named: Sequence[str]) -> str | None:
    # When the shell expands a pattern, --data takes the first file, and the others end up here.
    files = [name for name in named if Path(name).is_file()]
    if files or len(named) > 1:
        first = (files or named)[0]
        message = f"{first} is not a graph; give each file its own --data, or the pattern in quotes"
        raise typer.BadParameter(message, param_hint="GRAPH")
    return named[0] if named else None


def _source(data: Sequence[str], maps: Sequence[str]) -> Source:
    by_type: dict[str, list[str]] = {}
    for text in maps:
        name, equals, path = text.partition("=")
        if not (name and equals and path):
            message = f"{text[:100]!r} does not map a file to a type"
            raise InvalidParameterError(message, hint="write --map Type=path", name="map")
        by_type.setdefault(name, []).append(path)
    if not data and not by_type:
        message = "there is nothing to load: give --data or --map"
        raise typer.BadParameter(message, param_hint="--data")
    if not by_type:
        return list(data)
    return [*data, by_type] if data else by_type


def _check_pairs(on_error: OnError, rejects: Path | None, place: Place) -> None:
    """Refuse an option without the one that it needs, in the words of the command line."""
    if (on_error is OnError.QUARANTINE) != (rejects is not None):
        message = "--on-error quarantine and --rejects PATH go together"
        raise typer.BadParameter(message, param_hint="--rejects")
    if place.start is not None and place.branch is None:
        message = "--from creates a branch, which --branch names: give both"
        raise typer.BadParameter(message, param_hint="--from")


@contextmanager
def _report_interrupt(handle: AnyGraph, place: Place) -> Iterator[None]:
    """After an interrupt, recover the write at once, and print whether the load landed."""
    before = _loads(handle, place.branch)
    if place.start is not None:
        # A branch that is created for the load has these, too.
        before += _loads(handle, place.start)
    try:
        yield
    except KeyboardInterrupt:
        # Otherwise the next write would recover it.
        with suppress(OmnigraphError):
            handle.refresh()
        if landed := [id_ for id_ in _loads(handle, place.branch) if id_ not in before]:
            render.say(f"interrupted; loaded meanwhile: commit {', '.join(landed)}")
        else:
            render.say("interrupted: nothing was loaded")
        raise


def _loads(handle: AnyGraph, branch: str | None) -> list[str]:
    """The commits of the newest loads of a branch; none if there is no such branch."""
    with suppress(OmnigraphError):
        commits = handle.commits.list(branch=branch, limit=_RECENT_COMMITS)
        return [commit.commit_id for commit in commits if commit.operation == "load"]
    return []


def _show(result: LoadResult, rejects: Path | None) -> None:
    if result.commit_id is None and result.rejected:
        render.say(
            f"every row was rejected: nothing was loaded, branch {result.branch} has no new commit"
        )
    elif result.commit_id is None:
        why = "nothing changed" if result.unchanged else "there was nothing to load"
        render.say(f"{why}: branch {result.branch} has no new commit")
    else:
        render.say(f"commit {result.commit_id} on branch {result.branch}")
        render.say_engine(result.engine, result.why)
        render.show_table(
            ["type", "inserted", "updated", "deleted"],
            [
                (name, counts.inserted, counts.updated, counts.deleted)
                for name, counts in result.changes.items()
            ],
        )
    render.say_unchanged(result.unchanged)
    render.say_embedding(result.embedding)
    if result.superseded:
        rows = count_of(result.superseded, "row")
        render.say(f"left out {rows}: another row of the input has the same id")
    if result.rejected:
        rows = "1 row was" if result.rejected == 1 else f"{result.rejected:,} rows were"
        render.say(f"{rows} rejected: see {rejects}")
