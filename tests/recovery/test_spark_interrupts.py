"""Ctrl-C and SIGTERM during a load on Spark from the command line: it ends, and nothing is left."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

import omnigraph
from omnigraph.cli.exits import Exit
from tests.support import spark_loads
from tests.support.spark_loads import BEFORE, SCRATCH, contents

pytestmark = [pytest.mark.soak, pytest.mark.timeout(600)]

SECONDS_MAX: Final = 180
NOTHING: Final = "interrupted: nothing was loaded"

PEOPLE: Final = 60_000
"""Enough for every stage to take longer than noticing it does."""


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("base")
    spark_loads.furnished(str(folder / "graph.omni"), folder)
    lines = (
        f'{{"type": "Person", "data": {{"name": "p{n}", "n": {n}, "mail": "p{n}@x"}}}}\n'
        for n in range(PEOPLE)
    )
    (folder / "people.jsonl").write_text("".join(lines))
    return folder


@pytest.fixture
def uri(base: Path, tmp_path: Path) -> str:
    return str(shutil.copytree(base / "graph.omni", tmp_path / "graph.omni"))


def session_of(pid: int) -> Iterator[tuple[int, str]]:
    """The processes of a session that have not ended, and what they run."""
    for each in Path("/proc").glob("[0-9]*"):
        try:
            state, _, _, session = (each / "stat").read_text().rpartition(")")[2].split()[:4]
            if int(session) == pid and state != "Z":
                yield int(each.name), (each / "cmdline").read_text().replace("\0", " ")
        except (FileNotFoundError, ProcessLookupError):
            continue


def started(uri: str, path: Path) -> subprocess.Popen[str]:
    command = ("-m", "omnigraph", "load", uri, "--data", str(path), "--mode", "merge")
    # Tests that run in the background were told to ignore Ctrl-C, and so would be the command.
    heeding = ("env", "--default-signal=INT,TERM")
    return subprocess.Popen(
        [*heeding, sys.executable, *command, "--engine", "spark", "--master", "local[2]"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A group of its own, as a shell gives it.
        start_new_session=True,
    )


def until(process: subprocess.Popen[str], happens: Callable[[], object]) -> None:
    deadline = time.monotonic() + SECONDS_MAX
    while not happens():
        assert process.poll() is None, (
            f"it ended before: {process.stderr and process.stderr.read()}"
        )
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.01)


def _java_runs(process: subprocess.Popen[str], _: str) -> bool:
    return any("/bin/java " in command for _, command in session_of(process.pid))


def _workers_run(process: subprocess.Popen[str], _: str) -> bool:
    return any("pyspark.daemon" in command for _, command in session_of(process.pid))


def _input_is_taken(_: subprocess.Popen[str], uri: str) -> bool:
    return any(Path(uri, SCRATCH).rglob("*.arrow"))


def _table_is_staged(_: subprocess.Popen[str], uri: str) -> bool:
    return len(list(Path(uri).glob("nodes/*/data/*.lance"))) > 2


MOMENTS: Final = {
    "Java starts": _java_runs,
    "executors start": _workers_run,
    "the input is taken in": _input_is_taken,
    "a table is staged": _table_is_staged,
}


def assert_session_ends(pid: int) -> None:
    deadline = time.monotonic() + SECONDS_MAX
    while left := list(session_of(pid)):
        assert time.monotonic() < deadline, f"still there: {left}"
        time.sleep(0.1)


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda each: each.name)
@pytest.mark.parametrize("to", ["group", "driver"])
def test_a_signal_ends_the_load_and_all_that_it_started(
    base: Path, uri: str, to: str, number: signal.Signals, moment: str
) -> None:
    head = omnigraph.open(uri, read_only=True).snapshot().head.commit_id
    with started(uri, base / "people.jsonl") as process:
        try:
            until(process, lambda: MOMENTS[moment](process, uri))
            (os.killpg if to == "group" else os.kill)(process.pid, number)
            out, err = process.communicate(timeout=SECONDS_MAX)
            assert (process.returncode, out) == (Exit.INTERRUPTED, ""), err
            assert "Traceback" not in err
            assert moment == "Java starts" or NOTHING in err, err
            assert_session_ends(process.pid)
        finally:
            for pid, _ in session_of(process.pid):
                os.kill(pid, signal.SIGKILL)

    graph = omnigraph.open(uri, read_only=True)
    assert graph.snapshot().head.commit_id == head
    assert contents(uri) == BEFORE
    spark_loads.assert_settled(uri)
    omnigraph.open(uri).load(str(base / "people.jsonl"), mode="merge", engine="local", index=False)
    assert len(contents(uri)["Person"]) == PEOPLE
