"""`omnigraph check`: prove that a graph is sound, or say what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.cli import options, render
from omnigraph.cli.exits import Exit
from omnigraph.cli.progress import followed

if TYPE_CHECKING:
    from omnigraph.maintenance.checking.report import CheckReport, Finding


def check(
    *,
    store: options.Store = None,
    branch: Annotated[
        str | None, typer.Option("--branch", metavar="NAME", help="Only this one; all by default.")
    ] = None,
    shallow: Annotated[
        bool, typer.Option("--shallow", help="Read no rows: quick at any size.")
    ] = False,
    history: Annotated[
        bool,
        typer.Option("--history", help="Look at what every older commit reads, too."),
    ] = False,
    engine: options.OnEngine = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Prove that a graph is sound, from its history to its rows. Reads only.

    Ends with 1 if anything is wrong, and says what, where, and what to do next.
    """
    from omnigraph.clock import SystemClock
    from omnigraph.graph import Graph
    from omnigraph.storage.store import Store

    # Not opened, which refuses a graph whose main cannot be read: to say why is what this is for.
    handle = Graph(Store.open(options.required_store(store)), SystemClock(), read_only=True)
    with followed(quiet=quiet or json) as progress:
        report = handle.check(
            branch=branch, rows=not shallow, history=history, engine=engine, progress=progress
        )
    if json:
        render.show_json(_facts(report))
    else:
        _show(report)
    if not report.is_sound:
        raise typer.Exit(Exit.FAILED)


def _show(report: CheckReport) -> None:
    render.show_table(
        ["checked", "count", "wrong", "what must hold"],
        [
            (each, f"{count:,}", report.wrong(each) or "", each.sentence)
            for each, count in report.checked.items()
        ],
    )
    _tell("wrong", report.findings)
    _tell("note", report.notes)
    branches = ", ".join(report.branches)
    if report.is_sound:
        render.say(f"sound: {report.uri}, branches {branches}")
    else:
        number = sum(each.count for each in report.findings)
        render.say(f"{number:,} found wrong in {report.uri}, branches {branches}")


def _tell(kind: str, findings: Iterable[Finding]) -> None:
    for each in findings:
        times = f" ({each.count:,} times)" if each.count > 1 else ""
        lines = [
            f"{kind}[{each.invariant}]: {each.subject}{times}: {each.problem}",
            f"  where: {each.place}",
            f"  next: {each.next_step}",
        ]
        render.show_text("\n".join(["", *lines]))


def _facts(report: CheckReport) -> dict[str, object]:
    return {
        "graph": report.uri,
        "sound": report.is_sound,
        "branches": report.branches,
        "checked": dict(report.checked),
        "findings": [asdict(each) for each in report.findings],
        "notes": [asdict(each) for each in report.notes],
    }
