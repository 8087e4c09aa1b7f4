"""Inserts beside a concurrent write: a row that somebody was told had landed is never replaced."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.errors import ErrorCode, TableConflictError
from omnigraph.failpoints import Failpoint, arm

SCHEMA = """
node City { name: String @key  people: I64? }
edge Twin: City -> City { @key(src, dst)  since: I64? }
"""
OSLO = 'query q() { insert City { name: "Oslo" } }'
OSLO_WITH_PEOPLE = 'query q() { insert City { name: "Oslo", people: 700000 } }'
ROME = 'query q() { insert City { name: "Rome" } }'


@pytest.fixture
def uri(tmp_path: Path) -> str:
    uri = str(tmp_path / "world.omni")
    omnigraph.init(uri, SCHEMA)
    return uri


@pytest.fixture(params=["fresh handle", "handle that wrote before"])
def writer(request: pytest.FixtureRequest, uri: str) -> omnigraph.Graph:
    graph = omnigraph.open(uri)
    if request.param != "fresh handle":
        graph.mutate('query q() { insert City { name: "Bonn" } }')
    return graph


def after_the_plan(write: Callable[[], Any]) -> AbstractContextManager[None]:
    """Let another writer land once the first write has been planned."""
    todo = [write]

    def land() -> None:
        if todo:
            todo.pop()()

    return arm(Failpoint.WRITE_AFTER_PLAN, land)


def people(uri: str) -> dict[str, int | None]:
    rows = omnigraph.open(uri).query(
        "query q() { match { $c: City } return { $c.name, $c.people } }"
    )
    return {row["c.name"]: row["c.people"] for row in rows.rows()}


def test_insert_keeps_a_row_that_landed_meanwhile(uri, writer):
    other = omnigraph.open(uri)
    with (
        after_the_plan(lambda: other.mutate(OSLO_WITH_PEOPLE)),
        pytest.raises(TableConflictError) as caught,
    ):
        writer.mutate(OSLO)
    assert caught.value.code is ErrorCode.EXPECTED_VERSION_MISMATCH
    assert caught.value.details["table_key"] == "node:City"
    expected, actual = (int(str(caught.value.details[name])) for name in ("expected", "actual"))
    assert actual == expected + 1
    assert people(uri)["Oslo"] == 700000
    # To insert again, knowing the row, is to replace it.
    writer.mutate(OSLO)
    assert people(uri)["Oslo"] is None


def test_insert_that_replaces_a_row_keeps_a_concurrent_change_of_it(uri, writer):
    other = omnigraph.open(uri)
    other.mutate(OSLO)
    update = 'query q() { update City set { people: 700000 } where name = "Oslo" }'
    with after_the_plan(lambda: other.mutate(update)), pytest.raises(TableConflictError):
        writer.mutate('query q() { insert City { name: "Oslo", people: 1 } }')
    assert people(uri)["Oslo"] == 700000


def test_insert_of_an_edge_keeps_one_that_landed_meanwhile(uri, writer):
    other = omnigraph.open(uri)
    other.mutate(f'{OSLO[:-1]} insert City {{ name: "Rome" }} }}')
    bare = 'query q() { insert Twin { from: "Oslo", to: "Rome" } }'
    dated = 'query q() { insert Twin { from: "Oslo", to: "Rome", since: 1988 } }'
    with after_the_plan(lambda: other.mutate(dated)), pytest.raises(TableConflictError):
        writer.mutate(bare)
    text = "query q() { match { $a: City $b: City $a $t:twin $b } return { $t.since } }"
    assert other.query(text).rows() == [{"t.since": 1988}]


def test_inserts_of_different_rows_both_land(uri, writer):
    other = omnigraph.open(uri)
    with after_the_plan(lambda: other.mutate(ROME)):
        assert writer.mutate(OSLO).inserted == 1
    assert {"Oslo", "Rome"} <= people(uri).keys()


def test_insert_replaces_a_row_that_landed_before_the_call(uri, writer):
    omnigraph.open(uri).mutate(OSLO_WITH_PEOPLE)
    assert writer.mutate(OSLO).updated == 1
    assert people(uri)["Oslo"] is None


def test_insert_is_repeated_after_maintenance(uri, writer):
    other = omnigraph.open(uri)
    other.mutate(OSLO_WITH_PEOPLE)
    other.mutate(ROME)
    with after_the_plan(other.optimize):
        assert writer.mutate(OSLO).updated == 1
