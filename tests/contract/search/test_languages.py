"""Texts in other languages than English: by their own endings and stop words, indexed or not."""

import pytest

import omnigraph
from omnigraph.engine.local import indexed_texts
from omnigraph.errors import InvalidParameterError

SCHEMA = """
node Doc {
  name: String @key
  indexed: String @index(analyzer="german")
  english: String @index
}
"""
QUERY = "query q($q: String) { match { $d: Doc search($d.indexed, $q) } return { $d.name } }"
TEXTS = {
    "haus": "Das Haus in den Bergen",
    "haeuser": "Viele Häuser am See",
    "wald": "Der Wald und die Wälder",
}


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    graph = omnigraph.init(tmp_path_factory.mktemp("docs") / "graph", SCHEMA)
    rows = [{"name": name, "indexed": text, "english": text} for name, text in TEXTS.items()]
    graph.load({"Doc": rows}, engine="local")
    return graph


def found(graph, column, text):
    query = QUERY.replace("indexed", column)
    return {row["d.name"] for row in graph.query(query, {"q": text}).rows()}


def test_endings_of_the_language_are_removed(graph):
    assert found(graph, "indexed", "Häusern") == {"haus", "haeuser"}
    assert found(graph, "english", "Häusern") == set()


def test_stop_words_are_those_of_the_language(graph):
    with pytest.raises(InvalidParameterError, match=r"no word that could be found in Doc\.indexed"):
        found(graph, "indexed", "der die das")
    assert found(graph, "english", "der die das") == {"haus", "wald"}


def test_an_index_of_a_language_answers(graph, monkeypatch):
    monkeypatch.setattr(indexed_texts, "INDEXED_TEXT_ROWS_MIN", 0)
    assert "analyzer german, exact, by its index" in str(graph.explain(QUERY, {"q": "Haus"}))
