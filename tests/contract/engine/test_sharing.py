"""One DuckDB serves a process, whichever threads ask first; children may be forked beside it."""

import subprocess
import sys
import threading
import time
from functools import cache

import duckdb
import pytest

from omnigraph.engine.local import databases
from omnigraph.engine.local.execute import LocalEngine

FORKS_BESIDE_THREADS = """
import os, subprocess, threading
from omnigraph.engine.local.execute import LocalEngine

ready, done = threading.Barrier(5), threading.Event()

def ask(engine):
    ready.wait()
    assert engine._cursor().sql("SELECT 1").fetchall() == [(1,)]
    ready.wait()
    done.wait()

engine = LocalEngine()
threads = [threading.Thread(target=ask, args=(engine,)) for _ in range(4)]
for each in threads:
    each.start()
ready.wait()
ready.wait()
# A function to call in the child makes it run Python, as pyspark has it.
ended = [subprocess.run(["true"], preexec_fn=os.getpid).returncode for _ in range(5)]
done.set()
for each in threads:
    each.join()
print(ended)
"""


def test_threads_that_ask_at_the_same_moment_make_one_database(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[int] = []

    @cache
    def slowly(pid: int, _: tuple[str, ...]) -> duckdb.DuckDBPyConnection:
        time.sleep(0.1)
        made.append(pid)
        return duckdb.connect(":memory:")

    monkeypatch.setattr(databases, "_connected", slowly)
    threads = [threading.Thread(target=LocalEngine()._cursor) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()

    assert len(made) == 1


def test_a_process_that_is_started_beside_threads_that_asked_ends_well() -> None:
    run = subprocess.run(
        [sys.executable, "-c", FORKS_BESIDE_THREADS], capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == str([0] * 5)
