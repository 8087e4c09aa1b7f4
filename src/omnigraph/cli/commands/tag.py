"""`omnigraph tag`: name commits, and list, show and delete the names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.cli import graphs, options, render

if TYPE_CHECKING:
    from omnigraph.model.tags import Tag

group = typer.Typer(
    help="Name commits, which are kept as long as they are named.", no_args_is_help=True
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="The tag's name, such as release/1.0.")]


@group.command("create")
def create_tag(
    name: Name,
    *,
    store: options.Store = None,
    branch: options.AtBranch = None,
    commit: options.AtCommit = None,
    version: options.AtVersion = None,
    actor: options.Actor = None,
    message: options.Message = None,
    json: options.Json = False,
) -> None:
    """Name the newest commit of a branch, or one of the past."""
    handle = graphs.open_graph(store, actor=actor)
    tag = handle.tags.create(name, branch=branch, commit=commit, version=version, message=message)
    with render.report_of(f"tag {name} was made"):
        _show(tag, json=json)


@group.command("list")
def list_tags(*, store: options.Store = None, json: options.Json = False) -> None:
    """List the tags, each with its commit."""
    tags = graphs.open_graph(store, read_only=True).tags.list()
    if json:
        render.show_json([tag.to_json() for tag in tags])
        return
    render.show_table(
        ["tag", "commit", "created", "actor", "message"],
        [
            (
                tag.name,
                tag.commit_id,
                f"{tag.created_at:%Y-%m-%d %H:%M:%S}",
                tag.actor,
                (tag.message or "").partition("\n")[0],
            )
            for tag in tags
        ],
    )


@group.command("show")
def show_tag(name: Name, *, store: options.Store = None, json: options.Json = False) -> None:
    """Show one tag: its commit, who made it, when and why."""
    _show(graphs.open_graph(store, read_only=True).tags.show(name), json=json)


@group.command("delete")
def delete_tag(
    name: Name,
    *,
    store: options.Store = None,
    confirm: options.Confirm = False,
    yes: options.Yes = False,
    json: options.Json = False,
) -> None:
    """Delete a tag; its commit stays in its branch. Without --confirm, show which."""
    from omnigraph.errors import StorageError

    handle = graphs.open_graph(store, read_only=not confirm)
    commit_id = None
    try:
        commit_id = handle.tags.show(name).commit_id
    except StorageError:
        # A tag that cannot be read can be deleted all the same.
        if not confirm:
            raise
    if confirm:
        graphs.ask_first(handle, f"delete tag {name}", yes=yes)
        handle.tags.delete(name)
    with render.report_of(f"tag {name} was deleted" if confirm else None):
        if json:
            render.show_json({"tag": name, "deleted": confirm, "commit_id": commit_id})
            return
        render.show_facts({"tag": name, "commit": commit_id})
        render.say("deleted" if confirm else "nothing was deleted: give --confirm to delete it")


def _show(tag: Tag, *, json: bool) -> None:
    if json:
        render.show_json(tag.to_json())
        return
    render.show_facts(
        {
            "tag": tag.name,
            "commit": tag.commit_id,
            "branch": tag.branch,
            "created": f"{tag.created_at:%Y-%m-%d %H:%M:%S}",
            "actor": tag.actor,
            "message": tag.message,
        }
    )
