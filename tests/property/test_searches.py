"""Searches agree with the reference on random graphs, and obey laws that hold for every scope."""

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, event, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from sqlglot import exp

from omnigraph.engine import search_parts
from omnigraph.engine.local import cuts, searching
from omnigraph.engine.local.execute import LocalEngine
from omnigraph.engine.protocol import Engine
from omnigraph.engine.spark.execute import SparkEngine
from omnigraph.query import ir
from omnigraph.query.compile import compile_queries
from omnigraph.query.lowering import scores as lowered_scores
from omnigraph.query.lowering import searching as lowered_searches
from omnigraph.query.parameters import bind
from omnigraph.schema.catalog import Catalog
from omnigraph.schema.printer import print_schema
from tests.oracle.comparisons import assert_same_rows
from tests.oracle.reference import ReferenceGraph, evaluate
from tests.strategies.searches import (
    SearchCase,
    looked_for,
    search_catalogs,
    search_graphs,
    search_queries,
    vectors,
)
from tests.support.engines import answer, store_tables
from tests.support.query_cases import NOW

QUERIES_PER_GRAPH = 12

LOCAL = LocalEngine()

ordinary = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


@pytest.fixture(autouse=True, scope="module")
def small_tables() -> Iterator[None]:
    """Small graphs take every way to the best rows of a scope that large ones take."""
    with pytest.MonkeyPatch.context() as patches:
        patches.setattr(cuts, "CUT_TABLE_ROWS_MIN", 0)
        patches.setattr(cuts, "CUT_CANDIDATES_PER_ROW", 1)
        patches.setattr(cuts, "SCOPED_SHARE_MAX", 0.5)
        yield


@dataclass(frozen=True, slots=True)
class Question:
    """A graph and searches in it; `repr` is short, and a failure names the query."""

    catalog: Catalog
    graph: ReferenceGraph
    asked: list[SearchCase]

    def __repr__(self) -> str:
        return f"<{len(self.asked)} queries>"


def questions_of(queries_max: int) -> st.SearchStrategy[Question]:
    queries = st.lists(search_queries(), min_size=1, max_size=queries_max)
    return st.builds(Question, search_catalogs(), search_graphs(), queries)


questions = questions_of(QUERIES_PER_GRAPH)


def check(engine: Engine, question: Question, *, indexed: bool = False) -> None:
    catalog, graph = question.catalog, question.graph
    with tempfile.TemporaryDirectory() as root:
        tables = store_tables(Path(root), graph, catalog, indexed=indexed)
        for case in question.asked:
            (query,) = compile_queries(case.text, catalog)
            assert isinstance(query, ir.ReadQuery)
            values = bind(query, case.values)
            try:
                expected = evaluate(query, graph, values, NOW)
                event("rows" if expected else "no rows")
                assert_same_rows(query, expected, answer(engine, tables, query, catalog, values))
            except Exception as error:
                rows = "\n".join(f"{name}: {each}" for name, each in graph.rows.items())
                error.add_note(f"{case}\n{print_schema(catalog)}\n{rows}")
                raise


@given(question=questions, indexed=st.booleans())
@settings(ordinary, max_examples=max(10, ordinary.max_examples // 2))
def test_searches_agree_with_the_reference(question: Question, *, indexed: bool) -> None:
    check(LOCAL, question, indexed=indexed)


@pytest.mark.soak
@given(question=questions, indexed=st.booleans())
@settings(ordinary, max_examples=ordinary.max_examples * 20)
def test_many_searches_agree_with_the_reference(question: Question, *, indexed: bool) -> None:
    check(LOCAL, question, indexed=indexed)


@pytest.fixture(scope="module")
def spark_engine(spark: SparkSession) -> SparkEngine:
    return SparkEngine(spark)


@given(question=questions_of(3))
@settings(ordinary, max_examples=max(2, ordinary.max_examples // 40))
def test_searches_on_spark_agree_with_the_reference(
    spark_engine: SparkEngine, question: Question
) -> None:
    check(spark_engine, question)


@pytest.mark.parametrize(
    ("where", "name", "planted"),
    [
        pytest.param(
            search_parts,
            "rows_with_any",
            lambda column, _: np.arange(column.row_count),
            id="tests",
            marks=pytest.mark.soak,
        ),
        pytest.param(
            searching,
            "scores",
            lambda _, counts, lengths, __: counts.sum(axis=1) / lengths,
            id="statistics",
        ),
        pytest.param(
            searching,
            "are_best",
            lambda values, best, **_: np.arange(len(values)) < best,
            id="best",
            marks=pytest.mark.soak,
        ),
        pytest.param(
            search_parts,
            "distances",
            lambda _, vectors, __: np.arange(len(vectors), dtype=np.float64),
            id="distances",
            marks=pytest.mark.soak,
        ),
        pytest.param(
            lowered_searches,
            "passes",
            lambda *_: exp.true(),
            id="joins of tests",
            marks=pytest.mark.soak,
        ),
        pytest.param(lowered_scores, "_window", lambda _: 1, id="fusion", marks=pytest.mark.soak),
    ],
)
def test_the_comparison_finds_a_planted_fault(
    monkeypatch: pytest.MonkeyPatch, where: object, name: str, planted: object
) -> None:
    if name == "passes":
        monkeypatch.setattr("omnigraph.query.lowering.rows.passes", planted)
    monkeypatch.setattr(where, name, planted)

    @given(questions)
    @settings(
        ordinary,
        max_examples=500,
        database=None,
        phases=[Phase.generate],
        report_multiple_bugs=False,
    )
    def agrees(question: Question) -> None:
        check(LOCAL, question)

    with pytest.raises((AssertionError, pytest.fail.Exception)):
        agrees()


SCOPES = (
    "$d.n >= 1",
    "$d.n is null",
    "$d cites $x",
    "$x cites $d $x.n >= 1",
    "not { $d cites $x }",
    'search($d.title, "graph lake")',
    'not { $x cites $d fuzzy($x.body, "graph") }',
)


@given(
    catalog=search_catalogs(),
    graph=search_graphs(),
    text=looked_for(),
    vector=vectors.filter(any),
    scopes=st.lists(st.sampled_from(SCOPES), min_size=1, max_size=2, unique=True),
    limit=st.integers(1, 4),
    indexed=st.booleans(),
)
@settings(ordinary, max_examples=max(10, ordinary.max_examples // 2))
def test_a_scope_brings_no_row_in_fills_the_limit_and_keeps_the_order(
    catalog: Catalog,
    graph: ReferenceGraph,
    text: str,
    vector: tuple[float, float],
    scopes: list[str],
    limit: int,
    *,
    indexed: bool,
) -> None:
    def asked(match: str, ranking: str, limit: int) -> list[tuple[Any, ...]]:
        query_text = (
            f"query q($t: String, $v: Vector(2)) {{ match {{ {match} }}"
            f" return {{ $d.name {ranking} as score }} order {{ score }} limit {limit} }}"
        )
        (query,) = compile_queries(query_text, catalog)
        assert isinstance(query, ir.ReadQuery)
        values = {"t": text, "v": vector}
        rows = answer(LOCAL, tables, query, catalog, bind(query, values))
        return [tuple(row.values()) for row in rows]

    names = ("x", "y")
    numbered = [scope.replace("$x", f"${name}") for scope, name in zip(scopes, names, strict=False)]
    scope = f"$d: Doc {' '.join(numbered)}"
    with tempfile.TemporaryDirectory() as root:
        tables = store_tables(Path(root), graph, catalog, indexed=indexed)
        for ranking in ("bm25($d.body, $t)", "nearest($d.v, $v)"):
            every, within = asked("$d: Doc", ranking, 1000), asked(scope, ranking, 1000)
            # A document that is matched twice is two rows of the scope.
            kept = [row for row in every if row in within]
            assert kept == [*dict.fromkeys(within)], "a scope leaves scores and order as they are"
            first = asked(scope, ranking, limit)
            assert first == within[:limit], "a limit is filled while rows match"
        # The ranks that a fusion adds up are those within the scope, so only its rows are compared.
        fusion = "rrf(bm25($d.body, $t), nearest($d.v, $v))"
        every, within = asked("$d: Doc", fusion, 1000), asked(scope, fusion, 1000)
        assert {row[0] for row in within} <= {row[0] for row in every}
        assert asked(scope, fusion, limit) == within[:limit], "a limit is filled while rows match"
