"""What Spark counted of the stages of an action."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class Stage:
    """Of one stage: what its scans read, what it sent to the driver, and what it shuffled.

    Attributes:
        shuffled_records: The rows, or pieces of rows, that it shuffled.
        task_seconds: How long its tasks ran, together.
    """

    tasks: int
    records_read: int
    result_bytes: int
    shuffled_bytes: int
    shuffled_records: int
    spilled_bytes: int
    task_seconds: float


def stages_since(spark: SparkSession, job: int) -> list[Stage]:
    """The stages of all jobs after this one, that ran."""
    store = _status(spark)
    found: dict[int, Stage] = {}
    for each in _listed(store.jobsList(None)):
        if each.jobId() <= job:
            continue
        assert str(each.status()) == "SUCCEEDED"
        completed = {
            number: stage
            for number in _listed(each.stageIds())
            if (stage := _completed(store, number)) is not None
        }
        assert len(completed) == each.numCompletedStages()
        found |= completed
    return [found[number] for number in sorted(found)]


def _completed(store: Any, number: int) -> Stage | None:
    """What Spark counted of a stage; None of one that it skipped."""
    try:
        stage = store.lastStageAttempt(number)
    except Py4JJavaError as error:
        # Spark keeps a thousand stages (`spark.ui.retainedStages`) and forgets skipped ones first.
        if "NoSuchElementException" not in str(error.java_exception):
            raise
        return None
    if str(stage.status()) != "COMPLETE":
        return None
    assert stage.numFailedTasks() == 0
    return Stage(
        stage.numTasks(),
        stage.inputRecords(),
        stage.resultSize(),
        stage.shuffleWriteBytes(),
        stage.shuffleWriteRecords(),
        stage.diskBytesSpilled(),
        stage.executorRunTime() / 1000,
    )


def last_job(spark: SparkSession) -> int:
    """The number of the newest job."""
    return max((each.jobId() for each in _listed(_status(spark).jobsList(None))), default=-1)


def _status(spark: SparkSession) -> Any:
    context = spark.sparkContext._jsc.sc()
    context.listenerBus().waitUntilEmpty()
    return context.statusStore()


def _listed(found: Any) -> Iterator[Any]:
    return (found.apply(place) for place in range(found.size()))
