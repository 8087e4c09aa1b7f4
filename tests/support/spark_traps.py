"""Traps: kill a process while an executor runs a Python function of a given name.

Loads and exports run all their Python in executors through `mapInArrow`. A first run records the
names of those functions; a later one runs with a trap in one of them.
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
    """A task has received its first rows, and done nothing with them."""
    TELLING = "telling"
    """A task has written its files, and not yet reported them."""


@dataclass(frozen=True, slots=True)
class Trap:
    """Kills processes in the middle of a task.

    Attributes:
        name: The function that the task runs.
        marks: An empty directory in which it records that it has sprung.
        times: How many attempts of the first matching task it kills.
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
class _WorkWithTrap:
    """The work of an executor, with a trap in it."""

    work: Work
    trap: Trap

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in self.work(self._take_batches(batches)):
            if self.trap.moment is Moment.TELLING:
                _spring(self.trap)
            yield batch

    def _take_batches(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if self.trap.moment is Moment.TAKING:
                _spring(self.trap)
            yield batch


def _spring(trap: Trap) -> None:
    context = TaskContext.get()
    assert context is not None, "it runs in an executor"
    mine = f"task-{context.stageId()}-{context.partitionId()}"
    try:
        # One name for all: the task that creates it first is the one that dies.
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
        # The daemon that started this worker ends it after its executor has ended.
        time.sleep(_DIES_SECONDS_MAX)


def _parent(pid: int) -> int:
    """The executor: workers are forked by a daemon that it started."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


WrapWork: TypeAlias = "Callable[[str, Work], Work]"


@contextmanager
def wrap_work(wrap: WrapWork) -> Iterator[None]:
    """Replace the work of executors by the result of `wrap(name, work)`."""
    from pyspark.sql.classic.dataframe import DataFrame

    original = DataFrame.mapInArrow
    frames: Any = DataFrame

    def map_in_arrow(frame: Any, work: Any, *others: Any, **more: Any) -> Any:
        name = (work.func if isinstance(work, partial) else work).__name__
        return original(frame, wrap(name, work), *others, **more)

    frames.mapInArrow = map_in_arrow
    try:
        yield
    finally:
        frames.mapInArrow = original


def names_of(action: Callable[[], object]) -> list[str]:
    """The names of all functions that an action runs in executors, each once, in order."""
    names: dict[str, None] = {}

    def note(name: str, work: Work) -> Work:
        names[name] = None
        return work

    with wrap_work(note):
        action()
    return list(names)


@contextmanager
def set_trap(trap: Trap) -> Iterator[None]:
    """Set a trap in the work of its name."""
    Path(trap.marks).mkdir(parents=True)

    def wrap(name: str, work: Work) -> Work:
        return _WorkWithTrap(work, trap) if name == trap.name else work

    with wrap_work(wrap):
        yield
