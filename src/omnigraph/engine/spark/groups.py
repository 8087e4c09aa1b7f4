"""Groups of jobs: what one action starts, counted and cancelled together, on any session."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from pyspark.sql import SparkSession

from omnigraph.engine.spark.connect import is_connect


class TaskCount(Protocol):
    """Counts the tasks of a group."""

    def join(self) -> AbstractContextManager[None]:
        """Count the jobs of this thread in a block, too."""
        ...

    def tasks(self) -> tuple[int, int]:
        """How many tasks of the running stages are done, and how many there are."""
        ...


@contextmanager
def tagged(session: SparkSession, tag: str) -> Iterator[None]:
    """Give the jobs of this thread a tag, beside those that they have."""
    if is_connect(session):
        session.addTag(tag)
    else:
        # A tag of a classic session is known to its thread alone, and another one cancels.
        session.sparkContext.addJobTag(tag)
        # Otherwise a task that waits for Python ends when Python does.
        session.sparkContext.setInterruptOnCancel(True)
    try:
        yield
    finally:
        if is_connect(session):
            session.removeTag(tag)
        else:
            session.sparkContext.removeJobTag(tag)


def cancel(session: SparkSession, tag: str) -> None:
    """End the running jobs that have a tag."""
    if is_connect(session):
        session.interruptTag(tag)
    else:
        session.sparkContext.cancelJobsWithTag(tag)


def count_tasks(session: SparkSession, group_id: str, description: str) -> TaskCount:
    """A count of the tasks of jobs that join it."""
    if is_connect(session):
        return _RemoteCount(session)
    return _ContextCount(session, group_id, description)


@dataclass(frozen=True, slots=True)
class _ContextCount:
    """Asks the context, which knows jobs by their group."""

    session: SparkSession
    group_id: str
    description: str

    @contextmanager
    def join(self) -> Iterator[None]:
        context = self.session.sparkContext
        context.setJobGroup(self.group_id, self.description, interruptOnCancel=True)
        yield

    def tasks(self) -> tuple[int, int]:
        tracker = self.session.sparkContext.statusTracker()
        done = total = 0
        for job in tracker.getJobIdsForGroup(self.group_id):
            job_info = tracker.getJobInfo(job)
            for stage in job_info.stageIds if job_info is not None else ():
                stage_info = tracker.getStageInfo(stage)
                if stage_info is not None:
                    done += stage_info.numCompletedTasks
                    total += stage_info.numTasks
        return done, total


@dataclass(frozen=True, slots=True)
class _RemoteCount:
    """Keeps what the server reports of each stage."""

    session: SparkSession
    stages: dict[tuple[str | None, int], tuple[int, int]] = field(default_factory=dict)

    @contextmanager
    def join(self) -> Iterator[None]:
        thread = threading.get_ident()

        def report(stages: Any, inflight_tasks: int, operation_id: str | None, done: bool) -> None:  # noqa: ARG001, FBT001
            # The client calls every handler of a session, in the thread whose jobs it reports.
            if threading.get_ident() == thread:
                for stage in stages or ():
                    counts = stage.num_completed_tasks, stage.num_tasks
                    self.stages[operation_id, stage.stage_id] = counts

        self.session.registerProgressHandler(report)  # type: ignore[arg-type]
        try:
            yield
        finally:
            self.session.removeProgressHandler(report)  # type: ignore[arg-type]

    def tasks(self) -> tuple[int, int]:
        counts = list(self.stages.values())
        return sum(done for done, _ in counts), sum(total for _, total in counts)
