"""`omnigraph stream`: list the streams that write to a branch, and forget those that have ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.cli import graphs, options, render

if TYPE_CHECKING:
    from omnigraph.model.streams import StreamRecord

group = typer.Typer(
    help="The streams of Spark that write to a branch, and the newest batch of each.",
    no_args_is_help=True,
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="The stream's name, as list shows it.")]


@group.command("list")
def list_streams(
    *, store: options.Store = None, branch: options.AtBranch = None, json: options.Json = False
) -> None:
    """List the streams, each with its newest batch and its newest commit."""
    handle = graphs.open_graph(store, read_only=True)
    streams = handle.streams.list(branch=branch)
    if json:
        render.show_json([_facts(record) for record in streams])
        return
    render.show_table(
        ["stream", "batch", "commit", "checkpoint"],
        [
            (
                record.batch.stream,
                str(record.batch.number),
                record.commit_id,
                record.batch.checkpoint,
            )
            for record in streams
        ],
    )


@group.command("forget")
def forget_stream(
    name: Name,
    *,
    store: options.Store = None,
    branch: options.OnBranch = None,
    actor: options.Actor = None,
    yes: options.Yes = False,
    json: options.Json = False,
) -> None:
    """Remove the record of a stream that has ended for good; what it wrote stays."""
    handle = graphs.open_graph(store, actor=actor)
    graphs.ask_first(handle, f"forget stream {name}", yes=yes)
    commit_id = handle.streams.forget(name, branch=branch)
    with render.report_of_commit(commit_id):
        if json:
            render.show_json({"stream": name, "commit_id": commit_id})
            return
        render.show_facts({"stream": name, "commit": commit_id})
        render.say("forgotten")


def _facts(record: StreamRecord) -> dict[str, object]:
    return {**record.batch.to_facts(), "commit_id": record.commit_id}
