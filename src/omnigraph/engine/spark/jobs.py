"""Jobs: work on Spark that reports progress, and is cancelled when its caller is interrupted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, TypeVar

from pyspark.sql import SparkSession

from omnigraph.engine.spark.failures import translate_errors
from omnigraph.engine.spark.groups import TaskCount, cancel, count_tasks, tagged
from omnigraph.errors import OmnigraphError

Answer = TypeVar("Answer")
Follow = Callable[[int, int], None]
"""Called with the number of tasks of the running stages that are done, and of all of them."""

_POLL_SECONDS: Final = 0.2


@dataclass(frozen=True, slots=True)
class Jobs:
    """Runs the jobs of one action in one group.

    Attributes:
        action: The name of the action, as in "the load on Spark failed".
    """

    session: SparkSession
    group_id: str
    action: str = "the load"

    def run(self, action: Callable[[], Answer], follow: Follow | None = None) -> Answer:
        """The result of the action. If this thread is interrupted, its jobs are cancelled."""
        [answer] = self.run_all([action], follow, at_once=1)
        return answer

    def run_all(
        self, actions: Sequence[Callable[[], Answer]], follow: Follow | None = None, *, at_once: int
    ) -> list[Answer]:
        """The results of the actions, a few run at a time; the first failure cancels the others."""
        if not actions:
            return []
        # In other threads: an interrupt cannot reach a thread that waits for Java, so this one must
        # not.
        with ThreadPoolExecutor(max_workers=min(at_once, len(actions))) as pool:
            counts = count_tasks(self.session, self.group_id, f"omnigraph: {self.action}")
            futures = [pool.submit(self._run, action, counts) for action in actions]
            try:
                self._wait(futures, counts, follow)
                return [future.result() for future in futures]
            except BaseException:
                for future in futures:
                    future.cancel()
                self._cancel()
                raise

    def _cancel(self) -> None:
        # Spark may be gone as well; the error that is being raised says why.
        with suppress(OmnigraphError), translate_errors(self.action):
            cancel(self.session, self.group_id)

    def _run(self, action: Callable[[], Answer], counts: TaskCount) -> Answer:
        with translate_errors(self.action), tagged(self.session, self.group_id), counts.join():
            return action()

    def _wait(
        self, futures: list[Future[Answer]], counts: TaskCount, follow: Follow | None
    ) -> None:
        pending = set(futures)
        while pending:
            done, pending = wait(pending, timeout=_POLL_SECONDS)
            for future in done:
                future.result()
            if follow is not None:
                with translate_errors(self.action):
                    tasks = counts.tasks()
                follow(*tasks)
