"""A search sees exactly the rows of its commit: after changes, on branches, and in the past."""

from pathlib import Path
from typing import Any

import pytest

from omnigraph.choices import Analyzer
from omnigraph.graph import Graph, init
from tests.oracle.searches import relevance
from tests.support.graphs import add_rows

SCHEMA = "node Doc { name: String @key  body: String? @index }"
RANK = """query q($q: String) {
  match { $d: Doc } return { $d.name bm25($d.body, $q) as score } order { score }
}"""
FIND = """query q($q: String) {
  match { $d: Doc fuzzy($d.body, $q, 1) } return { $d.name }
}"""
QUERY = "graph lakes"

Docs = dict[str, str | None]


def expected(docs: Docs) -> list[tuple[str, Any]]:
    scores: dict[str, Any] = {
        name: relevance(Analyzer.ENGLISH, docs.values(), body, QUERY) for name, body in docs.items()
    }
    return sorted(scores.items(), key=lambda pair: (pair[1] is None, -(pair[1] or 0), pair[0]))


def assert_finds(graph: Graph, docs: Docs, **where: Any) -> None:
    rows = [tuple(row.values()) for row in graph.query(RANK, {"q": QUERY}, **where).rows()]
    wanted = expected(docs)
    assert [name for name, _ in rows] == [name for name, _ in wanted]
    assert [score for _, score in rows] == pytest.approx([score for _, score in wanted])
    found = [row["d.name"] for row in graph.query(FIND, {"q": "grapx"}, **where).rows()]
    assert found == sorted(name for name, body in docs.items() if "graph" in (body or ""))


def change(graph: Graph, text: str, branch: str = "main") -> str:
    commit = graph.mutate(f"query q() {{ {text} }}", branch=branch).commit_id
    assert commit is not None
    return str(commit)


@pytest.mark.parametrize("indexed", [False, True], ids=["plain", "indexed"])
def test_a_search_sees_the_rows_of_its_commit_and_no_others(tmp_path: Path, *, indexed: bool):
    graph = init(tmp_path / "graph.omni", SCHEMA)
    docs: Docs = {
        "a": "graph of lakes",
        "b": "a graph and a graph",
        "c": "lake houses",
        "d": None,
        "e": "nothing of the kind",
    }
    first = add_rows(graph, {"Doc": [{"name": name, "body": body} for name, body in docs.items()]})
    if indexed:
        graph.ensure_indices()
    past: dict[str, Docs] = {first: dict(docs)}
    assert_finds(graph, docs)

    docs["c"] = "a graph, a lake and a graph"
    past[change(graph, f'update Doc set {{ body: "{docs["c"]}" }} where name = "c"')] = dict(docs)
    assert_finds(graph, docs)
    docs.pop("b")
    past[change(graph, 'delete Doc where name = "b"')] = dict(docs)
    assert_finds(graph, docs)
    docs["f"] = "lakes, lakes and lakes"
    past[change(graph, f'insert Doc {{ name: "f" body: "{docs["f"]}" }}')] = dict(docs)
    assert_finds(graph, docs)

    graph.branches.create("side")
    branched = {**docs, "a": "another word"}
    change(graph, 'update Doc set { body: "another word" } where name = "a"', branch="side")
    assert_finds(graph, branched, branch="side")
    graph.optimize()
    if indexed:
        graph.ensure_indices()
    assert_finds(graph, docs)
    assert_finds(graph, branched, branch="side")
    for commit, before in past.items():
        assert_finds(graph, before, commit=commit)
