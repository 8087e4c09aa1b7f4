"""`nearest` with texts, on both engines: current rows only, and what is skipped is said."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.errors import (
    DiagnosticsError,
    EmbeddingError,
    ErrorCode,
    InvalidInputError,
    InvalidParameterError,
)
from tests.support.embedding_server import EmbeddingServer, embedding_server

SCHEMA = """
node Doc {
  slug: String @key
  body: String?
  plain: Vector(3)?
  vector: Vector(256) @embed("body")
}
"""
TEXTS = {
    "dog": "the puppy is barking at the mailman",
    "tax": "quarterly tax report for the finance department",
    "soup": "a recipe for tomato soup with basil",
    "cat": "a kitten sleeps on the sofa",
}
FIND = """query find($q: String) {
  match { $d: Doc } return { $d.slug nearest($d.vector, $q) as distance }
  order { nearest($d.vector, $q) } limit 10 }"""

engines = pytest.mark.parametrize("engine", ["local", "spark"])


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    graph = omnigraph.init(tmp_path / "graph.omni", schema=SCHEMA)
    graph.load({"Doc": [{"slug": slug, "body": body} for slug, body in TEXTS.items()]})
    return graph


def find(graph: Graph, text: str | None, **more) -> list[str]:
    return [row["d.slug"] for row in graph.query(FIND, {"q": text}, **more).rows()]


@engines
def test_a_text_finds_what_is_near_to_it(graph, engine):
    assert find(graph, "a dog that barks", engine=engine)[0] == "dog"
    assert find(graph, "money and accounting", engine=engine)[0] == "tax"
    assert find(graph, "cooking vegetables", engine=engine)[0] == "soup"
    literal = FIND.replace("$q: String", "").replace("$q", '"a dog that barks"')
    assert graph.query(literal, engine=engine).rows()[0]["d.slug"] == "dog"


@engines
def test_stale_and_pending_rows_have_no_distance_and_are_counted(graph, engine):
    graph.mutate('query q() { insert Doc { slug: "new" body: "a dog barks" } }', embed="later")
    edit = 'query q() { update Doc set { body: "a dog that barks" } where slug = "tax" }'
    graph.mutate(edit, embed="later")
    result = graph.query(FIND, {"q": "a dog that barks"}, engine=engine)
    rows = {row["d.slug"]: row["distance"] for row in result.rows()}
    assert (rows["new"], rows["tax"]) == (None, None)
    assert result.rows()[0]["d.slug"] == "dog"
    [note] = result.notes
    assert "2 rows of Doc.vector (1 stale, 1 pending)" in note
    graph.embeddings.run()
    again = graph.query(FIND, {"q": "a dog that barks"}, engine=engine)
    assert again.rows()[0]["d.slug"] == "tax"
    assert again.notes == ()


def test_an_old_commit_is_searched_as_it_was(graph):
    before = graph.commits.list()[0].commit_id
    graph.mutate('query q() { update Doc set { body: "a dog barks" } where slug = "tax" }')
    assert find(graph, "finance and tax", commit=before)[0] == "tax"
    assert find(graph, "finance and tax")[0] != "tax"


@engines
def test_after_a_change_of_the_model_texts_are_refused_by_name_unless_it_is_named(graph, engine):
    graph.schema.apply(SCHEMA.replace('@embed("body")', '@embed("body", model="mock")'))
    with pytest.raises(InvalidInputError, match=r"made by local, and none by mock") as refused:
        find(graph, "a dog that barks", engine=engine)
    assert refused.value.code is ErrorCode.EMBEDDING_MODEL
    assert "--embedding-model local" in refused.value.hint
    assert find(graph, "a dog that barks", engine=engine, embedding_model="local")[0] == "dog"
    graph.embeddings.run()
    assert len(find(graph, "a dog that barks", engine=engine)) == 4
    with pytest.raises(InvalidInputError, match="made by mock, and none by local"):
        find(graph, "a dog that barks", engine=engine, embedding_model="local")


def test_bad_texts_are_refused(graph):
    for text in ("", "  \n"):
        with pytest.raises(InvalidParameterError, match=r"\$q: the search text is empty"):
            find(graph, text)
    with pytest.raises(InvalidParameterError, match="bytes"):
        find(graph, "x" * (1 << 20))


def test_a_null_text_is_near_to_nothing(graph):
    rows = graph.query(FIND.replace("String)", "String?)"), {"q": None}).rows()
    assert {row["distance"] for row in rows} == {None}


def test_a_vector_without_a_model_takes_no_text(graph):
    with pytest.raises(DiagnosticsError, match="plain has no @embed"):
        graph.query(FIND.replace("d.vector", "d.plain"), {"q": "x"})


def test_hybrid_search_takes_one_text_for_both(graph):
    query = """query q($q: String) { match { $d: Doc } return { $d.slug }
      order { rrf(nearest($d.vector, $q), bm25($d.body, $q)) } limit 2 }"""
    assert graph.query(query, {"q": "tomato soup"}).rows()[0]["d.slug"] == "soup"


def test_explain_asks_no_provider_and_a_query_asks_once(tmp_path, server):
    remote = SCHEMA.replace('"body")', '"body", model="openai:text-embedding-3-small")')
    graph = omnigraph.init(tmp_path / "graph.omni", schema=remote)
    graph.settings.set("embedding.openai_url", server.url)
    graph.load({"Doc": [{"slug": slug, "body": body} for slug, body in TEXTS.items()]})
    server.texts.clear()
    assert "nearest" in str(graph.explain(FIND, {"q": "a dog"}))
    assert server.texts == {}
    find(graph, "a dog")
    find(graph, "a dog")
    assert server.texts == {"a dog": 1}
    server.faults = [400]
    with pytest.raises(EmbeddingError):
        find(graph, "a cat")


@pytest.fixture
def server(monkeypatch) -> Iterator[EmbeddingServer]:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-x")
    with embedding_server() as state:
        yield state
