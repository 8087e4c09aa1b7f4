"""Spark drivers in their own processes, with their own master, which tests may kill."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from itertools import product
from multiprocessing.context import SpawnContext, SpawnProcess
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

import pytest
from pyspark.errors import StreamingQueryException

from omnigraph.failpoints import ENVIRONMENT_VARIABLE, Failpoint, arm
from tests.support.cluster import end_with
from tests.support.crashes import Cut
from tests.support.spark_traps import Moment, Trap, set_trap

Answer = TypeVar("Answer")

ANSWER_SECONDS_MAX: Final = 600
END_SECONDS_MAX: Final = 60

SMALL: Final[Mapping[str, int]] = {
    # Several tasks then read and write even small inputs.
    "LOAD_GROUP_BYTES_MIN": 4_000,
    "LOAD_GROUPS_PER_CORE_MIN": 3,
    "SPARK_PARTITION_ROWS_MIN": 50,
    "SPARK_PARTITION_ROWS_MAX": 200,
}
OPTIONS: Final[Mapping[str, str]] = {
    "spark.executor.memory": "512m",
    # Executors run for seconds, like the driver.
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.shuffle.partitions": "3",
    # Executors import the functions of a test from its own modules.
    "spark.executorEnv.PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
}


class Driver(Protocol):
    """Does work in another process, and returns its result or raises its error."""

    def __call__(self, work: Callable[..., Answer], *arguments: Any) -> Answer:
        """Do it."""
        ...


@contextmanager
def run_driver(environment: Mapping[str, str] | None = None) -> Iterator[Driver]:
    """Run a driver during the block; its session starts with its first work on Spark."""
    pool = ProcessPoolExecutor(1, mp_context=_context(), initializer=begin, initargs=(environment,))
    pid = pool.submit(os.getpid).result(ANSWER_SECONDS_MAX)

    def drive(work: Callable[..., Answer], *arguments: Any) -> Answer:
        return pool.submit(work, *arguments).result(ANSWER_SECONDS_MAX)

    try:
        yield drive
    except BaseException:
        # It may still be working.
        os.kill(pid, signal.SIGKILL)
        raise
    finally:
        pool.shutdown()


def kill_at(cut: Cut, work: Callable[..., object], *arguments: Any) -> None:
    """Do work in a driver that is killed, with its Java, at a failpoint."""
    _expect_kill(_die_at, str(cut.point), cut.nth, work, *arguments)


def _die_at(point: str, nth: int, work: Callable[..., object], *arguments: Any) -> None:
    victims = (java_pid(), os.getpid())
    with arm(Failpoint(point), partial(_kill, victims), after_hits=nth - 1):
        work(*arguments)


def kill_with_sink(point: Failpoint, work: Callable[..., object], *arguments: Any) -> None:
    """Do work in a driver that is killed, with its Java, once its sink was killed at a failpoint.

    A sink of a stream commits in a process of its own, which Java starts.
    """
    process = _context().Process(target=_die_with_sink, args=(str(point), work, *arguments))
    _await_kill(process)


def _die_with_sink(point: str, work: Callable[..., object], *arguments: Any) -> None:
    # This process imported the failpoints before: only those that Java starts are armed.
    begin({ENVIRONMENT_VARIABLE: f"{point}=kill"})
    victims = (java_pid(), os.getpid())
    with pytest.raises(StreamingQueryException, match="exited unexpectedly"):
        work(*arguments)
    _kill(victims)


def _kill(victims: Sequence[int]) -> None:
    for pid in victims:
        os.kill(pid, signal.SIGKILL)


def kill_during(
    name: str, moment: Moment, marks: Path, work: Callable[..., object], *arguments: Any
) -> None:
    """Do work in a driver that is killed, with its Java, while executors are working.

    Args:
        name: The function that the executors run.
        marks: A directory for the trap, which must not exist yet.
    """
    _expect_kill(_die_during, name, moment, marks, work, *arguments)
    await_end(int((marks / "java").read_text()))


def _die_during(
    name: str, moment: Moment, marks: Path, work: Callable[..., object], *arguments: Any
) -> None:
    java = java_pid()
    with set_trap(Trap(name, moment, str(marks), victims=(os.getpid(), java))):
        (marks / "java").write_text(str(java))
        work(*arguments)


def _expect_kill(work: Callable[..., object], *arguments: Any) -> None:
    _await_kill(_context().Process(target=_begin_and_run, args=(work, *arguments)))


def _await_kill(process: SpawnProcess) -> None:
    process.start()
    process.join(ANSWER_SECONDS_MAX)
    assert process.exitcode == -signal.SIGKILL, process.exitcode


def _begin_and_run(work: Callable[..., object], *arguments: Any) -> None:
    begin()
    work(*arguments)


def _context() -> SpawnContext:
    # A fresh process: a fork of one that runs Spark would share its connection to Java.
    return multiprocessing.get_context("spawn")


def begin(environment: Mapping[str, str] | None = None) -> None:
    """Become a driver of small tasks, with its variables set before Java starts."""
    parent = multiprocessing.parent_process()
    assert parent is not None, "drivers are children"
    assert parent.pid is not None, "it runs"
    # Workers of a pool wait for work even after their parent has ended.
    end_with(parent.pid)
    os.environ.update(environment or {})
    from omnigraph.engine.spark.session import open_session
    from omnigraph.engine.spark.settings import SessionSettings, Workload

    # Import all modules of a load first: they copy their limits when they are imported.
    import_module("omnigraph.load.spark.load")
    ours = [each for name, each in sys.modules.items() if name.startswith("omnigraph.")]
    for (name, value), module in product(SMALL.items(), ours):
        if hasattr(module, name):
            setattr(module, name, value)
    master = None if "OMNIGRAPH_SPARK_MASTER" in os.environ else "local[2]"
    settings = SessionSettings(
        master=master, work=Workload.SHORT, driver_memory="768m", options=OPTIONS
    )
    open_session(settings)


def java_pid() -> int:
    """The JVM of this driver."""
    from pyspark import SparkContext

    gateway = SparkContext._gateway
    assert gateway is not None, "Spark runs"
    return int(gateway.proc.pid)


def await_end(pid: int) -> None:
    """Wait until a process has ended: a killed one takes a moment to release its memory."""
    deadline = time.monotonic() + END_SECONDS_MAX
    while _is_running(pid):
        assert time.monotonic() < deadline, "it does not end"
        time.sleep(0.1)


def _is_running(pid: int) -> bool:
    """Whether a process exists and is not a zombie."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"
