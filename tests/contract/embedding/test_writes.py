"""Vectors that follow their texts: mutations, loads and merges, with notes of what each is of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.embedding.notes import note_of
from omnigraph.embedding.providers.mock import MockProvider
from omnigraph.embedding.texts import digest_of
from omnigraph.errors import EmbeddingError
from tests.support.embedding_server import EmbeddingServer, embedding_server

SCHEMA = """
node Doc {
  slug: String @key
  title: String?
  body: String?
  stars: I64?
  vector: Vector(8) @embed("title", "body", model="mock")
}
"""
REMOTE = SCHEMA.replace('model="mock"', 'model="openai:text-embedding-3-small"')

ADD = """query add($slug: String, $body: String?, $title: String?) {
  insert Doc { slug: $slug body: $body title: $title } }"""
EDIT = """query edit($slug: String, $body: String) {
  update Doc set { body: $body } where slug = $slug }"""
TITLE = """query t($slug: String, $title: String) {
  update Doc set { title: $title } where slug = $slug }"""
STAR = "query star($slug: String) { update Doc set { stars: 5 } where slug = $slug }"


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return omnigraph.init(tmp_path / "graph.omni", schema=SCHEMA)


def row(graph: Graph, slug: str) -> dict[str, Any]:
    query = """query q($slug: String) { match { $d: Doc { slug: $slug } }
      return { $d.body $d.title $d.stars $d.vector $d.vector_embedded } }"""
    [found] = graph.query(query, {"slug": slug}).rows()
    return {name.removeprefix("d."): value for name, value in found.items()}


def is_of(found: dict[str, Any], text: str) -> bool:
    """Whether a row has the vector of this text, and says so."""
    expected = MockProvider("mock").embed([text], 8)[0]
    return found["vector_embedded"] == note_of("mock", digest_of(text)) and bool(
        np.allclose(found["vector"], expected, atol=1e-6)
    )


def add(graph: Graph, slug: str, body: str | None = None, title: str | None = None, **more):
    return graph.mutate(ADD, {"slug": slug, "body": body, "title": title}, **more)


def test_an_insert_embeds_its_texts_in_order(graph):
    result = add(graph, "a", "the body", "The title")
    assert (result.embedding.embedded, result.embedding.waiting) == (1, 0)
    assert is_of(row(graph, "a"), "The title\nthe body")


@pytest.mark.parametrize("body", [None, "", "  \n"])
def test_a_row_without_a_text_has_no_vector_and_waits_for_none(graph, body):
    result = add(graph, "a", body)
    assert (result.embedding.embedded, result.embedding.waiting) == (0, 0)
    assert (row(graph, "a")["vector"], row(graph, "a")["vector_embedded"]) == (None, None)


def test_an_update_of_a_text_embeds_it_again_and_no_other_update_does(graph):
    add(graph, "a", "one")
    assert graph.mutate(STAR, {"slug": "a"}).embedding.embedded == 0
    assert is_of(row(graph, "a"), "one")
    assert graph.mutate(EDIT, {"slug": "a", "body": "two"}).embedding.embedded == 1
    assert is_of(row(graph, "a"), "two")
    assert graph.mutate(EDIT, {"slug": "a", "body": "two"}).embedding.embedded == 0


def test_later_leaves_a_new_row_pending_and_a_changed_one_stale(graph):
    add(graph, "a", "one")
    assert add(graph, "b", "two", embed="later").embedding.waiting == 1
    assert row(graph, "b")["vector"] is None
    late = graph.mutate(EDIT, {"slug": "a", "body": "three"}, embed="later")
    assert late.embedding.waiting == 1
    found = row(graph, "a")
    assert found["vector_embedded"] == "stale"
    assert found["vector"] is not None


def test_a_row_that_loses_its_text_loses_its_vector(graph):
    add(graph, "a", "one")
    graph.mutate(EDIT, {"slug": "a", "body": ""}, embed="later")
    assert (row(graph, "a")["vector"], row(graph, "a")["vector_embedded"]) == (None, None)


def test_a_vector_that_is_given_counts_as_that_of_the_text(graph):
    given = [1.0] + [0.0] * 7
    insert = 'query q($v: Vector(8)) { insert Doc { slug: "a" body: "one" vector: $v } }'
    graph.mutate(insert, {"v": given})
    assert row(graph, "a")["vector"] == given
    assert row(graph, "a")["vector_embedded"] == note_of("mock", digest_of("one"))
    other = [0.0] * 7 + [1.0]
    both = 'query q($v: Vector(8)) { update Doc set { body: "two" vector: $v } where slug = "a" }'
    assert graph.mutate(both, {"v": other}).embedding.embedded == 0
    assert row(graph, "a")["vector_embedded"] == note_of("mock", digest_of("two"))
    graph.mutate(EDIT, {"slug": "a", "body": "three"})
    assert is_of(row(graph, "a"), "three")


def test_a_load_embeds_what_it_is_not_given_and_reuses_what_is_committed(graph):
    rows: list[dict[str, Any]] = [{"slug": f"d{n}", "body": f"text {n}"} for n in range(5)]
    rows[0]["vector"] = [1.0] + [0.0] * 7
    assert graph.load({"Doc": rows}).embedding.embedded == 4
    assert row(graph, "d0")["vector"] == rows[0]["vector"]
    assert is_of(row(graph, "d1"), "text 1")
    again = [{"slug": f"d{n}", "body": f"text {n}" if n < 4 else "other"} for n in range(6)]
    result = graph.load({"Doc": again}, mode="merge")
    assert (result.embedding.reused, result.embedding.embedded) == (4, 2)
    assert is_of(row(graph, "d4"), "other")
    assert row(graph, "d0")["vector"] == rows[0]["vector"]


def texts_and_notes(graph: Graph) -> dict[str, tuple[Any, ...]]:
    query = """query q() { match { $d: Doc }
      return { $d.slug $d.body $d.vector $d.vector_embedded } }"""
    rows = [tuple(found.values()) for found in graph.query(query).rows()]
    return {slug: (body, vector and tuple(vector), note) for slug, body, vector, note in rows}


@pytest.mark.parametrize("embed", ["now", pytest.param("later", marks=pytest.mark.soak)])
def test_merges_on_spark_leave_the_vectors_that_local_ones_leave(tmp_path, server, embed):
    first: list[dict[str, Any]] = [{"slug": f"d{n}", "body": f"text {n}"} for n in range(5)]
    first[0]["vector"] = [1.0] + [0.0] * 7
    # Unchanged, changed, without a text, with a vector of its own, new; and another row unchanged.
    again: list[dict[str, Any]] = [{"slug": f"d{n}", "body": f"text {n}"} for n in range(7)]
    again[2]["body"], again[3]["body"] = "other", " "
    again[4]["vector"] = [0.0] * 7 + [1.0]
    seen = {}
    for engine in ("local", "spark"):
        graph = omnigraph.init(tmp_path / f"{engine}.omni", schema=REMOTE)
        graph.settings.set("embedding.openai_url", server.url)
        # Workers have the variables of when Spark started.
        graph.settings.set("embedding.openai_key", "none")
        graph.load({"Doc": first})
        # The branch has no ref of the table when the load is planned.
        branch = branch_off(graph)
        before = Counter(server.texts)
        result = branch.load({"Doc": again}, mode="merge", engine=engine, embed=embed)
        asked = sorted((server.texts - before).elements())
        again_on_main = graph.load({"Doc": again}, mode="merge", engine=engine, embed=embed)
        assert again_on_main.embedding == result.embedding
        assert texts_and_notes(graph) == texts_and_notes(branch)
        seen[engine] = (result.embedding, asked, texts_and_notes(branch))
    assert seen["spark"] == seen["local"]
    assert seen["spark"][0].reused == 2
    assert seen["spark"][1] == (["other", "text 5", "text 6"] if embed == "now" else [])


def test_a_load_of_an_export_embeds_nothing(graph, tmp_path):
    graph.load({"Doc": [{"slug": "a", "body": "one"}, {"slug": "b", "body": "two"}]})
    graph.mutate(EDIT, {"slug": "b", "body": "three"}, embed="later")
    graph.export(tmp_path / "out.jsonl")
    copy = omnigraph.init(tmp_path / "copy.omni", schema=SCHEMA)
    result = copy.load(tmp_path / "out.jsonl", embed="later")
    assert (result.embedding.embedded, result.embedding.waiting) == (0, 1)
    assert is_of(row(copy, "a"), "one")
    assert row(copy, "b")["vector_embedded"] == "stale"


def test_a_large_load_leaves_its_rows_pending(graph):
    graph.settings.set("embedding.now_rows", 3)
    rows = [{"slug": f"d{n}", "body": f"text {n}"} for n in range(4)]
    assert graph.load({"Doc": rows}).embedding.waiting == 4
    assert graph.load({"Doc": rows[:3]}, mode="merge").embedding.embedded == 3
    assert graph.load({"Doc": rows}, mode="merge", embed="now").embedding.embedded == 1


@pytest.fixture
def server(monkeypatch) -> Iterator[EmbeddingServer]:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-x")
    with embedding_server() as state:
        yield state


def test_a_provider_that_is_down_changes_nothing_and_names_the_way_out(tmp_path, server):
    graph = omnigraph.init(tmp_path / "graph.omni", schema=REMOTE)
    graph.settings.set("embedding.openai_url", server.url)
    server.faults = [400]
    before = graph.commits.list()[0].commit_id
    with pytest.raises(EmbeddingError, match="--embed later"):
        add(graph, "a", "one")
    graph.refresh()
    assert graph.commits.list()[0].commit_id == before
    add(graph, "a", "one", embed="later")
    assert row(graph, "a")["vector"] is None


def test_an_invalid_write_costs_no_request(tmp_path, server):
    graph = omnigraph.init(tmp_path / "graph.omni", schema=REMOTE)
    graph.settings.set("embedding.openai_url", server.url)
    graph.load({"Doc": [{"slug": "a", "body": "one"}]})
    assert len(server.requests) == 1
    with pytest.raises(omnigraph.IntegrityError):
        graph.load({"Doc": [{"slug": "a", "body": "new"}, {"slug": "b", "body": "other"}]})
    assert len(server.requests) == 1


# Merges.


def branch_off(graph: Graph) -> Graph:
    add(graph, "a", "body", "title")
    graph.branches.create("draft")
    return graph.at(branch="draft")


@pytest.mark.parametrize("flip", [False, True])
@pytest.mark.parametrize("embed", ["now", "later"])
def test_texts_of_both_sides_make_a_stale_vector_and_no_conflict(graph, flip, embed):
    draft = branch_off(graph)
    ours, theirs = (draft, graph) if flip else (graph, draft)
    ours.mutate(EDIT, {"slug": "a", "body": "other body"}, embed=embed)
    theirs.mutate(TITLE, {"slug": "a", "title": "other title"}, embed="now")
    graph.merge("draft")
    found = row(graph, "a")
    assert (found["title"], found["body"]) == ("other title", "other body")
    assert found["vector_embedded"] == "stale"


@pytest.mark.parametrize("flip", [False, True])
def test_a_vector_comes_from_the_side_of_its_text(graph, flip):
    add(graph, "a", "body", "title", embed="later")
    graph.branches.create("draft")
    draft = graph.at(branch="draft")
    ours, theirs = (draft, graph) if flip else (graph, draft)
    # One side changes the text and leaves it pending, the other embeds the old text.
    ours.mutate(EDIT, {"slug": "a", "body": "new"}, embed="later")
    theirs.mutate(STAR, {"slug": "a"}, embed="now")
    assert is_of(row(theirs, "a"), "title\nbody")
    graph.merge("draft")
    found = row(graph, "a")
    assert (found["body"], found["stars"]) == ("new", 5)
    assert (found["vector"], found["vector_embedded"]) == (None, None)


@pytest.mark.parametrize("flip", [False, True])
def test_a_side_that_does_not_know_of_embeddings_makes_vectors_stale(tmp_path, flip):
    plain = SCHEMA.replace('Vector(8) @embed("title", "body", model="mock")', "Vector(8)?")
    graph = omnigraph.init(tmp_path / "graph.omni", schema=plain)
    add(graph, "a", "one")
    graph.branches.create("draft")
    draft = graph.at(branch="draft")
    knows, other = (draft, graph) if flip else (graph, draft)
    knows.schema.apply(SCHEMA)
    knows.mutate(STAR, {"slug": "a"}, embed="now")
    assert is_of(row(knows, "a"), "one")
    other.mutate(EDIT, {"slug": "a", "body": "two"})
    graph.merge("draft")
    found = row(graph, "a")
    assert (found["body"], found["stars"]) == ("two", 5)
    assert not is_of(found, "one")
    assert found["vector"] is None


# Schema changes.


def test_another_model_makes_vectors_stale_and_a_rename_does_not(graph):
    add(graph, "a", "one")
    renamed = SCHEMA.replace("body: String?", 'text: String? @rename_from("body")').replace(
        '"body"', '"text"'
    )
    graph.schema.apply(renamed.replace('@rename_from("text")', '@rename_from("body")'))
    query = "query q() { match { $d: Doc } return { $d.vector_embedded } }"
    [before] = graph.query(query).rows()
    assert before["d.vector_embedded"] == note_of("mock", digest_of("one"))
    graph.schema.apply(SCHEMA.replace("body", "text").replace('model="mock"', 'model="mock:2"'))
    [after] = graph.query(query).rows()
    assert after == before
    graph.schema.apply(SCHEMA.replace("body", "text").replace('"title", "text"', '"text"'))
    [last] = graph.query(query).rows()
    assert last["d.vector_embedded"] is None


@pytest.mark.parametrize(("resolve", "state"), [("ours", "current"), ("theirs", "stale")])
def test_a_merge_that_changes_which_texts_are_embedded_makes_vectors_stale(graph, resolve, state):
    graph.branches.create("draft")
    graph.schema.apply(REMOTE.replace('"title", "body"', '"body"'))
    vector = [1.0] + [0.0] * 7
    graph.load({"Doc": [{"slug": "a", "title": "The title", "body": "the body", "vector": vector}]})
    graph.schema.apply(REMOTE, branch="draft")
    graph.merge("draft", resolve=resolve)
    [status] = graph.embeddings.status()
    assert {name: getattr(status, name) for name in ("current", "stale")} == {
        "current": int(state == "current"),
        "stale": int(state == "stale"),
    }
    assert row(graph, "a")["vector"] == vector
    assert graph.check().is_sound
