"""Rounds: contestants answer in turns, so that a busy machine is busy for all of them."""

import math
import random
import statistics
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

WARM_UPS: Final = 2
ROUNDS: Final = 7
SECONDS_PER_CONTESTANT_MAX: Final = 15
"""Slow ones run fewer rounds, and at least one; nothing that slow needs a second warm-up."""

Row = Sequence[Any]
Answer = tuple[float, Sequence[Row]]
"""How many seconds it took to have all rows, and the rows."""

Contestants = Mapping[str, Callable[[], Answer]]
"""Who takes part, ours first; each call answers the same question once."""


class UnableError(Exception):
    """A contestant has no answer; the message says why."""


@dataclass(frozen=True, slots=True)
class Timed:
    """The answers were right, and took this long, a run each."""

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def p95(self) -> float:
        return sorted(self.seconds)[math.ceil(len(self.seconds) * 0.95) - 1]


@dataclass(frozen=True, slots=True)
class Untimed:
    """There is no time, because there was no answer or a wrong one."""

    why: str


Outcome = Timed | Untimed


def compete(
    contestants: Contestants,
    *,
    rounds: int = ROUNDS,
    seconds_max: float = SECONDS_PER_CONTESTANT_MAX,
    warm_ups: int = WARM_UPS,
) -> dict[str, Outcome]:
    """Compare everyone's answer with that of the first, then time those that agree, in turns."""
    expected: list[Hashable] | None = None
    outcomes: dict[str, Outcome] = {}
    left: dict[str, int] = {}
    for name, answer in contestants.items():
        try:
            runs = [answer()]
            while len(runs) < warm_ups and runs[-1][0] < seconds_max:
                runs.append(answer())
        except UnableError as cause:
            outcomes[name] = Untimed(str(cause))
            continue
        found = comparable(runs[-1][1])
        expected = found if expected is None else expected
        if found == expected:
            affordable = int(seconds_max / max(runs[-1][0], 1e-6))
            left[name] = max(1, min(rounds, affordable))
        else:
            outcomes[name] = Untimed(f"wrong answer: {_shown(found)} for {_shown(expected)}")
    seconds: dict[str, list[float]] = {name: [] for name in left}
    order = random.Random(rounds)
    for turn in range(rounds):
        playing = [each for each in left if turn < left[each] and each not in outcomes]
        # Whoever follows another process finds the caches cold; that must not be always the same.
        for name in order.sample(playing, len(playing)):
            try:
                seconds[name].append(contestants[name]()[0])
            except UnableError as cause:
                outcomes[name] = Untimed(str(cause))
    timed = {name: Timed(tuple(each)) for name, each in seconds.items() if name not in outcomes}
    return {name: (outcomes | timed)[name] for name in contestants}


def pooled(heats: Sequence[Mapping[str, Outcome]]) -> dict[str, Outcome]:
    """Several competitions of the same contestants as one; who failed in any has no time."""
    outcomes: dict[str, Outcome] = {}
    for name in heats[0]:
        found = [heat[name] for heat in heats]
        failed = [each for each in found if isinstance(each, Untimed)]
        seconds = [second for each in found if isinstance(each, Timed) for second in each.seconds]
        outcomes[name] = failed[0] if failed else Timed(tuple(seconds))
    return outcomes


def timed(run: Callable[[], Any], rows: Callable[[Any], Sequence[Row]]) -> Answer:
    """Run and time it; turning what it gives into rows is not part of the time."""
    start = time.perf_counter()
    found = run()
    seconds = time.perf_counter() - start
    return seconds, rows(found)


def rows_of(table: pa.Table) -> list[Row]:
    """An Arrow table's rows; its columns may share names."""
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def comparable(rows: Sequence[Row]) -> list[Hashable]:
    """Rows as values that are equal if the answers are; the order of rows does not matter."""
    return sorted((tuple(map(_plain, row)) for row in rows), key=repr)


def _plain(value: Any) -> Hashable:
    # Averages differ in their last digits with the order of their summands.
    return float(f"{value:.9g}") if isinstance(value, int | float) else str(value)


def _shown(rows: list[Hashable]) -> str:
    return repr(rows[:2])[:80]
