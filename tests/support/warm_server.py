"""Imports the command line, and then only forks copies of itself that run commands.

A copy takes the arguments, the folder, the environment and the three streams of its caller, runs
one command, and exits with its code. This process calls nothing of Lance, Arrow or DuckDB, so none
of their threads has started, which a copy would not have.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import select
import shutil
import socket
import sys
import time
import warnings
from contextlib import redirect_stdout, suppress
from functools import cache
from io import StringIO
from pathlib import Path

import typer.main
from sqlglot.dialects import duckdb  # noqa: F401  # what every query loads, as it is translated

from omnigraph import (
    failpoints,
    graph,  # noqa: F401  # what nearly every command loads
)
from omnigraph.cli import cells  # noqa: F401  # what every table that is shown loads
from omnigraph.cli.main import main, run
from omnigraph.query.compile import read_queries
from omnigraph.schema.parser import parse_schema


def warm_up() -> None:
    """Do the first-time work of a command beyond imports: both grammars, and options."""
    people = parse_schema("node Person { name: String @key }")
    read_queries("query all() { match { $p: Person } return { $p.name } }", people, "warm-up")
    # Built once for all copies, which would otherwise each build them.
    vars(typer.main)["get_command"] = cache(typer.main.get_command)
    with redirect_stdout(StringIO()):
        main(["version"])


def serve(address: str) -> None:
    """Serve callers until standard input ends; returns in each copy that is to run a command."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen()
        print("ready", flush=True)  # noqa: T201  # to the process that started this one
        while True:
            ready, _, _ = select.select([listener, sys.stdin], [], [])
            if sys.stdin in ready:
                _reap()
                shutil.rmtree(Path(address).parent)
                # Frozen objects cannot be released, and DuckDB would complain about that at length.
                os._exit(0)
            _reap()
            connection, _ = listener.accept()
            if os.fork() == 0:
                break
            connection.close()
    _attend(connection)


def _reap() -> None:
    """Wait for copies that ended, so that their time counts as the time of tests."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG) != (0, 0):
            pass


def _attend(connection: socket.socket) -> None:
    """Fork once more: one copy becomes the command, the other waits to report its exit code."""
    _, streams, _, _ = socket.recv_fds(connection, 1, 3)
    with connection.makefile("rb") as said:
        arguments, folder, environment = json.load(said)
    if (command := os.fork()) != 0:
        _, status = os.waitpid(command, 0)
        connection.sendall(str(os.waitstatus_to_exitcode(status)).encode())
        os._exit(0)
    connection.close()
    for place, stream in enumerate(streams):
        os.dup2(stream, place)
        os.close(stream)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    if failpoints.ENVIRONMENT_VARIABLE in environment:
        # As the package does when it is imported.
        failpoints.arm_from_environment(environment[failpoints.ENVIRONMENT_VARIABLE])
    sys.argv = ["omnigraph", *arguments]
    # The command derives its name from a program, not from this module.
    sys.modules["__main__"].__package__ = None


def _run_and_end() -> None:
    """Run the command, and exit without releasing memory that is shared with this process."""
    try:
        run()
    except SystemExit as end:
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(end.code if isinstance(end.code, int) else 1)


if __name__ == "__main__":
    # Lance warns about every fork; it recommends forking from a process like this one.
    warnings.filterwarnings("ignore", "lance is not fork-safe")
    warm_up()
    gc.freeze()
    serve(sys.argv[1])
    _run_and_end()
