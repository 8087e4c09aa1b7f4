"""Hypothesis strategies: graphs of texts and vectors, and random queries that search them.

Words are from a small pool, so that queries find some rows and miss others, and scores are equal
now and then.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from hypothesis import strategies as st

from omnigraph.choices import Analyzer, Metric
from omnigraph.model.types import Scalar, VectorType
from omnigraph.query.ir import Value
from omnigraph.schema.catalog import (
    Catalog,
    EdgeType,
    Index,
    NodeType,
    Property,
    TextOptions,
    VectorOptions,
)
from omnigraph.schema.resolve import catalog_of
from tests.oracle.reference import ReferenceGraph, Row

_WORDS: Final = (
    *("graph", "graphs", "Graphed", "grape", "database", "databases", "lake", "lakes", "run"),
    *("running", "naïve", "naive", "Zoë", "straße", "the", "of", "a", "x", "ab", "1", "2024"),
    "z" * 41,
)
_JOINTS: Final = (" ", " ", " ", "-", ", ", " the ", "\n", "_")
_NUMBERS: Final = (-1.0, 0.0, 0.5, 1.0, 2.0)
_NAMES: Final = tuple("abcdefghij")
_ANALYZERS: Final = (Analyzer.ENGLISH, Analyzer.SIMPLE, Analyzer.WHITESPACE)
"""What the reference knows the words of."""


@dataclass(frozen=True, slots=True)
class SearchCase:
    """A query that searches, and values for its parameters."""

    text: str
    values: Mapping[str, object]


@st.composite
def texts(draw: st.DrawFn, *, least: int = 0) -> str:
    """A text of a few words."""
    words = draw(st.lists(st.sampled_from(_WORDS), min_size=least, max_size=6))
    return "".join(word + draw(st.sampled_from(_JOINTS)) for word in words)


def looked_for() -> st.SearchStrategy[str]:
    """A text that has a word in it for every analyzer."""
    return st.tuples(texts(), st.sampled_from(("graph", "lake", "naïve", "run", "x"))).map(
        lambda pair: " ".join(pair)
    )


vectors: Final = st.tuples(st.sampled_from(_NUMBERS), st.sampled_from(_NUMBERS))


@st.composite
def search_catalogs(draw: st.DrawFn) -> Catalog:
    """A catalog of documents that cite each other, searched in different ways."""
    text_options = st.none() | st.sampled_from([TextOptions(analyzer) for analyzer in _ANALYZERS])
    metrics = st.none() | st.sampled_from([VectorOptions(metric=metric) for metric in Metric])
    doc = NodeType(
        "Doc",
        (
            Property("name", Scalar.STRING),
            Property("body", Scalar.STRING, nullable=True),
            Property("title", Scalar.STRING),
            Property("v", VectorType(2), nullable=True),
            Property("w", VectorType(2)),
            Property("n", Scalar.I64, nullable=True),
        ),
        key=("name",),
        indexes=(
            Index("title", draw(text_options)),
            Index("v", draw(metrics)),
            Index("w", draw(metrics)),
        ),
    )
    why = Property("why", Scalar.STRING, nullable=True)
    cites = EdgeType("Cites", "Doc", "Doc", properties=(why,))
    return catalog_of(doc, cites)


@st.composite
def search_graphs(draw: st.DrawFn) -> ReferenceGraph:
    """A few documents and the edges between them."""
    names = draw(st.lists(st.sampled_from(_NAMES), min_size=2, max_size=10, unique=True))
    docs: list[Row] = [{"id": name, **draw(document(name))} for name in names]
    pairs = st.tuples(st.sampled_from(names), st.sampled_from(names))
    edges: list[Row] = [
        {"id": str(place), "src": source, "dst": target, "why": draw(st.none() | texts())}
        for place, (source, target) in enumerate(draw(st.lists(pairs, max_size=12)))
    ]
    return ReferenceGraph({"Doc": docs, "Cites": edges})


def document(name: str) -> st.SearchStrategy[dict[str, Value]]:
    """The properties of one document."""
    maybe: st.SearchStrategy[Any] = st.none()
    return st.fixed_dictionaries(
        {
            "name": st.just(name),
            "body": maybe | texts() | texts() | texts(),
            "title": texts(),
            "v": maybe | vectors | vectors | vectors,
            "w": vectors,
            "n": maybe | st.integers(0, 3),
        }
    )


@st.composite
def search_queries(draw: st.DrawFn) -> SearchCase:
    """A query with a text test or a ranking, or several of both."""
    query = _SearchQuery(draw)
    if draw(st.integers(0, 3)) == 0:
        # The best of a whole type, which engines may find without its other rows.
        shown, limit = f"$d.name, {query.ranking()} as score", draw(st.integers(1, 4))
        body = f"match {{ $d: Doc }} return {{ {shown} }} order {{ score }} limit {limit}"
        return SearchCase(f"query q({', '.join(query.parameters)}) {{ {body} }}", query.values)
    clauses = query.clauses()
    columns = ["$d.name", *(["$x.name as other"] if query.walks else [])]
    rankings = [query.ranking() for _ in range(draw(st.integers(0, 2)))]
    columns += [f"{ranking} as r{place}" for place, ranking in enumerate(rankings)]
    order = [f"r{place}" for place in range(len(rankings)) if draw(st.booleans())]
    order += [query.ranking()] if draw(st.booleans()) else []
    order += ["$d.n"] if draw(st.booleans()) else []
    directed = [f"{key} {draw(st.sampled_from(('', '', 'asc', 'desc')))}" for key in order]
    sorted_by = f"order {{ {', '.join(draw(st.permutations(directed)))} }}" if directed else ""
    text = (
        f"query q({', '.join(query.parameters)}) {{ match {{ {' '.join(clauses)} }}"
        f" return {{ {', '.join(columns)} }} {sorted_by} limit {draw(st.integers(0, 12))} }}"
    )
    return SearchCase(text, query.values)


@dataclass(slots=True)
class _SearchQuery:
    """One query under construction; `$d` is a document, and `$x` one that it cites."""

    draw: st.DrawFn
    parameters: list[str] = field(default_factory=list)
    values: dict[str, object] = field(default_factory=dict)
    walks: bool = False

    def clauses(self) -> list[str]:
        """The scope."""
        clauses = ["$d: Doc"]
        if self.draw(st.booleans()):
            clauses.append(f"$d.n >= {self.draw(st.integers(0, 2))}")
        way = self.draw(
            st.sampled_from(("", "", "$d cites $x", "$d $e:cites $x", "$d cites{1,2} $x"))
        )
        if way:
            self.walks = True
            clauses.append(way)
            if self.draw(st.booleans()):
                clauses.append(self.test("$x"))
            if self.draw(st.integers(0, 3)) == 0:
                clauses.append(f"{self.test('$x')} or {self.test('$d')} and $d.n >= 1")
            if "$e" in way and self.draw(st.booleans()):
                clauses.append(f"search($e.why, {self.text()})")
        if self.draw(st.booleans()):
            clauses.append(self.test("$d"))
        if self.draw(st.integers(0, 3)) == 0:
            clauses.append(f"$d.n = {self.draw(st.integers(0, 2))} or {self.test('$d')}")
        if self.draw(st.integers(0, 2)) == 0:
            clauses.append(
                f"not {{ $d cites $y {self.test(self.draw(st.sampled_from(('$y', '$d'))))} }}"
            )
        return clauses

    def test(self, variable: str) -> str:
        """A test of a text."""
        function = self.draw(st.sampled_from(("search", "fuzzy", "match_text")))
        column = self.draw(st.sampled_from(("body", "title")))
        more = self.draw(st.sampled_from(("", ", 0", ", 1", ", 2"))) if function == "fuzzy" else ""
        return f"{function}({variable}.{column}, {self.text()}{more})"

    def ranking(self) -> str:
        """A ranking of one of the documents, or a fusion of some."""
        if self.draw(st.integers(0, 3)) == 0:
            parts = [self._simple_ranking() for _ in range(self.draw(st.integers(2, 3)))]
            return f"rrf({', '.join(parts)}{self.draw(st.sampled_from(('', ', 1')))})"
        return self._simple_ranking()

    def _simple_ranking(self) -> str:
        variable = self.draw(st.sampled_from(("$d", "$x") if self.walks else ("$d",)))
        if self.draw(st.booleans()):
            column = self.draw(st.sampled_from(("body", "title")))
            return f"bm25({variable}.{column}, {self.text()})"
        column = self.draw(st.sampled_from(("v", "w")))
        vector = self._parameter("Vector(2)", self.draw(vectors.filter(any)))
        return f"nearest({variable}.{column}, {vector})"

    def text(self) -> str:
        """A parameter with a text that is looked for; null now and then."""
        if self.draw(st.integers(0, 9)) == 0:
            return self._parameter("String?", None)
        return self._parameter("String", self.draw(looked_for()))

    def _parameter(self, type_: str, value: object) -> str:
        name = f"p{len(self.parameters)}"
        self.parameters.append(f"${name}: {type_}")
        self.values[name] = value
        return f"${name}"
