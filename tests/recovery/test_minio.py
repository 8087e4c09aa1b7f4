"""A real S3 server: what tests of the look-alike show holds there, and nothing is lost to kills.

MinIO is built by `make minio`, or named by OMNIGRAPH_TEST_MINIO.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

import omnigraph
from tests.support.crashes import at_rest
from tests.support.minio import MinioServer, find_minio, run_minio
from tests.support.s3 import MINIO_VARIABLE
from tests.support.sources import REPOSITORY
from tests.support.streams import names_in

pytestmark = [pytest.mark.soak, pytest.mark.timeout(3600)]

SUITES: Final = (
    "tests/contract/objects",
    "tests/contract/load/test_remote.py",
    "tests/contract/load/test_spark_s3.py",
    "tests/contract/load/test_cluster_buckets.py",
    "tests/contract/export/test_buckets.py",
    "tests/contract/manifest",
    "tests/contract/branching/test_tags.py",
    "tests/recovery/test_init_crash.py",
    "tests/recovery/test_branch_crash.py",
)
"""Tests whose stores are in a bucket, those of executors and drivers that are killed among them."""

PROCESSES: Final = 6
KILLS: Final = 30
ROWS_PER_PROCESS: Final = 40

WRITER: Final = """
import sys, omnigraph
graph = omnigraph.open(sys.argv[1])
first, last = map(int, sys.argv[3:5])
for number in range(first, last):
    name = f"{sys.argv[2]}-{number}"
    while True:
        try:
            graph.mutate(f'query q() {{ insert Person {{ name: "{name}" }} }}', key=name)
        except omnigraph.errors.ConflictError:
            continue
        break
    print(number, flush=True)
"""


@pytest.fixture(scope="module")
def server() -> Iterator[MinioServer]:
    program = find_minio()
    if program is None:
        pytest.skip("MinIO is not here: make minio")
    with run_minio(program) as running:
        yield running


@pytest.mark.parametrize("suite", SUITES)
def test_what_holds_for_the_look_alike_holds_for_minio(suite: str) -> None:
    program = find_minio()
    if program is None:
        pytest.skip("MinIO is not here: make minio")
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-k", "s3 or bucket or remote or object", suite],
        cwd=REPOSITORY,
        env={**os.environ, MINIO_VARIABLE: str(program)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout[-5000:]


class Writer:
    """A process that inserts rows with keys, and is started again where it was killed."""

    def __init__(self, uri: str, name: str, folder: Path) -> None:
        self._uri = uri
        self.name = name
        self._log = folder / f"{name}.log"
        self._log.touch()
        self._start()

    def _start(self) -> None:
        # What was not confirmed is sent again: its key keeps it from being written twice.
        bounds = [f"{len(self.confirmed())}", f"{ROWS_PER_PROCESS}"]
        with self._log.open("ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-c", WRITER, self._uri, self.name, *bounds], stdout=output
            )

    def confirmed(self) -> list[str]:
        """The rows whose inserts were answered."""
        return [f"{self.name}-{number}" for number in self._log.read_text().split()]

    def is_running(self) -> bool:
        return self._process.poll() is None

    def kill(self) -> None:
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()
        self._start()

    def wait(self) -> None:
        """Run to the end."""
        assert self._process.wait(600) == 0
        assert len(self.confirmed()) == ROWS_PER_PROCESS


def test_nothing_is_lost_and_nothing_written_twice_by_processes_that_are_killed(
    server: MinioServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    uri = f"s3://{server.create_bucket()}/graph.omni"
    omnigraph.init(uri, "node Person { name: String @key }")
    draws = random.Random(7)
    writers = [Writer(uri, f"w{number}", tmp_path) for number in range(PROCESSES)]
    for _ in range(KILLS):
        time.sleep(draws.uniform(0.2, 2.0))
        if running := [writer for writer in writers if writer.is_running()]:
            draws.choice(running).kill()
    for writer in writers:
        writer.wait()
    graph = omnigraph.open(uri)
    expected = {
        f"{writer.name}-{number}" for writer in writers for number in range(ROWS_PER_PROCESS)
    }
    assert names_in(graph) == dict.fromkeys(expected, 1)
    at_rest(uri)
