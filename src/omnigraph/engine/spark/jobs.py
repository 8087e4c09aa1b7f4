"""Jobs: work on Spark that can be followed while it runs, and ends when its caller does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, TypeVar

from pyspark.sql import SparkSession

from omnigraph.engine.spark.failures import translating
from omnigraph.errors import OmnigraphError

Answer = TypeVar("Answer")
Follow = Callable[[int, int], None]
"""Told how many tasks of the running stages are done, and how many there are."""

_LOOK_SECONDS: Final = 0.2


@dataclass(frozen=True, slots=True)
class Jobs:
    """Runs the jobs of one piece of work under one name.

    Attributes:
        action: What the work is, as in "the load on Spark failed".
    """

    session: SparkSession
    group_id: str
    action: str = "the load"

    def run(self, action: Callable[[], Answer], follow: Follow | None = None) -> Answer:
        """What the action gives. Where this thread is interrupted, its jobs are cancelled.

        Raises:
            OmnigraphError: what Spark raised, as ours.
        """
        [answer] = self.run_all([action], follow, at_once=1)
        return answer

    def run_all(
        self, actions: Sequence[Callable[[], Answer]], follow: Follow | None = None, *, at_once: int
    ) -> list[Answer]:
        """What the actions give, a few of them at a time; the first that fails ends the others."""
        if not actions:
            return []
        # In threads of their own: this one stays free to hear of an interrupt, which cannot reach
        # a thread that waits for Java.
        with ThreadPoolExecutor(max_workers=min(at_once, len(actions))) as pool:
            futures = [pool.submit(self._grouped, each) for each in actions]
            try:
                self._wait(futures, follow)
                return [each.result() for each in futures]
            except BaseException:
                for each in futures:
                    each.cancel()
                self._cancel()
                raise

    def _cancel(self) -> None:
        # Spark may be gone as well, and it is told already why.
        with suppress(OmnigraphError), translating(self.action):
            self.session.sparkContext.cancelJobGroup(self.group_id)

    def _grouped(self, action: Callable[[], Answer]) -> Answer:
        context = self.session.sparkContext
        context.setJobGroup(self.group_id, f"omnigraph: {self.action}", interruptOnCancel=True)
        with translating(self.action):
            return action()

    def _wait(self, futures: list[Future[Answer]], follow: Follow | None) -> None:
        pending = set(futures)
        while pending:
            done, pending = wait(pending, timeout=_LOOK_SECONDS)
            for each in done:
                each.result()
            if follow is not None:
                with translating(self.action):
                    tasks = self._tasks()
                follow(*tasks)

    def _tasks(self) -> tuple[int, int]:
        tracker = self.session.sparkContext.statusTracker()
        done = total = 0
        for job in tracker.getJobIdsForGroup(self.group_id):
            info = tracker.getJobInfo(job)
            for stage in info.stageIds if info is not None else ():
                found = tracker.getStageInfo(stage)
                if found is not None:
                    done += found.numCompletedTasks
                    total += found.numTasks
        return done, total
