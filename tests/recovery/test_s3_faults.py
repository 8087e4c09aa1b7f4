"""S3 fails at each request of a write in turn: it lands whole or not at all, and the next works.

A proxy stands between the graph and the look-alike. It answers one request, by its number, with an
error, before the request was passed on or after, when only the answer is lost.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

import pytest

import omnigraph
from omnigraph.errors import OmnigraphError, OutcomeUnknownError, StorageError
from tests.support.crashes import has_sidecar, picture, upload_graph
from tests.support.publishing import SCHEMA
from tests.support.s3 import S3Server

ADD = """
query add($name: String) {
  insert Person { name: $name }
  insert Person { name: "friend" }
  insert Knows { from: $name  to: "friend" }
}
"""
EVERY = frozenset({"GET", "HEAD", "PUT", "POST", "DELETE"})
WRITES = frozenset({"PUT", "POST", "DELETE"})
REQUESTS_MAX = 200
"""Far more than a mutation makes: where counting stops if it never ends."""


@dataclass(slots=True)
class Proxy:
    """Passes requests on, and spoils the one whose turn it is.

    Attributes:
        nth: The request to spoil, counted from one; none if zero.
        status: What it is answered.
        passes: Whether the spoilt request is carried out all the same.
        counted: The methods of the requests that count.
        seen: How many of those there were since it was last told what to spoil.
    """

    server: S3Server
    nth: int = 0
    status: int = 500
    passes: bool = False
    counted: frozenset[str] = EVERY
    seen: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def spoiling(self, nth: int, *, status: int, passes: bool) -> Iterator[None]:
        self.nth, self.status, self.passes, self.seen = nth, status, passes, 0
        try:
            yield
        finally:
            self.nth = 0

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        with self.lock:
            counts = handler.command in self.counted
            self.seen += counts
            spoilt = counts and self.seen == self.nth
        length = int(handler.headers.get("Content-Length", 0))
        body = handler.rfile.read(length)
        if not spoilt or self.passes:
            status, headers, content = self._passed_on(handler, body)
        if spoilt:
            status, headers = self.status, []
            content = b"<Error><Code>InternalError</Code><Message>planted</Message></Error>"
        handler.send_response_only(status)
        for name, value in headers:
            if name.lower() not in ("content-length", "connection", "transfer-encoding"):
                handler.send_header(name, value)
        size = dict(headers).get("Content-Length") if handler.command == "HEAD" else None
        handler.send_header("Content-Length", size or str(len(content)))
        handler.end_headers()
        if handler.command != "HEAD":
            handler.wfile.write(content)

    def _passed_on(
        self, handler: BaseHTTPRequestHandler, body: bytes
    ) -> tuple[int, list[tuple[str, str]], bytes]:
        connection = HTTPConnection(urlsplit(self.server.endpoint).netloc, timeout=30)
        try:
            connection.request(handler.command, handler.path, body, dict(handler.headers))
            answer = connection.getresponse()
            return answer.status, answer.getheaders(), answer.read()
        finally:
            connection.close()


@contextmanager
def serving(proxy: Proxy) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self) -> None:
            proxy.answer(self)

        do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _answer  # http.server's names

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def proxy(
    s3_bucket: str,  # noqa: ARG001  # sets the environment that the proxy then changes
    s3_server: S3Server,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Proxy]:
    made = Proxy(s3_server)
    with serving(made) as endpoint:
        monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
        yield made


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> str:
    graph = omnigraph.init(tmp_path_factory.mktemp("base") / "graph.omni", SCHEMA)
    graph.mutate(ADD, {"name": "first"})
    return graph.uri


def people(uri: str) -> set[str]:
    """The people, after a look at whether every other row is as it should be."""
    seen = picture(uri).rows
    names = {each["name"] for each in seen["main", "node:Person"]}
    friends = sorted(each["src"] for each in seen["main", "edge:Knows"])
    assert friends == sorted(names - {"friend"}), "a person and an edge come together"
    return names


def outcomes(uri: str) -> list[set[str]]:
    """Make the mutation; whom there may be afterwards."""
    without, with_both = {"first", "friend"}, {"first", "friend", "second"}
    try:
        omnigraph.open(uri).mutate(ADD, {"name": "second"})
    except OutcomeUnknownError:
        return [without, with_both]
    except OmnigraphError:
        return [without]
    return [with_both]


@pytest.mark.parametrize(
    ("status", "passes", "counted"),
    [
        pytest.param(500, True, WRITES, id="500 though done, at each write"),
        pytest.param(403, False, WRITES, id="403 at each write", marks=pytest.mark.soak),
        pytest.param(
            403, True, WRITES, id="403 though done, at each write", marks=pytest.mark.soak
        ),
        pytest.param(500, False, EVERY, id="500", marks=pytest.mark.soak),
        pytest.param(500, True, EVERY, id="500 though done", marks=pytest.mark.soak),
        pytest.param(403, False, EVERY, id="403", marks=pytest.mark.soak),
        pytest.param(403, True, EVERY, id="403 though done", marks=pytest.mark.soak),
    ],
)
def test_a_mutation_survives_an_error_at_each_of_its_requests(
    s3_bucket: str,
    proxy: Proxy,
    base: str,
    status: int,
    passes: bool,  # noqa: FBT001  # pytest's call
    counted: frozenset[str],
) -> None:
    proxy.counted = counted
    failures = 0
    for nth in range(1, REQUESTS_MAX):
        uri = upload_graph(base, f"s3://{s3_bucket}/{nth}")
        with proxy.spoiling(nth, status=status, passes=passes):
            expected = outcomes(uri)
        if proxy.seen < nth:
            break
        failures += {"first", "friend"} in expected
        found = people(uri)
        assert found in expected, f"request {nth}"
        omnigraph.open(uri).mutate(ADD, {"name": "third"})
        assert people(uri) == found | {"third"}, f"after request {nth}"
        assert not has_sidecar(uri)
    else:
        pytest.fail("a mutation never ends")
    assert nth > 5, "a mutation makes more requests than that"
    # Both libraries ask again after a 500, and nobody notices; a 403 is final.
    assert (failures > 0) == (status == 403)


@pytest.fixture(scope="module")
def worn(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A graph whose tables have several small fragments."""
    graph = omnigraph.init(tmp_path_factory.mktemp("worn") / "graph.omni", SCHEMA)
    graph.settings.set("maintenance.optimize", "off")
    for name in ("first", "second", "third"):
        graph.mutate(ADD, {"name": name})
    return graph.uri


@pytest.mark.parametrize(
    ("status", "passes", "counted", "step"),
    [
        pytest.param(403, False, WRITES, 9, id="403 at some writes", marks=pytest.mark.soak),
        pytest.param(500, True, EVERY, 1, id="500 though done", marks=pytest.mark.soak),
        pytest.param(403, False, EVERY, 1, id="403", marks=pytest.mark.soak),
        pytest.param(403, True, EVERY, 1, id="403 though done", marks=pytest.mark.soak),
    ],
)
def test_an_optimize_survives_an_error_at_each_of_its_requests(
    s3_bucket: str,
    proxy: Proxy,
    worn: str,
    status: int,
    passes: bool,  # noqa: FBT001  # pytest's call
    counted: frozenset[str],
    step: int,
) -> None:
    proxy.counted = counted
    rows = picture(worn).rows
    failures = 0
    for nth in range(1, REQUESTS_MAX, step):
        uri = upload_graph(worn, f"s3://{s3_bucket}/{nth}")
        with proxy.spoiling(nth, status=status, passes=passes):
            try:
                omnigraph.open(uri).optimize()
            except (StorageError, OutcomeUnknownError):
                failures += 1
        if proxy.seen < nth:
            break
        assert picture(uri).rows == rows, f"request {nth}"
        omnigraph.open(uri).optimize()
        seen = picture(uri)
        assert seen.rows == rows, f"after request {nth}"
        sizes = {name: len(fragments) for name, fragments in seen.fragments.items()}
        assert sizes == {name: int(bool(rows[name])) for name in rows}
        assert not has_sidecar(uri)
    else:
        pytest.fail("an optimize never ends")
    assert nth > 10, "an optimize makes more requests than that"
    assert (failures > 0) == (status == 403)
