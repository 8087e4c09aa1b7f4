"""Conflicts over HTTP: 409, the code `conflict`, and what exactly was in the way."""

from contextlib import contextmanager

import pytest

import omnigraph
from omnigraph.choices import TableKind
from omnigraph.errors import ErrorCode, TableConflictError
from omnigraph.failpoints import Failpoint, arm
from omnigraph.model.names import TypeName
from omnigraph.model.tables import TableKey
from tests.contract.server.test_http import ADD, mutate, problem

PERSON = TableKey(TableKind.NODE, TypeName("Person"))
BOB = {"Person": [{"name": "Bob", "age": 1}]}


@contextmanager
def overtaken(graph):
    """Let somebody else insert the same row between the plan of the first write and its claim."""
    todo = [BOB]

    def land():
        if todo:
            graph.load(todo.pop(), index=False)

    with arm(Failpoint.WRITE_AFTER_PLAN, land):
        yield
    graph.mutate('query q() { delete Person where name = "Bob" }')


def version(graph):
    return graph.snapshot().pin(PERSON).version


def test_lost_race_names_the_table_and_its_versions(client, graph):
    expected = version(graph)
    with overtaken(graph):
        answer = mutate(client, ADD, {"n": "Bob"})
        actual = version(graph)

    found = problem(answer, 409, "conflict")
    assert found["cause"] == "expected_version_mismatch"
    assert found["error"] == found["detail"]
    assert found["retryable"] is True
    assert found["manifest_conflict"] == {
        "table_key": "node:Person",
        "expected": expected,
        "actual": actual,
    }


def test_lost_race_raises_the_same_error_remotely(served, graph):
    with (
        overtaken(graph),
        omnigraph.connect(f"{served.url}/graphs/world", served.token) as world,
        pytest.raises(TableConflictError) as lost,
    ):
        world.mutate(ADD, {"n": "Bob"})
    assert lost.value.code is ErrorCode.EXPECTED_VERSION_MISMATCH
    assert lost.value.details["table_key"] == "node:Person"


def test_conflicts_of_a_merge_have_the_code_of_a_conflict(client, graph):
    graph.branches.create("rival")
    older = 'query q($a: I64) { update Person set { age: $a } where name = "Ada" }'
    graph.mutate(older, {"a": 1})
    graph.mutate(older, {"a": 2}, branch="rival")
    merge = {"source": "rival", "into": "main"}
    found = problem(client.post("/graphs/world/merge", json=merge), 409, "conflict")
    assert (found["cause"], found["conflict_count"]) == ("merge_conflicts", 1)
    assert [each["property"] for each in found["merge_conflicts"]] == ["age"]


def test_what_is_taken_and_what_is_stale_are_no_conflicts(client, graph):
    if "taken" not in graph.branches.list():
        graph.branches.create("taken")
    taken = client.post("/graphs/world/branches", json={"name": "taken"})
    assert problem(taken, 409, "branch_exists")["cause"] == "branch_exists"
    stale = mutate(client, ADD, {"n": "late"}, headers={"If-Match": '"01M7GC5A9QKCZHY9Q1JZB0D5T1"'})
    assert problem(stale, 412, "stale_head")["cause"] == "stale_head"


def test_violations_are_a_member_of_the_problem(client):
    wrong = b'{"type": "Person", "data": {"name": "Wrong", "age": "old"}}'
    found = problem(client.post("/graphs/world/load", content=wrong), 422, "integrity")
    [violation] = found["violations"]
    assert (violation["rule"], violation["type"], violation["properties"]) == (
        "type",
        "Person",
        ["age"],
    )


def test_document_declares_what_a_problem_has(client):
    schemas = client.get("/openapi.json").json()["components"]["schemas"]
    declared = schemas["Problem"]
    assert {"error", "code", "cause", "retryable"} <= set(declared["required"])
    optional = {"manifest_conflict", "merge_conflicts", "violations"}
    assert optional <= set(declared["properties"]) - set(declared["required"])
    assert set(schemas["ManifestConflict"]["properties"]) == {"table_key", "expected", "actual"}
