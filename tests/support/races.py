"""Races of writers: the same work in threads or in processes, in several rounds."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from omnigraph.errors import TableConflictError
from omnigraph.manifest import publisher
from omnigraph.model.names import MAIN
from omnigraph.model.tables import TableKey
from tests.support.concurrency import in_processes
from tests.support.publishing import manifest_at, publish_pin

Crowd = Literal["threads", "processes"]


@dataclass(frozen=True, slots=True)
class LostRace:
    """The error of the loser of a round."""

    code: str
    details: dict[str, object]


Outcome = str | LostRace
"""The id of the commit that landed, or the loser's error."""


def race(uri: str, keys: tuple[TableKey, ...], *, rounds: int, crowd: Crowd) -> list[list[Outcome]]:
    """Let one writer per key publish once per round, all from the same base; outcomes by round.

    The writers do not take turns, so they compete in Lance's commit itself.
    """
    run = in_processes if crowd == "processes" else in_threads
    outcomes = run(_publish_rounds, [(uri, key, rounds) for key in keys])
    return [list(each) for each in zip(*outcomes, strict=True)]


def _publish_rounds(barrier: Any, uri: str, key: TableKey, rounds: int) -> list[Outcome]:
    vars(publisher)["PUBLISH_TURN_SECONDS_MAX"] = 0.0
    manifest = manifest_at(uri)
    outcomes: list[Outcome] = []
    for _ in range(rounds):
        barrier.wait(60)
        pin = manifest.current(MAIN).pin(key)
        barrier.wait(60)
        try:
            outcomes.append(publish_pin(manifest, pin).commit_id)
        except TableConflictError as lost:
            outcomes.append(LostRace(lost.code.value, lost.details))
    return outcomes


def in_threads(work: Callable[..., Any], arguments: list[tuple[Any, ...]]) -> list[Any]:
    """Call `work(barrier, *each)` in one thread each, and return the results in order."""
    barrier = threading.Barrier(len(arguments))
    answers: list[Any] = [None] * len(arguments)
    faults: list[BaseException] = []

    def one(place: int) -> None:
        try:
            answers[place] = work(barrier, *arguments[place])
        except BaseException as fault:  # noqa: BLE001  # raised again below, in the test's thread
            faults.append(fault)
            barrier.abort()

    threads = [threading.Thread(target=one, args=(place,)) for place in range(len(arguments))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if faults:
        raise faults[0]
    return answers
