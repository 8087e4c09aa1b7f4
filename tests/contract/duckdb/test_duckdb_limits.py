"""What DuckDB does when a run has to end: interrupts, signals, memory that it does not count."""

import subprocess
import sys
import threading
import time
from collections.abc import Callable

import duckdb
import pyarrow as pa
import pytest

ROWS = pa.table({"a": pa.array(range(1_000_000))})
ENDLESS = {
    "count": "SELECT count(*) FROM t x, t y WHERE x.a + y.a = 7",
    "rows": "SELECT x.a, y.a FROM t x, t y",
    "groups": "SELECT x.a + y.a AS s, count(*) FROM t x, t y GROUP BY 1",
}
SECONDS_MAX = 5
"""Measured: some hundredths; this bears a busy machine."""

IGNORES_SIGNALS = """
import os, signal, threading, time, duckdb
signal.signal(signal.SIGINT, signal.default_int_handler)
rows = duckdb.connect()
rows.execute("CREATE TABLE t AS SELECT range AS a FROM range(1000000)")
start = time.monotonic()
try:
    threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    threading.Timer(1.6, rows.interrupt).start()
    try:
        rows.sql("SELECT count(*) FROM t x, t y WHERE x.a + y.a = 7").to_arrow_table()
    except duckdb.InterruptException:
        time.sleep(5)
except KeyboardInterrupt:
    print(time.monotonic() - start)
"""
"""The signal is seen when the run has ended, wherever the thread is by then."""


def seconds_to_end(run: Callable[[duckdb.DuckDBPyRelation], object], text: str) -> float:
    connection = duckdb.connect()
    connection.register("t", ROWS)
    timer = threading.Timer(0.2, connection.interrupt)
    timer.start()
    start = time.monotonic()
    # A stream raises what ended it as an OSError.
    with pytest.raises((duckdb.InterruptException, OSError), match="Interrupted"):
        run(connection.sql(text))
    seconds = time.monotonic() - start
    timer.join()
    assert connection.sql("SELECT 1").fetchall() == [(1,)]
    return seconds


@pytest.mark.parametrize("text", ENDLESS.values(), ids=ENDLESS)
def test_an_interrupt_from_another_thread_ends_a_run(text: str) -> None:
    assert seconds_to_end(lambda answer: answer.to_arrow_table(), text) < SECONDS_MAX
    assert seconds_to_end(lambda answer: list(answer.to_arrow_reader(65_536)), text) < SECONDS_MAX


def test_an_interrupt_before_a_run_is_forgotten() -> None:
    connection = duckdb.connect()
    connection.interrupt()
    assert connection.sql("SELECT 1").fetchall() == [(1,)]


def test_a_signal_does_not_end_a_run_in_the_main_thread() -> None:
    run = subprocess.run(
        [sys.executable, "-c", IGNORES_SIGNALS], capture_output=True, text=True, check=True
    )
    assert float(run.stdout) > 1, "if it did, no other thread would be needed"


def test_the_limit_of_memory_holds_for_a_database_and_not_for_results() -> None:
    limits: dict[str, str | bool | int | float | list[str]] = {
        "memory_limit": "20MB",
        "temp_directory": "",
    }
    connection = duckdb.connect(":memory:", config=limits)
    connection.register("t", ROWS)
    with pytest.raises(duckdb.OutOfMemoryException):
        connection.sql("SELECT count(DISTINCT x.a * y.a) FROM t x, t y").fetchall()

    rows = connection.sql("SELECT x.a, y.a FROM t x, t y LIMIT 5_000_000").to_arrow_table()
    assert rows.nbytes > 60_000_000
    cursor = connection.cursor()
    cursor.execute("SET memory_limit = '30MB'")
    [shared] = connection.sql("SELECT current_setting('memory_limit')").fetchall()
    assert shared == ("28.6 MiB",)
