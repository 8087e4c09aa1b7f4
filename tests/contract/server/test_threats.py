"""What an attacker tries: each is refused, and changes nothing (docs/security.md)."""

import gzip
import json
import logging
import select
import socket
import time
from contextlib import suppress
from itertools import count
from typing import Any

import httpx
import pytest
import zstandard
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

import omnigraph
from omnigraph.agents import protocol
from omnigraph.agents.workspace import Workspace
from omnigraph.errors import StorageError
from tests.contract.server.test_http import ADD, mutate, problem
from tests.support.served import serving, settings_for

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


@pytest.fixture(scope="module")
def tight(tmp_path_factory):
    """A server with little to spend, and a graph whose products are large."""
    folder = tmp_path_factory.mktemp("tight")
    graph = omnigraph.init(folder / "world", "node Person { name: String @key  age: I64 }")
    graph.load({"Person": [{"name": f"p{age}", "age": age} for age in range(400)]}, index=False)
    limits = {"query_timeout": "1s", "query_memory": "30MB", "query_max_rows": 100}
    with serving(settings_for(folder, {"world": graph.uri}, limits=limits)) as running:
        yield running


FOUR = "match { $a: Person  $b: Person  $c: Person  $d: Person "
BOMBS = {
    # As many steps, groups, rows, brackets and hops as a text can ask for.
    f"{FOUR} $a.age + $b.age + $c.age + $d.age = 3 }} return {{ count($a) as n }}": "query_timeout",
    f"{FOUR} }} return {{ $a.name, $b.name, $c.name, count($d) as n }} "
    "order { n desc } limit 1": "query_memory",
    "match { $a: Person  $b: Person } return { $a.name, $b.name }": "query_max_rows",
    f"match {{ $a: Person }} return {{ {'(' * 500}1{')' * 500} as n }}": "invalid_input",
    "match { $a: Person  $a -[Knows{1,999}]-> $b: Person } return { $b.name }": "invalid_input",
}


@pytest.mark.parametrize("spend", [{}, {"timeout": "none", "memory": "none", "max_rows": 10**9}])
@pytest.mark.parametrize(("text", "code"), BOMBS.items())
def test_a_query_that_explodes_ends_within_its_budget(tight, text, code, spend):
    """That of the server, whatever the request asks for, on either route."""
    query = f"query q() {{ {text} }}"
    given = {"source": {"$": "Source", "name": "q", "text": query}, **spend}
    status = 400 if code == "invalid_input" else 413
    with tight.client() as client:
        for path, body in (
            ("query", {"query": query, **spend}),
            ("calls/query", {"arguments": given}),
        ):
            begun = time.monotonic()
            problem(client.post(f"/graphs/world/{path}", json=body), status, code)
            assert time.monotonic() - begun < 10


def test_a_query_within_its_budget_is_answered_and_may_spend_less(tight):
    with tight.client() as client:
        body = {"query": "query q() { match { $p: Person } return { count($p) as n } }"}
        assert client.post("/graphs/world/query", json=body).json()["rows"] == [{"n": 400}]
        few = {"query": "query q() { match { $p: Person } return { $p.name } limit 50 }"}
        assert len(client.post("/graphs/world/query", json=few).json()["rows"]) == 50
        less = client.post("/graphs/world/query", json={**few, "max_rows": 20})
        problem(less, 413, "query_max_rows")


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


_VALUES = {
    "graph": "world",
    "tag": "v1",
    "name": "all",
    "branch": "main",
    "type_name": "Person",
    "entity_id": "Ada",
    "property_name": "name",
    "number": "1",
}
_ASKED = {
    "diff": "?before=v1&after=main",
    "diff/rows": "?before=v1&after=main",
    "entities/{type_name}": "?id=Ada",
    "permissions": "?action=mutate",
}


def addresses(client, job_id, commit_id):
    """Those of all routes that only read, with names that exist where they can."""
    for path, methods in client.get("/openapi.json").json()["paths"].items():
        if "get" in methods:
            values = {**_VALUES, "job_id": job_id, "commit_id": commit_id, "commit": commit_id}
            route = path.removeprefix("/graphs/{graph}/")
            yield path.format_map(values) + _ASKED.get(route, "")


def test_no_answer_says_where_the_server_stores_anything(tmp_path):
    """Graphs, uploads, jobs, tokens and policies are all below one folder here."""
    folder = tmp_path / "private"
    folder.mkdir()
    schema = "node Person { name: String @key  age: I64? }"
    graph = omnigraph.init(folder / "world", schema)
    graph.mutate(ADD, {"n": "Ada"})
    graph.branches.create("draft").mutate(ADD, {"n": "Bob"})
    graph.tags.create("v1")
    graph.queries.put(QUERY["query"].replace("query q", "query all"))
    graph.proposals.create("draft", "a proposal", actor="bob")
    (folder / "rules.cedar").write_text(
        'permit(principal == Actor::"ada", action, resource);'
        'permit(principal == Actor::"eve", action == Action::"read", resource);'
    )
    (folder / "policy.toml").write_text('rules = "rules.cedar"\n[protected]\ndraft = 1\n')
    settings = settings_for(folder, {"world": graph.uri}, policy=folder / "policy.toml")
    wrong, later = b'{"type": "Person", "data": {"name": 5}}', {"Prefer": "respond-async"}
    source = {"$": "Source", "name": "q", "text": "query q() { delete Person where age = 1 }"}
    with serving(settings) as served, served.client() as ada:
        with served.client(served.tokens().create("eve")[0]) as eve:
            refused = [
                ada.get("/graphs/world/branches/nothing"),
                ada.get("/graphs/world/commits/nothing"),
                ada.get("/graphs/world/proposals/9"),
                ada.get("/graphs/world/tags/nothing"),
                ada.get("/graphs/world/jobs/nothing"),
                ada.post("/graphs/world/load", content=b"{}"),
                ada.post("/graphs/world/load", content=wrong),
                ada.post("/graphs/world/load?branch=draft", content=wrong),
                ada.post("/graphs/world/calls/load", content=b"x"),
                ada.post("/graphs/world/calls/query", json={"arguments": {"source": "x.gq"}}),
                ada.post("/graphs/world/calls/mutate", json={"arguments": {"source": "x"}}),
                ada.post("/graphs/world/calls/export", json={"arguments": {"target": "x" * 300}}),
                ada.post("/graphs/world/calls/export", json={"arguments": {"target": "../x"}}),
                ada.post("/graphs/world/schema/apply", json={"schema": "node"}),
                ada.post("/graphs/world/branches", json={"name": "draft/below"}),
                mutate(eve, ADD, {"n": "x"}),
                eve.post("/graphs/world/load", content=wrong),
                eve.post("/graphs/world/load", content=wrong, headers=later),
                eve.post("/graphs/world/merge", json={"source": "draft", "into": "main"}),
                eve.post("/graphs/world/calls/mutate", json={"arguments": {"source": source}}),
                eve.post("/graphs/world/calls/export", json={"arguments": {"target": "x"}}),
                eve.post("/graphs/world/calls/cleanup", json={"arguments": {}}),
                eve.get("/graphs/world/recovery"),
            ]
        assert [answer.status_code for answer in refused if not answer.is_error] == []
        place = ada.post("/graphs/world/load", content=wrong, headers=later).headers["location"]
        while (job := ada.get(place)).json()["state"] in ("queued", "running"):
            time.sleep(0.01)
        assert job.json()["problem"]["code"] == "integrity"
        calls: list[tuple[str, dict[str, Any]]] = [
            ("export", {"target": "x.jsonl"}),
            ("export", {"target": "x", "format": "parquet"}),
            *((name, {}) for name in ("check", "repair", "recoveries.list", "settings.list")),
            ("cleanup", {"dry_run": True}),
            ("schema.purge", {"dry_run": True}),
            *((name, {}) for name in ("snapshot", "indexes.list", "streams.list", "optimize")),
        ]
        called = [
            ada.post(f"/graphs/world/calls/{name}", json={"arguments": arguments})
            for name, arguments in calls
        ]
        left_out = ada.post("/graphs/world/load?on_error=quarantine", content=wrong)
        place = left_out.headers["location"]
        while (ended := ada.get(place)).json()["state"] in ("queued", "running"):
            time.sleep(0.01)
        rejects = ada.get(f"{place}/rejects")
        assert json.loads(rejects.text)["origin"] == "body:1"
        read = [
            ada.get(address)
            for address in addresses(ada, ended.json()["job_id"], graph.commits.list()[0].commit_id)
            if not address.startswith("/graphs/world/blobs")
        ]
        wrong_asked = [answer.url.path for answer in (*called, *read) if answer.is_error]
        assert wrong_asked == []
        for answer in (*refused, job, *called, *read):
            assert str(tmp_path).encode() not in answer.content, answer.request.url


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tools/call", {"name": "diff", "arguments": {"before": "none", "after": "main"}}),
        ("tools/call", {"name": "schema", "arguments": {"at": "none"}}),
        ("resources/read", {"uri": "omnigraph://schema"}),
        ("tools/list", {}),
    ],
)
def test_no_answer_to_an_agent_says_where_the_server_stores_anything(
    client, graph, monkeypatch, method, params
):
    def fail(*_, **__):
        message = f"{graph.uri} cannot be read"
        raise StorageError(message, hint=f"check {graph.uri}")

    if method != "tools/call":
        monkeypatch.setattr(Workspace, "schema", fail)
        monkeypatch.setattr(protocol, "list_tools", fail)
    asked = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    headers = {"Accept": "application/json, text/event-stream"}
    answer = client.post("/graphs/world/mcp?read_only=true", json=asked, headers=headers)
    assert "world" in answer.text
    assert graph.uri not in answer.text


@pytest.mark.parametrize("route", ["query", "calls/query", "mcp"])
def test_a_slow_body_ends(tmp_path, route):
    omnigraph.init(tmp_path / "world", "node Person { name: String @key }")
    settings = settings_for(
        tmp_path, {"world": str(tmp_path / "world")}, limits={"body_seconds": 0.3}
    )
    with serving(settings) as served:
        host, port = served.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=10) as slow:
            head = (
                f"POST /graphs/world/{route} HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n"
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
    """The addresses of providers and the names of their secrets are set where the graph is."""
    settings = served.service.own_graph("world").settings
    before = settings.list()
    guarded = [each.key for each in before if each.key.startswith("embedding.")]
    guarded = [key for key in guarded if key.endswith(("_url", "_key"))]
    assert len(guarded) == 4
    for key in guarded:
        for value in ("http://127.0.0.1:1/", "${OMNIGRAPH_SECRET}", "none"):
            body = {"arguments": {"key": key, "value": value}}
            set_it = client.post("/graphs/world/calls/settings.set", json=body)
            assert "not through a server" in problem(set_it, 403, "forbidden")["detail"]
        body = {"arguments": {"key": key}}
        problem(client.post("/graphs/world/calls/settings.unset", json=body), 403, "forbidden")
    assert settings.list() == before
    # Others can be set by who may: it is these that are guarded, and not all.
    body = {"arguments": {"key": "embedding.batch_size", "value": 64}}
    assert client.post("/graphs/world/calls/settings.set", json=body).status_code == 200
    assert settings.get("embedding.batch_size") == 64
    settings.unset("embedding.batch_size")
    address = {**QUERY, "embedding_url": "http://127.0.0.1:1/"}
    problem(client.post("/graphs/world/query", json=address), 400, "invalid_input")


def test_no_model_of_a_client_is_looked_for_on_the_server(tmp_path):
    """A model may be a directory: which ones there are is nobody's to find out."""
    schema = (
        'node Doc { key: String @key  text: String?  v: Vector(8)? @embed(text, model="mock") }'
    )
    graph = omnigraph.init(tmp_path / "world", schema)
    graph.load({"Doc": [{"key": "a", "text": "b"}]})
    text = "query q($t: String) { match { $d: Doc } return { $d.key } order { nearest($d.v, $t) } "
    asked = {"query": f"{text} limit 1 }}", "params": {"t": "b"}}
    sent = {"source": {"$": "Source", "name": "q", "text": asked["query"]}, "params": {"t": "b"}}
    with serving(settings_for(tmp_path, {"world": graph.uri})) as served, served.client() as client:
        answers = set()
        for place in (str(tmp_path), str(tmp_path / "missing"), "some/name"):
            model = f"sentence-transformers:{place}"
            for path, body in (
                ("query", {**asked, "embedding_model": model}),
                ("calls/query", {"arguments": {**sent, "embedding_model": model}}),
            ):
                found = problem(
                    client.post(f"/graphs/world/{path}", json=body), 400, "embedding_model"
                )
                answers.add(found["detail"].replace(model, "…"))
            changed = schema.replace('"mock"', f'"{model}"')
            given = {"schema": {"$": "Source", "name": "s", "text": changed}}
            for path in ("schema/plan", "schema/apply", "calls/schema.plan", "calls/schema.apply"):
                sent_as: Any = {"arguments": given} if "calls" in path else {"schema": changed}
                refused = client.post(f"/graphs/world/{path}", json=sent_as)
                answers.add(problem(refused, 403, "forbidden")["detail"])
        assert len(answers) == 2, answers
        mock = {**asked, "embedding_model": "mock"}
        assert client.post("/graphs/world/query", json=mock).json()["rows"] == [{"d.key": "a"}]


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


NAMES = count()


@given(st.lists(st.tuples(HEADER_NAMES, HEADER_VALUES), min_size=1, max_size=3))
@hypothesis_settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_made_up_headers_break_nothing(client, graph, headers):
    """A write is refused below 500 and changes nothing, or it is made whole, by its actor."""
    before = graph.baseline()
    name = f"header {next(NAMES)}"
    fields = [(name.encode(), value) for name, value in headers]
    body = json.dumps({"query": ADD, "params": {"n": name}}).encode()
    status = None
    with suppress(httpx.RemoteProtocolError, httpx.LocalProtocolError):
        answer = client.post("/graphs/world/mutate", content=body, headers=fields)
        assert answer.status_code < 500, answer.text
        status = answer.status_code
    if status == 200:
        [commit] = graph.commits.list(limit=1)
        assert (commit.parent, commit.actor) == (before, "ada")
        assert graph.entity("Person", name) is not None
    else:
        assert graph.baseline() == before
    with suppress(httpx.RemoteProtocolError, httpx.LocalProtocolError):
        assert client.get("/graphs/world/branches/main", headers=fields).status_code < 500


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
