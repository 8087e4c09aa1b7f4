"""Searches of real graphs agree with the reference, whatever happened to their rows and indexes."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import omnigraph
from omnigraph import Graph
from omnigraph.engine.local import cuts
from omnigraph.model.names import MAIN
from omnigraph.query import ir
from omnigraph.query.compile import compile_queries
from omnigraph.query.ir import Value
from omnigraph.query.parameters import bind
from omnigraph.schema.parser import parse_schema
from omnigraph.storage import indexes
from tests.oracle.comparisons import assert_same_rows
from tests.oracle.reference import ReferenceGraph, Row, evaluate
from tests.strategies.searches import SearchCase, document, search_queries, texts
from tests.support.query_cases import NOW

SCHEMA: Final = """
node Doc {
  name: String @key
  body: String? @index
  title: String @index(analyzer="simple")
  v: Vector(2)? @index(kind="ivf_flat", metric="l2")
  w: Vector(2) @index(kind="ivf_flat")
  n: I64?
}
edge Cites: Doc -> Doc { why: String? }
"""
CATALOG: Final = parse_schema(SCHEMA)
NAMES: Final = tuple("abcdefgh")
UPDATE: Final = """query q($name: String, $body: String?, $v: Vector(2)?) {
  update Doc set { body: $body, v: $v } where name = $name
}"""
DELETE: Final = "query q($name: String) { delete Doc where name = $name }"


@dataclass(frozen=True, slots=True)
class Put:
    """Documents are loaded, new ones and known ones."""

    docs: Mapping[str, Mapping[str, Value]]
    index: bool


@dataclass(frozen=True, slots=True)
class Update:
    """A document gets another text and another vector."""

    name: str
    doc: Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class Delete:
    """A document goes, with what it cites and what cites it."""

    name: str


@dataclass(frozen=True, slots=True)
class Cite:
    """Documents cite others."""

    pairs: list[tuple[str, str]]
    why: str | None


@dataclass(frozen=True, slots=True)
class Maintain:
    """Indexes are built, or rows and indexes rewritten."""

    optimizes: bool


@dataclass(frozen=True, slots=True)
class Branch:
    """A branch starts here, with the indexes of where it is from, and is changed from now on."""


@dataclass(frozen=True, slots=True)
class Ask:
    """A query, of the branch as it is or of a commit of the past."""

    case: SearchCase
    age: int


Step = Put | Update | Delete | Cite | Maintain | Branch | Ask


@st.composite
def steps(draw: st.DrawFn) -> Step:
    """One thing that happens."""
    names = st.sampled_from(NAMES)
    match draw(
        st.sampled_from(("put", "update", "delete", "cite", "maintain", "branch", *["ask"] * 3))
    ):
        case "put":
            chosen = draw(st.lists(names, min_size=1, max_size=5, unique=True))
            return Put({name: draw(document(name)) for name in chosen}, draw(st.booleans()))
        case "update":
            return Update(name := draw(names), draw(document(name)))
        case "delete":
            return Delete(draw(names))
        case "cite":
            pairs = draw(st.lists(st.tuples(names, names), min_size=1, max_size=6))
            return Cite(pairs, draw(st.none() | texts()))
        case "maintain":
            return Maintain(draw(st.booleans()))
        case "branch":
            return Branch()
        case _:
            return Ask(draw(search_queries()), draw(st.integers(0, 4)))


@dataclass
class Model:
    """What a branch has."""

    docs: dict[str, dict[str, Value]] = field(default_factory=dict)
    edges: list[tuple[str, str, str | None]] = field(default_factory=list)

    def reference(self) -> ReferenceGraph:
        docs: list[Row] = [{"id": name, **doc} for name, doc in self.docs.items()]
        edges: list[Row] = [
            {"id": str(place), "src": source, "dst": target, "why": why}
            for place, (source, target, why) in enumerate(self.edges)
        ]
        return ReferenceGraph({"Doc": docs, "Cites": edges})


@dataclass
class Walk:
    """A graph, the model of its branch, and those of its commits."""

    graph: Graph
    engines: tuple[str, ...]
    branch: str = MAIN
    model: Model = field(default_factory=Model)
    past: list[tuple[str, Model]] = field(default_factory=list)

    def take(self, step: Step) -> None:
        """Do what happens to the graph and to the model."""
        match step:
            case Put(docs, index):
                rows = [{key: _plain(value) for key, value in doc.items()} for doc in docs.values()]
                given: dict[str, Any] = {"branch": self.branch, "engine": "local"}
                self.graph.load({"Doc": rows}, mode="merge", index=index, **given)
                self.model.docs |= {name: dict(doc) for name, doc in docs.items()}
            case Update(name, doc):
                if name not in self.model.docs:
                    return
                values = {"name": name, "body": doc["body"], "v": _plain(doc["v"])}
                self.graph.mutate(UPDATE, values, branch=self.branch)
                self.model.docs[name] |= {"body": doc["body"], "v": doc["v"]}
            case Delete(name):
                if self.model.docs.pop(name, None) is None:
                    return
                self.graph.mutate(DELETE, {"name": name}, branch=self.branch)
                edges = self.model.edges
                self.model.edges = [edge for edge in edges if name not in edge[:2]]
            case Cite(pairs, why):
                pairs = [pair for pair in pairs if set(pair) <= self.model.docs.keys()]
                if not pairs:
                    return
                rows = [{"from": one, "to": other, "why": why} for one, other in pairs]
                given = {"branch": self.branch, "engine": "local"}
                self.graph.load({"Cites": rows}, mode="append", **given)
                self.model.edges += [(*pair, why) for pair in pairs]
            case Maintain(optimizes):
                if optimizes:
                    self.graph.optimize(branch=self.branch, engine="local")
                else:
                    self.graph.ensure_indices(branch=self.branch, engine="local")
            case Branch():
                branch = f"b{len(self.past)}"
                self.graph.branches.create(branch, branch=self.branch)
                self.branch = branch
            case Ask(case, age):
                self.ask(case, age)
                return
        head = self.graph.snapshot(branch=self.branch).head.commit_id
        self.past.append((str(head), deepcopy(self.model)))

    def ask(self, case: SearchCase, age: int) -> None:
        """Compare what engines find with what the reference finds."""
        (query,) = compile_queries(case.text, CATALOG)
        assert isinstance(query, ir.ReadQuery)
        places: list[tuple[dict[str, Any], Model]] = [({"branch": self.branch}, self.model)]
        if age and len(self.past) >= age:
            commit, model = self.past[-age]
            places.append(({"commit": commit}, model))
        for place, model in places:
            values = bind(query, case.values)
            expected = evaluate(query, model.reference(), values, NOW)
            for engine in self.engines:
                rows = self.graph.query(case.text, case.values, engine=engine, **place).rows()
                try:
                    assert_same_rows(query, expected, rows)
                except AssertionError as error:
                    error.add_note(f"{case}\n{place} on {engine}\n{model}")
                    raise


def _plain(value: Value) -> Any:
    return [*value] if isinstance(value, tuple) else value


def run(history: list[Step], engines: tuple[str, ...]) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patches:
        # Small graphs take every way to the best rows of a scope that large ones take.
        patches.setattr(cuts, "CUT_TABLE_ROWS_MIN", 0)
        patches.setattr(cuts, "CUT_CANDIDATES_PER_ROW", 1)
        patches.setattr(cuts, "SCOPED_SHARE_MAX", 0.5)
        patches.setattr(indexes, "VECTOR_SEGMENT_ROWS_MIN", 2)
        walk = Walk(omnigraph.init(Path(folder, "graph"), SCHEMA), engines)
        for step in history:
            walk.take(step)


def histories(length: int) -> st.SearchStrategy[list[Step]]:
    """Steps that end with questions."""
    asked = st.lists(st.builds(Ask, search_queries(), st.integers(0, 4)), min_size=2, max_size=4)
    first = st.lists(steps(), min_size=3, max_size=length)
    return st.tuples(first, asked).map(lambda both: [*both[0], *both[1]])


ordinary = settings(
    deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


@given(history=histories(8))
@settings(ordinary, max_examples=6)
def test_searches_agree_with_the_reference_after_any_history(history: list[Step]) -> None:
    run(history, ("local",))


@pytest.mark.soak
@pytest.mark.timeout(3_600)
@given(history=histories(20))
@settings(ordinary, max_examples=300)
def test_searches_agree_with_the_reference_after_long_histories(history: list[Step]) -> None:
    run(history, ("local",))


@pytest.mark.soak
@pytest.mark.timeout(3_600)
@pytest.mark.usefixtures("spark")
@given(history=histories(10))
@settings(ordinary, max_examples=15)
def test_spark_agrees_with_the_reference_after_histories(history: list[Step]) -> None:
    run(history, ("local", "spark"))
