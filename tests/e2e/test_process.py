"""The process of a command: how signals, a closed pipe and the keys of a terminal end it."""

import fcntl
import os
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from omnigraph import graph
from tests.support.commands import command

PEOPLE: Final = 3000
ALL: Final = "query q() { match { $p: Person } return { $p.name } }"
WAITING: Final = command("query", "--store", "graph", "--query", "-")
"""A query that waits for its text until standard input ends."""

pytestmark = pytest.mark.skipif(not Path("/proc/self/wchan").exists(), reason="needs Linux")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("process")
    made = graph.init(folder / "graph", "node Person { name: String @key }")
    made.load({"Person": [{"name": f"p{each}"} for each in range(PEOPLE)]}, index=False)
    return folder


def fact(pid: int, name: str) -> str:
    try:
        return Path(f"/proc/{pid}/{name}").read_text()
    except OSError:
        return ""


def state(pid: int) -> str:
    """The kernel's letter for what a process does; a dead one has none."""
    return fact(pid, "stat").rpartition(")")[2].strip()[:1].replace("Z", "")


def wait_for(condition: Callable[[], Any]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.fixture
def _hangups() -> Iterator[None]:
    """Let children end by SIGHUP, which they would ignore if this run was started by nohup."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.usefixtures("_hangups")
@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 130), (signal.SIGHUP, -signal.SIGHUP)],
    ids=lambda each: each.name if isinstance(each, signal.Signals) else "",
)
def test_a_signal_ends_a_command(place: Path, number: signal.Signals, code: int) -> None:
    with subprocess.Popen(
        WAITING,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=place,
    ) as process:
        wait_for(lambda: "pipe" in fact(process.pid, "wchan"))
        process.send_signal(number)
        out, err = process.communicate(timeout=30)

    assert (process.returncode, out, err) == (code, b"", b"")


def test_a_reader_that_stops_is_no_failure(place: Path) -> None:
    pipe = 'set -o pipefail; "$@" | head -n 2'
    program = command("query", "--store", "graph", "-e", ALL)
    done = subprocess.run(
        ["bash", "-c", pipe, "bash", *program], capture_output=True, check=False, cwd=place
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, b"p.name\np0\n", b"")


# Does what a shell does on its terminal: gives it to a command in a job of its own, and waits.
SHELL: Final = """
import fcntl, os, signal, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
job = os.fork()
if job == 0:
    os.setpgid(0, 0)
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    os.tcsetpgrp(0, os.getpid())
    signal.signal(signal.SIGTTOU, signal.SIG_DFL)
    os.execv(sys.argv[1], sys.argv[1:])
sys.exit(os.waitstatus_to_exitcode(os.waitpid(job, 0)[1]))
"""


@contextmanager
def on_terminal(place: Path, program: list[str]) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    """A program on a terminal of its own, 50 columns wide: the terminal and its shell."""
    hidden = ("NO_COLOR", "COLUMNS")
    variables = {name: value for name, value in os.environ.items() if name not in hidden}
    terminal, its_end = os.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("4H", 24, 50, 0, 0))
    with subprocess.Popen(
        [sys.executable, "-c", SHELL, *program],
        stdin=its_end,
        stdout=its_end,
        stderr=its_end,
        cwd=place,
        env={**variables, "TERM": "xterm-256color"},
        start_new_session=True,
    ) as process:
        os.close(its_end)
        try:
            yield terminal, process
        finally:
            process.kill()
            os.close(terminal)


def read_all(terminal: int) -> bytes:
    parts = []
    try:
        while part := os.read(terminal, 1 << 16):
            parts.append(part)
    except OSError:
        # How Linux reports that nobody has the terminal open any more.
        pass
    return b"".join(parts)


def test_a_terminal_shows_a_table_with_colours(place: Path) -> None:
    first = "query q() { match { $p: Person } return { $p.name } limit 1 }"
    program = command("query", "--store", "graph", "-e", first)
    with on_terminal(place, program) as (terminal, process):
        shown = read_all(terminal)
        assert process.wait(30) == 0

    assert b"\x1b[" in shown
    assert "─".encode() in shown


def test_keys_of_the_terminal_stop_and_interrupt_a_command(place: Path) -> None:
    with on_terminal(place, WAITING) as (terminal, shell):

        def commands() -> list[int]:
            children = fact(shell.pid, f"task/{shell.pid}/children").split()
            return [int(pid) for pid in children if fact(int(pid), "wchan") == "wait_woken"]

        wait_for(commands)
        [pid] = commands()
        os.write(terminal, b"\x1a")
        wait_for(lambda: state(pid) == "T")
        os.kill(pid, signal.SIGCONT)
        wait_for(lambda: state(pid) == "S")
        os.write(terminal, b"\x03")
        assert shell.wait(30) == 130
        wait_for(lambda: not state(pid))
