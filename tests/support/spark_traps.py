"""Traps: what executors do in Python, found by name, and killing a process in the middle of it.

Whatever a load or an export does in executors goes through `mapInArrow`. A first run tells which
functions those are; a later one is run with a trap in one of them.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias

import pyarrow as pa
from pyspark import TaskContext

Work: TypeAlias = "Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]"

_DIES_SECONDS_MAX: Final = 60


class Moment(StrEnum):
    """When a trap springs."""

    TAKING = "taking"
    """A task has got its first rows, and done nothing with them."""
    TELLING = "telling"
    """A task has written what it writes, and not yet said so."""


@dataclass(frozen=True, slots=True)
class Trap:
    """Kills processes in the middle of a task.

    Attributes:
        name: The function that the task is given to run.
        marks: An empty directory in which it notes that it has sprung.
        times: How many attempts of the first task that comes along it kills.
        victims: The processes that it kills; the executor that runs the task when None.
    """

    name: str
    moment: Moment
    marks: str
    times: int = 1
    victims: tuple[int, ...] | None = None

    @property
    def sprung(self) -> int:
        """How often it has killed."""
        return len(list(Path(self.marks).glob("kill-*")))


@dataclass(frozen=True, slots=True)
class _Trapped:
    """The work of an executor, with a trap in it."""

    work: Work
    trap: Trap

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for each in self.work(self._taken(batches)):
            if self.trap.moment is Moment.TELLING:
                _spring(self.trap)
            yield each

    def _taken(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for each in batches:
            if self.trap.moment is Moment.TAKING:
                _spring(self.trap)
            yield each


def _spring(trap: Trap) -> None:
    context = TaskContext.get()
    assert context is not None, "it runs in an executor"
    mine = f"task-{context.stageId()}-{context.partitionId()}"
    try:
        # One name for all: who makes it first is the one that dies.
        Path(trap.marks, "chosen").symlink_to(mine)
    except FileExistsError:
        if Path(trap.marks, "chosen").readlink() != Path(mine):
            return
    for number in range(trap.times):
        try:
            Path(trap.marks, f"kill-{number}").touch(exist_ok=False)
        except FileExistsError:
            continue
        for pid in trap.victims or (_parent(os.getppid()),):
            os.kill(pid, signal.SIGKILL)
        # The daemon that started this worker ends it, once its executor is gone.
        time.sleep(_DIES_SECONDS_MAX)


def _parent(pid: int) -> int:
    """The executor: workers are forked by a daemon that it started."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


Dress: TypeAlias = "Callable[[str, Work], Work]"


@contextmanager
def dressed(dress: Dress) -> Iterator[None]:
    """Let executors do what `dress` makes of the work of each name."""
    from pyspark.sql.classic.dataframe import DataFrame

    plain = DataFrame.mapInArrow
    frames: Any = DataFrame

    def map_in_arrow(frame: Any, work: Any, *others: Any, **more: Any) -> Any:
        name = (work.func if isinstance(work, partial) else work).__name__
        return plain(frame, dress(name, work), *others, **more)

    frames.mapInArrow = map_in_arrow
    try:
        yield
    finally:
        frames.mapInArrow = plain


def names_of(action: Callable[[], object]) -> list[str]:
    """The names of all that an action gives executors to do, each once, in order."""
    found: dict[str, None] = {}

    def noted(name: str, work: Work) -> Work:
        found[name] = None
        return work

    with dressed(noted):
        action()
    return list(found)


@contextmanager
def trapped(trap: Trap) -> Iterator[None]:
    """Let a trap wait in the work of its name."""
    Path(trap.marks).mkdir(parents=True)

    def dress(name: str, work: Work) -> Work:
        return _Trapped(work, trap) if name == trap.name else work

    with dressed(dress):
        yield
