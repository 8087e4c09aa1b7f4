"""`omnigraph check`: verify that a graph is sound, or report what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.cli import graphs, options, render
from omnigraph.cli.exits import Exit
from omnigraph.cli.progress import show_progress

if TYPE_CHECKING:
    from omnigraph.maintenance.checking.report import CheckReport, Finding
    from omnigraph.remote.graph import AnyGraph


def check(
    *,
    store: options.Store = None,
    branch: options.OneBranch = None,
    shallow: Annotated[
        bool, typer.Option("--shallow", help="Read no rows: quick at any size.")
    ] = False,
    history: Annotated[
        bool,
        typer.Option("--history", help="Check what every older commit reads, too."),
    ] = False,
    engine: options.OnEngine = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Verify that a graph is sound, from its history to its rows. Reads only.

    Exits with 1 if anything is wrong, and reports what, where, and what to do next.
    """
    handle = _open(graphs.find_place(store))
    with show_progress(quiet=quiet or json) as progress:
        report = handle.check(
            branch=branch, rows=not shallow, history=history, engine=engine, progress=progress
        )
    render.say_hidden(report.hidden)
    if json:
        render.show_json(_facts(report))
    else:
        _show(report)
    if not report.is_sound:
        raise typer.Exit(Exit.FAILED)


def _open(place: graphs.Place) -> AnyGraph:
    """A handle on a graph, even if its main cannot be read: this command reports why."""
    if place.is_served:
        return graphs.open_place(place, read_only=True)
    from omnigraph.clock import SystemClock
    from omnigraph.graph import Graph
    from omnigraph.policy.authority import Authority
    from omnigraph.storage.store import Store

    opened = Store.open(place.uri)
    authority = Authority.open(opened.root.uri, None, None)
    return Graph(opened, SystemClock(), read_only=True, authority=authority)


def _show(report: CheckReport) -> None:
    render.show_table(
        ["checked", "count", "wrong", "what must hold"],
        [
            (invariant, f"{count:,}", report.wrong(invariant) or "", invariant.sentence)
            for invariant, count in report.checked.items()
        ],
    )
    _show_findings("wrong", report.findings)
    _show_findings("note", report.notes)
    branches = ", ".join(report.branches)
    if report.is_sound:
        render.say(f"sound: {report.uri}, branches {branches}")
    else:
        number = sum(finding.count for finding in report.findings)
        render.say(f"{number:,} found wrong in {report.uri}, branches {branches}")


def _show_findings(kind: str, findings: Iterable[Finding]) -> None:
    for finding in findings:
        times = f" ({finding.count:,} times)" if finding.count > 1 else ""
        lines = [
            f"{kind}[{finding.invariant}]: {finding.subject}{times}: {finding.problem}",
            f"  where: {finding.place}",
            f"  next: {finding.next_step}",
        ]
        render.show_text("\n".join(["", *lines]))


def _facts(report: CheckReport) -> dict[str, object]:
    return {
        "graph": report.uri,
        "sound": report.is_sound,
        "branches": report.branches,
        "checked": dict(report.checked),
        "findings": [asdict(finding) for finding in report.findings],
        "notes": [asdict(note) for note in report.notes],
    }
