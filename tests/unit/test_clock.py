"""Ids: unique, sorted, and spelt as ULIDs, whatever the machine's clock does."""

import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, timedelta
from itertools import pairwise
from types import SimpleNamespace
from typing import Final

import pytest

from omnigraph import clock as clock_module
from omnigraph.clock import SystemClock, back_off, encode_ulid, is_ulid

MILLISECOND: Final = 1_000_000
NOON: Final = 1_700_000_000_000 * MILLISECOND

SetTime = Callable[[int], None]


@pytest.fixture
def set_time(monkeypatch: pytest.MonkeyPatch) -> SetTime:
    """Stop the machine's clock, for the module under test only, and set it."""
    machine = SimpleNamespace(now=NOON)
    monkeypatch.setattr(clock_module, "time", SimpleNamespace(time_ns=lambda: machine.now))

    def set_to(nanoseconds: int) -> None:
        machine.now = nanoseconds

    return set_to


def is_strictly_sorted(ids: list[str]) -> bool:
    return all(earlier < later for earlier, later in pairwise(ids))


def milliseconds_of(ulid: str) -> int:
    value = 0
    for each in ulid:
        value = value * 32 + "0123456789ABCDEFGHJKMNPQRSTVWXYZ".index(each)
    return value >> 80


def test_every_id_sorts_after_the_one_before():
    clock = SystemClock()

    assert is_strictly_sorted([clock.ulid() for _ in range(10_000)])


def test_ids_of_one_millisecond_are_sorted_too(set_time: SetTime):
    set_time(NOON)
    clock = SystemClock()

    assert is_strictly_sorted([clock.ulid() for _ in range(10_000)])


def test_a_clock_that_steps_back_does_not_step_its_ids_back(set_time: SetTime):
    clock = SystemClock()
    before = [clock.ulid() for _ in range(100)]
    set_time(NOON - 3_600_000 * MILLISECOND)
    during = [clock.ulid() for _ in range(100)]
    set_time(NOON + MILLISECOND)
    after = [clock.ulid() for _ in range(100)]

    assert is_strictly_sorted([*before, *during, *after])
    assert milliseconds_of(after[0]) == (NOON + MILLISECOND) // MILLISECOND


def test_an_id_tells_the_time_it_was_made(set_time: SetTime):
    set_time(NOON + 123 * MILLISECOND)

    assert milliseconds_of(SystemClock().ulid()) == NOON // MILLISECOND + 123


def test_ids_of_two_clocks_that_agree_to_the_millisecond_differ(set_time: SetTime):
    set_time(NOON)
    ids = [SystemClock().ulid() for _ in range(10_000)]

    assert len(set(ids)) == len(ids)


def test_threads_share_a_clock_without_sharing_an_id():
    clock = SystemClock()

    def take(_: int) -> list[str]:
        return [clock.ulid() for _ in range(2_000)]

    with ThreadPoolExecutor(8) as threads:
        taken = list(threads.map(take, range(8)))

    every = [each for ids in taken for each in ids]
    assert len(set(every)) == len(every)
    assert all(is_strictly_sorted(ids) for ids in taken)


FORKS: Final = """
import os, sys
from omnigraph.clock import SystemClock
import omnigraph.clock
from types import SimpleNamespace

omnigraph.clock.time = SimpleNamespace(time_ns=lambda: 1_700_000_000_000 * 1_000_000)
clock = SystemClock()
print(clock.ulid(), flush=True)
for _ in range(6):
    if os.fork() == 0:
        os.write(1, "".join(clock.ulid() + chr(10) for _ in range(50)).encode())
        os._exit(0)
for _ in range(6):
    os.wait()
"""


def test_processes_forked_from_one_clock_at_one_instant_share_no_id():
    command = [sys.executable, "-c", FORKS]
    said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)

    first, *rest = said.stdout.split()
    assert len(rest) == 300
    assert len(set(rest)) == 300
    assert all(first < each for each in rest)


def test_every_id_is_a_ulid():
    clock = SystemClock()

    assert all(is_ulid(clock.ulid()) for _ in range(1_000))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0" * 25,
        "0" * 27,
        "8" + "0" * 25,
        "Z" * 26,
        "0" * 25 + "I",
        "0" * 25 + "L",
        "0" * 25 + "O",
        "0" * 25 + "U",
        "0" * 25 + "a",
        "0" * 25 + "\n",
        "0" * 25 + "٣",
        " " + "0" * 25,
        "-" + "0" * 25,
    ],
)
def test_what_is_not_spelt_as_a_ulid_is_not_one(text):
    assert not is_ulid(text)


def test_the_spelling_sorts_as_the_numbers_do():
    values = [0, 1, 31, 32, (1 << 64) - 1, 1 << 64, 1 << 127, (1 << 128) - 1]
    spelt = [encode_ulid(each) for each in values]

    assert is_strictly_sorted(spelt)
    assert all(is_ulid(each) for each in spelt)


def test_the_time_is_in_utc():
    assert SystemClock().now().tzinfo is UTC
    assert SystemClock().now().utcoffset() == timedelta(0)


def test_jitter_lies_from_0_up_to_1():
    clock = SystemClock()

    assert all(0 <= clock.random() < 1 for _ in range(1_000))


class StillClock(SystemClock):
    """Sleeps by writing down for how long."""

    def __init__(self) -> None:
        super().__init__()
        self.slept: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)

    def random(self) -> float:
        return 0.5


def test_backing_off_doubles_up_to_its_bound():
    clock = StillClock()
    for attempt in range(6):
        back_off(clock, attempt, seconds_max=0.05)

    assert clock.slept == [0.0025, 0.005, 0.01, 0.02, 0.025, 0.025]
