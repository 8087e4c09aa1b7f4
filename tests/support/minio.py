"""MinIO: a real S3 server on loopback, where somebody has built or installed it.

`make minio` builds it. Its data is in a directory that ends with the block, and the kernel ends the
server with the process that started it.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import Final
from urllib.error import URLError
from urllib.request import urlopen

from tests.support.cluster import end_with
from tests.support.s3 import ACCESS_KEY, MINIO_VARIABLE, REGION, SECRET_KEY, environment_of
from tests.support.sources import REPOSITORY

START_SECONDS_MAX: Final = 60
_GATHERED_SECONDS: Final = 12
_REQUESTS: Final = re.compile(r'^minio_s3_requests_total\{.*?api="(\w+)".*?\} (\d+)', re.MULTILINE)

_bucket_numbers = count(1)


@dataclass(frozen=True, slots=True)
class MinioServer:
    """A running server."""

    endpoint: str

    def create_bucket(self, name: str | None = None) -> str:
        """Create an empty bucket, under a name this server has not seen if none is given."""
        # Imported here: only this needs it.
        import boto3  # type: ignore[import-untyped]

        bucket = name or f"test-{os.getpid()}-{next(_bucket_numbers)}"
        keys = {"aws_access_key_id": ACCESS_KEY, "aws_secret_access_key": SECRET_KEY}
        client = boto3.client("s3", endpoint_url=self.endpoint, region_name=REGION, **keys)
        client.create_bucket(Bucket=bucket)
        return bucket

    @property
    def environment(self) -> Mapping[str, str]:
        """See `S3Server.environment`."""
        return environment_of(self.endpoint)

    def count_requests(self) -> Counter[str]:
        """How many requests it has answered so far, by what they ask for."""
        # The server counts at once, and gathers its counts every ten seconds.
        time.sleep(_GATHERED_SECONDS)
        with urlopen(f"{self.endpoint}/minio/v2/metrics/cluster", timeout=30) as answer:
            text = answer.read().decode()
        return Counter({api: int(number) for api, number in _REQUESTS.findall(text)})


def find_minio() -> Path | None:
    """The program that the variable names, that `make minio` has built, or that is installed."""
    named = os.environ.get(MINIO_VARIABLE)
    built = REPOSITORY / "build" / "minio"
    found = named or (str(built) if built.exists() else shutil.which("minio"))
    return Path(found) if found else None


@contextmanager
def run_minio(program: Path) -> Iterator[MinioServer]:
    """Run a server on a free port during the block."""
    with tempfile.TemporaryDirectory(prefix="minio-") as folder, socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
        probe.close()
        log = Path(folder) / "log"
        with log.open("wb") as output, warnings.catch_warnings():
            # The fork that Lance warns of is followed by exec, and never runs Lance.
            warnings.filterwarnings("ignore", message="lance is not fork-safe")
            process = subprocess.Popen(
                [program, "server", "--quiet", "--address", address, f"{folder}/data"],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=_variables(folder),
                preexec_fn=partial(end_with, os.getpid()),
            )
        try:
            _await_answer(f"http://{address}/minio/health/live", process, log)
            yield MinioServer(f"http://{address}")
        finally:
            process.terminate()
            process.wait(timeout=60)


def _variables(folder: str) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "HOME": folder,
        "MINIO_ROOT_USER": ACCESS_KEY,
        "MINIO_ROOT_PASSWORD": SECRET_KEY,
        "MINIO_PROMETHEUS_AUTH_TYPE": "public",
        "MINIO_UPDATE": "off",
        "MINIO_BROWSER": "off",
    }


def _await_answer(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS_MAX
    while True:
        try:
            with urlopen(url, timeout=5):
                return
        except (URLError, ConnectionError) as cause:
            if process.poll() is not None or time.monotonic() > deadline:
                message = f"MinIO did not start:\n{log.read_text()[-2000:]}"
                raise RuntimeError(message) from cause
            time.sleep(0.1)
