"""A real standalone Spark cluster on loopback: one master and workers, each in its own JVM.

A supervisor process starts them and reads its standard input; at the end of that it stops them all,
so the cluster also ends when the process that started it is killed. If the supervisor itself is
killed, the kernel ends them, and executors end with their worker.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import pyspark

from omnigraph.engine.spark.java import require_java

START_SECONDS_MAX: Final = 90
_MASTER: Final = re.compile(r"Starting Spark master at (spark://[\w.]+:\d+)")
_REGISTERED: Final = re.compile(r"Successfully registered with master")
_LOOPBACK: Final = "127.0.0.1"

_LIBC: Final = ctypes.CDLL(None, use_errno=True)
_PR_SET_PDEATHSIG: Final = 1


@dataclass(frozen=True, slots=True)
class Cluster:
    """A running cluster.

    Attributes:
        master: Its URL.
        supervisor_pid: The process that started all others.
        master_pid: The master's JVM.
        worker_pids: The workers' JVMs. Executors are their children.
    """

    master: str
    supervisor_pid: int
    master_pid: int
    worker_pids: tuple[int, ...]

    @property
    def environment(self) -> Mapping[str, str]:
        """The variables with which a driver in a child process uses this cluster."""
        return {
            "OMNIGRAPH_SPARK_MASTER": self.master,
            # Executors then run this Python, with the same packages as the driver.
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": _LOOPBACK,
        }

    def executor_pids(self) -> tuple[int, ...]:
        """The running executors."""
        pids: list[int] = []
        for worker_pid in self.worker_pids:
            # A thread of the worker starts executors, so they are listed under that thread.
            for task in Path(f"/proc/{worker_pid}/task").iterdir():
                # Threads may end meanwhile.
                with suppress(FileNotFoundError, ProcessLookupError):
                    pids += map(int, (task / "children").read_text().split())
        return tuple(pids)

    def await_executors(self) -> tuple[int, ...]:
        """Wait until every worker has an executor, since killed ones are restarted; return them."""
        deadline = time.monotonic() + START_SECONDS_MAX
        while len(executors := self.executor_pids()) < len(self.worker_pids):
            assert time.monotonic() < deadline, "an executor did not start"
            time.sleep(0.1)
        return executors


def end_with(parent: int) -> None:
    """Have the kernel kill this process when the thread of `parent` that started it ends."""
    if _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL):
        raise OSError(ctypes.get_errno(), "prctl failed: the process would outlive its parent")
    if os.getppid() != parent:
        # The parent ended before the call.
        os.kill(os.getpid(), signal.SIGKILL)


@contextmanager
def run_cluster(workers: int = 2, *, cores: int = 1, memory: str = "1g") -> Iterator[Cluster]:
    """Run a cluster on free ports during the block."""
    arguments = json.dumps({"workers": workers, "cores": cores, "memory": memory})
    command = [sys.executable, "-c", "from tests.support.cluster import supervise; supervise()"]
    with subprocess.Popen(
        [*command, arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            if not line:
                message = f"the Spark cluster did not start: exit code {process.wait()}"
                raise RuntimeError(message)
            started = json.loads(line)
            yield Cluster(started["url"], process.pid, started["master"], tuple(started["workers"]))
        finally:
            process.stdin.close()
            process.wait(timeout=60)


def supervise() -> None:
    """Start a cluster, print its address, and stop it at the end of standard input."""
    options = json.loads(sys.argv[1])
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="spark-cluster-")))
        log = directory / "master.log"
        ports = ["--host", _LOOPBACK, "--port", "0", "--webui-port", "0"]
        master = stack.enter_context(daemon("master.Master", ports, log))
        [url] = await_log(log, _MASTER).groups()
        pids = []
        logs = [directory / f"worker{number}.log" for number in range(options["workers"])]
        for log in logs:
            sizes = ["--cores", str(options["cores"]), "--memory", options["memory"]]
            place = ["--work-dir", str(log.with_suffix(""))]
            worker = daemon("worker.Worker", [*ports, *sizes, *place, url], log)
            pids.append(stack.enter_context(worker))
        for log in logs:
            await_log(log, _REGISTERED)
        sys.stdout.write(json.dumps({"url": url, "master": master, "workers": pids}) + "\n")
        sys.stdout.flush()
        sys.stdin.read()


@contextmanager
def daemon(kind: str, arguments: list[str], log: Path, *, memory: str = "256m") -> Iterator[int]:
    """Run a program of `org.apache.spark.deploy` during the block; its process id."""
    home = Path(pyspark.__file__).parent
    quick = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    environment = {
        **os.environ,
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": _LOOPBACK,
        "JAVA_HOME": str(require_java().parent.parent),
        "SPARK_DAEMON_MEMORY": memory,
        "SPARK_DAEMON_JAVA_OPTS": quick,
        # Those of a program that is submitted, which is no daemon for Spark.
        "SPARK_DRIVER_MEMORY": memory,
        "SPARK_SUBMIT_OPTS": quick,
    }
    command = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{kind}", *arguments]
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=environment,
            # Its own process group, so that its children end with it.
            start_new_session=True,
            # The script that starts Java execs it, so the setting stays in effect.
            preexec_fn=partial(end_with, os.getpid()),
        )
    try:
        yield process.pid
    finally:
        for number in (signal.SIGTERM, signal.SIGKILL):
            _signal_group(process.pid, number)
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                continue
        _signal_group(process.pid, signal.SIGKILL)


def _signal_group(pid: int, number: signal.Signals) -> None:
    try:
        os.killpg(pid, number)
    except ProcessLookupError:
        return


def await_log(log: Path, pattern: re.Pattern[str]) -> re.Match[str]:
    """Wait until a log matches the pattern."""
    deadline = time.monotonic() + START_SECONDS_MAX
    while time.monotonic() < deadline:
        text = log.read_text(encoding="utf-8", errors="replace")
        if (match := pattern.search(text)) is not None:
            return match
        time.sleep(0.1)
    message = f"the log never said {pattern.pattern}:\n{text[-2000:]}"
    raise RuntimeError(message)
