"""Runs of `embed`: states, scopes, bounded commits, kills and writers beside it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.errors import EmbeddingError, TypeNotFoundError
from omnigraph.maintenance.embedding import fragments
from omnigraph.maintenance.embedding import run as runs
from omnigraph.maintenance.spark import embedding as spark_runs
from tests.contract.embedding.test_writes import EDIT, REMOTE, SCHEMA, add, is_of, row
from tests.support.embedding_server import EmbeddingServer, embedding_server


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return omnigraph.init(tmp_path / "graph.omni", schema=SCHEMA)


@pytest.fixture
def small_batches(monkeypatch) -> None:
    monkeypatch.setattr(runs, "EMBEDDED_ROWS_PER_COMMIT", 4)


@pytest.fixture
def small_parts(monkeypatch) -> None:
    monkeypatch.setattr(fragments, "EMBEDDED_PART_ROWS", 3)
    monkeypatch.setattr(spark_runs, "EMBEDDED_PART_ROWS", 1)


def load_pending(graph: Graph, count: int, *, texts: int | None = None) -> None:
    rows = [{"slug": f"d{n:04}", "body": f"text {n % (texts or count)}"} for n in range(count)]
    graph.load({"Doc": rows}, embed="later")


def states(graph: Graph) -> tuple[int, int, int, int]:
    [status] = graph.embeddings.status()
    return status.current, status.stale, status.pending, status.empty


@pytest.mark.parametrize("engine", ["local", "spark"])
def test_a_run_embeds_what_waits_and_nothing_else(graph, engine):
    add(graph, "a", "one")
    add(graph, "b", "two", embed="later")
    add(graph, "c", "three")
    graph.mutate(EDIT, {"slug": "c", "body": "four"}, embed="later")
    add(graph, "d", " ")
    assert states(graph) == (1, 1, 1, 1)
    [waiting] = [note for note in graph.check().notes if "stale in 1 rows" in note.problem]
    assert "omnigraph embed" in waiting.next_step
    result = graph.embeddings.run(engine=engine)
    assert result.embedded == {"Doc": 2}
    assert states(graph) == (3, 0, 0, 1)
    assert is_of(row(graph, "b"), "two")
    assert is_of(row(graph, "c"), "four")
    assert graph.embeddings.run(engine=engine).commits == ()
    assert graph.check().is_sound


@pytest.mark.parametrize("engine", ["local", "spark"])
def test_a_run_may_be_the_first_write_of_a_branch(graph, engine):
    load_pending(graph, 3)
    graph.branches.create("draft")
    draft = graph.at(branch="draft")
    assert draft.embeddings.run(engine=engine).embedded == {"Doc": 3}
    fresh = omnigraph.open(graph.uri).at(branch="draft")
    assert is_of(row(fresh, "d0002"), "text 2")
    assert fresh.check().is_sound
    assert states(graph) == (0, 0, 3, 0)
    graph.branches.create("other", branch="draft")
    other = graph.at(branch="other")
    assert other.embeddings.run(engine=engine).commits == ()
    assert other.embeddings.run(engine=engine, scope="all").embedded == {"Doc": 3}
    assert is_of(row(other, "d0001"), "text 1")


@pytest.mark.usefixtures("small_batches")
def test_scopes(graph):
    add(graph, "a", "one")
    add(graph, "b", "two", embed="later")
    graph.mutate(EDIT, {"slug": "a", "body": "new"}, embed="later")
    assert graph.embeddings.run(scope="stale").embedded == {"Doc": 1}
    assert states(graph) == (1, 0, 1, 0)
    assert graph.embeddings.run(scope="pending").embedded == {"Doc": 1}
    load_pending(graph, 6)
    assert graph.embeddings.run(scope="all").embedded == {"Doc": 8}
    assert states(graph) == (8, 0, 0, 0)
    with pytest.raises(TypeNotFoundError):
        graph.embeddings.run(types="Nobody")
    with pytest.raises(omnigraph.InvalidParameterError, match="scope"):
        graph.embeddings.run(scope="some")


@pytest.mark.usefixtures("small_batches")
def test_another_model_is_embedded_again(graph):
    load_pending(graph, 6)
    graph.embeddings.run()
    graph.schema.apply(SCHEMA.replace('model="mock"', 'model="mock:2"'))
    assert states(graph) == (0, 6, 0, 0)
    assert graph.embeddings.run().embedded == {"Doc": 6}
    assert states(graph) == (6, 0, 0, 0)
    assert not is_of(row(graph, "d0000"), "text 0")


def test_vectors_of_before_the_embedding_are_stale(tmp_path):
    plain = SCHEMA.replace('Vector(8) @embed("title", "body", model="mock")', "Vector(8)?")
    graph = omnigraph.init(tmp_path / "graph.omni", schema=plain)
    rows = [{"slug": "a", "body": "one", "vector": [1.0] * 8}, {"slug": "b", "body": "two"}]
    graph.load({"Doc": rows})
    graph.schema.apply(SCHEMA)
    assert states(graph) == (0, 1, 1, 0)
    graph.embeddings.run()
    assert is_of(row(graph, "a"), "one")
    assert is_of(row(graph, "b"), "two")


@pytest.mark.usefixtures("small_batches")
def test_rows_are_the_same_but_for_their_vectors_and_old_commits_stay(graph):
    load_pending(graph, 10)
    before = graph.commits.list()[0].commit_id
    query = "query q() { match { $d: Doc } return { $d.slug $d.body } order { $d.slug } }"
    rows = graph.query(query).rows()
    result = graph.embeddings.run()
    assert len(result.commits) == 3
    assert graph.query(query).rows() == rows
    [past] = graph.embeddings.status(commit=before)
    assert (past.current, past.pending) == (0, 10)
    kinds = {commit.operation for commit in graph.commits.list() if commit.commit_id != before}
    assert "embed" in kinds


@pytest.mark.usefixtures("small_batches", "small_parts")
@pytest.mark.parametrize("engine", ["local", "spark"])
def test_a_large_fragment_is_embedded_part_by_part(graph, engine):
    load_pending(graph, 10)
    graph.mutate('query q() { delete Doc where slug = "d0004" }')
    result = graph.embeddings.run(engine=engine)
    # It has parts of 3 rows. A commit has 4 rows, or on two cores whole parts of that many.
    assert len(result.commits) > 1
    assert result.embedded == {"Doc": 9}
    for number in (0, 3, 5, 9):
        assert is_of(row(graph, f"d{number:04}"), f"text {number}")
    assert graph.embeddings.run(engine=engine).commits == ()
    assert graph.embeddings.run(engine=engine, scope="all").embedded == {"Doc": 9}
    assert graph.check().is_sound


@pytest.fixture
def server(monkeypatch) -> Iterator[EmbeddingServer]:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-x")
    with embedding_server() as state:
        yield state


def remote(tmp_path: Path, server: EmbeddingServer, **settings: int) -> Graph:
    graph = omnigraph.init(tmp_path / "graph.omni", schema=REMOTE)
    graph.settings.set("embedding.openai_url", server.url)
    for key, value in settings.items():
        graph.settings.set(f"embedding.{key}", value)
    return graph


@pytest.mark.usefixtures("small_batches")
def test_a_text_of_many_rows_and_commits_is_requested_once(tmp_path, server):
    graph = remote(tmp_path, server, batch_size=2)
    load_pending(graph, 20, texts=5)
    done = graph.embeddings.run()
    assert (done.embedded, len(done.commits)) == ({"Doc": 20}, 5)
    assert server.texts == {f"text {n}": 1 for n in range(5)}


@pytest.mark.usefixtures("small_batches")
def test_a_writer_beside_a_run_loses_nothing(tmp_path, server):
    graph = remote(tmp_path, server, batch_size=4)
    load_pending(graph, 12)
    other = omnigraph.open(tmp_path / "graph.omni")
    edits = iter(["d0000", "d0001", "d0010"])

    def meanwhile(stage: str, done: int, total: int | None) -> None:  # noqa: ARG001
        if slug := next(edits, None):
            other.mutate(EDIT, {"slug": slug, "body": f"new of {slug}"}, embed="later")

    graph.embeddings.run(progress=meanwhile)
    graph.embeddings.run()
    found = graph.query("query q() { match { $d: Doc } return { $d.slug $d.body } }").rows()
    changed = {each["d.slug"] for each in found if each["d.body"].startswith("new of")}
    assert changed == {"d0000", "d0001", "d0010"}
    assert states(graph) == (12, 0, 0, 0)


def test_a_write_between_plan_and_commit_asks_for_no_text_twice(tmp_path, server):
    graph = remote(tmp_path, server)
    load_pending(graph, 8)
    other = omnigraph.open(tmp_path / "graph.omni")
    embed = runs.LocalBatches.embed
    raced: list[object] = []

    def racing(self, task, table, fragment_ids):
        rows = embed(self, task, table, fragment_ids)
        if not raced:
            raced.append(other.mutate(EDIT, {"slug": "d0003", "body": "won"}, embed="later"))
        return rows

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runs.LocalBatches, "embed", racing)
        graph.embeddings.run()
    assert row(graph, "d0003")["body"] == "won"
    assert states(graph) == (8, 0, 0, 0)
    assert max(server.texts.values()) == 1
    assert server.texts["won"] == 1


@pytest.mark.usefixtures("small_batches")
def test_a_failure_keeps_what_was_committed(tmp_path, server):
    graph = remote(tmp_path, server, batch_size=4)
    load_pending(graph, 10)
    server.faults = ["ok", 400]
    with pytest.raises(EmbeddingError):
        graph.embeddings.run()
    assert states(graph) == (4, 0, 6, 0)
    graph.embeddings.run()
    assert states(graph) == (10, 0, 0, 0)
    assert set(server.texts.values()) == {1}


KILLED = """
import sys
import omnigraph
from omnigraph.maintenance.embedding import run
run.EMBEDDED_ROWS_PER_COMMIT = 10
omnigraph.open(sys.argv[1]).embeddings.run()
"""


def test_a_killed_run_is_continued_without_a_text_that_was_committed(tmp_path, server):
    graph = remote(tmp_path, server, batch_size=5)
    load_pending(graph, 100)
    server.delay = 0.05
    child = subprocess.Popen([sys.executable, "-c", KILLED, str(tmp_path / "graph.omni")])
    deadline = time.monotonic() + 60
    while len(server.texts) < 45 and time.monotonic() < deadline:
        time.sleep(0.02)
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    asked = set(server.texts)
    again = omnigraph.open(tmp_path / "graph.omni")
    current, stale, pending, empty = states(again)
    assert (current % 10, stale, empty) == (0, 0, 0)
    assert 0 < current <= len(asked)
    assert pending == 100 - current
    committed = {
        each["d.body"]
        for each in again.query(
            "query q() { match { $d: Doc } return { $d.body $d.vector_embedded } }"
        ).rows()
        if each["d.vector_embedded"] is not None
    }
    server.delay, before = 0.0, dict(server.texts)
    again.embeddings.run()
    assert states(again) == (100, 0, 0, 0)
    assert all(server.texts[text] == before[text] for text in committed)
    assert again.check().is_sound
