"""`omnigraph mutate`: change a graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.choices import EmbedWhen
from omnigraph.cli import graphs, options, queries, render

if TYPE_CHECKING:
    from omnigraph.mutation.results import MutationResult


def mutate(
    name: queries.Name = None,
    *,
    store: options.Store = None,
    file: queries.File = None,
    text: queries.Text = None,
    document: queries.Document = None,
    pairs: queries.Pairs = None,
    branch: options.OnBranch = None,
    expect_head: Annotated[
        str | None,
        typer.Option(
            "--expect-head",
            metavar="COMMIT",
            help="Refuse to write unless the branch is at this commit.",
        ),
    ] = None,
    timeout: Annotated[
        str | None,
        typer.Option(
            "--timeout",
            metavar="TIME",
            help="Change nothing if finding the rows takes longer than this, such as 30s.",
        ),
    ] = None,
    embed: options.Embed = EmbedWhen.AUTO,
    actor: options.Actor = None,
    message: options.Message = None,
    json: options.Json = False,
) -> None:
    """Insert, update or delete as a query says, in one commit: all or nothing."""
    source = queries.Source.read(file, text)
    parameters = source.parameters(document, pairs, name=name)
    handle = graphs.open_graph(store, actor=actor)
    with source.name_diagnostics():
        result = handle.mutate(
            source.text,
            parameters,
            name=name,
            branch=branch,
            message=message,
            expect_head=expect_head,
            timeout=timeout,
            embed=embed,
        )
    show_mutation(result, json=json)


def show_mutation(result: MutationResult, *, json: bool) -> None:
    """Print what a mutation changed."""
    with render.report_of_commit(result.commit_id):
        render.say_hidden(result.hidden)
        if json:
            render.show_json(result.to_json())
        else:
            _show(result)


def _show(result: MutationResult) -> None:
    if result.commit_id is None:
        why = "nothing changed" if result.unchanged else "nothing matched"
        render.say(f"{why}: branch {result.branch} has no new commit")
        render.say_unchanged(result.unchanged)
        return
    render.say(f"commit {result.commit_id} on branch {result.branch}")
    render.show_table(
        ["type", "inserted", "updated", "deleted"],
        [
            (type_name, counts.inserted, counts.updated, counts.deleted)
            for type_name, counts in result.changes.items()
        ],
    )
    render.say_unchanged(result.unchanged)
    render.say_embedding(result.embedding)
