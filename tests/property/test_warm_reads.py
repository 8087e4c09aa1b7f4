"""A handle that keeps what it read sees what a handle sees that has read nothing."""

import tempfile
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings

import omnigraph
from omnigraph.graph import Graph
from omnigraph.storage.pieces import Piece

SCHEMA = """
node Person { name: String @key  age: I32?  tags: [String]? }
edge Knows: Person -> Person { since: I32? }
"""
MORE = SCHEMA.replace("age: I32?", "age: I32?  note: String?")
QUERIES = {
    "people": "query q() { match { $p: Person } return { $p.name, $p.age, $p.tags } }",
    "young": "query q() { match { $p: Person  $p.age < 3 } return { $p.name } }",
    "none": "query q() { match { $p: Person  $p.age is null } return { $p.name } }",
    "friends": """query q() {
        match { $p: Person  $p knows $q } return { $p.name, $q.name, $q.age }
        order { $p.name, $q.name }
    }""",
    "of one": """query q() {
        match { $p: Person {name: "a"}  $p knows $q } return { $q.name, $q.age } order { $q.name }
    }""",
    "one": 'query q() { match { $p: Person {name: "b"} } return { $p.age, $p.tags } }',
}
NAMES = "abcdef"
name = st.sampled_from(NAMES)
age = st.one_of(st.none(), st.integers(0, 5))
place = st.sampled_from(["main", "draft"])
who = st.sampled_from(["warm", "other"])
step = st.one_of(
    st.tuples(st.just("load"), who, place, st.lists(st.tuples(name, age), min_size=1, max_size=4)),
    st.tuples(st.just("update"), who, place, st.tuples(name, age)),
    st.tuples(st.just("delete"), who, place, name),
    st.tuples(st.just("know"), who, place, st.tuples(name, name)),
    st.tuples(st.just("forget"), who, place, name),
    st.tuples(st.just("optimize"), who, place, st.none()),
    st.tuples(st.just("index"), who, place, st.none()),
    st.tuples(st.just("schema"), who, place, st.none()),
)


def carry_out(graph: Graph, kind: str, branch: str, what: Any) -> None:
    there = graph.at(branch=branch)
    people = {row["p.name"] for row in there.query(QUERIES["people"]).rows()}
    match kind:
        case "load":
            rows = {name: {"name": name, "age": age, "tags": [name] * 2} for name, age in what}
            there.load({"Person": [*rows.values()]}, mode="merge", index=False)
        case "update":
            text = "query q($n: String, $a: I32?) { update Person set { age: $a } where name = $n }"
            there.mutate(text, {"n": what[0], "a": what[1]})
        case "delete":
            there.mutate("query q($n: String) { delete Person where name = $n }", {"n": what})
        case "know" if set(what) <= people:
            text = "query q($a: String, $b: String) { insert Knows { from: $a, to: $b } }"
            there.mutate(text, {"a": what[0], "b": what[1]})
        case "forget":
            there.mutate("query q($n: String) { delete Knows where from = $n }", {"n": what})
        case "optimize":
            there.optimize()
        case "index":
            there.ensure_indices()
        case "schema":
            there.schema.apply(MORE)
        case _:
            # An edge has no ends here.
            return


def seen(graph: Graph, branch: str) -> dict[str, list[dict[str, Any]]]:
    there = graph.at(branch=branch)
    return {name: there.query(query).rows() for name, query in QUERIES.items()}


@settings(
    max_examples=8, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
@given(steps=st.lists(step, min_size=3, max_size=12))
def test_a_warm_handle_sees_what_a_fresh_one_sees(
    steps: list[tuple[str, str, str, Any]],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        warm = omnigraph.init(f"{folder}/graph.omni", SCHEMA)
        warm.settings.set("maintenance.optimize", "off")
        warm.branches.create("draft")
        for kind, writer, branch, what in steps:
            graph = warm if writer == "warm" else omnigraph.open(warm.uri)
            carry_out(graph, kind, branch, what)
            for branch_ in ("main", "draft"):
                fresh = omnigraph.open(warm.uri, read_only=True)
                assert seen(warm, branch_) == seen(fresh, branch_)
        for commit in warm.commits.list():
            fresh = omnigraph.open(warm.uri, read_only=True)
            now, then = (
                each.at(commit=commit.commit_id).query(QUERIES["people"]).rows()
                for each in (warm, fresh)
            )
            assert now == then


def test_a_difference_would_be_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    warm = omnigraph.init(tmp_path / "graph.omni", SCHEMA)
    people = [{"name": name, "age": 1, "tags": []} for name in NAMES]
    warm.load({"Person": people}, index=False)
    fresh = omnigraph.open(warm.uri, read_only=True)
    assert seen(warm, "main") == seen(fresh, "main")
    # Deletions are forgotten.
    monkeypatch.setattr(Piece, "without", lambda piece, *_, **__: piece.values)
    carry_out(omnigraph.open(warm.uri), "delete", "main", "b")
    fresh = omnigraph.open(warm.uri, read_only=True)
    # Queries along edges fail then: there are more ids than row ids.
    assert warm.query(QUERIES["people"]).rows() != fresh.query(QUERIES["people"]).rows()
