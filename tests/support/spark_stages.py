"""What Spark counted of the stages of an action."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class Stage:
    """Of one stage: what its scans read, what it sent to the driver, and what it shuffled."""

    tasks: int
    records_read: int
    result_bytes: int
    shuffled_bytes: int


def stages_since(spark: SparkSession, job: int) -> list[Stage]:
    """The stages of all jobs after this one, that ran."""
    store = _status(spark)
    found: dict[int, Stage] = {}
    for each in _listed(store.jobsList(None)):
        if each.jobId() <= job:
            continue
        assert str(each.status()) == "SUCCEEDED"
        for number in _listed(each.stageIds()):
            stage = store.lastStageAttempt(number)
            if str(stage.status()) == "COMPLETE":
                assert stage.numFailedTasks() == 0
                found[number] = Stage(
                    stage.numTasks(),
                    stage.inputRecords(),
                    stage.resultSize(),
                    stage.shuffleWriteBytes(),
                )
    return [found[number] for number in sorted(found)]


def last_job(spark: SparkSession) -> int:
    """The number of the newest job."""
    return max((each.jobId() for each in _listed(_status(spark).jobsList(None))), default=-1)


def _status(spark: SparkSession) -> Any:
    context = spark.sparkContext._jsc.sc()
    context.listenerBus().waitUntilEmpty()
    return context.statusStore()


def _listed(found: Any) -> Iterator[Any]:
    return (found.apply(place) for place in range(found.size()))
