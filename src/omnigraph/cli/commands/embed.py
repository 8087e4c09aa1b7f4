"""`omnigraph embed`: embed the texts of rows that wait for it, or count them."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.choices import EmbedScope
from omnigraph.cli import graphs, options, render
from omnigraph.cli.progress import show_progress
from omnigraph.cli.spark import quick_spark
from omnigraph.wording import count_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from omnigraph.embedding.counts import EmbeddingStatus
    from omnigraph.maintenance.results import EmbedResult


def embed(
    *,
    store: options.Store = None,
    branch: options.OnBranch = None,
    types: options.Types = None,
    pending: Annotated[
        bool, typer.Option("--pending", help="Only rows that have no vector yet.")
    ] = False,
    stale: Annotated[
        bool, typer.Option("--stale", help="Only rows whose text or model has changed.")
    ] = False,
    everything: Annotated[
        bool, typer.Option("--all", help="All rows again, also those that have their vector.")
    ] = False,
    status: Annotated[
        bool, typer.Option("--status", help="Embed nothing: count the rows by their state.")
    ] = False,
    engine: options.OnEngine = None,
    actor: options.Actor = None,
    message: options.Message = None,
    quiet: options.Quiet = False,
    json: options.Json = False,
) -> None:
    """Embed the texts of rows that wait for it, in commits that a next run continues."""
    scope = _scope(pending=pending, stale=stale, everything=everything, status=status)
    if status:
        handle = graphs.open_graph(store, read_only=True)
        statuses = handle.embeddings.status(types=types, branch=branch)
        render.say_hidden(handle.snapshot(branch=branch).hidden)
        if json:
            render.show_json([asdict(one) for one in statuses])
        else:
            _show_status(statuses, types)
        return
    handle = graphs.open_graph(store, actor=actor)
    with quick_spark(), show_progress(quiet=quiet or json) as progress:
        result = handle.embeddings.run(
            types=types,
            scope=scope,
            branch=branch,
            engine=engine,
            message=message,
            progress=progress,
        )
    render.say_hidden(result.hidden)
    with render.report_of_commit(result.commits[-1] if result.commits else None):
        if json:
            render.show_json(asdict(result))
        else:
            _show_result(result, types)


def _scope(*, pending: bool, stale: bool, everything: bool, status: bool) -> EmbedScope:
    if pending + stale + everything + status > 1:
        message = "--pending, --stale, --all and --status exclude each other"
        raise typer.BadParameter(message, param_hint="--status" if status else "--all")
    if everything:
        return EmbedScope.ALL
    if pending or stale:
        return EmbedScope.PENDING if pending else EmbedScope.STALE
    return EmbedScope.WAITING


def _show_result(result: EmbedResult, types: Sequence[str] | None) -> None:
    if not result.commits:
        render.say(f"nothing waits to be embedded: branch {result.branch} has no new commit")
    else:
        count = count_of(len(result.commits), "commit")
        render.say(f"{count} on branch {result.branch}, the last {result.commits[-1]}")
        render.say_engine(result.engine, result.why)
    _show_status(result.status, types)


def _show_status(statuses: Sequence[EmbeddingStatus], types: Sequence[str] | None) -> None:
    if not statuses:
        where = f" of {' or '.join(types)}" if types else ""
        render.say(f"nothing can be embedded: no property{where} has @embed")
        return
    render.show_table(
        ["type", "property", "model", "current", "stale", "pending", "empty"],
        [_cells(one) for one in statuses],
    )


def _cells(one: EmbeddingStatus) -> tuple[object, ...]:
    counts = (one.current, one.stale, one.pending, one.empty)
    return (one.type_name, one.property_name, one.model, *counts)
