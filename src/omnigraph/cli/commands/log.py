"""`omnigraph log`: the history of a graph, of one branch or of all."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.cli import graphs, options, output, render
from omnigraph.cli.commits import commit_facts, subject

if TYPE_CHECKING:
    from omnigraph.cli.lanes import Row
    from omnigraph.model.commits import Commit
    from omnigraph.model.ids import CommitId
    from omnigraph.model.let_go import LetGo
    from omnigraph.remote.graph import AnyGraph

    Names = Mapping[CommitId, Sequence[str]]
    Gone = Mapping[str, LetGo]


class LogFormat(StrEnum):
    """The formats of a history."""

    TABLE = "table"
    JSON = "json"


def _remember_format(context: typer.Context, value: LogFormat | None) -> LogFormat | None:
    if value is LogFormat.JSON:
        options.report_errors_as_json(context)
    return value


def log(
    *,
    store: options.Store = None,
    branch: options.OneBranch = None,
    limit: Annotated[
        int | None, typer.Option("--limit", "-n", metavar="N", min=0, help="Stop after this many.")
    ] = None,
    graph: Annotated[
        bool, typer.Option("--graph", help="Draw branches and merges beside the commits.")
    ] = False,
    format_: Annotated[
        LogFormat | None,
        typer.Option(
            "--format",
            help="How to print it.",
            callback=_remember_format,
        ),
    ] = None,
    json: options.Json = False,
) -> None:
    """Show the history of all branches, newest first."""
    wanted = _choose_format(format_, json=json, graph=graph)
    handle = graphs.open_graph(store, read_only=True)
    every = handle.commits.every(branch=branch)
    shown, tips, tags = every[:limit], _tips(handle, branch), _tags(handle)
    known = {commit.commit_id: commit for commit in every}
    gone = handle.commits.let_go(shown)
    if wanted is LogFormat.JSON:
        render.show_json([_facts(commit, tips, tags, gone) for commit in shown])
    elif graph:
        from omnigraph.cli.lanes import lay_out

        lines = _draw(lay_out(shown, known), _join(tips, tags, gone))
        output.write_text("".join(f"{line}\n" for line in lines))
    else:
        columns = ["commit", "branches", "tags", "created", "operation", "actor", "message"]
        render.show_table(columns, [_cells(commit, tips, tags, gone) for commit in shown])


def _choose_format(wanted: LogFormat | None, *, json: bool, graph: bool) -> LogFormat:
    """The format that `--format`, `--json` and `--graph` together name."""
    if json and wanted not in (None, LogFormat.JSON):
        message = f"--json cannot be used with --format {wanted}"
        raise typer.BadParameter(message, param_hint="--format")
    chosen = LogFormat.JSON if json else wanted or LogFormat.TABLE
    if graph and chosen is LogFormat.JSON:
        message = "--graph cannot be drawn in JSON, where each commit names its parents"
        raise typer.BadParameter(message, param_hint="--graph")
    return chosen


def _tips(handle: AnyGraph, branch: str | None) -> Names:
    """The branches that end at each commit."""
    from omnigraph.errors import BranchNotFoundError

    tips: dict[CommitId, list[str]] = {}
    for name in handle.branches.list() if branch is None else (branch,):
        try:
            head = handle.snapshot(branch=name).head.commit_id
        except BranchNotFoundError:
            # It was deleted meanwhile.
            continue
        tips.setdefault(head, []).append(name)
    return tips


def _tags(handle: AnyGraph) -> Names:
    """The tags of each commit."""
    tags: dict[CommitId, list[str]] = {}
    for tag in handle.tags.list():
        tags.setdefault(tag.commit_id, []).append(tag.name)
    return tags


def _join(tips: Names, tags: Names, gone: Gone) -> Names:
    """The names to draw beside each commit."""
    from omnigraph.model.ids import CommitId

    names: dict[CommitId, list[str]] = {}
    for commit_id in {*tips, *tags, *map(CommitId, gone)}:
        names[commit_id] = [
            *tips.get(commit_id, ()),
            *(f"tag {name}" for name in tags.get(commit_id, ())),
            *(("expired",) if commit_id in gone else ()),
        ]
    return names


def _facts(commit: Commit, tips: Names, tags: Names, gone: Gone) -> dict[str, object]:
    names = {"branches": list(tips.get(commit.commit_id, ()))}
    facts = commit_facts(commit, gone.get(commit.commit_id))
    return {**facts, **names, "tags": list(tags.get(commit.commit_id, ()))}


def _cells(commit: Commit, tips: Names, tags: Names, gone: Gone) -> tuple[object, ...]:
    return (
        commit.commit_id,
        ", ".join(tips.get(commit.commit_id, ())),
        ", ".join(tags.get(commit.commit_id, ())),
        f"{commit.created_at:%Y-%m-%d %H:%M:%S}",
        commit.operation,
        commit.actor,
        subject(commit, gone.get(commit.commit_id)),
    )


def _draw(rows: Sequence[Row], names: Names) -> Iterator[str]:
    from omnigraph.cli.lanes import draw_lines, to_ascii

    lines = list(draw_lines(rows))
    width = max((len(marks) for marks, _ in lines), default=0)
    has_lines = _can_print("│●")
    for marks, row in lines:
        shown = marks if has_lines else to_ascii(marks)
        words = "" if row is None else _words(row.commit, names)
        yield f"{shown:<{width}}  {words}".rstrip()


def _words(commit: Commit, names: Names) -> str:
    marks = "".join(f"({name}) " for name in names.get(commit.commit_id, ()))
    who = f" by {commit.actor}" if commit.actor else ""
    title = subject(commit)
    when = f"{commit.created_at:%Y-%m-%d %H:%M:%S}"
    words = f"{commit.commit_id} {marks}{when} {commit.operation}{who}{title and f': {title}'}"
    return render.printable(words)


def _can_print(text: str) -> bool:
    """Whether the encoding of standard output has every character of a text."""
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError, AttributeError):
        return False
    return True
