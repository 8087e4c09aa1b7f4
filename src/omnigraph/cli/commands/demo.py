"""`omnigraph demo`: a tour on a new graph."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Final

import typer

from omnigraph.choices import EngineName
from omnigraph.cli import options, output, render

ROWS: Final = 1_000_000


def demo(
    *,
    rows: Annotated[
        int,
        typer.Option("--rows", metavar="N", min=100, help="How many rows the graph has."),
    ] = ROWS,
    directory: Annotated[
        Path | None,
        typer.Option(
            "--directory", metavar="DIR", help="A new directory for the graph; it is kept."
        ),
    ] = None,
    engine: options.OnEngine = None,
) -> None:
    """Create a graph of a million rows, and show what can be done."""
    import shutil
    import tempfile

    wanted = engine or _choose_engine()
    if directory is not None:
        _create(directory)
        _run(directory.resolve(), rows, wanted)
        return
    place = Path(tempfile.mkdtemp(prefix="omnigraph-demo-"))
    try:
        _run(place, rows, wanted)
    except BaseException:
        shutil.rmtree(place, ignore_errors=True)
        raise


def _run(directory: Path, rows: int, engine: str) -> None:
    from omnigraph_demo.tour import Tour

    try:
        Tour(directory, rows, engine).run()
    except BrokenPipeError as cause:
        output.discard_rest(sys.stdout)
        raise output.OutputClosedError from cause


def _create(directory: Path) -> None:
    try:
        directory.mkdir(parents=True)
    except OSError as cause:
        message = f"{directory} cannot be made: {cause.strerror}"
        raise typer.BadParameter(message, param_hint="--directory") from cause


def _choose_engine() -> EngineName:
    """Spark where it can run: the tour loads as many rows as Spark is for."""
    from omnigraph.engine.extras import INSTALL_SPARK, is_spark_installed
    from omnigraph.engine.spark.java import find_java

    if not is_spark_installed():
        render.say(f"Spark is not installed, so the local engine loads; {INSTALL_SPARK}")
        return EngineName.LOCAL
    if find_java() is not None:
        return EngineName.SPARK
    render.say("Java was not found, so the local engine loads; pip install 'omnigraph[java]'")
    return EngineName.LOCAL
