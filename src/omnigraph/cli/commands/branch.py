"""`omnigraph branch`: create, list and delete the branches of a graph."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.cli import options, render
from omnigraph.errors import BranchNotFoundError

if TYPE_CHECKING:
    from omnigraph.graph import Graph
    from omnigraph.model.commits import Commit

group = typer.Typer(help="Create, list and delete branches of a graph.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(metavar="NAME", help="The branch's name, such as review/1.")]


@group.command("create")
def create_branch(
    name: Name,
    *,
    store: options.Store = None,
    source: Annotated[
        str | None,
        typer.Option("--from", metavar="BRANCH", help="The branch to start at; main by default."),
    ] = None,
    commit: options.AtCommit = None,
    version: options.AtVersion = None,
    json: options.Json = False,
) -> None:
    """Start a branch at the tip of another, or at a point of the past. Copies no rows."""
    from omnigraph import graph

    opened = graph.open(options.required_store(store))
    made = opened.branches.create(name, branch=source, commit=commit, version=version)
    head = made.snapshot().head
    if json:
        render.show_json({"branch": name, "commit_id": head.commit_id})
        return
    render.show_facts({"branch": name, "commit": head.commit_id})


@group.command("list")
def list_branches(*, store: options.Store = None, json: options.Json = False) -> None:
    """List the branches, main first, each with its newest commit."""
    from omnigraph import graph

    heads = _heads(graph.open(options.required_store(store), read_only=True))
    if json:
        render.show_json(
            [
                {"branch": name, "commit_id": head.commit_id, "created_at": head.created_at}
                for name, head in heads.items()
            ]
        )
        return
    render.show_table(
        ["branch", "commit", "created", "operation", "actor", "message"],
        [
            (
                name,
                head.commit_id,
                f"{head.created_at:%Y-%m-%d %H:%M:%S}",
                head.operation,
                head.actor,
                head.message,
            )
            for name, head in heads.items()
        ],
    )


@group.command("delete")
def delete_branch(
    name: Name,
    *,
    store: options.Store = None,
    confirm: options.Confirm = False,
    json: options.Json = False,
) -> None:
    """Delete a branch, and the commits that only it has. Without --confirm, show which."""
    from omnigraph import graph
    from omnigraph.model.names import BranchName

    wanted = BranchName.parse(name)
    # What is refused anyhow has nothing to preview.
    doing = confirm or wanted.is_main
    opened = graph.open(options.required_store(store), read_only=not doing)
    commits = opened.commits.list(branch=wanted)
    own = [each.commit_id for each in commits if each.branch == wanted]
    if doing:
        opened.branches.delete(wanted)
    if json:
        head = commits[0].commit_id
        render.show_json({"branch": wanted, "deleted": doing, "head": head, "commits": own})
        return
    facts = {"branch": wanted, "head": commits[0].commit_id, "commits of its own": len(own)}
    render.show_facts(facts)
    render.say("deleted" if doing else "nothing was deleted: give --confirm to delete it")


def _heads(opened: Graph) -> dict[str, Commit]:
    heads: dict[str, Commit] = {}
    for name in opened.branches.list():
        # One that is deleted meanwhile is no branch any more.
        with suppress(BranchNotFoundError):
            heads[str(name)] = opened.snapshot(branch=name).head
    return heads
