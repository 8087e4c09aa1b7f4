"""`omnigraph copy`: copy a graph with its history, or what is new since the last copy."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.cli import graphs, options, render
from omnigraph.cli.commands.cleanup import format_size
from omnigraph.cli.exits import Exit
from omnigraph.cli.progress import show_progress

if TYPE_CHECKING:
    from omnigraph.maintenance.copying.results import CopyResult


def copy(
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="The graph to copy.")],
    target: Annotated[
        str,
        typer.Argument(metavar="TARGET", help="An empty or new place, or an earlier copy."),
    ],
    *,
    branch: Annotated[
        list[str] | None,
        typer.Option(
            "--branch",
            metavar="NAME",
            help="Only this branch and main; may be given several times. All by default.",
        ),
    ] = None,
    actor: options.Actor = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Copy a graph with its history to a directory or a bucket, and check the copy.

    Run it again to continue an interrupted copy, or to copy what is new. Others may write to SOURCE
    meanwhile. Exits with 1 if the check of TARGET finds anything wrong.
    """
    from omnigraph import graph

    place = graphs.find_place(None, source).require_stored()
    handle = graph.open(place, actor=actor, read_only=True)
    with show_progress(quiet=quiet or json) as progress:
        result = handle.copy(target, branches=branch or None, progress=progress)
    if json:
        render.show_json({**asdict(result), "sound": result.is_sound})
    else:
        _show(result)
    if not result.is_sound:
        raise typer.Exit(Exit.FAILED)


def _show(result: CopyResult) -> None:
    render.show_facts(
        {
            "source": result.source,
            "target": result.target,
            "branches": ", ".join(result.branches),
            "commits": f"{result.commits:,}",
            "files": f"{result.files:,}",
            "size": format_size(result.size),
        }
    )
    for finding in result.findings:
        render.show_text(f"wrong[{finding.invariant}]: {finding.subject}: {finding.problem}")
    if not result.is_sound:
        render.say("the copy is complete, but has problems: see 'omnigraph check' of both graphs")
