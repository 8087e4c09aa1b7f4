"""An S3 test server in this process that records its requests."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.moto_server.werkzeug_app import (
    DomainDispatcherApplication,
    MotoRequestHandler,
    create_backend_app,
)
from moto.s3.models import s3_backends
from werkzeug.serving import make_server

from omnigraph.graph import Graph
from tests.support import s3

if TYPE_CHECKING:
    from collections.abc import Iterable

    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment


Upload = Callable[[Path], Graph]
"""Opens a graph of this disk as one on S3."""


@dataclass(slots=True)
class Counted:
    """The requests of an S3 test server in this process, and the size of what it sent.

    Attributes:
        times: When each request came and was answered.
        latency_seconds: How long each request waits before it is looked at.
    """

    requests: list[str] = field(default_factory=list)
    times: list[tuple[float, float]] = field(default_factory=list)
    latency_seconds: float = 0.0
    byte_count: int = 0

    def wrap(self, application: "WSGIApplication") -> "WSGIApplication":
        def answer(environ: "WSGIEnvironment", start: "StartResponse") -> "Iterable[bytes]":
            self.requests.append(_describe(environ))
            answered = list(application(environ, start))
            self.byte_count += sum(map(len, answered))
            return answered

        alone = s3.one_at_a_time(answer)

        def answer_later(environ: "WSGIEnvironment", start: "StartResponse") -> "Iterable[bytes]":
            begun = time.monotonic()
            time.sleep(self.latency_seconds)
            answered = alone(environ, start)
            self.times.append((begun, time.monotonic()))
            return answered

        return answer_later

    def count_round_trips(self) -> int:
        """The longest chain of requests of which each began when the one before was answered."""
        chain, answered_at = 0, 0.0
        for begun, ended in sorted(self.times, key=lambda times: times[1]):
            if begun >= answered_at:
                chain, answered_at = chain + 1, ended
        return chain

    def take(self) -> int:
        count = len(self.requests)
        self.requests.clear()
        self.times.clear()
        self.byte_count = 0
        return count


def requests_of(asked: Counted, operation: Callable[[], object]) -> list[str]:
    """The requests that an operation makes."""
    asked.take()
    operation()
    requests = list(asked.requests)
    asked.take()
    return requests


def assert_at_most(requests_max: int, requests: list[str]) -> None:
    """Fail with all of the requests if they are more."""
    listed = "\n".join(requests)
    assert len(requests) <= requests_max, f"{len(requests)}, not {requests_max}:\n{listed}"


def put_files(folder: Path, uri: str) -> None:
    """Put files of this disk where the servers of this process have them, without requests.

    A graph without branches can be made on the disk, in a tenth of the time: branches name the
    place that they were created at.
    """
    bucket, _, prefix = uri.removeprefix("s3://").partition("/")
    backend = s3_backends[DEFAULT_ACCOUNT_ID]["aws"]
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            key = f"{prefix}/{path.relative_to(folder)}"
            backend.put_object(bucket, key, path.read_bytes())


def _describe(environ: "WSGIEnvironment") -> str:
    """A request on one line: the method, the path, what is listed, and the part that is read."""
    words = [environ["REQUEST_METHOD"], environ["PATH_INFO"]]
    words += parse_qs(environ.get("QUERY_STRING", "")).get("prefix", [])
    words += [environ["HTTP_RANGE"]] if "HTTP_RANGE" in environ else []
    return " ".join(words)


@contextmanager
def counting_server() -> Iterator[tuple[Counted, s3.S3Server]]:
    """Serve on a free loopback port during the block."""
    counted = Counted()
    application = counted.wrap(DomainDispatcherApplication(create_backend_app))
    server = make_server(
        "127.0.0.1", 0, application, threaded=True, request_handler=MotoRequestHandler
    )
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield counted, s3.S3Server(f"http://127.0.0.1:{server.port}")
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
