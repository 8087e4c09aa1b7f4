"""An S3 test server in this process that records its requests."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Thread
from typing import TYPE_CHECKING

from moto.moto_server.werkzeug_app import (
    DomainDispatcherApplication,
    MotoRequestHandler,
    create_backend_app,
)
from werkzeug.serving import make_server

from tests.support import s3

if TYPE_CHECKING:
    from collections.abc import Iterable

    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment


@dataclass(slots=True)
class Counted:
    """The requests of an S3 test server in this process, and the size of what it sent."""

    requests: list[str] = field(default_factory=list)
    byte_count: int = 0

    def wrap(self, application: "WSGIApplication") -> "WSGIApplication":
        def answer(environ: "WSGIEnvironment", start: "StartResponse") -> "Iterable[bytes]":
            self.requests.append(f"{environ['REQUEST_METHOD']} {environ['PATH_INFO']}")
            answered = list(application(environ, start))
            self.byte_count += sum(map(len, answered))
            return answered

        return s3.one_at_a_time(answer)

    def take(self) -> int:
        count = len(self.requests)
        self.requests.clear()
        self.byte_count = 0
        return count


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
