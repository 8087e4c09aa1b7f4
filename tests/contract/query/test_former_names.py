"""Queries with names that the schema has no more say what became of them."""

from pathlib import Path

import pytest

import omnigraph
from omnigraph.errors import DiagnosticsError
from omnigraph.graph import Graph

BEFORE = """
node Person { name: String @key  mail: String?  age: I32? }
node Draft { title: String @key }
edge Knows: Person -> Person { since: I32? }
"""
AFTER = """
node Human @rename_from("Person") { name: String @key  address: String? @rename_from("mail") }
edge Meets: Human -> Human @rename_from("Knows") { from_year: I32? @rename_from("since") }
"""


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    graph = omnigraph.init(tmp_path_factory.mktemp("former") / "graph.omni", BEFORE)
    graph.load({"Person": [{"name": "ada", "mail": "a@b"}]}, index=False)
    graph.schema.apply(AFTER)
    return graph


READS = {
    "match { $p: Person } return { $p.name }": "it is called Human now",
    "match { $p: Human } return { $p.mail }": "it is called address now",
    'match { $p: Human { mail: "x" } } return { $p.name }': "it is called address now",
    "match { $p: Human } return { $p.age }": "it was dropped",
    "match { $d: Draft } return { $d.title }": "it was dropped",
    "match { $p: Human  $p knows $q } return { $q.name }": "it is called meets now",
    "match { $p: Human  $p $e:meets $q } return { $e.since }": "it is called from_year now",
    "match { $p: Humn } return { $p.name }": "did you mean Human?",
}


@pytest.mark.parametrize("body", READS)
def test_a_query_with_a_former_name_says_what_it_is_called_now(graph, body):
    with pytest.raises(DiagnosticsError) as refused:
        graph.query(f"query q() {{ {body} }}")
    assert READS[body] in [diagnostic.hint for diagnostic in refused.value.diagnostics]


def test_a_mutation_and_an_explanation_say_it_too(graph):
    with pytest.raises(DiagnosticsError, match="it is called address now"):
        graph.mutate('query q() { update Human set { mail: "x" } where name = "ada" }')
    with pytest.raises(DiagnosticsError, match="it is called Human now"):
        graph.explain("query q() { match { $p: Person } return { $p.name } }")


def test_a_name_that_was_taken_again_is_that_of_the_new_property(tmp_path: Path) -> None:
    graph = omnigraph.init(tmp_path / "g.omni", "node P { name: String @key  a: String? }")
    graph.schema.apply('node P { name: String @key  b: String? @rename_from("a") }')
    graph.schema.apply("node P { name: String @key  b: String?  a: I32? }")
    assert graph.query("query q() { match { $p: P } return { $p.a } }").rows() == []
    graph.schema.apply("node P { name: String @key  b: String? }")
    with pytest.raises(DiagnosticsError, match="it is called b now"):
        graph.query("query q() { match { $p: P } return { $p.a } }")


def test_old_commits_know_their_own_names(graph):
    first = graph.commits.list()[-2].commit_id
    query = "query q() { match { $p: Person } return { $p.mail } }"
    assert graph.query(query, commit=first).rows() == [{"p.mail": "a@b"}]
