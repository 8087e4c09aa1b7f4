"""`omnigraph commit`: list and show the commits of a graph."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Final

import typer

from omnigraph.cli import diffs, graphs, options, render
from omnigraph.cli.commits import commit_facts, subject
from omnigraph.errors import InvalidParameterError

if TYPE_CHECKING:
    from omnigraph.model.commits import Commit

group = typer.Typer(help="Read the history of a graph.", no_args_is_help=True)

_FILTERS: Final = ("actor", "operation", "branch")


@group.command("list")
def list_commits(
    *,
    store: options.Store = None,
    branch: options.AtBranch = None,
    limit: Annotated[
        int | None, typer.Option("--limit", "-n", metavar="N", min=0, help="Stop after this many.")
    ] = None,
    wanted: Annotated[
        list[str] | None,
        typer.Option("--filter", metavar="NAME=VALUE", help=f"By {', '.join(_FILTERS)}."),
    ] = None,
    json: options.Json = False,
) -> None:
    """List a branch's commits, newest first."""
    filters = _filters(wanted or ())
    handle = graphs.open_graph(store, read_only=True)
    commits = handle.commits.list(branch=branch, limit=None if filters else limit)
    matching = [commit for commit in commits if _matches(commit, filters)][:limit]
    gone = handle.commits.let_go(matching)
    if json:
        render.show_json([commit_facts(commit, gone.get(commit.commit_id)) for commit in matching])
        return
    render.show_table(
        ["commit", "created", "operation", "actor", "message"],
        [
            (
                commit.commit_id,
                f"{commit.created_at:%Y-%m-%d %H:%M:%S}",
                commit.operation,
                commit.actor,
                subject(commit, gone.get(commit.commit_id)),
            )
            for commit in matching
        ],
    )


@group.command("show")
def show_commit(
    commit_id: Annotated[str, typer.Argument(metavar="COMMIT", help="The commit's id, or a tag.")],
    *,
    store: options.Store = None,
    json: options.Json = False,
) -> None:
    """Show one commit."""
    commits = graphs.open_graph(store, read_only=True).commits
    commit = commits.show(commit_id)
    gone = commits.let_go([commit]).get(commit.commit_id)
    facts = commit_facts(commit, gone)
    if json:
        render.show_json(facts)
        return
    facts |= {"let_go": gone, "stream": commit.stream}
    render.show_facts({name.replace("_", " "): fact for name, fact in facts.items()})


@group.command("changes")
def show_changes(
    commit_id: Annotated[str, typer.Argument(metavar="COMMIT", help="The commit's id, or a tag.")],
    *,
    store: options.Store = None,
    rows: diffs.Rows = False,
    format_: options.ResultFormat = None,
    json: options.Json = False,
) -> None:
    """Show what one commit changed: counts, or every row with --rows."""
    wanted = options.choose_format(format_, json=json)
    handle = graphs.open_graph(store, read_only=True)
    diffs.write_diff(handle.commits.changes(commit_id), wanted, rows=rows)


def _filters(wanted: Iterable[str]) -> dict[str, str]:
    filters: dict[str, str] = {}
    for text in wanted:
        name, equals, value = text.partition("=")
        if name not in _FILTERS or not equals:
            message = f"{text!r} is not a filter"
            hint = f"write NAME=VALUE, NAME one of {', '.join(_FILTERS)}"
            raise InvalidParameterError(message, hint=hint)
        if name in filters:
            message = f"--filter {name} is given twice"
            raise InvalidParameterError(message, hint="give it once")
        filters[name] = value
    _refuse_unknown(filters)
    return filters


def _refuse_unknown(filters: Mapping[str, str]) -> None:
    """Refuse a value that no commit can have: it is a typing error."""
    from difflib import get_close_matches

    from omnigraph.model.commits import OperationKind
    from omnigraph.model.names import BranchName

    operation = filters.get("operation")
    if operation is not None and operation not in set(OperationKind):
        close = get_close_matches(operation, OperationKind, n=1)
        message = f"{operation!r} is not a valid operation"
        hint = f"did you mean {close[0]}?" if close else f"one of {', '.join(OperationKind)}"
        raise InvalidParameterError(message, hint=hint)
    if "branch" in filters:
        BranchName.parse(filters["branch"])


def _matches(commit: Commit, filters: Mapping[str, str]) -> bool:
    return all((getattr(commit, name) or "") == value for name, value in filters.items())
