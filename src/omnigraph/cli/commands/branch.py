"""`omnigraph branch`: create, list, merge and delete the branches of a graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.cli import graphs, merges, options, render
from omnigraph.cli.exits import Exit
from omnigraph.cli.spark import quick_spark
from omnigraph.errors import BranchNotFoundError, StorageError

if TYPE_CHECKING:
    from omnigraph.model.commits import Commit
    from omnigraph.remote.graph import AnyGraph

group = typer.Typer(help="Create, list, merge and delete branches.", no_args_is_help=True)

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
    handle = graphs.open_graph(store)
    branch = handle.branches.create(name, branch=source, commit=commit, version=version)
    head = branch.snapshot().head
    with render.report_of(f"branch {name} was made"):
        if json:
            render.show_json({"branch": name, "commit_id": head.commit_id})
        else:
            render.show_facts({"branch": name, "commit": head.commit_id})


@group.command("list")
def list_branches(*, store: options.Store = None, json: options.Json = False) -> None:
    """List the branches, main first, each with its newest commit."""
    heads = _heads(graphs.open_graph(store, read_only=True))
    unreadable = {name: head for name, head in heads.items() if isinstance(head, StorageError)}
    if json:
        render.show_json([_head_facts(name, head) for name, head in heads.items()])
    else:
        columns = ["branch", "commit", "created", "operation", "actor", "message"]
        render.show_table(columns, [_head_row(name, head) for name, head in heads.items()])
        for name, error in unreadable.items():
            render.say(f"branch {name} cannot be read: {error.message}")
            render.say(f"  hint: {error.hint}")
    if unreadable:
        raise typer.Exit(Exit.FAILED)


def _heads(handle: AnyGraph) -> dict[str, Commit | StorageError]:
    """The newest commit of each branch, or why it cannot be read."""
    heads: dict[str, Commit | StorageError] = {}
    for name in handle.branches.list():
        try:
            heads[name] = handle.snapshot(branch=name).head
        except BranchNotFoundError:
            # It was deleted meanwhile.
            continue
        except StorageError as error:
            heads[name] = error
    return heads


def _head_facts(name: str, head: Commit | StorageError) -> dict[str, object]:
    if isinstance(head, StorageError):
        return {"branch": name, "error": head.message, "hint": head.hint}
    fields = ("commit_id", "created_at", "operation", "actor", "message")
    return {"branch": name, **{field: getattr(head, field) for field in fields}}


def _head_row(name: str, head: Commit | StorageError) -> tuple[object, ...]:
    if isinstance(head, StorageError):
        return (name, *[None] * 5)
    created = f"{head.created_at:%Y-%m-%d %H:%M:%S}"
    return (name, head.commit_id, created, head.operation, head.actor, head.message)


@group.command("merge")
def merge_branch(
    source: Annotated[
        str, typer.Argument(metavar="SOURCE", help="The branch whose changes are merged.")
    ],
    *,
    store: options.Store = None,
    target: Annotated[
        str | None,
        typer.Option("--into", metavar="TARGET", help="The branch that changes; main by default."),
    ] = None,
    resolve: merges.Resolve = None,
    strict_rows: Annotated[
        bool,
        typer.Option(
            "--strict-rows", help="Rows that both changed conflict, even in different properties."
        ),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what it would do; write nothing.")
    ] = False,
    delete_branch: merges.DeleteBranch = False,
    engine: options.OnEngine = None,
    actor: options.Actor = None,
    message: options.Message = None,
    json: options.Json = False,
) -> None:
    """Merge what one branch changed into another, property by property, in one commit."""
    if delete_branch and source == "main":
        wrong = "main cannot be deleted, so --delete-branch is not for it"
        raise typer.BadParameter(wrong, param_hint="--delete-branch")
    resolutions = merges.read_resolutions(resolve)
    handle = graphs.open_graph(store, actor=actor, read_only=dry_run)
    with quick_spark(), render.show_notes_on_interrupt():
        outcome = handle.merge(
            source,
            into=target,
            resolve=resolutions,
            strict_rows=strict_rows,
            dry_run=dry_run,
            delete_branch=delete_branch,
            engine=engine,
            message=message,
        )
    with render.report_of_commit(outcome.commit_id):
        render.say_hidden(outcome.hidden)
        if json:
            render.show_json({**outcome.to_json(), "dry_run": dry_run})
        else:
            merges.show_merge(outcome, dry_run=dry_run)
        render.say_warnings(outcome.warnings)
    if outcome.is_conflicted:
        raise typer.Exit(Exit.CONFLICT)


@group.command("delete")
def delete_branch(
    name: Name,
    *,
    store: options.Store = None,
    confirm: options.Confirm = False,
    yes: options.Yes = False,
    json: options.Json = False,
) -> None:
    """Delete a branch, and the commits that only it has. Without --confirm, show which."""
    from omnigraph.model.names import BranchName

    branch = BranchName.parse(name)
    handle = graphs.open_graph(store, read_only=not confirm)
    tip = handle.snapshot(branch=branch)
    own = [
        commit.commit_id
        for commit in handle.commits.list(branch=branch)
        if commit.branch == branch and commit.ref in (tip.ref, None)
    ]
    if confirm:
        graphs.ask_first(handle, f"delete branch {branch}", yes=yes)
    handle.branches.delete(branch, dry_run=not confirm)
    head = tip.head.commit_id
    with render.report_of(f"branch {branch} was deleted" if confirm else None):
        if json:
            render.show_json({"branch": branch, "deleted": confirm, "head": head, "commits": own})
            return
        render.show_facts({"branch": branch, "head": head, "commits of its own": len(own)})
        render.say("deleted" if confirm else "nothing was deleted: give --confirm to delete it")
