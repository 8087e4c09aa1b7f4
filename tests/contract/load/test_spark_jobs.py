"""Jobs whose Spark is gone: what is told is why they ended, in our words."""

from __future__ import annotations

from typing import Any

import pytest
from py4j.protocol import Py4JNetworkError  # type: ignore[import-untyped]

from omnigraph.engine.spark.jobs import Jobs
from omnigraph.errors import InternalError


class Gone:
    """A session of which Java has ended."""

    @property
    def sparkContext(self) -> Gone:
        return self

    def setJobGroup(self, *_: Any, **__: Any) -> None:
        return

    addJobTag = removeJobTag = setInterruptOnCancel = setJobGroup

    def cancelJobsWithTag(self, _: str) -> None:
        message = "Answer from Java side is empty"
        raise Py4JNetworkError(message)

    def statusTracker(self) -> None:
        self.cancelJobsWithTag("")


def jobs() -> Jobs:
    gone: Any = Gone()
    return Jobs(gone, "group")


def test_an_interrupt_stays_one_where_spark_went_first() -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        jobs().run(interrupted)


def test_a_spark_that_goes_while_it_is_followed_is_told_as_lost() -> None:
    def follow(done: int, total: int) -> None:  # noqa: ARG001
        pytest.fail("nothing is known of the jobs")

    with pytest.raises(InternalError, match="the load lost Spark"):
        jobs().run(lambda: None, follow)
