"""Stored queries over HTTP: what may be invoked is run by name, and all else does not exist."""

import json
import re

import pytest

import omnigraph
from omnigraph.documents.operations import OPERATIONS
from omnigraph.engine.query_results import QueryResult
from omnigraph.errors import NotAllowedError
from tests.contract.server.test_http import problem
from tests.support.served import serving, settings_for

SCHEMA = "node Person { name: String @key  age: I32? }\nnode Salary { of: String @key }"
STORED = """
query older($age: I32) @description("people above an age") {
  match { $p: Person  $p.age > $age } return { $p.name } order { $p.name }
}
query add($name: String) { insert Person { name: $name } }
query salaries() { match { $s: Salary } return { $s.of } }
"""
RULES = """
permit(principal == Actor::"ada", action, resource);
permit(principal == Actor::"agent", action == Action::"read", resource == Branch::"main");
permit(principal == Actor::"agent", action == Action::"invoke", resource == Query::"older");
permit(principal == Actor::"agent", action == Action::"invoke", resource == Query::"salaries");
permit(principal == Actor::"eve", action, resource);
forbid(principal == Actor::"eve", action, resource == Type::"Salary");
"""
PAID = "query paid() { match { $s: Salary } return { $s.of } }"


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stored")
    graph = omnigraph.init(folder / "world", SCHEMA)
    graph.load(
        {
            "Person": [{"name": "Ada", "age": 36}, {"name": "Bob", "age": 20}],
            "Salary": [{"of": "Ada"}],
        }
    )
    (folder / "rules.cedar").write_text(RULES)
    places = {"world": str(folder / "world")}
    limits = {"load_bytes": 1_000_000}
    settings = settings_for(folder, places, policy=folder / "rules.cedar", limits=limits)
    with serving(settings) as running, running.client() as ada:
        stored = ada.post("/graphs/world/queries", json={"query": STORED})
        assert stored.status_code == 201, stored.text
        yield running


@pytest.fixture
def ada(served):
    with served.client() as client:
        yield client


@pytest.fixture
def agent(served):
    text, _ = served.tokens().create("agent")
    with served.client(text) as client:
        yield client


def test_queries_are_listed_page_by_page_and_shown(ada):
    first = ada.get("/graphs/world/queries", params={"limit": 2}).json()
    rest = ada.get("/graphs/world/queries", params={"cursor": first["cursor"]}).json()
    names = [query["name"] for query in first["queries"] + rest["queries"]]
    assert (names, rest["cursor"]) == (["add", "older", "salaries"], None)
    shown = ada.get("/graphs/world/queries/older").json()
    assert shown["description"] == "people above an age"
    assert shown["parameters"] == [{"name": "age", "type": "I32", "nullable": False}]


def test_a_query_that_reads_is_answered_in_each_form_and_at_each_commit(ada):
    place = "/graphs/world/queries/older"
    before = ada.get("/graphs/world/branches/main").headers["etag"].strip('"')
    assert ada.post(place, json={"params": {"age": 30}}).json()["rows"] == [{"p.name": "Ada"}]
    headers = {"Accept": "application/x-ndjson"}
    assert ada.post(place, json={"params": {"age": 1}}, headers=headers).text.count("\n") == 2
    update = 'query u() { update Person set { age: 1 } where name = "Ada" }'
    assert ada.post("/graphs/world/mutate", json={"query": update}).status_code == 200
    assert ada.post(place, json={"params": {"age": 30}}).json()["rows"] == []
    asked = {"params": {"age": 30}, "commit": before}
    assert ada.post(place, json=asked).json()["rows"] == [{"p.name": "Ada"}]
    problem(ada.post(place, json={"params": {}}), 400, "invalid_parameter")
    key = {"Idempotency-Key": "read"}
    problem(ada.post(place, json={"params": {"age": 1}}, headers=key), 400, "invalid_input")
    limited = {"params": {"age": 0}, "max_rows": 1}
    problem(ada.post(place, json=limited), 413, "query_max_rows")


def test_a_query_that_writes_lands_once_with_its_key(ada):
    place, key = "/graphs/world/queries/add", {"Idempotency-Key": "once"}
    answers = [
        ada.post(place, json={"params": {"name": "Cy"}}, headers=key).json() for _ in range(2)
    ]
    assert answers[0] == answers[1]
    assert answers[0]["changes"]["Person"]["inserted"] == 1
    commit = ada.get(f"/graphs/world/commits/{answers[0]['commit_id']}").json()
    assert commit["actor"] == "ada"
    other = ada.post(place, json={"params": {"name": "Di"}}, headers=key)
    problem(other, 422, "request_mismatch")
    stale = {"If-Match": f'"{commit["parent"]}"'}
    problem(ada.post(place, json={"params": {"name": "Di"}}, headers=stale), 412, "stale_head")


def test_what_may_not_be_invoked_does_not_exist(agent):
    listed = agent.get("/graphs/world/queries").json()["queries"]
    assert [query["name"] for query in listed] == ["older", "salaries"]
    # It may invoke what reads a type that it may not read, and nothing else reads that.
    assert agent.post("/graphs/world/queries/salaries", json={}).json()["rows"] == [{"s.of": "Ada"}]
    text = "query q() { match { $s: Salary } return { $s.of } }"
    problem(agent.post("/graphs/world/query", json={"query": text}), 403, "forbidden")
    for method, body in (("GET", None), ("POST", {"params": {"name": "x"}}), ("DELETE", None)):
        answers = []
        for name in ("add", "nothing"):
            answer = agent.request(method, f"/graphs/world/queries/{name}", json=body)
            found = problem(answer, 404, "not_found")
            del found["request_id"]
            answers.append(str(found).replace(name, "…"))
        assert answers[0] == answers[1]


@pytest.fixture
def eve(served):
    with served.client(served.tokens().create("eve")[0]) as client:
        yield client


def test_no_query_of_ones_own_reads_what_one_may_not_read(ada, eve, served):
    """Whoever may write and invoke stores a text elsewhere, on main, or brings it there."""
    problem(eve.post("/graphs/world/query", json={"query": PAID}), 403, "forbidden")
    assert eve.post("/graphs/world/branches", json={"name": "draft/eve"}).status_code == 201
    stored = {"query": PAID, "branch": "draft/eve"}
    assert eve.post("/graphs/world/queries", json=stored).status_code == 201
    asked = {"branch": "draft/eve"}
    problem(eve.post("/graphs/world/queries/paid", json=asked), 403, "forbidden")
    problem(eve.post("/graphs/world/queries", json={"query": PAID}), 403, "forbidden")
    merge = {"source": "draft/eve", "into": "main"}
    problem(eve.post("/graphs/world/merge", json=merge), 403, "forbidden")
    line = json.dumps({"type": "StoredQuery", "data": {"name": "paid", "text": PAID}})
    problem(eve.post("/graphs/world/load", content=line), 403, "forbidden")
    with omnigraph.connect(f"{served.url}/graphs/world", eve_token(eve)) as remote:
        with pytest.raises(NotAllowedError):
            remote.queries.put(PAID)
        with pytest.raises(NotAllowedError):
            remote.queries.run("paid", branch="draft/eve")
        # What main has is run by its name, as everybody may who may invoke it.
        found = remote.queries.run("salaries")
        assert isinstance(found, QueryResult)
        assert found.rows() == [{"s.of": "Ada"}]
    problem(ada.get("/graphs/world/queries/paid"), 404, "not_found")
    assert ada.post("/graphs/world/queries/paid", json=asked).json()["rows"] == [{"s.of": "Ada"}]


def eve_token(client):
    return client.headers["Authorization"].removeprefix("Bearer ")


def test_a_graph_of_which_nothing_may_be_done_does_not_exist(served, ada):
    """On every route of the document, and each method of a graph, before a body is looked at."""
    document = ada.get("/openapi.json").json()
    routes = [
        (method.upper(), path)
        for path, methods in document["paths"].items()
        for method in methods
        if "{graph}" in path
    ]
    routes += [("POST", f"/graphs/{{graph}}/calls/{name}") for name in OPERATIONS]
    routes.append(("POST", "/graphs/{graph}/mcp"))
    assert len(routes) > 100
    jobs, scratch = served.service.jobs, served.service.scratch
    before = [*jobs.list("world")], sorted(scratch.iterdir())
    text, _ = served.tokens().create("stranger")
    with served.client(text) as stranger:
        assert stranger.get("/graphs").json() == {"graphs": []}
        for method, path in routes:
            answers = []
            for name in ("world", "nothing"):
                place = re.sub(r"{\w+}", "1", path.replace("{graph}", name))
                for body in (b"", b"{}", b"x" * 300_000):
                    answer = stranger.request(method, place, content=body)
                    found = problem(answer, 404, "graph_not_found")
                    del found["request_id"]
                    answers.append(str(found).replace(name, "…"))
            assert len(set(answers)) == 1, (method, path, answers)
    assert ([*jobs.list("world")], sorted(scratch.iterdir())) == before


def test_who_may_only_load_can(served, ada):
    """A graph exists for who may write it and read nothing of it."""
    line = b'{"type": "Person", "data": {"name": "sensor"}}'
    with served.client(served.tokens().create("sensor")[0]) as sensor:
        problem(sensor.post("/graphs/world/load", content=line), 404, "graph_not_found")
        rules = served.service.settings.policy
        text = rules.read_text()
        more = 'permit(principal == Actor::"sensor", action == Action::"load", resource);'
        rules.write_text(f"{text}\n{more}\n")
        try:
            assert sensor.post("/graphs/world/load", content=line).status_code == 200
            problem(sensor.get("/graphs/world/schema"), 404, "branch_not_found")
            assert sensor.get("/graphs/world/branches").json()["branches"] == []
        finally:
            rules.write_text(text)
    assert ada.get("/graphs/world/entities/Person/sensor").status_code == 200


def test_rows_of_who_may_not_load_are_not_received(served, agent):
    """Refused before the body is read, so that nothing is kept, and no job is made."""
    headers = {"Prefer": "respond-async"}
    line = b'{"type": "Person", "data": {"name": "x"}}'
    problem(agent.post("/graphs/world/load", content=line, headers=headers), 403, "forbidden")
    # Longer than a body may be: that is not even noticed.
    large = b" " * (served.service.settings.limits.load_bytes + 1)
    problem(agent.post("/graphs/world/load", content=large), 403, "forbidden")
    assert [job for job in served.service.jobs.list("world") if job.actor == "agent"] == []
    assert list(served.service.scratch.iterdir()) == []


def test_an_actor_sees_its_own_jobs(ada, agent):
    headers = {"Prefer": "respond-async"}
    line = '{"type": "Person", "data": {"name": "job"}}'
    place = ada.post("/graphs/world/load", content=line, headers=headers).headers["location"]

    assert ada.get(place).status_code == 200
    problem(agent.get(place), 404, "not_found")
    problem(agent.post(f"{place}/cancel"), 404, "not_found")
    assert agent.get("/graphs/world/jobs").json() == {"jobs": [], "cursor": None}


def test_a_policy_that_changes_holds_from_the_next_request_on(served, agent):
    rules = served.service.settings.policy
    text = rules.read_text()
    query = {"query": "query q() { match { $p: Person } return { $p.name } }"}
    more = 'permit(principal, action == Action::"read", resource == Type::"Person");'
    problem(agent.post("/graphs/world/query", json=query), 403, "forbidden")
    rules.write_text(f"{text}\n{more}\n")
    assert agent.post("/graphs/world/query", json=query).status_code == 200
    # A policy that is not valid changes nothing.
    rules.write_text("permit(everything);")
    assert agent.post("/graphs/world/query", json=query).status_code == 200
    rules.write_text(text)
    problem(agent.post("/graphs/world/query", json=query), 403, "forbidden")
