"""Failpoints: nothing when unarmed; raise, call back or kill when armed."""

import os
import signal
import subprocess
import sys
from typing import Final

import pytest

from omnigraph import failpoints
from omnigraph.errors import InvalidInputError
from omnigraph.failpoints import (
    ENVIRONMENT_VARIABLE,
    Failpoint,
    SimulatedCrash,
    arm,
    arm_from_environment,
    hit,
)

POINT: Final = Failpoint.PUBLISH_AFTER_STAGE
OTHER: Final = Failpoint.PUBLISH_AFTER_COMMIT


@pytest.fixture(autouse=True)
def _restored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failpoints, "_armed", {})


def test_an_unarmed_process_looks_nothing_up(monkeypatch):
    def fire(_: Failpoint) -> None:
        pytest.fail("an unarmed hit must cost one test of a dictionary")

    monkeypatch.setattr(failpoints, "_fire", fire)
    for point in Failpoint:
        hit(point)


def test_an_armed_point_crashes_with_what_no_handler_for_errors_catches():
    assert not issubclass(SimulatedCrash, Exception)
    with arm(POINT), pytest.raises(SimulatedCrash):
        hit(POINT)


def test_only_the_armed_point_fires():
    with arm(POINT):
        for each in set(Failpoint) - {POINT}:
            hit(each)


def test_a_point_is_disarmed_after_its_block_however_it_ends():
    with pytest.raises(SimulatedCrash), arm(POINT):
        hit(POINT)

    hit(POINT)
    assert failpoints._armed == {}


def test_a_callback_runs_at_every_pass():
    calls: list[int] = []
    with arm(POINT, lambda: calls.append(1)):
        hit(POINT)
        hit(POINT)

    assert calls == [1, 1]


@pytest.mark.parametrize("spared", [0, 1, 5])
def test_the_first_hits_can_be_spared(spared):
    with arm(POINT, after_hits=spared):
        for _ in range(spared):
            hit(POINT)
        for _ in range(2):
            with pytest.raises(SimulatedCrash):
                hit(POINT)


def test_an_inner_arming_wins_and_the_outer_comes_back_with_its_count():
    calls: list[str] = []
    with arm(POINT, lambda: calls.append("outer"), after_hits=1):
        hit(POINT)
        with arm(POINT, lambda: calls.append("inner")):
            hit(POINT)
        hit(POINT)

    assert calls == ["inner", "outer"]


def test_two_points_can_be_armed_at_once():
    with arm(POINT), arm(OTHER, after_hits=1):
        hit(OTHER)
        with pytest.raises(SimulatedCrash):
            hit(POINT)
        with pytest.raises(SimulatedCrash):
            hit(OTHER)


def test_a_callback_may_arm_another_point():
    def arm_other() -> None:
        arm_from_environment(f"{OTHER}=raise")

    with arm(POINT, arm_other):
        hit(POINT)
        with pytest.raises(SimulatedCrash):
            hit(OTHER)


# The environment, read by a child when it imports the module.

CHILD: Final = """
from omnigraph.failpoints import Failpoint, hit
for turn in range(1, 5):
    print(turn, flush=True)
    hit(Failpoint.PUBLISH_AFTER_STAGE)
print("end")
"""


def run_child(text: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, ENVIRONMENT_VARIABLE: text}
    command = [sys.executable, "-c", CHILD]
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, timeout=60
    )


def test_a_child_is_killed_at_the_hit_it_was_told():
    child = run_child(f"{POINT}=kill@3")

    assert child.returncode == -signal.SIGKILL
    assert child.stdout.split() == ["1", "2", "3"]


def test_a_child_crashes_at_the_first_hit_unless_told_otherwise():
    child = run_child(f" {OTHER}=kill , {POINT}=raise,")

    assert child.returncode == 1
    assert child.stdout.split() == ["1"]
    assert "SimulatedCrash" in child.stderr


@pytest.mark.parametrize("text", ["", " ", ",", f"{OTHER}=kill"])
def test_a_child_that_is_told_nothing_runs_to_its_end(text):
    child = run_child(text)

    assert child.stdout.split()[-1] == "end"


def test_a_child_that_is_told_nonsense_does_not_start():
    child = run_child("publish.after_stage=explode")

    assert (child.returncode, child.stdout) == (1, "")
    assert "InvalidInputError" in child.stderr
    assert "publish.after_stage=explode" in child.stderr


@pytest.mark.parametrize(
    "text",
    [
        "nowhere=raise",
        "publish.after_stage",
        "publish.after_stage=",
        "publish.after_stage=explode",
        "publish.after_stage=RAISE",
        "PUBLISH_AFTER_STAGE=raise",
        "publish.after_stage = raise",
        "publish.after_stage=raise@0",
        "publish.after_stage=raise@-1",
        "publish.after_stage=raise@1.5",
        "publish.after_stage=raise@x",
        "publish.after_stage=raise@1@2",
        "publish.after_stage=raise@٣",
        "=raise",
        "=",
        "publish.after_commit=raise;publish.after_stage=raise",
    ],
)
def test_text_that_names_no_point_or_no_action_is_refused_and_arms_nothing(text):
    with pytest.raises(InvalidInputError) as refused:
        arm_from_environment(f"{OTHER}=raise,{text}")

    assert failpoints._armed == {}
    assert text in refused.value.message
    assert all(point in refused.value.hint for point in Failpoint)
