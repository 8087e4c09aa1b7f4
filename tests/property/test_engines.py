"""Engines agree with the reference on random schemas, graphs and queries."""

import itertools
import random
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, event, given, seed, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from sqlglot.expressions import EQ, Coalesce, Literal, Not, and_, false

from omnigraph.engine.local.execute import LocalEngine
from omnigraph.engine.local.matching import (
    grouping,
    hops,
    join,
    match,
    messages,
    results,
    weights,
)
from omnigraph.engine.protocol import Engine
from omnigraph.engine.spark.execute import SparkEngine
from omnigraph.errors import ErrorCode, InvalidInputError
from omnigraph.model.names import TypeName
from omnigraph.model.tables import TableKey
from omnigraph.query import ir
from omnigraph.query.compile import compile_queries
from omnigraph.query.lowering import expressions, plan, row_tables, rows, subqueries
from omnigraph.query.parameters import bind
from omnigraph.relational import expressions as numbers
from omnigraph.relational.trees import column
from omnigraph.schema.catalog import Catalog
from omnigraph.schema.printer import print_schema
from omnigraph.storage import selections
from omnigraph.storage.tables import Table
from tests.oracle.aggregates import SumTooLargeError
from tests.oracle.comparisons import assert_same_rows, is_left_to_rounding
from tests.oracle.reference import ReferenceGraph, evaluate
from tests.strategies.graphs import graphs, query_catalogs
from tests.strategies.queries import Construct, QueryCase, read_queries, small_queries
from tests.support.engines import answer, index_everything, store_tables
from tests.support.query_cases import NOW

SMALL_QUERIES = 20_000

EXAMPLES_PER_SEED = 10
"""After ten examples, Hypothesis draws mostly copies: of 1,200 queries only 350 were different."""

QUERIES_PER_GRAPH = 12
"""Writing a graph takes longer than querying it, so each is used for several queries."""


Rows = list[dict[str, ir.Value]]


@dataclass(frozen=True, slots=True)
class Question:
    """A graph and queries over it; `repr` is short, and a failure names the query."""

    catalog: Catalog
    graph: ReferenceGraph
    asked: list[QueryCase]

    def __repr__(self) -> str:
        return f"<{len(self.asked)} queries>"


GATED_TEXT_MAX = 1_500
"""Characters of a query at the gate: a longer one can take the local engine seconds."""

GATED_SPARK_TEXT_MAX = 700
"""The same for Spark, which plans a long query for minutes."""


@st.composite
def questions(draw: st.DrawFn, text_max: int | None = None) -> Question:
    catalog = draw(query_catalogs())
    graph = draw(graphs(catalog))
    queries = read_queries(catalog)
    if text_max is not None:
        queries = queries.filter(lambda case: len(case.text) <= text_max)
    small = small_queries(catalog)
    # Mostly small ones: an engine answers ten of them in the time of a long one.
    any_ = st.one_of(small, small, queries)
    asked = draw(st.lists(any_, min_size=1, max_size=QUERIES_PER_GRAPH))
    return Question(catalog, graph, asked)


@st.composite
def small_questions(draw: st.DrawFn, about: frozenset[Construct] = frozenset()) -> Question:
    catalog = draw(query_catalogs())
    queries = small_queries(catalog, about)
    asked = st.lists(queries, min_size=QUERIES_PER_GRAPH, max_size=QUERIES_PER_GRAPH)
    return Question(catalog, draw(graphs(catalog)), draw(asked))


CRAMPED = {
    (hops, "MATCHED_BLOCK_STEPS"): 2,
    (hops, "WALKED_BLOCK_BYTES"): 8,
    (join, "MATCHED_BLOCK_STEPS"): 2,
    (join, "_ROWS_PER_RUN_MIN"): 1,
    (match, "_SMALL_ROWS_MAX"): 0,
    (grouping, "MATCHED_BLOCK_STEPS"): 0,
    (grouping, "_MERGED_ROWS_MIN"): 2,
    (results, "_SORTED_ROWS_MAX"): 2,
}
"""Limits with which a graph of a few rows is matched as one of millions is."""


def check(
    engines: Sequence[Engine], question: Question, *, indexed: bool, cramped: bool = False
) -> None:
    """Compare engines with the reference, with rows found by every index that can be, or none.

    Args:
        cramped: Match in blocks of a few rows, as large graphs are.
    """
    if indexed:
        question = replace(question, catalog=index_everything(question.catalog))
    catalog, graph = question.catalog, question.graph
    with tempfile.TemporaryDirectory() as root, pytest.MonkeyPatch.context() as patch:
        # Even of a small table, and even if most rows pass.
        patch.setattr(selections, "SELECTED_TABLE_ROWS_MIN", 0)
        patch.setattr(selections, "SELECTED_SHARE_MAX", 1)
        for (where, name), limit in CRAMPED.items() if cramped else ():
            patch.setattr(where, name, limit)
        tables = store_tables(Path(root), graph, catalog, indexed=indexed)
        for case in question.asked:
            try:
                compare(engines, tables, question, case)
            except Exception as error:
                rows = "\n".join(f"{name}: {each}" for name, each in graph.rows.items())
                error.add_note(f"{case.text}\n{case.values}\n{print_schema(catalog)}\n{rows}")
                raise


def compare(
    engines: Sequence[Engine],
    tables: Mapping[TableKey, Table],
    question: Question,
    case: QueryCase,
) -> None:
    """Run the same query on the engines and on the reference."""
    catalog, graph = question.catalog, question.graph
    (query,) = compile_queries(case.text, catalog)
    assert isinstance(query, ir.ReadQuery)
    values = bind(query, case.values)
    expected = unless_too_large(lambda: evaluate(query, graph, values, NOW))
    for engine in engines:
        rows = unless_too_large(partial(answer, engine, tables, query, catalog, values))
        if expected is not None and rows is not None:
            event("rows" if expected else "no rows")
            assert_same_rows(query, expected, rows)
        elif not is_left_to_rounding(query):
            event("a sum that does not fit")
            assert rows == expected, f"{rows}, not {expected}"


def unless_too_large(ask: Callable[[], Rows]) -> Rows | None:
    """The rows, or None if one of them would hold a sum that does not fit."""
    try:
        return ask()
    except SumTooLargeError:
        return None
    except InvalidInputError as refused:
        if refused.code is not ErrorCode.VALUE_OUT_OF_RANGE:
            raise
        return None


ordinary = settings(
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


BY_ARRAYS = LocalEngine()
BY_SQL = LocalEngine(uses_arrays=False)


@given(question=questions(GATED_TEXT_MAX), indexed=st.booleans(), cramped=st.booleans())
@ordinary
def test_the_local_engine_agrees_with_the_reference(
    question: Question, *, indexed: bool, cramped: bool
) -> None:
    check([BY_ARRAYS, BY_SQL], question, indexed=indexed, cramped=cramped)


TYPED_BLOCKS = (
    frozenset([Construct.TYPES, Construct.SUBQUERY]),
    frozenset([Construct.TYPES, Construct.OPTIONAL, Construct.GROUP]),
)
"""Blocks about a variable of several types: some fit only one of them."""


def ask_afresh(
    ask: Callable[[Question], None],
    drawn: st.SearchStrategy[Question],
    options: settings,
    seeds: Iterable[int],
) -> None:
    """Check ten questions of each seed, few of which are copies of others."""
    limited = settings(options, max_examples=EXAMPLES_PER_SEED)
    for each in seeds:

        @seed(each)
        @limited
        @given(drawn)
        def asks(question: Question) -> None:
            ask(question)

        asks()


@pytest.mark.parametrize("about", TYPED_BLOCKS, ids=["subqueries", "optional parts"])
def test_arrays_agree_with_the_reference_about_blocks_of_one_of_several_types(
    about: frozenset[Construct],
) -> None:
    def agrees(question: Question) -> None:
        check([BY_ARRAYS], question, indexed=False)

    ask_afresh(agrees, small_questions(about), ordinary, range(2))


@pytest.mark.soak
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("about", TYPED_BLOCKS, ids=["subqueries", "optional parts"])
def test_engines_agree_with_the_reference_about_many_blocks_of_one_of_several_types(
    about: frozenset[Construct],
) -> None:
    def agrees(question: Question) -> None:
        check([BY_ARRAYS, BY_SQL], question, indexed=False)

    ask_afresh(agrees, small_questions(about), ordinary, new_seeds(50))


def new_seeds(count: int) -> list[int]:
    """Seeds that no run had before."""
    return [random.getrandbits(64) for _ in range(count)]


# With 40,000 examples it takes longer than its timeout.
@pytest.mark.soak
@pytest.mark.timeout(3_600)
@given(question=questions(), cramped=st.booleans())
@settings(ordinary, max_examples=ordinary.max_examples * 15)
def test_arrays_and_sql_agree_with_the_reference_on_many_queries(
    question: Question, *, cramped: bool
) -> None:
    check([BY_ARRAYS, BY_SQL], question, indexed=False, cramped=cramped)


@pytest.mark.soak
@pytest.mark.timeout(3_600)
def test_engines_agree_with_the_reference_on_twenty_thousand_small_queries() -> None:
    answered: set[tuple[str, str]] = set()

    def agrees(question: Question, *, indexed: bool, cramped: bool) -> None:
        check([BY_ARRAYS, BY_SQL], question, indexed=indexed, cramped=cramped)
        answered.update((case.text, repr(case.values)) for case in question.asked)

    while len(answered) < SMALL_QUERIES:
        for indexed, cramped in itertools.product([False, True], repeat=2):
            ask = partial(agrees, indexed=indexed, cramped=cramped)
            ask_afresh(ask, small_questions(), ordinary, new_seeds(1))


@pytest.fixture(scope="module")
def spark_engine(spark: SparkSession) -> SparkEngine:
    return SparkEngine(spark)


@given(question=questions(GATED_SPARK_TEXT_MAX))
@settings(ordinary, max_examples=ordinary.max_examples // 8)
def test_spark_agrees_with_the_reference(spark_engine: SparkEngine, question: Question) -> None:
    check([spark_engine], question, indexed=False)


@pytest.mark.soak
@pytest.mark.timeout(3_600)
@given(question=small_questions())
@settings(ordinary, max_examples=40)
def test_spark_agrees_with_the_reference_on_hundreds_of_small_queries(
    spark_engine: SparkEngine, question: Question
) -> None:
    check([spark_engine], question, indexed=False)


# At the gate, fixed queries find most of these faults (tests/contract/engine/test_arrays.py).
@pytest.mark.parametrize(
    ("engine", "where", "name", "planted"),
    [
        pytest.param(
            BY_SQL,
            rows,
            "_subtract",
            lambda _, kept, __: kept,
            id="negations, SQL",
            marks=pytest.mark.soak,
        ),
        pytest.param(
            BY_SQL,
            rows,
            "sum_weights",
            lambda _: Literal.number(1),
            id="weights, SQL",
            marks=pytest.mark.soak,
        ),
        pytest.param(
            BY_SQL,
            rows,
            "or_one",
            lambda weight: weight,
            id="weights of optional parts",
            marks=pytest.mark.soak,
        ),
        pytest.param(
            BY_SQL,
            row_tables.Rows,
            "same",
            lambda self, ids, other, *, ours, theirs: and_(
                *(
                    EQ(
                        this=column(self.columns[use], ours),
                        expression=column(other.columns[use], theirs),
                    )
                    for use in ids
                )
            ),
            id="what is missing is equal",
            marks=pytest.mark.soak,
        ),
        pytest.param(BY_SQL, plan, "_count", lambda *_: None, id="limits"),
        pytest.param(
            BY_SQL,
            rows,
            "keys_of",
            lambda part, _: [(each, "id") for each in part.outer if each != ir.KEPT],
            id="values that a stage kept",
            marks=pytest.mark.soak,
        ),
        pytest.param(
            BY_SQL,
            subqueries,
            "_or_nothing",
            lambda _, value: value,
            id="a count of nothing",
            marks=pytest.mark.soak,
        ),
        pytest.param(
            BY_SQL,
            expressions._Trees,
            "_inverse",
            lambda self, condition: Not(
                this=Coalesce(this=self.tree(condition), expressions=[false()])
            ),
            id="unknown is not false",
            marks=pytest.mark.soak,
        ),
        pytest.param(
            BY_ARRAYS,
            match.PatternMatch,
            "_without",
            lambda self, variable, _: self.listed(variable),
            id="negations",
            marks=pytest.mark.soak,
        ),
        pytest.param(
            BY_ARRAYS,
            weights,
            "multiply",
            lambda values, _: values,
            id="weights",
            marks=pytest.mark.soak,
        ),
        pytest.param(
            BY_ARRAYS,
            hops.PairHop,
            "has_factor",
            False,
            id="parallel edges",
            marks=pytest.mark.soak,
        ),
        pytest.param(
            BY_ARRAYS,
            join,
            "are_linked",
            lambda *pairs: np.ones(len(pairs[2]), np.bool_),
            id="membership",
            marks=pytest.mark.soak,
        ),
        pytest.param(
            BY_ARRAYS,
            hops.WalkHop,
            "_walk",
            lambda self, nodes: hops.PairHop(self.adjacency).expand(nodes),
            id="walks",
            marks=pytest.mark.soak,
        ),
    ],
)
@pytest.mark.filterwarnings("ignore:Generating overly large repr")
def test_the_comparison_finds_a_planted_bug(
    monkeypatch: pytest.MonkeyPatch, engine: Engine, where: object, name: str, planted: object
) -> None:
    monkeypatch.setattr(where, name, planted)
    if name == "multiply":
        for user in (messages, join, match):
            monkeypatch.setattr(user, name, planted)

    assert_differs(engine, questions(), 1_000)


def assert_differs(engine: Engine, drawn: st.SearchStrategy[Question], examples: int) -> None:
    """Some of the questions show that the engine differs from the reference."""

    def agrees(question: Question) -> None:
        check([engine], question, indexed=False)

    options = settings(ordinary, database=None, phases=[Phase.generate], report_multiple_bugs=False)
    with pytest.raises((AssertionError, KeyError, pytest.fail.Exception)):
        ask_afresh(agrees, drawn, options, range(examples // EXAMPLES_PER_SEED))


def bind_by_edges(name: str, block: ir.Block, catalog: Catalog) -> ir.NodeBinding | None:
    """Bind a variable outside a block to the type that the edges of the block have there."""
    types: set[str] = set()
    for traversal in block.traversals:
        for step in traversal.steps:
            edge = catalog.edge_type(step.edge_type)
            is_reversed = step.direction is ir.Direction.IN
            ends = (edge.target, edge.source) if is_reversed else (edge.source, edge.target)
            if traversal.source == name:
                types.add(ends[0])
            if traversal.destination == name:
                types.add(ends[1])
    return ir.NodeBinding(name, TypeName(types.pop())) if len(types) == 1 else None


multiply_all = join._multiply_all


@pytest.mark.parametrize(
    ("engine", "where", "name", "planted", "about"),
    [
        *(
            pytest.param(BY_ARRAYS, subqueries, "_outer_node", bind_by_edges, about, id=shown)
            for about, shown in zip(
                TYPED_BLOCKS,
                ("subqueries of one of several types", "optional parts of one of several types"),
                strict=True,
            )
        ),
        pytest.param(
            BY_SQL,
            numbers,
            "_rank",
            lambda value: (False, value),
            {Construct.CONSTANT},
            id="NaN among parameters",
            marks=pytest.mark.soak,
        ),
        pytest.param(
            BY_ARRAYS,
            join,
            "_multiply_all",
            lambda match, found: multiply_all(match, found) if found.count else found,
            {Construct.CONSTANT, Construct.GROUP},
            id="totals of nothing beside constants",
            marks=pytest.mark.soak,
        ),
    ],
)
@pytest.mark.filterwarnings("ignore:Generating overly large repr")
def test_small_queries_find_a_bug_of_their_constructs(
    monkeypatch: pytest.MonkeyPatch,
    engine: Engine,
    where: object,
    name: str,
    planted: object,
    about: set[Construct],
) -> None:
    monkeypatch.setattr(where, name, planted)
    assert_differs(engine, small_questions(frozenset(about)), 300)
