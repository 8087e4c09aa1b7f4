"""An S3 test server on loopback, in its own process that ends with the one that started it."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from typing import TYPE_CHECKING, Any, Final
from urllib.request import Request, urlopen

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

ACCESS_KEY: Final = "omnigraph-tests"
SECRET_KEY: Final = "omnigraph-tests-secret"
REGION: Final = "us-east-1"

MINIO_VARIABLE: Final = "OMNIGRAPH_TEST_MINIO"
"""The program of a real server; where it is set, tests of S3 run against that."""

_bucket_numbers = count(1)


@dataclass(frozen=True, slots=True)
class S3Server:
    """A running server. Buckets are in its memory and end with it."""

    endpoint: str

    def create_bucket(self, name: str | None = None) -> str:
        """Create an empty bucket, under a name this server has not seen if none is given."""
        bucket = name or f"test-{os.getpid()}-{next(_bucket_numbers)}"
        # The server accepts unsigned requests, so the standard library is client enough.
        with urlopen(Request(f"{self.endpoint}/{bucket}", method="PUT"), timeout=30):
            return bucket

    @property
    def environment(self) -> Mapping[str, str]:
        """The variables that make Lance and obstore, here or in a child process, use this server.

        They suffice: neither library needs explicit options. Both also read `AWS_ENDPOINT` and
        `AWS_ENDPOINT_URL_S3`; of several, Lance takes the first and obstore the last, so set one.
        """
        return environment_of(self.endpoint)


def environment_of(endpoint: str) -> dict[str, str]:
    """The variables that name a server, and the keys of our test servers."""
    return {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ACCESS_KEY_ID": ACCESS_KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
        "AWS_REGION": REGION,
        "AWS_ALLOW_HTTP": "true",
    }


@contextmanager
def run_server() -> Iterator[S3Server]:
    """Run a server on a free loopback port during the block.

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
    """Serve until standard input ends. The port is printed to standard output, on one line."""
    # Imported here, in the child: most test runs never need it.
    from moto.moto_server.werkzeug_app import (
        DomainDispatcherApplication,
        MotoRequestHandler,
        create_backend_app,
    )
    from werkzeug.serving import make_server

    application = one_at_a_time(DomainDispatcherApplication(create_backend_app))
    server = make_server(
        "127.0.0.1", 0, application, threaded=True, request_handler=MotoRequestHandler
    )
    # A daemon: returning ends it.
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.stdout.write(f"{server.port}\n")
    sys.stdout.flush()
    sys.stdin.read()


class _Denial(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = b"<Error><Code>InvalidAccessKeyId</Code><Message>no such key</Message></Error>"
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.send_response(403)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_HEAD = do_PUT = do_POST = do_GET

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def run_denying_store() -> Iterator[str]:
    """Run a store that knows no credentials of ours during the block: its endpoint."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Denial) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def one_at_a_time(application: WSGIApplication) -> WSGIApplication:
    """The application behind a lock, so that a conditional put is one step, as it is on S3.

    moto checks If-Match and If-None-Match and then puts, in a thread per request: of two puts
    under one condition, both may land (tests/contract/storage/test_s3_server.py).
    """
    lock = threading.Lock()

    def answer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        # Read the body before taking the lock, so that a slow sender does not block others.
        if length := environ.get("CONTENT_LENGTH"):
            environ["wsgi.input"] = io.BytesIO(environ["wsgi.input"].read(int(length)))
        with lock:
            return application(environ, start_response)

    return answer
