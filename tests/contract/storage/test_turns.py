"""Turns: one at a time on a machine, given back however their holder ends."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Final

import pytest

from omnigraph.storage.roots import Root
from omnigraph.storage.turns import turn, turns
from tests.support.concurrency import at_once

PATIENCE: Final = 20.0


@pytest.fixture
def root(tmp_path: Path) -> Root:
    (tmp_path / "queue").mkdir()
    return Root.parse(tmp_path)


def test_threads_hold_a_turn_one_at_a_time(root):
    inside = threading.Lock()

    def work() -> None:
        for _ in range(10):
            with turn(root, "queue", seconds_max=PATIENCE) as had:
                assert had
                assert inside.acquire(blocking=False)
                inside.release()

    at_once([work] * 6)


def test_who_waits_in_vain_is_told_so_and_runs_all_the_same(root):
    with (
        turn(root, "queue", seconds_max=PATIENCE) as first,
        turn(root, "queue", seconds_max=0.05) as second,
    ):
        assert (first, second) == (True, False)
    with turn(root, "queue", seconds_max=0.05) as third:
        assert third


def test_the_wait_for_several_turns_has_one_limit(root):
    names = [f"queue {number}" for number in range(4)]
    for name in names:
        (Path(root.uri) / name).mkdir()
    with turns(root, names, seconds_max=PATIENCE):
        begun = time.monotonic()
        with turns(root, names, seconds_max=0.5):
            # Four times the limit would be two seconds.
            assert 0.5 <= time.monotonic() - begun < 1.5


def test_turns_of_different_names_or_roots_do_not_wait_for_each_other(root, tmp_path):
    (tmp_path / "other").mkdir()
    with (
        turn(root, "queue", seconds_max=1) as first,
        turn(root, "other", seconds_max=0) as second,
        turn(Root.parse("s3://lake/graph"), "queue", seconds_max=0) as third,
    ):
        assert first
        assert second
        assert third


def test_a_turn_is_given_back_by_a_block_that_fails(root):
    with pytest.raises(ZeroDivisionError), turn(root, "queue", seconds_max=1):
        raise ZeroDivisionError
    with turn(root, "queue", seconds_max=0.05) as had:
        assert had


def test_a_directory_that_is_not_there_gives_no_turn_and_no_error(root):
    with turn(root, "missing", seconds_max=1) as had:
        assert not had


HOLD: Final = """
import sys
from omnigraph.storage.roots import Root
from omnigraph.storage.turns import turn
with turn(Root.parse(sys.argv[1]), "queue", seconds_max=10) as had:
    print(had, flush=True)
    sys.stdin.read()
"""


def test_a_killed_process_gives_its_turn_back(root):
    command = [sys.executable, "-c", HOLD, root.uri]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"True\n"
        with turn(root, "queue", seconds_max=0.05) as had:
            assert not had
        holder.kill()
        holder.wait()
    with turn(root, "queue", seconds_max=PATIENCE) as had:
        assert had


FORK: Final = """
import os, sys, time
from omnigraph.storage.roots import Root
from omnigraph.storage.turns import turn
root = Root.parse(sys.argv[1])
with turn(root, "queue", seconds_max=10):
    child = os.fork()
    if child == 0:
        time.sleep(30)
        os._exit(0)
with turn(root, "queue", seconds_max=0.2) as had:
    print(had)
os.kill(child, 9)
os.waitpid(child, 0)
"""


def test_a_child_forked_during_a_turn_does_not_keep_it(root):
    command = [sys.executable, "-c", FORK, root.uri]
    said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)

    assert said.stdout == "True\n"


def test_a_turn_leaves_nothing_behind(root):
    next_free = os.dup(0)
    os.close(next_free)
    for _ in range(20):
        with turn(root, "queue", seconds_max=1):
            pass

    # The lowest free descriptor is the one that was free before.
    with Path(root.uri, "file").open("w") as file:
        assert file.fileno() <= next_free
    assert sorted(each.name for each in Path(root.uri).rglob("*")) == ["file", "queue"]


def test_waiting_ends_about_when_it_was_told_to(root):
    with turn(root, "queue", seconds_max=1):
        began = time.monotonic()
        with turn(root, "queue", seconds_max=0.1) as had:
            assert not had
        assert 0.1 <= time.monotonic() - began < 60
