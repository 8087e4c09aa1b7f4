"""Requests that are lost, refused or late: repeated where that is safe, and never in silence."""

import logging
import pickle
import socket
from collections.abc import Callable, Iterator
from functools import wraps
from pathlib import Path
from threading import Event, Thread
from typing import Any, Final

import httpx
import pytest

import omnigraph
from omnigraph import Cancellation, Graph, RemoteGraph
from omnigraph.errors import (
    CancelledError,
    FormatError,
    GraphNotFoundError,
    InvalidInputError,
    InvalidParameterError,
    LimitExceededError,
    NotAllowedError,
    OutcomeUnknownError,
    StorageError,
)
from omnigraph.graph import Target
from omnigraph.remote.addresses import Address
from omnigraph.remote.calls import Handle
from omnigraph.remote.connections import Connection, WaitLimits
from tests.contract.graph.conftest import Pair
from tests.contract.graph.test_writes import ADD, NAMES

Fault = Callable[[httpx.Request, Callable[[], httpx.Response]], httpx.Response]


class FaultyTransport(httpx.BaseTransport):
    """Passes requests on to the server, and lets faults happen to some of them."""

    def __init__(self, *faults: Fault | None) -> None:
        self._inner = httpx.HTTPTransport()
        self.faults = list(faults)
        self.requests: list[httpx.Request] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        fault = self.faults.pop(0) if self.faults else None

        def answer() -> httpx.Response:
            return self._inner.handle_request(request)

        return answer() if fault is None else fault(request, answer)

    def close(self) -> None:
        self._inner.close()


def lose_answer(request: httpx.Request, answer: Callable[[], httpx.Response]) -> httpx.Response:
    _discard(answer())
    why = "the answer is lost"
    raise httpx.ReadError(why, request=request)


def refuse(request: httpx.Request, _: Callable[[], httpx.Response]) -> httpx.Response:
    why = "nobody listens"
    raise httpx.ConnectError(why, request=request)


def answer_late(request: httpx.Request, answer: Callable[[], httpx.Response]) -> httpx.Response:
    _discard(answer())
    why = "late"
    raise httpx.ReadTimeout(why, request=request)


def _discard(response: httpx.Response) -> None:
    response.read()
    response.close()


def busy(_: httpx.Request, __: Callable[[], httpx.Response]) -> httpx.Response:
    problem = {
        "class": "LimitExceededError",
        "code": "too_busy",
        "detail": "no room",
        "hint": "wait",
    }
    headers = {"Content-Type": "application/problem+json", "Retry-After": "0"}
    return httpx.Response(429, headers=headers, json=problem)


def answer_page(status: int) -> Fault:
    """A proxy before the server, which answers by a page of its own."""

    def answer(_: httpx.Request, __: Callable[[], httpx.Response]) -> httpx.Response:
        return httpx.Response(status, text="<html>no answer</html>")

    return answer


bad_gateway = answer_page(502)


@pytest.fixture
def faulty(pair: Pair) -> Iterator[Callable[..., tuple[RemoteGraph, FaultyTransport]]]:
    """Makes a handle on main whose requests meet some faults, in order."""
    made: list[RemoteGraph] = []

    def make(*faults: Fault | None, retry_for: float = 10.0) -> tuple[RemoteGraph, FaultyTransport]:
        transport = FaultyTransport(*faults)
        address = Address.parse(pair.remote.uri)
        limits = WaitLimits(5.0, retry_for)
        connection = Connection(address, pair.served.token, limits, transport)
        made.append(RemoteGraph(Handle(connection, Target())))
        return made[-1], transport

    yield make
    for graph in made:
        graph.close()


PAGES: Final = [answer_page(status) for status in (408, 429, 500, 502, 503, 504)]


@pytest.mark.parametrize("fault", [lose_answer, refuse, busy, *PAGES])
def test_a_read_is_repeated(faulty: Any, fault: Fault) -> None:
    graph, transport = faulty(fault, fault)

    assert graph.branches.list()[0] == "main"
    assert len(transport.requests) == 3


@pytest.mark.parametrize("fault", [lose_answer, refuse, busy, bad_gateway])
def test_a_write_with_a_lost_answer_lands_once(pair: Pair, faulty: Any, fault: Fault) -> None:
    graph, transport = faulty(fault, fault)
    name = f"once {id(fault)}"
    before = len(pair.embedded.commits.list())

    result = graph.mutate(ADD, {"n": name})

    assert result.inserted == 1
    assert len(pair.embedded.commits.list()) == before + 1
    assert len({request.headers["idempotency-key"] for request in transport.requests}) == 1
    assert pair.embedded.entity("Person", name) is not None


def test_a_load_with_a_lost_answer_lands_once(pair: Pair, faulty: Any) -> None:
    graph, _ = faulty(None, None, lose_answer)
    before = len(pair.embedded.commits.list())

    result = graph.load({"Person": [{"name": "loaded once"}]}, index=False)

    assert result.inserted == 1
    assert len(pair.embedded.commits.list()) == before + 1


def test_the_outcome_of_other_writes_is_unknown_when_the_answer_is_lost(faulty: Any) -> None:
    graph, transport = faulty(lose_answer)
    with pytest.raises(OutcomeUnknownError, match="whether the request landed is unknown"):
        graph.branches.create("lost")
    assert len(transport.requests) == 1
    assert "lost" in graph.branches.list()
    graph.branches.delete("lost")


def test_other_writes_are_repeated_when_nothing_was_done(faulty: Any) -> None:
    graph, transport = faulty(refuse, busy)

    graph.branches.create("again")

    assert len(transport.requests) == 3
    graph.branches.delete("again")


def test_a_write_that_a_proxy_refused_is_repeated_and_one_that_it_lost_is_not(faulty: Any) -> None:
    graph, transport = faulty(answer_page(429))
    graph.branches.create("refused")
    assert len(transport.requests) == 2
    graph.branches.delete("refused")

    graph, transport = faulty(answer_page(503))
    with pytest.raises(OutcomeUnknownError, match="answers 503"):
        graph.branches.create("lost")
    assert len(transport.requests) == 1


def test_a_keyed_write_whose_server_does_not_return_has_an_unknown_outcome(faulty: Any) -> None:
    graph, _ = faulty(lose_answer, *[refuse] * 50, retry_for=0.3)
    with pytest.raises(OutcomeUnknownError, match="cannot be reached") as unknown:
        graph.mutate(ADD, {"n": "lost"})

    graph, _ = faulty()
    again = graph.mutate(ADD, {"n": "lost"}, key=unknown.value.details["key"])
    assert again.inserted == 1


def test_a_late_write_says_how_to_repeat_it(faulty: Any) -> None:
    graph, _ = faulty(answer_late)
    with pytest.raises(OutcomeUnknownError, match="did not answer within 5 s") as unknown:
        graph.mutate(ADD, {"n": "late"})

    again = graph.mutate(ADD, {"n": "late"}, key=unknown.value.details["key"])
    assert again.inserted == 1


def test_nothing_is_repeated_for_longer_than_was_asked(faulty: Any) -> None:
    graph, transport = faulty(*[refuse] * 50, retry_for=0.3)
    with pytest.raises(StorageError, match="cannot be reached: nobody listens"):
        graph.branches.list()
    assert 1 < len(transport.requests) < 10

    graph, _ = faulty(*[busy] * 50, retry_for=0.3)
    with pytest.raises(LimitExceededError, match="no room"):
        graph.branches.list()


def test_a_cancelled_query_ends_and_the_server_sees_its_client_leave(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, ended = Event(), Event()

    @wraps(Graph.query)
    def wait(*_: object, cancel: Cancellation, **__: object) -> None:
        begun.set()
        with cancel.notify(ended.set):
            ended.wait(30)
        cause = "the client left"
        raise CancelledError(cause)

    monkeypatch.setattr(Graph, "query", wait)
    cancel = Cancellation()

    def cancel_soon() -> None:
        begun.wait(30)
        cancel.cancel()

    Thread(target=cancel_soon).start()
    with pytest.raises(CancelledError, match="the query was cancelled"):
        pair.remote.query(NAMES, cancel=cancel)

    assert ended.wait(10)
    with pytest.raises(CancelledError):
        pair.remote.query(NAMES, cancel=cancel)


def test_a_stored_write_that_is_cancelled_after_it_was_sent_may_have_landed(
    pair: Pair, faulty: Any
) -> None:
    pair.embedded.queries.put("query grow($n: String) { insert Person { name: $n } }")
    cancel = Cancellation()

    def lose_then_cancel(
        request: httpx.Request, answer: Callable[[], httpx.Response]
    ) -> httpx.Response:
        try:
            return lose_answer(request, answer)
        finally:
            cancel.cancel()

    graph, _ = faulty(lose_then_cancel)
    with pytest.raises(OutcomeUnknownError, match="cancelled") as unknown:
        graph.queries.run("grow", {"n": "grown"}, cancel=cancel)

    assert pair.embedded.entity("Person", "grown") is not None
    again = graph.queries.run("grow", {"n": "grown"}, key=unknown.value.details["key"])
    assert again.inserted == 1
    with pytest.raises(CancelledError):
        graph.queries.run("grow", {"n": "never sent"}, cancel=cancel)


def test_answers_that_are_none_of_a_server_of_graphs(faulty: Any) -> None:
    def moved(_: httpx.Request, __: object) -> httpx.Response:
        return httpx.Response(307, headers={"Location": "https://elsewhere/"})

    def page(_: httpx.Request, __: object) -> httpx.Response:
        return httpx.Response(404, text="<html>")

    def newer(_: httpx.Request, __: object) -> httpx.Response:
        return httpx.Response(200, content=b'{"$": "Wormhole", "length": 3}\n')

    graph, transport = faulty(moved, page, newer)
    with pytest.raises(InvalidInputError, match="answers 307"):
        graph.branches.list()
    with pytest.raises(InvalidInputError, match="answers 404"):
        graph.branches.list()
    with pytest.raises(FormatError, match="Wormhole"):
        graph.branches.list()
    assert {request.url.host for request in transport.requests} == {"127.0.0.1"}


WRONG: Final = {
    "no scheme": "host/graphs/world",
    "another scheme": "ftp://host/graphs/world",
    "no graph": "https://host/",
    "a path too long": "https://host/graphs/world/query",
    "a query": "https://host/graphs/world?token=x",
    "a password": "https://ada:secret@host/graphs/world",
}


@pytest.mark.parametrize("address", WRONG.values(), ids=WRONG.keys())
def test_an_address_that_is_none_is_refused(address: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        omnigraph.connect(address)
    assert "secret" not in str(refused.value)


def test_a_token_is_not_sent_where_others_can_read_it() -> None:
    with pytest.raises(InvalidInputError, match="not encrypted"):
        omnigraph.connect("http://graphs.example/graphs/world", "og_token")
    with pytest.raises(InvalidParameterError):
        omnigraph.connect("https://graphs.example/graphs/world", "og\ntoken")


def test_a_proxy_sees_no_request_to_this_machine(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9/")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9/")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    with omnigraph.connect(pair.remote.uri, pair.served.token, retry_for=0.0) as graph:
        assert graph.branches.list()[0] == "main"


def test_a_token_is_in_no_representation_log_or_error(
    pair: Pair, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    graph = omnigraph.connect(pair.remote.uri, pair.served.token)
    with pytest.raises(NotAllowedError, match="unknown, expired or revoked") as refused:
        omnigraph.connect(pair.remote.uri, "og_wrong_token")
    with pytest.raises(TypeError) as pickled:
        pickle.dumps(graph)
    graph.close()

    shown = [caplog.text, repr(graph), repr(vars(graph)), str(pickled.value), repr(refused.value)]
    connection = vars(graph)["_handle"].connection
    shown += [repr(connection), repr(vars(connection))]
    assert not [text for text in shown if pair.served.token in text or "og_wrong_token" in text]


def test_a_graph_or_an_actor_that_is_not_the_token_s_is_refused(pair: Pair) -> None:
    with pytest.raises(GraphNotFoundError):
        omnigraph.connect(f"{pair.served.url}/graphs/nothing", pair.served.token)
    with pytest.raises(NotAllowedError, match="acts as ada, and not as 'eve'"):
        pair.remote.mutate(ADD, {"n": "x"}, actor="eve")


def test_what_spark_would_read_is_refused_by_name(pair: Pair) -> None:
    for call in (
        lambda: pair.remote.frame("Person"),
        lambda: pair.remote.vertices(),
        lambda: pair.remote.edges(),
        lambda: pair.remote.ingest(None, checkpoint="x"),  # type: ignore[arg-type]
        lambda: pair.remote.query(NAMES).frame(),
    ):
        with pytest.raises(NotAllowedError, match="needs the storage of the graph"):
            call()
    with pytest.raises(NotAllowedError, match="object store"):
        pair.remote.export("s3://bucket/graph.jsonl")


@pytest.mark.parametrize(
    "source",
    [
        "s3://bucket/people.jsonl",
        "s3://bucket/*.parquet",
        "gs://bucket/people.csv",
        "az://container/people.csv",
        {"Person": "s3://bucket/people.csv"},
        ["people.jsonl", "s3://bucket/people.jsonl"],
        "hdfs://host/people.jsonl",
        "http://127.0.0.1/people.jsonl",
    ],
)
def test_load_from_an_object_store_is_refused_and_contacts_nothing(
    pair: Pair, source: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Not even the address that has the credentials of a machine in a cloud."""
    monkeypatch.chdir(tmp_path)
    Path("people.jsonl").write_text('{"type": "Person", "data": {"name": "x"}}')
    with socket.socket() as trap:
        trap.bind(("127.0.0.1", 0))
        trap.listen()
        trap.settimeout(0.2)
        address = f"http://127.0.0.1:{trap.getsockname()[1]}"
        for name in ("AWS_ENDPOINT_URL", "AWS_METADATA_ENDPOINT", "GOOGLE_BASE_URL"):
            monkeypatch.setenv(name, address)
        monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
        with pytest.raises(NotAllowedError, match="a server reads no files for its clients"):
            pair.remote.load(source)
        with pytest.raises(TimeoutError):
            trap.accept()


BODIES: Final = {
    "no operation": ("nothing", {}),
    "a private one": ("_order", {}),
    "a dunder": ("__class__", {}),
    "a file of the server": ("schema.plan", {"schema": "/etc/passwd"}),
    "a query file": ("query", {"source": "people.gq"}),
    "a path": ("schema.diff", {"before": "v1", "after": "x.pg"}),
    "the actor": ("mutate", {"source": {"$": "Source", "name": "q", "text": "q"}, "actor": "eve"}),
    "a strange class": ("entity", {"type_name": {"$": "Catalog"}, "id": "x"}),
    "an unknown argument": ("branches.list", {"x": 1}),
    "another url": ("settings.set", {"key": "embedding.openai_url", "value": "http://169.254.1.1"}),
    "another secret": ("settings.set", {"key": "embedding.openai_key", "value": "HOME"}),
}


@pytest.mark.parametrize(("operation", "arguments"), BODIES.values(), ids=BODIES.keys())
def test_a_call_that_a_client_would_not_send_is_refused(
    pair: Pair, operation: str, arguments: dict[str, Any]
) -> None:
    with pair.served.client() as client:
        answer = client.post(f"/graphs/world/calls/{operation}", json={"arguments": arguments})

    assert answer.status_code in (400, 403, 404, 501), answer.text
    assert answer.headers["content-type"] == "application/problem+json"
