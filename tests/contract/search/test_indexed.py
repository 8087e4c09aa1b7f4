"""Searches by indexes: the answers of scans, to the last bit, whatever happened to the rows."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pytest

import omnigraph
from omnigraph.choices import Analyzer
from omnigraph.graph import Graph
from omnigraph.limits import INDEX_SEGMENTS_MAX
from omnigraph.search.analysis import TokenColumn, analyse_column
from omnigraph.storage import row_positions, word_index
from omnigraph.storage.row_positions import RowPositions
from tests.support.folding import eager_folds

INDEXED: Final = """
node Doc {
  name: String @key
  body: String? @index
  title: String @index(analyzer="simple", positions=true)
}
"""
PLAIN: Final = INDEXED.replace("? @index", "?")
WORDS: Final = [
    "graph",
    "graphs",
    "database",
    "vector",
    "the",
    "of",
    "cat",
    "dog",
    "Zoë",
    "running",
    "ran",
    "x1",
    "re-use",
    "über",
]
QUERIES: Final = (
    "return { $d.name, bm25($d.body, $q) as s } order { bm25($d.body, $q) } limit 5",
    "return { $d.name, bm25($d.body, $q) as s }",
    "return { $d.name, bm25($d.title, $q) as s } order { bm25($d.title, $q) asc, $d.name } limit 7",
)
TESTS: Final = ("search($d.body, $q)", "fuzzy($d.body, $q)", "match_text($d.body, $q)")
ASKED: Final = ("graph", "the cats running", "database of vectors", "x1 zoe", "nothing", "grahp")


class Twins:
    """Two graphs with the same rows, of which one has indexes."""

    def __init__(self, folder: Path) -> None:
        self.indexed = omnigraph.init(folder / "indexed", INDEXED)
        # The texts of a `String` without an index are those of the default analyzer.
        self.plain = omnigraph.init(folder / "plain", PLAIN)
        self.random = random.Random(7)

    @property
    def both(self) -> tuple[Graph, Graph]:
        return self.indexed, self.plain

    def text(self) -> str:
        return " ".join(self.random.choices(WORDS, k=self.random.randint(0, 12)))

    def load(self, first: int, last: int, *, index: bool = True, **more: Any) -> None:
        rows = [
            {
                "name": f"d{number}",
                "body": None if number % 11 == 0 else self.text(),
                "title": self.text(),
            }
            for number in range(first, last)
        ]
        for graph in self.both:
            is_indexed = index and graph is self.indexed
            graph.load({"Doc": rows}, mode="merge", engine="local", index=is_indexed, **more)

    def mutate(self, text: str, **more: Any) -> None:
        for graph in self.both:
            graph.mutate(f"query q() {{ {text} }}", **more)

    def compare(self, **point: Any) -> None:
        for asked in ASKED:
            for match, rest in [
                *(("", rest) for rest in QUERIES),
                *((test, "return { $d.name }") for test in TESTS),
            ]:
                text = f"query q($q: String) {{ match {{ $d: Doc {match} }} {rest} }}"
                answers = [graph.query(text, {"q": asked}, **point).rows() for graph in self.both]
                ours, theirs = (sorted(map(repr, answer)) for answer in answers)
                assert ours == theirs, (asked, match, rest)
                if "order" in rest:
                    assert answers[0] == answers[1], (asked, rest)


@pytest.fixture
def twins(tmp_path: Path) -> Twins:
    return Twins(tmp_path)


def test_answers_by_an_index_are_those_of_a_scan_whatever_happened(twins):
    twins.load(0, 400)
    text = f"query q($q: String) {{ match {{ $d: Doc }} {QUERIES[0]} }}"
    assert "exact, by its index" in str(twins.indexed.explain(text, {"q": "graph"}))
    twins.compare()
    twins.load(350, 420, index=False)
    twins.compare()
    twins.mutate('delete Doc where name = "d3"')
    twins.mutate('update Doc set { body: "the cat graph" } where name = "d5"')
    twins.mutate('update Doc set { body: null } where name = "d6"')
    twins.compare()
    before = [graph.snapshot().head.commit_id for graph in twins.both]
    twins.load(380, 440)
    twins.compare()
    twins.indexed.optimize(engine="local")
    twins.compare()
    with eager_folds():
        for number in range(INDEX_SEGMENTS_MAX + 2):
            twins.load(1000 + number, 1003 + number)
    twins.compare()
    answers = [
        graph.query(text, {"q": "graph cat"}, commit=commit).rows()
        for graph, commit in zip(twins.both, before, strict=True)
    ]
    assert answers[0] == answers[1]


def test_a_branch_searches_by_what_it_inherited(twins):
    twins.load(0, 200)
    for graph in twins.both:
        graph.branches.create("draft")
    twins.load(150, 230, branch="draft")
    twins.mutate('delete Doc where name = "d20"', branch="draft")
    twins.load(100, 120)
    twins.compare(branch="draft")
    twins.compare()


def test_former_words_of_rows_would_be_found(twins, monkeypatch):
    """The comparison notices an index that is believed where a row has moved on."""
    twins.load(0, 50)
    twins.mutate('update Doc set { body: "changed" } where name = "d7"')
    twins.load(60, 61)
    original = RowPositions.find

    def believe(self: RowPositions, row_ids: np.ndarray, _: object) -> np.ndarray:
        return original(self, row_ids, np.unique(self.fragments).tolist())

    monkeypatch.setattr(RowPositions, "find", believe)
    with pytest.raises(AssertionError):
        twins.compare()


def test_a_damaged_index_is_scanned_around(twins, caplog):
    twins.load(0, 50)
    folder = Path(twins.indexed.uri)
    for path in folder.glob("nodes/*/_indices/*/part_0_docs.lance"):
        path.unlink()
    twins.indexed = omnigraph.open(twins.indexed.uri)
    twins.compare()
    assert "a scan took its place" in caplog.text


def test_a_warm_search_opens_no_index_again(twins, monkeypatch):
    twins.load(0, 50)
    text = f"query q($q: String) {{ match {{ $d: Doc }} {QUERIES[0]} }}"
    before = twins.indexed.query(text, {"q": "graph"}).rows()

    def refuse(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(word_index, "read_word_files", refuse)
    monkeypatch.setattr(row_positions, "read_row_ids", refuse)
    assert twins.indexed.query(text, {"q": "graph"}).rows() == before
    assert twins.indexed.query(text, {"q": "cat"}).rows()


def test_many_threads_read_an_index_at_once(twins, caplog):
    twins.load(0, 50)
    text = f"query q($q: String) {{ match {{ $d: Doc }} {QUERIES[0]} }}"
    asked = [*ASKED, *WORDS[:4]] * 10

    def ask(words: str) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = twins.indexed.query(text, {"q": words}).rows()
        return rows

    expected = [ask(words) for words in asked]
    with ThreadPoolExecutor(4) as pool:
        assert [*pool.map(ask, asked)] == expected
    assert not caplog.records, "each is answered by the index"


def test_the_texts_that_are_read_are_those_that_the_index_lacks(twins, monkeypatch):
    twins.load(0, 300)
    twins.load(300, 303, index=False)
    analysed: list[int] = []

    def count(analyzer: Analyzer, texts: pa.Array, *more: Any) -> TokenColumn:
        analysed.append(len(texts))
        return analyse_column(analyzer, texts, *more)

    monkeypatch.setattr("omnigraph.engine.local.searching.analyse_column", count)
    for rest in QUERIES:
        text = f"query q($q: String) {{ match {{ $d: Doc }} {rest} }}"
        twins.indexed.query(text, {"q": "graph cat"})
    # Two columns are searched; what was analysed stays in memory.
    assert analysed == [3, 3]


def test_indexes_in_an_object_store_are_read_also_by_a_branch(s3_bucket, caplog):
    graph = omnigraph.init(f"s3://{s3_bucket}/graph.omni", INDEXED)
    rows = [{"name": f"d{number}", "body": "a graph", "title": "cat"} for number in range(5)]
    graph.load({"Doc": rows}, engine="local")
    graph.branches.create("draft")
    text = f"query q($q: String) {{ match {{ $d: Doc }} {QUERIES[0]} }}"

    more = {"name": "more", "body": "graph and graph", "title": "cat"}
    graph.load({"Doc": [more]}, mode="append", branch="draft", engine="local")
    answers = [
        len(graph.query(text, {"q": "graph"}, branch=name).rows()) for name in ("main", "draft")
    ]

    assert answers == [5, 5]
    assert graph.query(text, {"q": "graph"}, branch="draft").rows()[0]["d.name"] == "more"
    assert "a scan took its place" not in caplog.text
