"""`omnigraph spark`: what Spark's workers need."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from omnigraph.cli import options, render

group = typer.Typer(help="Prepare what Spark's workers need.", no_args_is_help=True)


@group.callback()
def _of_spark() -> None:
    """A group, though it has one command."""


@group.command("pack")
def pack(
    path: Annotated[
        Path, typer.Argument(metavar="ARCHIVE", help="The archive to write, a .tar.gz.")
    ] = Path("environment.tar.gz"),
    *,
    also: Annotated[
        list[str] | None,
        typer.Option("--with", metavar="PACKAGE", help="Pack a further package."),
    ] = None,
    interpreter: Annotated[
        bool,
        typer.Option(
            "--interpreter/--no-interpreter",
            help="Pack this Python too, or use one that workers have.",
        ),
    ] = True,
    json: options.Json = False,
) -> None:
    """Pack this Python and this package for the workers of a cluster."""
    from omnigraph.engine.spark.packing import FOLDER, PYTHON, pack_environment

    packed = pack_environment(path, also=also or (), with_interpreter=interpreter)
    if json:
        render.show_json(
            {
                "path": packed.path,
                "bytes": packed.size,
                "python": packed.python,
                "packages": dict(packed.packages),
                "options": packed.options,
            }
        )
        return
    count = len(packed.packages)
    render.say(
        f"packed Python {packed.python} and {count} packages: {packed.path}, {packed.size >> 20} MB"
    )
    render.show_text(
        f"export OMNIGRAPH_SPARK_ENVIRONMENT={packed.path}\n"
        f"spark-submit --archives {packed.path}#{FOLDER} --conf spark.pyspark.python={PYTHON}"
    )
