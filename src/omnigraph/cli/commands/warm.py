"""`omnigraph warm`: control the starter, which makes commands start fast."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.cli import options, render
from omnigraph.limits import WARM_IDLE_SECONDS, WARM_IDLE_SECONDS_MAX

if TYPE_CHECKING:
    from omnigraph.warm.control import Status

group = typer.Typer(
    help="Keep a process ready that makes commands start fast.", no_args_is_help=True
)


@group.command("start")
def start_starter(
    *,
    idle: Annotated[
        float,
        typer.Option(
            "--idle",
            metavar="MINUTES",
            min=0.01,
            max=WARM_IDLE_SECONDS_MAX / 60,
            help="End it after so many minutes without a command.",
        ),
    ] = WARM_IDLE_SECONDS / 60,
    json: options.Json = False,
) -> None:
    """Start it, unless one runs that fits what is installed."""
    from omnigraph.cli import starter
    from omnigraph.warm import control

    status, is_new = control.start([starter.MODULE], idle_seconds=idle * 60)
    if json:
        render.show_json({"started": is_new, **_facts(status)})
        return
    render.say("started" if is_new else "it is running already")
    _show(status)


@group.command("stop")
def stop_starter(*, json: options.Json = False) -> None:
    """Stop it; commands that it runs go on to their end."""
    from omnigraph.warm import control

    pid = control.stop()
    if json:
        render.show_json({"stopped": pid})
    else:
        render.say("no starter runs" if pid is None else f"stopped process {pid}")


@group.command("status")
def show_starter(*, json: options.Json = False) -> None:
    """Print whether it runs, and whether commands of this shell use it."""
    from omnigraph.warm import control

    status = control.read_status()
    if json:
        render.show_json(_facts(status))
    elif status is None:
        render.say("no starter runs")
    else:
        _show(status)


def _facts(status: Status | None) -> dict[str, object]:
    if status is None:
        return {"running": False}
    return {"running": True, **asdict(status)}


def _show(status: Status) -> None:
    minutes = status.idle_seconds_max / 60
    render.show_facts(
        {
            "process": status.pid,
            "memory": f"{status.memory_bytes / 1e6:.0f} MB",
            "commands": status.commands,
            "ends": f"after {minutes:g} minutes without a command",
            "this shell": "uses it" if status.refusal is None else f"does not: {status.refusal}",
        }
    )
