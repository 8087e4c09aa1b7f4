"""Arrays count against the memory of a query, are used while they fit, and change no answer."""

import gc
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.backends.local import LocalBackend
from omnigraph.engine.local.matching import matcher, memory
from omnigraph.engine.local.matching.match import MatchedGraph
from omnigraph.engine.local.matching.results import answer
from omnigraph.errors import ErrorCode, LimitExceededError
from omnigraph.relational.patterns import PatternPlan

PEOPLE, EDGES = 20_000, 400_000
SCHEMA = """
node Person { number: I64 @key  age: I64  name: String }
edge Knows: Person -> Person { weight: I64 }
"""
QUERIES = {
    "count": "match { $a knows $b  $b knows $c } return { count($c) as n }",
    "edges": "match { $a $k:knows $b } return { $a.age as age, sum($k.weight) as w }",
    "either": """match { $a <knows> $b } return { $a.number as a, count($b) as n }
        order { n desc } limit 5""",
    "pairs": "match { $a knows $b  $a.age < 20 } return { $a.name as a, $b.name as b }",
    "groups": """match { $a knows $b  $b knows $c  $a.age < 6 }
        return { $a.number as a, $c.number as c, count($b) as n } order { n desc } limit 3""",
    "strangers": """match { $a knows $b  $b knows $c  $a.age = 3  not { $a knows $c } }
        return { count($b) as n }""",
}
GATING = {("edges", "48MB"), ("groups", "24MB")}
LIMITS = [
    pytest.param(name, limit, marks=[] if (name, limit) in GATING else [pytest.mark.soak])
    for name in QUERIES
    for limit in ("16MB", "24MB", "48MB", "400MB")
]
MEGABYTE = 1_000_000
UNCOUNTED = 2 * MEGABYTE
"""What a query takes beside what it counts: the plan, masks of conditions, values of columns."""


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> Path:
    uri = tmp_path_factory.mktemp("memory") / "graph"
    dice = np.random.default_rng(16)
    ends = dice.integers(0, PEOPLE, (2, EDGES)).astype(str)
    numbers = np.arange(PEOPLE)
    omnigraph.init(uri, SCHEMA).load(
        {
            "Person": pa.table(
                {
                    "number": numbers,
                    "age": dice.integers(0, 99, PEOPLE),
                    "name": [f"person {number}" for number in numbers],
                }
            ),
            "Knows": pa.table(
                {"from": ends[0], "to": ends[1], "weight": dice.integers(0, 9, EDGES)}
            ),
        },
        engine="local",
        index=False,
    )
    return uri


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Has an entry for each answer by arrays."""
    counted: list[int] = []

    def count(matching: PatternPlan, graph: MatchedGraph) -> pa.Table:
        rows = answer(matching, graph)
        counted.append(1)
        return rows

    monkeypatch.setattr(matcher, "answer", count)
    return counted


def asked(name: str) -> str:
    return f"query q() {{ {QUERIES[name]} }}"


def test_a_limit_leaves_arrays_in_use_and_explain_says_so(uri: Path, answers: list[int]) -> None:
    graph = omnigraph.open(uri, read_only=True)
    text = asked("count")
    assert graph.query(text, memory="100MB").rows() == graph.query(text).rows()
    assert len(answers) == 2
    because = "its edges fit into the memory of 100MB that it may hold"
    assert graph.explain(text, memory="100MB").means == f"arrays ({because})"
    # Arrays that are there take less than what it takes to build them.
    assert graph.explain(text, memory="16MB").means.startswith("arrays (")
    fresh = omnigraph.open(uri, read_only=True).explain(text, memory="16MB").means
    limit = "the memory of 16MB that it may hold"
    assert fresh == f"SQL (its arrays take 16MB, which do not fit into {limit})"


def test_the_setting_of_a_graph_is_explained_too(tmp_path: Path) -> None:
    graph = omnigraph.init(tmp_path / "graph", SCHEMA)
    graph.settings.set("query.memory", "64MB")
    assert "memory of 64MB" in graph.explain(asked("count")).means
    assert "memory of" not in graph.explain(asked("count"), memory="none").means


def measure(graph: Graph, ask: Callable[[], pa.Table]) -> tuple[pa.Table | None, int]:
    """The rows, or None where memory did not suffice, and the bytes of numpy at the worst time."""
    backend = graph._queries.local
    assert isinstance(backend, LocalBackend)
    gc.collect()
    before = sum(each.nbytes for each in backend._engine.topologies._kept.values())
    tracemalloc.start()
    try:
        rows = ask()
    except LimitExceededError as error:
        if error.code is not ErrorCode.QUERY_MEMORY:
            raise
        rows = None
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    return rows, before + peak


def excess(uri: Path, answers: list[int], name: str, limit: str) -> int:
    """How many bytes a query on arrays held above its limit, at most, asked twice."""
    plain, graph = (omnigraph.open(uri, read_only=True) for _ in range(2))
    expected = plain.query(asked(name)).arrow()
    # Columns that the handle keeps are not counted.
    graph.query("query q() { match { $p: Person } return { $p.age, $p.name } }")
    most = 0
    for _ in range(2):
        answers.clear()
        rows, held = measure(graph, lambda: graph.query(asked(name), memory=limit).arrow())
        assert rows is None or rows == expected
        if answers:
            most = max(most, held - int(limit.removesuffix("MB")) * MEGABYTE)
    return most


@pytest.mark.parametrize(("name", "limit"), LIMITS)
def test_what_a_match_holds_stays_below_the_limit(
    uri: Path, answers: list[int], name: str, limit: str
) -> None:
    assert excess(uri, answers, name, limit) <= UNCOUNTED


def test_more_than_the_limit_would_be_seen(
    uri: Path, answers: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory.Memory, "has_room", lambda *_: True)
    assert excess(uri, answers, "groups", "24MB") > UNCOUNTED
