"""`@embed` without a model on a vector of another dimension: vectors come with the data."""

import pytest

import omnigraph
from omnigraph import DiagnosticsError
from omnigraph.schema.parser import read_schema

SCHEMA = """node Chunk {
  slug: String @key
  text: String
  embedding: Vector(3072) @embed("text") @index
}
"""
WITH_MODEL = SCHEMA.replace('@embed("text")', '@embed("text", model="mock")')
VECTOR = [1.0, *[0.0] * 3071]
NEAR = """query near($v: Vector(3072)) {
  match { $c: Chunk }
  return { $c.slug }
  order { nearest($c.embedding, $v) }
  limit 1
}"""


@pytest.fixture
def graph(tmp_path):
    made = omnigraph.init(tmp_path / "graph.omni", SCHEMA)
    made.load({"Chunk": [{"slug": "a", "text": "one", "embedding": VECTOR}]})
    return made


def test_schema_of_a_cookbook_is_accepted_with_a_warning():
    [warning] = read_schema(SCHEMA, "schema.pg").diagnostics
    assert warning.code == "S102"
    assert "local makes vectors of 64, 128 or 256 dimensions" in warning.message


def test_rows_with_vectors_are_stored_as_they_are(graph):
    assert graph.query(NEAR, {"v": VECTOR}).rows() == [{"c.slug": "a"}]
    assert graph.embeddings.status() == ()
    assert graph.check().is_sound


def test_nothing_is_embedded_without_a_model(graph):
    graph.mutate('query q() { update Chunk set { text: "two" } where slug = "a" }', embed="now")
    assert graph.query(NEAR, {"v": VECTOR}).rows() == [{"c.slug": "a"}]
    assert graph.embeddings.run().embedded == {}


def test_row_without_a_vector_is_refused_as_any_row_without_a_required_value(graph):
    with pytest.raises(omnigraph.OmnigraphError, match="embedding"):
        graph.load({"Chunk": [{"slug": "b", "text": "two"}]}, mode="append")


def test_search_for_a_text_is_refused_and_says_why(graph):
    text = NEAR.replace("$v: Vector(3072)", "$v: String")
    with pytest.raises(DiagnosticsError, match="no model"):
        graph.query(text, {"v": "one"})


def test_model_named_later_makes_the_vectors(graph):
    graph.schema.apply(WITH_MODEL)
    graph.load({"Chunk": [{"slug": "b", "text": "two"}]}, mode="append", embed="now")
    [status] = graph.embeddings.status()
    assert (status.type_name, status.model, status.current) == ("Chunk", "mock", 1)
    assert graph.check().is_sound


def test_model_of_another_dimension_is_refused():
    wrong = SCHEMA.replace('@embed("text")', '@embed("text", model="local")')
    diagnostics = read_schema(wrong, "schema.pg").diagnostics
    assert [each.code for each in diagnostics] == ["S023"]
