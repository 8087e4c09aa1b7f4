"""The starter of commands: imports what they use, and then only forks copies of itself.

It calls nothing of Lance, Arrow or DuckDB, so none of their threads has started, which a copy would
not have.
"""

from __future__ import annotations

import gc
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import redirect_stdout, suppress
from importlib import import_module
from io import StringIO
from pathlib import Path
from pkgutil import iter_modules
from typing import Final, NoReturn

from omnigraph.cli import process
from omnigraph.warm import control, server

MODULE: Final = "omnigraph.cli.starter"

_WITHOUT_THREADS: Final = {
    "OPENBLAS_NUM_THREADS": "1",
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
}
"""Keep numpy and Arrow from starting a thread each as they are imported."""

_LIBRARIES: Final = (
    "duckdb",
    "numpy.ma",
    "obstore.store",
    "rich.console",
    "rich.progress",
    "rich.table",
    "sqlglot.dialects.duckdb",
    "typer._click._textwrap",
)
"""What commands import at their first use."""

_LEFT_OUT: Final = frozenset(
    {
        "__main__",
        "agents",
        "by_key_counts",
        "connector",
        "demo",
        "remote",
        "server",
        "spark",
        "starter",
        "streams",
    }
)
"""Parts of the names of modules that need extras, or are for tests, or for one command of many."""


def main() -> None:
    """Serve commands until the idle limit."""
    idle_seconds = float(sys.argv[1])
    try:
        with server.listen() as post:
            preload()
            starter = server.make_starter(_run_command, idle_seconds=idle_seconds)
            # Copies share what is never collected.
            gc.freeze()
            _say(control.READY)
            server.detach()
            server.Server(post, starter).run()
    except server.AlreadyServedError:
        # Whoever asked for one has one.
        _say(control.READY)
    except (OSError, server.ThreadsError) as error:
        _say(str(error))
    # Releasing the libraries, object by object, would take a while for nothing.
    sys.stdout.flush()
    os._exit(0)


def preload() -> None:
    """Import what commands use, and do what each would do first."""
    # Lance warns about every fork; it recommends forking from a process like this one.
    warnings.filterwarnings("ignore", "lance is not fork-safe")
    process.defer_pandas()
    os.environ.update(_WITHOUT_THREADS)
    try:
        own = _modules_below(Path(__file__).parents[1], "omnigraph")
        for name in (*_LIBRARIES, *own):
            import_module(name)
        _make_first_uses()
    finally:
        for variable in _WITHOUT_THREADS:
            del os.environ[variable]


def _modules_below(folder: Path, package: str) -> Iterator[str]:
    for module in iter_modules([str(folder)]):
        if module.name not in _LEFT_OUT:
            yield f"{package}.{module.name}"
            if module.ispkg:
                yield from _modules_below(folder / module.name, f"{package}.{module.name}")


def _make_first_uses() -> None:
    from omnigraph.cli.main import main as run_main
    from omnigraph.cli.main import whole_command
    from omnigraph.query.compile import read_queries
    from omnigraph.schema.parser import parse_schema

    people = parse_schema("node Person { name: String @key }")
    read_queries("query all() { match { $p: Person } return { $p.name } }", people, "first use")
    # Each is built when it is first looked at.
    list(whole_command().commands.values())
    with redirect_stdout(StringIO()), suppress(SystemExit):
        run_main(["version"])


def _run_command() -> NoReturn:
    from omnigraph import failpoints
    from omnigraph.cli.main import run

    # As the package does when it is imported.
    failpoints.obey_environment()
    run()


def _say(text: str) -> None:
    print(text, flush=True)  # noqa: T201  # to the process that started this one


if __name__ == "__main__":
    main()
