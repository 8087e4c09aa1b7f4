"""Clients that are slow, silent or too many."""

import json
import socket
import time

import pyarrow as pa
import pytest

import omnigraph
from tests.contract.server.test_http import problem
from tests.support.served import serving, settings_for

ROWS = 200_000
QUERY = {"query": "query q() { match { $p: Person } return { $p.name } }"}
CONNECTIONS = 8
LIMITS = {
    "reads": 1,
    "reads_per_actor": 1,
    "waiting": 0,
    "unsent_bytes": 1 << 20,
    "connections": CONNECTIONS,
}


@pytest.fixture(scope="module")
def slow_server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("slow")
    graph = omnigraph.init(folder / "world", "node Person { name: String @key }")
    names = [
        f"a rather long name of somebody, to fill the buffers {number}" for number in range(ROWS)
    ]
    graph.load({"Person": pa.table({"name": names})}, index=False)
    settings = settings_for(folder, {"world": graph.uri}, limits=LIMITS)
    with serving(settings) as running:
        yield running


def connect(served):
    host, port = served.url.removeprefix("http://").split(":")
    own = socket.socket()
    own.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    own.settimeout(20)
    own.connect((host, int(port)))
    return own


def ask(own, served, media_type):
    body = json.dumps(QUERY).encode()
    head = (
        f"POST /graphs/world/query HTTP/1.1\r\nHost: x\r\nAccept: {media_type}\r\n"
        f"Authorization: Bearer {served.token}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    own.sendall(head.encode() + body)
    return own.recv(15)


@pytest.mark.parametrize(
    "media_type", ["application/vnd.apache.arrow.stream", "application/x-ndjson"]
)
def test_a_result_that_nobody_reads_keeps_its_place_until_its_client_leaves(
    slow_server, media_type
):
    silent = connect(slow_server)
    with slow_server.client() as client:
        assert ask(silent, slow_server, media_type) == b"HTTP/1.1 200 OK"
        busy = client.post("/graphs/world/query", json=QUERY)
        assert problem(busy, 429, "too_busy")["hint"]
        assert 'omnigraph_running{kind="read"} 1.0' in client.get("/metrics").text
        silent.close()
        deadline = time.monotonic() + 20
        while 'omnigraph_running{kind="read"} 0.0' not in client.get("/metrics").text:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert client.get("/graphs/world/branches").status_code == 200


def test_a_result_that_is_read_slowly_arrives_whole(slow_server):
    with slow_server.client() as client:
        with client.stream("POST", "/graphs/world/query", json=QUERY) as answer:
            size = 0
            for piece in answer.iter_bytes(4 << 20):
                size += len(piece)
                time.sleep(0.3)
        assert size > ROWS * 50
        assert client.get("/graphs/world/branches").status_code == 200


def test_a_small_result_that_nobody_reads_keeps_no_place(slow_server):
    with connect(slow_server) as silent, slow_server.client() as client:
        silent.sendall(
            b"GET /graphs/world/branches HTTP/1.1\r\nHost: x\r\n"
            b"Authorization: Bearer " + slow_server.token.encode() + b"\r\n\r\n"
        )
        assert silent.recv(15) == b"HTTP/1.1 200 OK"
        assert client.get("/graphs/world/branches").status_code == 200


def test_no_more_connections_than_allowed_are_served(slow_server):
    crowd = [connect(slow_server) for _ in range(CONNECTIONS)]
    try:
        time.sleep(0.1)
        with connect(slow_server) as one_more:
            one_more.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            assert one_more.recv(20) == b"HTTP/1.1 503 Service"
    finally:
        for own in crowd:
            own.close()
    time.sleep(0.2)
    with slow_server.client() as client:
        assert client.get("/healthz").status_code == 200


def test_methods_that_clients_make_up_are_counted_as_one(slow_server):
    with slow_server.client() as client:
        for number in range(3):
            assert client.request(f"MADEUP{number}", "/graphs").status_code == 405
        text = client.get("/metrics").text
    assert "MADEUP" not in text
    assert 'method="other"' in text


def test_no_address_leads_to_another_one(slow_server):
    with slow_server.client(follow_redirects=False) as client:
        headers = {"Host": "evil.example.com"}
        for path in ("/graphs/", "/graphs/world/branches/", "/healthz/"):
            answer = client.get(path, headers=headers)
            assert answer.status_code in (400, 404), path
            assert "location" not in answer.headers
