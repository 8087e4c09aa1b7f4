"""Searches by indexes: the answers of scans, whatever happened to the rows."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import pytest

import omnigraph
from omnigraph.engine.local import indexed_texts, text_lengths
from omnigraph.graph import Graph
from omnigraph.limits import INDEX_SEGMENTS_MAX
from omnigraph.maintenance import text_lengths as maintenance_lengths
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
BEST_TEN: Final = QUERIES[0].replace("limit 5", "limit 10")
TESTS: Final = ("search($d.body, $q)", "fuzzy($d.body, $q)", "match_text($d.body, $q)")
ASKED: Final = ("graph", "the cats running", "database of vectors", "x1 zoe", "nothing", "grahp")


class Twins:
    """Two graphs with the same rows, of which one has indexes."""

    def __init__(self, folder: Path) -> None:
        self.indexed = omnigraph.init(folder / "indexed", INDEXED)
        # The texts of a `String` without an index are those of the default analyzer.
        self.plain = omnigraph.init(folder / "plain", PLAIN)
        self.random = random.Random(7)
        self.is_by_index = False
        self.has_former_words = False
        self.loaded: set[int] = set()

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
        self.has_former_words |= not self.loaded.isdisjoint(range(first, last))
        self.loaded |= {*range(first, last)}
        for graph in self.both:
            is_indexed = index and graph is self.indexed
            graph.load({"Doc": rows}, mode="merge", engine="local", index=is_indexed, **more)

    def mutate(self, text: str, **more: Any) -> None:
        self.has_former_words |= "update" in text
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
                if "bm25" in rest and self.is_by_index and self.has_former_words:
                    # Former words count among the texts that have a word, so scores differ.
                    if "limit" not in rest:
                        scored = [{row["d.name"] for row in rows if row["s"]} for rows in answers]
                        assert scored[0] == scored[1], (asked, rest)
                    continue
                ours, theirs = (sorted(map(repr, answer)) for answer in answers)
                assert ours == theirs, (asked, match, rest)
                if "order" in rest:
                    assert answers[0] == answers[1], (asked, rest)


@pytest.fixture(params=["by the index", "analysed"])
def twins(tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Twins:
    """Rows of small fragments are analysed, unless all fragments count as large."""
    twins = Twins(tmp_path)
    if request.param == "by the index":
        twins.is_by_index = True
        monkeypatch.setattr(indexed_texts, "INDEXED_TEXT_ROWS_MIN", 1)
        monkeypatch.setattr(indexed_texts, "TAKEN_SHARE_MAX", 1.0)
    return twins


def test_answers_by_an_index_are_those_of_a_scan_whatever_happened(twins):
    twins.load(0, 400)
    text = f"query q($q: String) {{ match {{ $d: Doc }} {QUERIES[0]} }}"
    way = "approximate, by its index" if twins.is_by_index else "exact, by a scan"
    assert way in str(twins.indexed.explain(text, {"q": "graph"}))
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
    text = "query q($q: String) { match { $d: Doc search($d.body, $q) } return { $d.name } }"
    answers = [
        sorted(map(repr, graph.query(text, {"q": "graph cat"}, commit=commit).rows()))
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


def test_a_damaged_index_is_scanned_around(twins, caplog):
    twins.load(0, 50)
    folder = Path(twins.indexed.uri)
    for path in folder.glob("nodes/*/_indices/*/part_0_*.lance"):
        path.unlink()
    twins.indexed = omnigraph.open(twins.indexed.uri)
    twins.compare()
    assert ("a scan took its place" in caplog.text) is twins.is_by_index


def test_the_lengths_of_texts_are_counted_once(twins, monkeypatch):
    twins.load(0, 50)
    text = f"query q($q: String) {{ match {{ $d: Doc }} {QUERIES[0]} }}"
    before = twins.indexed.query(text, {"q": "graph"}).rows()

    def refuse(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(text_lengths, "_count_words", refuse)
    assert twins.indexed.query(text, {"q": "graph"}).rows() == before
    assert twins.indexed.query(text, {"q": "cat"}).rows()


def test_another_process_finds_the_lengths_that_an_index_run_stored(twins, monkeypatch):
    monkeypatch.setattr(maintenance_lengths, "STORED_TEXTS_MIN", 1)
    monkeypatch.setattr(maintenance_lengths, "INDEXED_TEXT_ROWS_MIN", 1)
    twins.load(0, 50)
    twins.indexed.ensure_indices()
    monkeypatch.delattr(text_lengths, "_count_words")
    twins.indexed = omnigraph.open(twins.indexed.uri)
    twins.mutate('delete Doc where name = "d3"')
    twins.compare()


def test_a_widened_search_finds_the_best_beyond_the_first_look(twins, monkeypatch):
    """Lance's own order differs from ours by the rows that are gone."""
    monkeypatch.setattr(indexed_texts, "TEXT_CANDIDATES_SPARE", 1)
    twins.load(0, 300)
    twins.mutate('delete Doc where name < "d2"')
    twins.compare()


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


def test_most_of_the_best_are_found_after_many_updates_and_deletions(tmp_path, monkeypatch):
    """Former words count among the texts that have a word; recall is measured."""
    monkeypatch.setattr(indexed_texts, "INDEXED_TEXT_ROWS_MIN", 1)
    graph = omnigraph.init(tmp_path / "graph", INDEXED)
    drawn = random.Random(5)
    words = [f"w{number}" for number in range(400)]
    weights = [1 / (number + 1) for number in range(400)]

    def load(numbers: range) -> None:
        rows = [
            {"name": f"d{number}", "body": " ".join(drawn.choices(words, weights, k=12))}
            for number in numbers
        ]
        given = [row | {"title": row["body"]} for row in rows]
        graph.load({"Doc": given}, mode="merge", engine="local")

    load(range(3_000))
    load(range(2_000, 3_500))
    graph.mutate('query q() { delete Doc where name < "d15" }')
    text = f"query q($q: String) {{ match {{ $d: Doc }} {BEST_TEN} }}"
    shares = []
    for _ in range(30):
        asked = {"q": " ".join(drawn.choices(words, k=3))}
        right = graph.query(text, asked, exact=True).rows()
        found = graph.query(text, asked, exact=False).rows()
        least = min(row["s"] for row in right if row["s"]) if right[0]["s"] else 0
        names = {row["d.name"] for row in right if row["s"] and row["s"] > least}
        hits = names & {row["d.name"] for row in found}
        # Rows that share the last score are all right.
        shares.append(len(hits) / len(names) if names else 1.0)
    assert sum(shares) / len(shares) >= 0.95
