"""Membership of rows and groups of rows in numbers, against sets and dictionaries."""

from collections import Counter

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from omnigraph.engine.local.matching import grouping, join
from omnigraph.engine.local.topology.adjacency import adjacency_of
from omnigraph.engine.local.topology.sketch import PairSketch

SIZE = 9
number = st.integers(0, SIZE - 1)
pairs = st.lists(st.tuples(number, number), max_size=60)
either_way = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def columns(rows: list[tuple[int, int]]) -> list[np.ndarray]:
    return [np.array([row[side] for row in rows], np.uint32) for side in (0, 1)]


@pytest.mark.parametrize("rows_per_run_min", [0, 10**9], ids=["marked", "searched"])
@given(edges=pairs, asked=pairs.filter(bool))
@either_way
def test_pairs_are_linked_that_have_an_edge(
    rows_per_run_min: int,
    edges: list[tuple[int, int]],
    asked: list[tuple[int, int]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(join, "_ROWS_PER_RUN_MIN", rows_per_run_min)
    adjacency = adjacency_of(*columns(edges), size=SIZE)
    assert join.are_linked(adjacency, *columns(asked)).tolist() == [
        pair in set(edges) for pair in asked
    ]


@given(rows=pairs, found=pairs)
@settings(deadline=None)
def test_rows_are_among_others_that_equal_them(
    rows: list[tuple[int, int]], found: list[tuple[int, int]]
) -> None:
    are_in = join.are_among(columns(rows), columns(found))
    assert are_in.tolist() == [row in set(found) for row in rows]


def test_rows_with_large_numbers_are_among_others() -> None:
    large = np.array([0, 2**31, 2**32 - 2], np.uint32)
    found = large[1:], large[:2]
    assert join.are_among([large, large], found).tolist() == [False, False, False]
    assert join.are_among([large[1:], large[:2]], found).all()


@pytest.mark.parametrize("codes_per_row_max", [-1, 10**9], ids=["sorted", "counted"])
@given(rows=pairs.filter(bool))
@either_way
def test_groups_are_the_rows_that_are_equal(
    codes_per_row_max: int, rows: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grouping, "_CODES_PER_ROW_MAX", codes_per_row_max)
    values = np.arange(len(rows))
    first, weight, sums = grouping.group_rows(columns(rows), len(rows), None, {"sum": values})
    groups = [rows[place] for place in first.tolist()]
    assert groups == sorted(set(rows))
    assert dict(zip(groups, weight.tolist(), strict=True)) == dict(Counter(rows))
    expected = [sum(place for place, row in enumerate(rows) if row == group) for group in groups]
    assert sums["sum"].tolist() == expected


def test_a_sketch_misses_no_pair_and_has_few_others() -> None:
    random = np.random.default_rng(4)
    nodes, neighbours = random.integers(0, 20_000, (2, 100_000), np.uint32)
    sketch = PairSketch.of(nodes[:90_000], neighbours[:90_000])
    sketch = sketch.adding(nodes[90_000:], neighbours[90_000:])
    assert sketch.may_have(nodes, neighbours).all()
    others = random.integers(0, 20_000, (2, 100_000), np.uint32)
    assert sketch.may_have(*others).mean() < 0.1
    assert sketch.bits.nbytes <= 4 * 100_000
    # Numbers in a row must not fall together.
    steps = np.arange(20_000, dtype=np.uint32)
    assert sketch.may_have(steps, steps).mean() < 0.1
