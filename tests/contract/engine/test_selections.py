"""Filters on indexed properties: rows found by indexes are the rows that a reader expects."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest

import omnigraph
from omnigraph.engine.local import reduce
from omnigraph.engine.local.matching.matcher import KEYED_QUERIES_MAX
from omnigraph.engine.local.reduce import Reducer
from omnigraph.graph import Graph
from omnigraph.storage import selections

SCHEMA: Final = """
node V {
  k: String @key
  b: Bool? @index  i32: I32? @index  i64: I64? @index  u32: U32? @index  u64: U64? @index
  f32: F32? @index  f64: F64? @index  d: Date? @index  t: DateTime? @index
  e: enum(low, mid, top)? @index  v: Vector(2)?
}
edge To: V -> V { w: I64? @index  how: enum(fast, slow)? @index }
"""
DAY, NOW = date(1969, 12, 31), datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC)
# the values of row number n, null in every seventh row
VALUES: Final[dict[str, Callable[[int], Any]]] = {
    "b": lambda n: n % 3 == 0,
    "i32": lambda n: [-(2**31), 2**31 - 1, n][min(n, 2)],
    "i64": lambda n: [-(2**63), 2**63 - 1, n % 5][min(n, 2)],
    "u32": lambda n: [0, 2**32 - 1, n][min(n, 2)],
    "u64": lambda n: [0, 2**64 - 1, n][min(n, 2)],
    "f32": lambda n: [0.0, -0.0, math.nan, math.inf, n / 2][min(n, 4)],
    "f64": lambda n: [0.0, -0.0, math.nan, -math.inf, n / 10][min(n, 4)],
    "d": lambda n: DAY + timedelta(days=n),
    "t": lambda n: NOW + timedelta(microseconds=n),
    "e": lambda n: ["low", "mid", "top"][n % 3],
}
# a filter, and the same in Python
FILTERS: Final[dict[str, tuple[str, Callable[[Any], bool]]]] = {
    "b = true": ("b", lambda x: x is True),
    "b = false": ("b", lambda x: x is False),
    "i32 = 7": ("i32", lambda x: x == 7),
    "i32 <= -2147483648": ("i32", lambda x: x <= -(2**31)),
    "i32 > 4.5": ("i32", lambda x: x > 4.5),
    "i32 = 4.5": ("i32", lambda x: x == 4.5),
    "i64 = 3": ("i64", lambda x: x == 3),
    "i64 >= 9223372036854775807": ("i64", lambda x: x >= 2**63 - 1),
    "i64 < 0": ("i64", lambda x: x < 0),
    "u32 >= 4294967295": ("u32", lambda x: x >= 2**32 - 1),
    "u32 > 0": ("u32", lambda x: x > 0),
    "u64 = 18446744073709551615": ("u64", lambda x: x == 2**64 - 1),
    "u64 < 10": ("u64", lambda x: x < 10),
    "f32 = 0.0": ("f32", lambda x: x == 0),
    "f32 > 100000.5": ("f32", lambda x: x > 100_000.5 or math.isnan(x)),
    "f64 = 0": ("f64", lambda x: x == 0),
    "f64 < 0.0": ("f64", lambda x: x < 0),
    "f64 = 0.7": ("f64", lambda x: x == 0.7),
    "f64 >= 2": ("f64", lambda x: x >= 2 or math.isnan(x)),
    'd = date("1970-01-09")': ("d", lambda x: x == date(1970, 1, 9)),
    'd < date("1970-01-03")': ("d", lambda x: x < date(1970, 1, 3)),
    't = datetime("1970-01-01T00:00:00.000007Z")': ("t", lambda x: x.microsecond == 7),
    't <= datetime("1969-12-31T23:59:59.999999Z")': ("t", lambda x: x <= NOW),
    'e = "mid"': ("e", lambda x: x == "mid"),
}
COUNT: Final = 40


def row(number: int, shift: int = 0) -> dict[str, Any]:
    source = number + shift
    values = {name: value(source) for name, value in VALUES.items()} if source % 7 else {}
    return {"k": f"k{number:02}"} | values


def edge(number: int) -> dict[str, Any]:
    ends = {"from": f"k{number:02}", "to": f"k{(number + 1) % COUNT:02}"}
    return {**ends, "w": number % 10, "how": ["fast", "slow"][number % 2]}


@pytest.fixture(autouse=True)
def _select_always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even of a small table, and even if most rows pass."""
    monkeypatch.setattr(selections, "SELECTED_TABLE_ROWS_MIN", 0)
    monkeypatch.setattr(selections, "SELECTED_SHARE_MAX", 1)


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    """Rows that an index covers, some that changed since, some that went, and some that came."""
    graph = omnigraph.init(tmp_path_factory.mktemp("selected") / "graph", SCHEMA)
    first = {"V": [row(n, shift=1) for n in range(30)] + [{"k": "gone", **row(3)} | {"k": "gone"}]}
    graph.load(first, engine="local")
    graph.load({"V": [row(n) for n in range(30)]}, mode="merge", engine="local", index=False)
    graph.mutate('query q() { delete V where k = "gone" }')
    graph.ensure_indices(engine="local")
    late = {"V": [row(n) for n in range(30, COUNT)], "To": [edge(n) for n in range(COUNT)]}
    graph.load(late, mode="append", engine="local", index=False)
    graph.load({"V": [row(5)]}, mode="merge", engine="local", index=False)
    return graph


@pytest.fixture
def selected(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The filters that were answered by indexes."""
    answered: list[str] = []
    estimate = selections.estimate_rows

    def noted(*arguments: Any) -> selections.Estimate:
        result = estimate(*arguments)
        if result.is_few:
            answered.append(arguments[1])
        return result

    monkeypatch.setattr(reduce, "estimate_rows", noted)
    return answered


def keys(graph: Graph, condition: str) -> list[str]:
    query = f"query q() {{ match {{ $v: V  {condition} }} return {{ $v.k }} order {{ $v.k }} }}"
    return [found["v.k"] for found in graph.query(query, engine="local").rows()]


def expected(name: str, passes: Callable[[Any], bool]) -> list[str]:
    rows = [row(number) for number in range(COUNT)]
    # A float of 32 bits is compared as it is stored; these have exact values.
    return [each["k"] for each in rows if each.get(name) is not None and passes(each[name])]


@pytest.mark.parametrize("condition", FILTERS)
def test_an_index_finds_the_rows_that_pass(graph, selected, condition):
    name, passes = FILTERS[condition]

    assert keys(graph, f"$v.{condition}") == expected(name, passes)
    assert keys(graph, f'$v.{condition}  $v.k != "k01"') == [
        key for key in expected(name, passes) if key != "k01"
    ]
    # A comparison that no number of the type satisfies needs no index.
    assert bool(selected) is (condition != "i32 = 4.5")


def test_a_comparison_is_the_same_turned_round(graph):
    assert keys(graph, "7 < $v.i32") == keys(graph, "$v.i32 > 7") != []


def test_several_tests_are_one_filter(graph, selected):
    found = keys(graph, '$v.e = "mid"  $v.u64 < 20  $v.b = false')

    assert found == [
        each["k"]
        for each in map(row, range(COUNT))
        if each.get("e") == "mid" and each["u64"] < 20 and not each["b"]
    ]
    assert len(selected) == 1
    assert all(name in selected[0] for name in ("`e`", "`u64`", "`b`"))


def test_parameters_are_tested_like_literals(graph, selected):
    query = """query q($n: I64, $f: F64, $at: DateTime, $list: [I64]) {
        match { $v: V  $v.i64 = $n  $v.f64 >= $f  $v.t > $at  $list contains $v.i64 }
        return { $v.k } order { $v.k }
    }"""
    for number in (2, 3):
        given = {"n": number, "f": 0.3, "at": NOW, "list": [2, 3, 100]}
        found = [each["v.k"] for each in graph.query(query, given, engine="local").rows()]
        rows = map(row, range(COUNT))
        assert found == [
            each["k"]
            for each in rows
            if each.get("i64") == number and (each["f64"] >= 0.3 or math.isnan(each["f64"]))
        ]
    assert len(selected) == 2


def test_filters_on_edges_and_on_what_they_lead_to(graph, selected):
    graph.ensure_indices(engine="local")
    query = """query q() {
        match { $a: V  $b: V  $a $e:to $b  $e.w = 3  $e.how = "slow"  $b.i32 >= 14 }
        return { $a.k, $b.k } order { $a.k }
    }"""

    found = graph.query(query, engine="local").rows()

    ends = [(n, n + 1) for n in range(COUNT) if n % 10 == 3 and n % 2 and n + 1 >= 14]
    wanted = [(a, b) for a, b in ends if b % 7]
    assert [(each["a.k"], each["b.k"]) for each in found] == [
        (f"k{a:02}", f"k{b:02}") for a, b in wanted
    ]
    assert any("`w`" in each for each in selected)


def test_a_filter_that_many_rows_pass_is_not_answered_by_indexes(graph, selected, monkeypatch):
    monkeypatch.setattr(selections, "SELECTED_SHARE_MAX", 0.1)
    crowded: list[set[str]] = []
    run = Reducer.run

    def noted(self: Reducer) -> Any:
        result = run(self)
        crowded.append(self.crowded)
        return result

    monkeypatch.setattr(Reducer, "run", noted)

    assert keys(graph, "$v.u64 < 1000") == expected("u64", lambda x: x < 1000)
    assert (selected, crowded) == ([], [{"r0"}])


def test_ids_lead_to_rows_before_properties_are_searched(graph, selected):
    query = """query q() {
        match { $a: V {k: "k13"}  $a to $b  $b.i32 >= 14 } return { $b.k }
    }"""
    assert graph.query(query, engine="local").rows() == []
    query = query.replace("k13", "k14")
    assert graph.query(query, engine="local").rows() == [{"b.k": "k15"}]
    assert selected == []


def test_a_mutation_changes_the_rows_that_an_index_finds(tmp_path: Path, selected):
    graph = omnigraph.init(tmp_path / "graph", SCHEMA)
    graph.load({"V": [row(n) for n in range(COUNT)]}, engine="local")

    changed = graph.mutate('query q() { update V set { e: "top" } where i64 = 3 and u64 > 10 }')
    gone = graph.mutate("query q() { delete V where f64 > 3.0 }")

    rows = [row(number) for number in range(COUNT)]
    found = [r for r in rows if r.get("i64") == 3 and r["u64"] > 10]
    assert changed.updated == sum(r.get("e") != "top" for r in found) < len(found)
    assert gone.deleted == len(expected("f64", lambda x: x > 3.0 or math.isnan(x)))
    assert len(selected) == 2


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize(
    "condition", ["b = true", "u64 = 18446744073709551615", "f64 = 0", "i32 = 4.5", 'e = "mid"']
)
def test_spark_finds_the_same_rows(graph, condition):
    name, passes = FILTERS[condition]
    query = f"query q() {{ match {{ $v: V  $v.{condition} }} return {{ $v.k }} order {{ $v.k }} }}"

    found = graph.query(query, engine="spark").rows()

    assert [each["v.k"] for each in found] == expected(name, passes)


def test_explain_says_that_an_index_leads_where_arrays_are_not_there(graph):
    graph.ensure_indices(engine="local")
    # A handle of its own, as others may have made arrays.
    fresh = omnigraph.open(graph.uri)
    led = "query q() { match { $a $e:to $b  $e.w = 3 } return { $a.k } }"
    unled = "query q() { match { $a to $b  not { $a $e:to $c  $e.w = 3 } } return { $a.k } }"

    assert fresh.explain(unled, engine="local").means == ("arrays (its edges fit into memory)")
    by_index = "SQL (an index finds the few rows it starts from, and arrays are not there)"
    assert fresh.explain(led, engine="local").means == by_index
    for _ in range(KEYED_QUERIES_MAX):
        answer = fresh.query(led, engine="local").arrow()
    assert fresh.explain(led, engine="local").means == "arrays (its edges fit into memory)"
    assert fresh.query(led, engine="local").arrow().num_rows == answer.num_rows == 4
