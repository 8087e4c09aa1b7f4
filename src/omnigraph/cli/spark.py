"""Spark as a command starts it: for short work, and only if the work needs it."""

from __future__ import annotations

from contextlib import AbstractContextManager

import typer

from omnigraph.choices import EngineRequest


def check_master(master: str | None, engine: EngineRequest | None, *, is_served: bool) -> None:
    """Refuse a master that nothing would use."""
    if master is not None and is_served:
        message = "--master has no effect: the server loads the rows with its own Spark"
        raise typer.BadParameter(message, param_hint="--master")
    if master is not None and engine is EngineRequest.LOCAL:
        message = "--master cannot be used with --engine local"
        raise typer.BadParameter(message, param_hint="--master")


def quick_spark(master: str | None = None) -> AbstractContextManager[None]:
    """Within the block, start Spark for work of seconds to minutes, if it has to be started."""
    # Imported here: --help and most commands need none of it.
    from omnigraph.engine.spark.settings import SessionSettings, Workload, use_by_default

    return use_by_default(SessionSettings(master=master, work=Workload.SHORT))
