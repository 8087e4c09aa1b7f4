"""Commands by a starter and without one: the same output, exit codes, signals and terminals."""

import fcntl
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import pytest

from omnigraph import graph
from omnigraph.limits import WARM_CLIENTS_MAX
from omnigraph.warm.place import socket_name
from tests.support.warm import Home

SCHEMA: Final = "node Person { name: String @key  born: DateTime? }"
ONE: Final = "query q($n: String) { match { $p: Person {name: $n} } return { $p.name, $p.born } }"
ALL: Final = "query q() { match { $p: Person } return { $p.name } }"
ADD: Final = 'query q() { insert Person { name: "Bob" } }'
PEOPLE: Final = 3000
VARYING: Final = re.compile(r"\b[0-9A-HJKMNP-TV-Z]{26}\b|\d\d:\d\d:\d\d(\.\d+)?")

Run = Callable[..., subprocess.CompletedProcess[bytes]]


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Home:
    home = Home(tmp_path_factory.mktemp("warm"))
    home.start("--idle", "5")
    return home


@pytest.fixture(scope="module")
def template(tmp_path_factory) -> Path:
    folder: Path = tmp_path_factory.mktemp("template")
    made = graph.init(folder / "graph", SCHEMA)
    lines = [{"type": "Person", "data": {"name": f"p{each}"}} for each in range(PEOPLE)]
    (folder / "people.jsonl").write_text("\n".join(map(json.dumps, lines)))
    made.load(folder / "people.jsonl", mode="append")
    made.branches.create("side")
    made.at(branch="side").mutate('query q() { insert Person { name: "Eve" } }')
    return folder


@pytest.fixture
def place(template: Path, tmp_path: Path) -> Path:
    return shutil.copytree(template, tmp_path / "place")


def environment(home: Home, *, warm: bool, **more: str) -> dict[str, str]:
    wish = "auto" if warm else "off"
    return {**home.environment, "NO_COLOR": "1", "OMNIGRAPH_WARM": wish, **more}


def run(
    home: Home, place: Path, *arguments: str, warm: bool, given: Any = b"", **more: str
) -> tuple[int, str, str]:
    """A run of the command in a directory; ids and times are masked."""
    done = subprocess.run(
        [home.program, *arguments],
        input=given,
        capture_output=True,
        check=False,
        cwd=place,
        env=environment(home, warm=warm, **more),
        timeout=60,
    )
    out, err = (VARYING.sub("<>", text.decode()) for text in (done.stdout, done.stderr))
    return done.returncode, out, err


@contextmanager
def counted(home: Home, commands: int) -> Iterator[None]:
    """Check that the starter runs so many commands in the block."""
    before = home.status()["commands"]
    yield
    # It counts a command when the attendant has ended, a moment after the client.
    wait_for(lambda: home.status()["commands"] - before >= commands)
    assert home.status()["commands"] - before == commands


@pytest.mark.parametrize(
    ("arguments", "settings"),
    [
        pytest.param(["version"], {}, id="version", marks=pytest.mark.soak),
        pytest.param(["--help"], {}, id="help"),
        pytest.param(["no-such-command"], {}, id="usage"),
        pytest.param(["query", "--store", "graph", "-e", ONE, "-p", "n=p7"], {}, id="query"),
        pytest.param(
            ["query", "-e", ONE, "-p", "n=p7", "--json"],
            {"OMNIGRAPH_STORE": "graph"},
            id="variable",
            marks=pytest.mark.soak,
        ),
        pytest.param(["query", "--store", "graph", "-e", "query q("], {}, id="diagnostics"),
        pytest.param(["snapshot", "--store", "nowhere"], {}, id="not found"),
        pytest.param(
            ["query", "--store", "graph", "-e", ALL],
            {"OMNIGRAPH_ENGINE": "x"},
            id="bad engine",
            marks=pytest.mark.soak,
        ),
        pytest.param(
            ["query", "--store", "graph", "--query", "-"], {"given": ALL.encode()}, id="stdin"
        ),
        pytest.param(
            ["load", "--store", "graph", "--data", "-", "--mode", "append"],
            {"given": b'{"type": "Person", "data": {"name": "new"}}\n'},
            id="load",
        ),
        pytest.param(["mutate", "--store", "graph", "-e", ADD], {}, id="mutate"),
        pytest.param(["branch", "create", "new", "--store", "graph"], {}, id="branch"),
        pytest.param(["branch", "merge", "side", "--store", "graph"], {}, id="merge"),
        pytest.param(
            ["branch", "delete", "side", "--store", "graph"],
            {},
            id="preview",
            marks=pytest.mark.soak,
        ),
        pytest.param(
            [],
            {
                "_OMNIGRAPH_COMPLETE": "complete_bash",
                "COMP_WORDS": "omnigraph br",
                "COMP_CWORD": "1",
            },
            id="completion",
            marks=pytest.mark.soak,
        ),
    ],
)
def test_a_command_prints_and_returns_the_same(home, template, place, arguments, settings):
    cold = run(home, place, *arguments, warm=False, **settings)
    shutil.rmtree(place)
    shutil.copytree(template, place)
    with counted(home, 1):
        warm = run(home, place, *arguments, warm=True, **settings)

    assert warm == cold


def test_the_shell_is_that_of_the_caller(home):
    with counted(home, 0):
        asked = subprocess.run(
            ["bash", "-c", f"{home.program} --show-completion; true"],
            stdout=subprocess.PIPE,
            check=True,
            env=environment(home, warm=True),
            timeout=60,
        )

    assert b"_OMNIGRAPH_COMPLETE=complete_bash" in asked.stdout


def test_a_variable_that_says_neither_is_refused(home, place):
    code, _, err = run(home, place, "version", warm=True, OMNIGRAPH_WARM="on")

    assert code == 3
    assert "neither auto nor off" in err


@pytest.mark.parametrize(
    "variables",
    [{"PYTHONUTF8": "1"}, {"LC_ALL": "C"}, {"PYTHONWARNINGS": "ignore"}, {"LANCE_LOG": "warn"}],
    ids=lambda each: next(iter(each)),
)
def test_what_only_a_new_process_obeys_is_run_by_one(home, place, variables):
    with counted(home, 0):
        code, out, _ = run(home, place, "version", warm=True, **variables)

    assert (code, out.split()[0]) == (0, "omnigraph")


@pytest.mark.parametrize(
    "change", ["nice -n 1 {}", "ulimit -n 200; {}", "{} <&-", "taskset -c 0 {}"]
)
def test_a_caller_that_a_copy_cannot_be_like_runs_it_itself(home, change):
    with counted(home, 0):
        done = subprocess.run(
            ["bash", "-c", change.format(f"{home.program} version")],
            capture_output=True,
            env=environment(home, warm=True),
            check=False,
            timeout=60,
        )

    assert (done.returncode, done.stdout.split()[0], done.stderr) == (0, b"omnigraph", b"")


def test_the_umask_the_directory_and_new_files_are_the_callers(home, place):
    with counted(home, 1):
        subprocess.run(
            [home.program, "export", "--store", "graph", "out.jsonl"],
            umask=0o027,
            cwd=place,
            env=environment(home, warm=True),
            check=True,
            capture_output=True,
            timeout=60,
        )

    assert (place / "out.jsonl").stat().st_mode & 0o777 == 0o640


# A query that waits for its text until standard input ends.
WAITING: Final = ("query", "--store", "graph", "--query", "-")

Process = subprocess.Popen[bytes]


@contextmanager
def waiting_command(home: Home, place: Path, *, warm: bool) -> Iterator[tuple[Process, int]]:
    """A command that reads standard input, and the process that does; it is the client if cold."""
    session = home.status()["pid"] if warm else None
    with subprocess.Popen(
        [home.program, *WAITING],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=place,
        env=environment(home, warm=warm),
    ) as process:
        try:
            wait_for(lambda: readers(session, process))
            (reader,) = readers(session, process)
            yield process, reader
        finally:
            process.kill()


def readers(session: int | None, process: Process) -> list[int]:
    """The processes of a session that wait for a pipe; without a session, of the client's."""
    found = [process.pid] if session is None else members(session)
    return [pid for pid in found if "pipe" in fact(pid, "wchan")]


def members(session: int) -> list[int]:
    """The starter, its attendants and their commands, whoever their parent is now."""
    pids = [int(each.name) for each in Path("/proc").iterdir() if each.name.isdigit()]
    return [pid for pid in pids if stat(pid)[3:4] == [str(session)]]


def fact(pid: int, name: str) -> str:
    try:
        return Path(f"/proc/{pid}/{name}").read_text()
    except OSError:
        return ""


def stat(pid: int) -> list[str]:
    """What the kernel reports of a process, from its state on; a dead one has nothing."""
    return fact(pid, "stat").rpartition(")")[2].split()


def state(pid: int) -> str:
    """The letter for what a process does; a dead one has none."""
    return "".join(stat(pid)[:1]).replace("Z", "")


def wait_for(condition: Callable[[], Any]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize("warm", [False, True], ids=["cold", "warm"])
@pytest.mark.parametrize(
    ("number", "code"),
    [
        (signal.SIGINT, 130),
        (signal.SIGTERM, 130),
        (signal.SIGHUP, -signal.SIGHUP),
        (signal.SIGUSR1, -signal.SIGUSR1),
        (signal.SIGKILL, -signal.SIGKILL),
    ],
    ids=lambda each: each.name if isinstance(each, signal.Signals) else "",
)
def test_a_signal_ends_the_command_and_its_caller_alike(home, place, number, code, warm):
    with waiting_command(home, place, warm=warm) as (process, reader):
        process.send_signal(number)

        assert process.wait(30) == code
        assert process.stderr is not None
        assert process.stderr.read() == b""
        wait_for(lambda: not state(reader))


def test_a_reader_that_stops_is_no_failure(home, place):
    pipe = f"{home.program} query --store graph -e '{ALL}' | head -n 2; echo ${{PIPESTATUS[0]}}"
    with counted(home, 1):
        done = subprocess.run(
            ["bash", "-c", pipe],
            capture_output=True,
            check=True,
            cwd=place,
            env=environment(home, warm=True),
            timeout=60,
        )

    assert (done.stdout.split(), done.stderr) == ([b"p.name", b"p0", b"0"], b"")


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
def on_terminal(
    home: Home, place: Path, *arguments: str, warm: bool
) -> Iterator[tuple[int, Process]]:
    """The command on a terminal of its own, 50 columns wide: the terminal and its shell."""
    variables = {**environment(home, warm=warm), "TERM": "xterm-256color"}
    del variables["NO_COLOR"]
    terminal, its_end = os.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("4H", 24, 50, 0, 0))
    with subprocess.Popen(
        [sys.executable, "-c", SHELL, str(home.program), *arguments],
        stdin=its_end,
        stdout=its_end,
        stderr=its_end,
        cwd=place,
        env=variables,
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


def test_a_terminal_shows_the_same(home, place):
    query = ("query", "--store", "graph", "-e", ONE, "-p", "n=p7")
    shown = []
    for warm in (False, True):
        with (
            counted(home, int(warm)),
            on_terminal(home, place, *query, warm=warm) as (tty, process),
        ):
            shown.append((read_all(tty), process.wait(30)))

    assert shown[0] == shown[1]
    assert b"\x1b[" in shown[0][0], "it has colours"


@pytest.mark.parametrize("warm", [False, True], ids=["cold", "warm"])
def test_keys_of_the_terminal_stop_and_interrupt_the_command(home, place, warm):
    session = home.status()["pid"]
    with on_terminal(home, place, *WAITING, warm=warm) as (terminal, process):

        def clients() -> list[int]:
            return [pid for pid in members(process.pid) if pid != process.pid]

        def commands() -> list[int]:
            found = members(session) if warm else clients()
            return [pid for pid in found if fact(pid, "wchan") == "wait_woken"]

        wait_for(commands)
        (command,), (client,) = commands(), clients()
        os.write(terminal, b"\x1a")
        wait_for(lambda: (state(client), state(command)) == ("T", "T"))
        os.kill(client, signal.SIGCONT)
        wait_for(lambda: state(command) == "S")
        os.write(terminal, b"\x03")
        assert process.wait(30) == 130
        wait_for(lambda: not state(command))


def test_commands_at_once_do_not_disturb_each_other(home, place):
    with counted(home, 8), ThreadPoolExecutor(8) as pool:
        names = [f"p{each}" for each in range(8)]
        ask = lambda name: run(  # noqa: E731
            home, place, "query", "--store", "graph", "-e", ONE, "-p", f"n={name}", warm=True
        )
        answers = list(pool.map(ask, names))

    assert [out.split()[2] for _, out, _ in answers] == names


@pytest.fixture
def own_home(tmp_path: Path) -> Iterator[Home]:
    """A starter for one test, which may break it."""
    home = Home(tmp_path / "home")
    yield home
    status = home.status()
    if status["running"]:
        os.kill(status["pid"], signal.SIGKILL)


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_a_command_outlives_its_starter(own_home, place, end):
    pid = own_home.start()["pid"]
    with waiting_command(own_home, place, warm=True) as (process, _):
        if end == "stop":
            stopped = run(own_home, place, "warm", "stop", warm=True)
            assert stopped == (0, "", f"stopped process {pid}\n")
        else:
            os.kill(pid, signal.SIGKILL)
        wait_for(lambda: not state(pid))
        assert own_home.status() == {"running": False}
        # What a killed one left behind is in nobody's way, nor is the command.
        assert own_home.start()["started"]
        out, err = process.communicate(ALL.encode(), timeout=30)

    assert (process.returncode, err) == (0, b"")
    assert len(out.split()) == PEOPLE + 1


def test_a_command_whose_attendant_is_killed_is_killed(home, place):
    with waiting_command(home, place, warm=True) as (process, reader):
        attendant = int(stat(reader)[1])
        os.kill(attendant, signal.SIGKILL)

        assert process.wait(30) == -signal.SIGKILL
        wait_for(lambda: not state(reader))


def test_a_command_that_crashes_is_seen_to(home, place):
    with counted(home, 1):
        done = run(
            home,
            place,
            *("mutate", "--store", "graph", "-e", ADD),
            warm=True,
            OMNIGRAPH_FAILPOINTS="write.after_heal=kill",
        )

    assert done == (-signal.SIGKILL, "", "")


def test_a_starter_that_hangs_is_passed_by(own_home, place):
    pid = own_home.start()["pid"]
    os.kill(pid, signal.SIGSTOP)
    code, out, err = run(own_home, place, "version", warm=True)
    os.kill(pid, signal.SIGCONT)

    assert (code, out.split()[0], err) == (0, "omnigraph", "")
    # Nor does it run the command after all, when it continues.
    wait_for(lambda: own_home.status().get("refused", 0) >= 1)
    assert own_home.status()["commands"] == 0


def test_a_starter_of_another_installation_is_replaced(own_home, place, tmp_path):
    module = tmp_path / "modules" / "sitecustomize.py"
    module.parent.mkdir()
    module.write_text("installed = 1\n")
    variables = {"PYTHONPATH": str(module.parent)}
    first = own_home.start(variables=variables)["pid"]
    assert run(own_home, place, "version", warm=True, **variables)[0] == 0
    wait_for(lambda: own_home.status()["commands"] == 1)

    module.write_text("installed = 'another one'\n")
    code, out, _ = run(own_home, place, "version", warm=True, **variables)

    assert (code, out.split()[0]) == (0, "omnigraph")
    wait_for(lambda: not state(first))
    assert own_home.start(variables=variables)["started"]


def test_a_starter_is_started_once_and_ends_when_it_is_idle(own_home):
    first = own_home.start("--idle", "0.05")
    again = own_home.start()

    assert (first["started"], again["started"], again["pid"]) == (True, False, first["pid"])
    wait_for(lambda: not state(first["pid"]))
    assert own_home.status() == {"running": False}


@pytest.mark.soak
def test_hundreds_of_commands_leave_nothing_behind(own_home, place):
    pid = own_home.start()["pid"]

    def facts() -> tuple[int, int]:
        memory = next(line for line in fact(pid, "status").splitlines() if "RssAnon" in line)
        return len(list(Path(f"/proc/{pid}/fd").iterdir())), int(memory.split()[1])

    for number in range(220):
        if number == 20:
            wait_for(lambda: members(pid) == [pid])
            descriptors, memory = facts()
        add = f'query q() {{ insert Person {{ name: "new{number}" }} }}'
        assert run(own_home, place, "mutate", "--store", "graph", "-e", add, warm=True)[0] == 0
    wait_for(lambda: members(pid) == [pid])

    assert own_home.status()["commands"] == 220
    assert facts()[0] == descriptors
    assert facts()[1] < memory + 1024
    made = graph.open(place / "graph")
    assert len(made.query(ALL)) == PEOPLE + 220


def talk(home: Home, *parts: bytes, pause: float = 0) -> bytes:
    """What the starter answers to some bytes."""
    directory = home.folder / "cache" / "omnigraph" / "warm"
    with socket.socket(socket.AF_UNIX) as connection:
        folder = os.open(directory, os.O_PATH)
        connection.connect(f"/proc/self/fd/{folder}/{socket_name()}")
        os.close(folder)
        connection.settimeout(30)
        with suppress(BrokenPipeError, ConnectionResetError):
            for part in parts:
                connection.sendall(part)
                time.sleep(pause)
            connection.shutdown(socket.SHUT_WR)
            return connection.recv(1 << 16)
    return b""


@pytest.mark.parametrize(
    "parts",
    [
        (b"",),
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",),
        (struct.pack("!I", 1 << 31), b"x" * 100_000),
        (struct.pack("!I", 100), b"command"),
        (struct.pack("!I", 9), b"command\0me"),
        (struct.pack("!I", 20), b"command\0me\x0099999\0a\0\0"),
        (struct.pack("!I", 18), b"reboot\0me\x001\0a\0b=c"),
    ],
    ids=["nothing", "another protocol", "too long", "too short", "too few", "a lie", "unknown"],
)
def test_bytes_that_are_no_request_get_no_answer(home, parts):
    assert talk(home, *parts) == b""
    assert home.status()["running"]


def test_a_slow_client_delays_nobody_and_is_dropped(home, place):
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(talk, home, *([struct.pack("!I", 1000)] + [b"x"] * 50), pause=0.2)
        with counted(home, 1):
            assert run(home, place, "version", warm=True)[0] == 0
        assert slow.result() == b""


def test_clients_are_bounded_and_one_too_many_runs_its_command_itself(own_home, place):
    pid = own_home.start()["pid"]
    directory = own_home.folder / "cache" / "omnigraph" / "warm"
    folder = os.open(directory, os.O_PATH)
    with ExitStack() as connections:
        for _ in range(WARM_CLIENTS_MAX + 20):
            connection = connections.enter_context(socket.socket(socket.AF_UNIX))
            connection.connect(f"/proc/self/fd/{folder}/{socket_name()}")
        wait_for(lambda: len(members(pid)) > WARM_CLIENTS_MAX // 2)
        assert len(members(pid)) <= WARM_CLIENTS_MAX + 1
        assert run(own_home, place, "version", warm=True)[0] == 0
    os.close(folder)
    # Those that never sent a request are dropped in the end.
    wait_for(lambda: members(pid) == [pid])
    assert own_home.status()["refused"] >= WARM_CLIENTS_MAX


def test_a_directory_that_others_may_enter_is_not_used(own_home, place):
    own_home.start()
    directory = own_home.folder / "cache" / "omnigraph" / "warm"
    directory.chmod(0o755)
    code, out, err = run(own_home, place, "version", warm=True)
    refused = run(own_home, place, "warm", "start", warm=True)
    directory.chmod(0o700)

    assert (code, out.split()[0], err) == (0, "omnigraph", "")
    assert refused[0] == 1
    assert "not a directory of this user alone" in refused[2]
    assert own_home.status()["commands"] == 0
