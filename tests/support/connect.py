"""A real server of Spark Connect on loopback, in a JVM of its own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import pytest

from tests.support.cluster import await_log, daemon

ADDRESS_VARIABLE: Final = "OMNIGRAPH_TEST_CONNECT"
"""The server that the fixture `spark` connects to, where a run of tests is on Spark Connect."""

_STARTED: Final = re.compile(r"Spark Connect server started at: [^\n]*?127\.0\.0\.1:(\d+)")


def require_classic(reason: str) -> None:
    """Skip a test where a run of tests is on Spark Connect."""
    if ADDRESS_VARIABLE in os.environ:
        pytest.skip(f"not through Spark Connect: {reason}")


@contextmanager
def run_connect_server(
    *, python: str = sys.executable, options: Mapping[str, str] | None = None
) -> Iterator[str]:
    """Run a server with two cores on a free port during the block; its address.

    Args:
        python: What its workers run.
    """
    command = [sys.executable, "-c", "from tests.support.connect import supervise; supervise()"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYSPARK_PYTHON": python}
    with subprocess.Popen(
        [*command, json.dumps(dict(options or {}))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            if not line:
                message = f"the server did not start: exit code {process.wait()}"
                raise RuntimeError(message)
            yield json.loads(line)["address"]
        finally:
            process.stdin.close()
            process.wait(timeout=60)


def supervise() -> None:
    """Start a server, print its address, and stop it at the end of standard input."""
    options = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": "0",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "3",
        "spark.sql.catalogImplementation": "in-memory",
        **json.loads(sys.argv[1]),
    }
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="spark-connect-")))
        options.setdefault("spark.sql.warehouse.dir", str(directory / "warehouse"))
        log = directory / "server.log"
        arguments = ["--master", options.pop("spark.master", "local[2]")]
        for name, value in options.items():
            arguments += ["--conf", f"{name}={value}"]
        server = "org.apache.spark.sql.connect.service.SparkConnectServer"
        arguments += ["--class", server, "spark-internal"]
        stack.enter_context(daemon("SparkSubmit", arguments, log, memory="1g"))
        [port] = await_log(log, _STARTED).groups()
        sys.stdout.write(json.dumps({"address": f"sc://127.0.0.1:{port}"}) + "\n")
        sys.stdout.flush()
        sys.stdin.read()
