"""What an attacker tries: each is refused, and changes nothing (docs/security.md)."""

import gzip
import json
import logging
import select
import socket
import time
from typing import Any

import httpx
import pytest
import zstandard
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from tests.contract.server.test_http import ADD, mutate, problem

QUERY = {"query": "query q() { match { $p: Person } return { $p.name } }"}


@pytest.mark.parametrize(
    "authorization",
    [
        None,
        "",
        "Bearer",
        "Bearer x",
        "Basic YWRhOmFkYQ==",
        "Bearer og_000000000000_guess",
        "Bearer " + "a" * 10_000,
        "Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJhZGEifQ.",
    ],
)
def test_without_a_valid_token_nothing_is_told(served, authorization):
    headers = {} if authorization is None else {"Authorization": authorization}
    with httpx.Client(base_url=served.url, headers=headers) as client:
        for path in ("/graphs", "/graphs/world/branches", "/graphs/nothing/branches"):
            answer = client.get(path)
            problem(answer, 401, "unauthenticated")
            assert answer.headers["www-authenticate"] == "Bearer"
        problem(client.post("/graphs/world/query", json=QUERY), 401, "unauthenticated")


def test_two_identities_in_one_request_are_refused(served):
    headers = [("Authorization", f"Bearer {served.token}"), ("Authorization", "Bearer other")]
    with httpx.Client(base_url=served.url) as client:
        problem(client.get("/graphs/world/branches", headers=headers), 400, "invalid_input")


@pytest.mark.parametrize(
    "name",
    ["../world", "..%2F..%2Fetc", "world/../..", "%00", "a" * 200, "__manifest", ".", "world%2F.."],
)
def test_no_path_leads_out_of_the_served_graphs(client, name):
    assert client.get(f"/graphs/{name}/branches").status_code in (400, 404)


@pytest.mark.parametrize(
    "name",
    [
        "../main",
        "a/../b",
        "/etc",
        "a//b",
        "__internal",
        "a\x00b",
        "a\nb",
        "-x",
        "a b",
        "",
        "ö" * 400,
    ],
)
def test_no_name_of_a_branch_leads_out_of_the_graph(client, graph, name):
    before = graph.branches.list()
    refused = client.post("/graphs/world/branches", json={"name": name})
    assert refused.status_code == 400, refused.text
    assert mutate(client, ADD, {"n": "x"}, branch=name).status_code in (400, 404)
    assert graph.branches.list() == before


def test_no_file_of_the_server_is_read_for_a_client(client, tmp_path):
    secret = tmp_path / "secret.pg"
    secret.write_text("node Secret { key: String }")
    for text in (str(secret), f"file://{secret}"):
        planned = client.post("/graphs/world/schema/plan", json={"schema": text})
        assert "Secret" not in problem(planned, 400, "invalid_schema")["detail"].replace(text, "")
        assert client.post("/graphs/world/query", json={"query": text}).status_code == 400
        assert client.get("/graphs/world/diff", params={"before": text, "after": "main"}).is_error


def test_no_address_in_a_load_is_fetched(client, graph):
    """A load has its rows in its body: there is no parameter for an address, and text is text."""
    with socket.socket() as trap:
        trap.bind(("127.0.0.1", 0))
        trap.listen()
        trap.settimeout(0.3)
        url = f"http://127.0.0.1:{trap.getsockname()[1]}/rows.jsonl"
        before = graph.baseline()
        for body in (url, json.dumps({"source": url}), json.dumps([url])):
            assert client.post("/graphs/world/load", content=body).is_error
        asked = {"type": url, "source": url, "data": url}
        assert client.post("/graphs/world/load", content=b"{}", params=asked).is_error
        with pytest.raises(TimeoutError):
            trap.accept()
    assert graph.baseline() == before


def test_large_bodies_are_refused_however_they_are_sent(client):
    large = b" " * 300_000
    json_type = {"Content-Type": "application/json"}
    declared = client.post("/graphs/world/query", content=large, headers=json_type)
    problem(declared, 413, "body_too_large")
    pieces = (large[start : start + 10_000] for start in range(0, len(large), 10_000))
    problem(
        client.post("/graphs/world/query", content=pieces, headers=json_type), 413, "body_too_large"
    )
    problem(client.post("/graphs/world/load", content=b" " * 6_000_000), 413, "body_too_large")


@pytest.mark.parametrize(
    ("encoding", "compress"), [("gzip", gzip.compress), ("zstd", zstandard.compress)]
)
def test_bodies_that_explode_are_refused(client, encoding, compress):
    headers = {"Content-Encoding": encoding}
    bomb = compress(b"\n" * 4_900_000)
    assert len(bomb) < 10_000
    problem(client.post("/graphs/world/load", content=bomb, headers=headers), 413, "body_too_large")
    cut = compress(b'{"type": "Person", "data": {"name": "cut"}}')[:-8]
    problem(client.post("/graphs/world/load", content=cut, headers=headers), 400, "invalid_input")
    assert client.get("/graphs/world/entities/Person/cut").status_code == 404


def test_other_compressions_and_types_are_refused(client):
    headers = {"Content-Encoding": "br"}
    problem(
        client.post("/graphs/world/query", json=QUERY, headers=headers), 415, "unsupported_media"
    )
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    answer = client.post("/graphs/world/mutate", content="query=x", headers=headers)
    problem(answer, 415, "unsupported_media")
    headers = {"Accept": "application/json;q=0, text/html"}
    answer = client.post("/graphs/world/query", json=QUERY, headers=headers)
    problem(answer, 406, "not_acceptable")


@pytest.mark.parametrize(
    "query",
    [
        "query q() { match { $a: Person  $b: Person  $c: Person  $d: Person } "
        "return { count($a) as n } }",
        "query q() { match { $a: Person  $a -[Knows{1,999}]-> $b: Person } return { $b.name } }",
        "query q() { match { $a: Person } return { " + "(" * 500 + "1" + ")" * 500 + " as n } }",
    ],
)
def test_a_query_that_explodes_ends_within_its_budget(client, query):
    begun = time.monotonic()
    body = {"query": query, "timeout": "1s", "memory": "100MB", "max_rows": 1000}
    answer = client.post("/graphs/world/query", json=body)
    assert answer.status_code in (200, 400, 413), answer.text
    assert time.monotonic() - begun < 10
    raised = {"query": QUERY["query"], "timeout": "none", "memory": "none"}
    assert client.post("/graphs/world/query", json=raised).status_code == 200


def test_logs_have_neither_tokens_nor_bodies(served, client, caplog):
    secret = "a very private name"
    with caplog.at_level(logging.DEBUG):
        mutate(client, ADD, {"n": secret})
        with served.client("og_000000000000_wrongwrong") as wrong:
            wrong.get("/graphs/world/branches")
    lines = [record.getMessage() for record in caplog.records if record.name == "omnigraph.server"]
    assert any('"actor": "ada"' in line for line in lines)
    assert not any(served.token in line or secret in line for line in lines)
    assert not any("wrongwrong" in line for line in lines)


def test_a_request_id_from_outside_is_taken_only_if_it_is_plain(client):
    own = client.get("/healthz", headers={"X-Request-Id": "abc-123"})
    assert own.headers["x-request-id"] == "abc-123"
    odd = client.get("/healthz", headers={"X-Request-Id": 'x" onload="y'})
    assert '"' not in odd.headers["x-request-id"]


def test_problems_do_not_say_where_graphs_are_stored(served, client):
    place = served.service.settings.graphs["world"].uri
    for answer in (
        client.get("/graphs/world/branches/nothing"),
        client.get("/graphs/world/commits/nothing"),
        client.post("/graphs/world/load", content=b"{}"),
    ):
        assert answer.is_error
        assert place not in answer.text


def test_a_slow_body_ends(tmp_path):
    import omnigraph
    from tests.support.served import serving, settings_for

    omnigraph.init(tmp_path / "world", "node Person { name: String @key }")
    settings = settings_for(
        tmp_path, {"world": str(tmp_path / "world")}, limits={"body_seconds": 0.3}
    )
    with serving(settings) as served:
        host, port = served.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=10) as slow:
            head = (
                f"POST /graphs/world/query HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n"
                f"Authorization: Bearer {served.token}\r\nContent-Type: application/json\r\n\r\n"
            )
            slow.sendall(head.encode() + b'{"query": "')
            assert b"413" in slow.recv(100)


def test_a_load_that_trickles_ends(tmp_path):
    import omnigraph
    from tests.support.served import serving, settings_for

    omnigraph.init(tmp_path / "world", "node Person { name: String @key }")
    places = {"world": str(tmp_path / "world")}
    settings = settings_for(tmp_path, places, limits={"body_seconds": 0.5})

    head = "POST /graphs/world/load HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n"
    with serving(settings) as served:
        host, port = served.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=10) as slow:
            slow.sendall(f"{head}Authorization: Bearer {served.token}\r\n\r\n".encode())
            begun = time.monotonic()
            # Each piece comes in time.
            while not select.select([slow], [], [], 0.05)[0]:
                slow.sendall(b"1\r\n\n\r\n")
                assert time.monotonic() - begun < 5
            assert b"413" in slow.recv(100)
        assert not list(served.service.scratch.iterdir())


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example.com"},
        {"Origin": "null"},
        {"Origin": "http://["},
        {"Sec-Fetch-Site": "cross-site"},
    ],
)
def test_a_page_of_another_site_is_refused(client, graph, headers):
    before = graph.baseline()
    problem(mutate(client, ADD, {"n": "page"}, headers), 403, "forbidden")
    line = b'{"type": "Person", "data": {"name": "page"}}'
    problem(client.post("/graphs/world/load", content=line, headers=headers), 403, "forbidden")
    assert graph.baseline() == before
    assert client.options("/graphs/world/mutate", headers=headers).status_code == 405


def test_a_page_of_this_server_may_ask_it(served, client):
    own = {"Origin": served.url, "Sec-Fetch-Site": "same-origin"}
    answer = client.get("/graphs/world/branches", headers=own)
    assert answer.status_code == 200
    assert "access-control-allow-origin" not in answer.headers
    assert answer.headers["content-security-policy"].startswith("default-src 'none'")
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["cache-control"] == "no-store"


def test_without_tokens_only_this_machine_by_its_own_names_is_served(tmp_path):
    """A page can give a name of its own to 127.0.0.1, and is on the server's site then."""
    import omnigraph
    from tests.support.served import serving, settings_for

    omnigraph.init(tmp_path / "world", "node Person { name: String @key }")
    places = {"world": str(tmp_path / "world")}
    settings = settings_for(tmp_path, places, allow_anonymous=True)
    with serving(settings) as served, served.client(None) as client:
        assert client.get("/graphs/world/branches").status_code == 200
        port = served.url.rpartition(":")[2]
        for host, status in (
            (f"localhost:{port}", 200),
            (f"evil.example.com:{port}", 403),
            ("127.0.0.1.evil.example.com", 403),
            ("", 403),
        ):
            answer = client.get("/graphs/world/branches", headers={"Host": host})
            assert answer.status_code == status, host


def test_tokens_are_compared_in_constant_time(served, monkeypatch):
    import hmac

    compared = []
    constant = hmac.compare_digest

    def compare(one, other):
        compared.append((len(one), len(other)))
        return constant(one, other)

    monkeypatch.setattr(hmac, "compare_digest", compare)
    token_id = served.token.split("_")[1]
    for text in (served.token, f"og_{token_id}_wrong", "og_000000000000_unknown", "no token"):
        with served.client(text) as client:
            client.get("/graphs/world/tags")
    # Digests of one length, once each, whether or not there is such a token.
    assert compared == [(64, 64)] * 4


def test_the_past_is_bound_by_the_policy_as_the_present_is(tmp_path):
    import omnigraph
    from tests.support.served import serving, settings_for

    graph = omnigraph.init(tmp_path / "world", "node Person { name: String @key }")
    secret = graph.branches.create("secret").mutate(ADD, {"n": "hidden"})
    graph.tags.create("hidden", branch="secret")
    graph.mutate(ADD, {"n": "other"})
    graph.merge("secret", message="Take what was decided")
    (tmp_path / "rules.cedar").write_text(
        'permit(principal, action, resource in Branch::"main");'
        'permit(principal, action, resource == Graph::"world");'
    )
    settings = settings_for(
        tmp_path, {"world": str(tmp_path / "world")}, policy=tmp_path / "rules.cedar"
    )
    with serving(settings) as served, served.client() as client:
        assert client.post("/graphs/world/query", json=QUERY).status_code == 200
        points: list[dict[str, Any]] = [
            {"commit": secret.commit_id},
            {"commit": "hidden"},
            {"branch": "secret"},
            {"branch": "secret", "version": 2},
        ]
        for point in points:
            asked = client.post("/graphs/world/query", json={**QUERY, **point})
            assert asked.status_code == 404, asked.text
            for route in ("snapshot", "schema", "export"):
                assert client.get(f"/graphs/world/{route}", params=point).status_code == 404
        for path in (
            f"commits/{secret.commit_id}",
            f"commits/{secret.commit_id}/changes",
            "tags/hidden",
            "branches/secret",
            "diff?before=main&after=secret",
            f"diff?before=main&after={secret.commit_id}",
            "changes?branch=secret",
            f"entities/Person/hidden?at={secret.commit_id}",
            "entities/Person/hidden?at=hidden",
            "entities/Person/hidden/history?branch=secret",
        ):
            answer = client.get(f"/graphs/world/{path}")
            assert answer.status_code == 404, (path, answer.text)
        assert "secret" not in client.get("/graphs/world/branches").text
        history = client.get("/graphs/world/history").json()["commits"]
        assert {commit["branch"] for commit in history} == {"main"}
        assert secret.commit_id not in {commit["commit_id"] for commit in history}
        merge = {"source": "secret", "into": "main"}
        assert client.post("/graphs/world/merge", json=merge).status_code == 404


def test_no_route_changes_where_texts_are_embedded(served, client):
    """The addresses of providers are settings, and no request names one."""
    document = client.get("/openapi.json").json()
    assert not [path for path in document["paths"] if "settings" in path]
    body = {**QUERY, "embedding_url": "http://127.0.0.1:1/"}
    problem(client.post("/graphs/world/query", json=body), 400, "invalid_input")
    model = {**QUERY, "embedding_model": "http://127.0.0.1:1/model"}
    assert client.post("/graphs/world/query", json=model).status_code in (200, 400)
    assert served.service.own_graph("world").settings.list()


HEADER_NAMES = st.sampled_from(
    [
        "Accept",
        "Content-Type",
        "Content-Encoding",
        "If-Match",
        "Idempotency-Key",
        "Prefer",
        "Range",
        "Origin",
        "Host",
        "Last-Event-Id",
        "X-Request-Id",
        "Authorization",
    ]
)
HEADER_VALUES = st.binary(max_size=60).filter(
    lambda value: not any(byte in b"\x00\r\n" for byte in value) and value == value.strip()
)


@given(st.lists(st.tuples(HEADER_NAMES, HEADER_VALUES), min_size=1, max_size=3))
@hypothesis_settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_made_up_headers_break_nothing(client, graph, headers):
    before = graph.baseline()
    for method, path, body in (
        ("POST", "/graphs/world/mutate", b'{"query": "query q() { delete Nothing }"}'),
        ("GET", "/graphs/world/branches/main", None),
    ):
        fields = [(name.encode(), value) for name, value in headers]
        try:
            answer = client.request(method, path, content=body, headers=fields)
        except (httpx.RemoteProtocolError, httpx.LocalProtocolError):
            continue
        assert answer.status_code < 500, answer.text
    assert graph.baseline() == before


def test_a_token_in_an_address_proves_nothing(served):
    with served.client(None) as stranger:
        for name in ("token", "access_token", "authorization"):
            asked = stranger.get("/graphs/world/branches", params={name: served.token})
            problem(asked, 401, "unauthenticated")


def test_answers_are_no_pages(client, graph):
    graph.load({"Person": [{"name": "<script>", "picture": b"<script>"}]}, mode="merge")
    for path in (
        "/graphs/world/entities/Person?id=<script>",
        "/graphs/world/blobs/Person/picture/<script>",
        "/graphs/world/branches/<script>",
        "/graphs/world/export",
        "/healthz",
    ):
        answer = client.get(path)
        assert not answer.headers["content-type"].startswith(("text/html", "image/"))
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["referrer-policy"] == "no-referrer"
        policy = answer.headers["content-security-policy"]
        assert policy == "default-src 'none'; frame-ancestors 'none'"
        attached = "blobs" in path
        assert (answer.headers.get("content-disposition") == "attachment") is attached


def test_a_server_does_not_say_what_it_is_made_of(client):
    for path in ("/healthz", "/graphs/world/branches", "/nothing"):
        assert "server" not in client.get(path).headers


def test_a_policy_binds_the_actor_of_a_request(tmp_path):
    import omnigraph
    from tests.support.served import serving, settings_for

    omnigraph.init(tmp_path / "world", "node Person { name: String @key }")
    policy = tmp_path / "policy.cedar"
    policy.write_text('permit (principal == Actor::"ada", action == Action::"read", resource);\n')
    settings = settings_for(tmp_path, {"world": str(tmp_path / "world")}, policy=policy)
    with serving(settings) as served, served.client() as client:
        assert client.post("/graphs/world/query", json=QUERY).status_code == 200
        refused = mutate(client, ADD, {"n": "x"})
        assert problem(refused, 403, "forbidden")["title"] == "not allowed"
        text, _ = served.tokens().create("eve")
        with served.client(text) as eve:
            hidden = eve.post("/graphs/world/query", json=QUERY)
            assert hidden.status_code in (403, 404)
            assert "rows" not in hidden.json()
