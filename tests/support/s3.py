"""An S3 look-alike on loopback, in a process of its own that ends with the one that started it."""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from typing import Final
from urllib.request import Request, urlopen

ACCESS_KEY: Final = "omnigraph-tests"
SECRET_KEY: Final = "omnigraph-tests-secret"
REGION: Final = "us-east-1"

_bucket_numbers = count(1)


@dataclass(frozen=True, slots=True)
class S3Server:
    """A running server. Buckets live in its memory and go away with it."""

    endpoint: str

    def create_bucket(self) -> str:
        """Create an empty bucket under a name this server has not seen, and return the name."""
        bucket = f"test-{os.getpid()}-{next(_bucket_numbers)}"
        # The server accepts unsigned requests, so the standard library is client enough.
        with urlopen(Request(f"{self.endpoint}/{bucket}", method="PUT"), timeout=30):
            return bucket

    @property
    def environment(self) -> Mapping[str, str]:
        """The variables that make Lance and obstore, here or in a child process, use this server.

        They suffice: neither library needs explicit options. Both also read `AWS_ENDPOINT` and
        `AWS_ENDPOINT_URL_S3`; of several, Lance takes the first and obstore the last, so set one.
        """
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": ACCESS_KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
            "AWS_REGION": REGION,
            "AWS_ALLOW_HTTP": "true",
        }


@contextmanager
def running() -> Iterator[S3Server]:
    """Run a server on a free loopback port for as long as the block lasts.

    A process rather than a thread: the server then never waits for our interpreter lock. It reads
    its standard input and stops at the end of it, so it also stops when this process is killed.
    """
    command = [sys.executable, "-c", "from tests.support.s3 import serve; serve()"]
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            port = process.stdout.readline().decode().strip()
            if not port:
                message = f"the S3 test server did not start: exit code {process.wait()}"
                raise RuntimeError(message)
            yield S3Server(f"http://127.0.0.1:{port}")
        finally:
            process.stdin.close()
            process.wait(timeout=30)


def serve() -> None:
    """Serve until standard input ends. The port goes to standard output, on one line."""
    # Imported here, in the child: most test runs never need it.
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    _, port = server.get_host_and_port()
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()
    # The serving thread is a daemon: returning ends it.
    sys.stdin.read()
