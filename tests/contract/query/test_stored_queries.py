"""Stored queries: rows of the graph that are run by name, with its history and its rules."""

from pathlib import Path
from typing import Final

import pytest

import omnigraph
from omnigraph.engine.query_results import QueryResult
from omnigraph.errors import (
    AlreadyExistsError,
    DiagnosticsError,
    InvalidInputError,
    NotAllowedError,
    NotFoundError,
)
from omnigraph.graph import Graph
from tests.support.facade_graph import SCHEMA

ALL: Final = "query everybody() { match { $p: Person } return { $p.name } order { $p.name } }"
BOTH: Final = f"""
query aged($age: I32) @description("of an age") @instruction("a number")
{{ match {{ $p: Person $p.age = $age }} return {{ $p.name }} }}
query add($name: String) {{ insert Person {{ name: $name }} }}
{ALL}
"""


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    made = omnigraph.init(tmp_path / "world.omni", SCHEMA)
    made.mutate('query q() { insert Person { name: "ada" age: 36 } }')
    return made


def names(graph: Graph, commit: str | None = None) -> list[str]:
    return [query.name for query in graph.queries.list(commit=commit)]


def test_queries_are_stored_in_one_commit_and_run_by_name(graph):
    assert graph.queries.list() == ()
    graph.queries.put(ALL)
    before = graph.commits.list()
    stored = graph.queries.put(BOTH, message="three")

    assert len(graph.commits.list()) == len(before) + 1
    assert [(query.name, query.changes) for query in stored] == [
        ("aged", False),
        ("add", True),
        ("everybody", False),
    ]
    aged = graph.queries.show("aged")
    assert (aged.description, aged.instruction) == ("of an age", "a number")
    assert [(each.name, each.type, each.nullable) for each in aged.parameters] == [
        ("age", "I32", False)
    ]
    assert graph.queries.run("add", {"name": "bob"}, actor="ann").commit_id is not None
    assert graph.commits.list(limit=1)[0].actor == "ann"
    assert graph.queries.run("everybody").rows() == [{"p.name": "ada"}, {"p.name": "bob"}]
    assert graph.queries.run("aged", {"age": 36}).rows() == [{"p.name": "ada"}]


def test_one_query_is_stored_as_it_was_written(graph):
    text = f"// everybody, by name\n{ALL}"
    graph.queries.put(text)
    assert graph.queries.show("everybody").text == f"{text}\n"


def test_branches_have_their_own_and_merges_bring_them_along(graph):
    draft = graph.branches.create("draft")
    draft.queries.put(ALL)
    graph.queries.put("query count() { match { $p: Person } return { count($p) as n } }")
    earlier = graph.commits.list(limit=1)[0].commit_id

    assert (names(graph), names(draft)) == (["count"], ["everybody"])
    graph.merge("draft")
    assert names(graph) == ["count", "everybody"]
    assert names(graph, commit=earlier) == ["count"]
    changes = graph.diff(earlier, "main")
    assert {name: counts.inserted for name, counts in changes.counts.items()} == {"StoredQuery": 1}


def test_a_schema_without_the_type_keeps_it(graph):
    graph.queries.put(ALL)
    graph.schema.apply(f"{SCHEMA} node Country {{ name: String @key }}")

    assert names(graph) == ["everybody"]
    assert graph.schema.apply(f"{SCHEMA} node Country {{ name: String @key }}").commit_id is None


def test_a_plan_warns_of_queries_that_would_break(graph):
    graph.queries.put(BOTH)
    changed = SCHEMA.replace("age: I32?", 'years: I32? @rename_from("age")')
    plan = graph.schema.plan(changed)
    assert [(each.code, each.message) for each in plan.warnings] == [
        ("OG-WN-04", "the stored query aged: Person has no property age")
    ]

    graph.schema.apply(changed)
    broken = graph.queries.show("aged")
    assert (broken.fault, broken.changes) == ("Person has no property age", None)
    with pytest.raises(InvalidInputError, match="aged does not fit the schema any more"):
        graph.queries.run("aged", {"age": 3})
    assert "OG-WN-04" not in [finding.code for finding in graph.schema.plan(changed).warnings]


@pytest.mark.parametrize(
    ("call", "error", "fault"),
    [
        (lambda g: g.queries.put("query q() {"), DiagnosticsError, "error"),
        (
            lambda g: g.queries.put("query q() { match { $p: Nobody } return { $p } }"),
            DiagnosticsError,
            "error",
        ),
        (lambda g: g.queries.put(""), InvalidInputError, "no query"),
        (lambda g: g.queries.run("nothing"), NotFoundError, "main stores no query 'nothing'"),
        (lambda g: g.queries.delete("nothing"), NotFoundError, "stores no query"),
        (lambda g: g.queries.run("aged", {}), InvalidInputError, "age"),
        (lambda g: g.queries.run("add", {"name": "x"}, version=4), InvalidInputError, "past"),
    ],
)
def test_bad_input_is_refused(graph, call, error, fault):
    graph.queries.put(BOTH)
    before = graph.commits.list()
    with pytest.raises(error, match=fault):
        call(graph)
    assert graph.commits.list() == before


def test_a_type_of_that_name_is_not_taken_over(tmp_path):
    graph = omnigraph.init(tmp_path / "g.omni", "node StoredQuery { name: String @key n: I64? }")
    with pytest.raises(AlreadyExistsError, match="a type StoredQuery that cannot store queries"):
        graph.queries.put("query q() { match { $p: StoredQuery } return { $p.name } }")


def test_a_row_that_was_written_by_hand_is_listed_with_its_fault(graph):
    graph.queries.put(ALL)
    graph.mutate(
        'query q($t: String) { insert StoredQuery { name: "other" text: $t } }',
        {"t": ALL},
    )
    assert [(query.name, query.fault) for query in graph.queries.list()] == [
        ("everybody", None),
        ("other", 'the text has no query "other"'),
    ]


def test_deleting_one_leaves_the_past(graph):
    graph.queries.put(ALL)
    earlier = graph.commits.list(limit=1)[0].commit_id
    graph.queries.delete("everybody")
    assert (names(graph), names(graph, commit=earlier)) == ([], ["everybody"])


def test_who_may_invoke_a_query_need_not_read_its_types(graph: Graph, tmp_path):
    graph.queries.put(BOTH)
    (tmp_path / "rules.cedar").write_text(
        'permit(principal == Actor::"agent", action == Action::"read", resource == Branch::"main");'
        'permit(principal == Actor::"agent", action == Action::"invoke", resource is Query)'
        ' when { resource.name == "aged" || resource.name == "add" };'
    )
    agent = omnigraph.open(graph.uri, actor="agent", policy=tmp_path / "rules.cedar")

    assert names(agent) == ["add", "aged"]
    result = agent.queries.run("aged", {"age": 36})
    assert isinstance(result, QueryResult)
    assert result.rows() == [{"p.name": "ada"}]
    with pytest.raises(NotFoundError, match="stores no query 'everybody'"):
        agent.queries.run("everybody")
    with pytest.raises(NotAllowedError, match="agent cannot read type Person"):
        agent.query(ALL)
    with pytest.raises(NotAllowedError, match="agent cannot mutate branch main"):
        agent.queries.run("add", {"name": "x"})
    with pytest.raises(NotAllowedError, match="permission denied"):
        agent.queries.put(ALL)
