"""Adjacency on plain arrays, against a dictionary."""

from collections import Counter

import hypothesis.strategies as st
import numpy as np
from hypothesis import given, settings

from omnigraph.engine.local.topology.adjacency import Adjacency, adjacency_of, join_halves
from omnigraph.engine.local.topology.build import both_ways

SIZE = 7
pairs = st.lists(st.tuples(st.integers(0, SIZE - 1), st.integers(0, SIZE - 1)), max_size=40)


def of_pairs(edges: list[tuple[int, int]]) -> Adjacency:
    nodes, neighbours = (np.array([edge[side] for edge in edges], np.uint32) for side in (0, 1))
    return adjacency_of(nodes, neighbours, size=SIZE)


def to_counts(adjacency: Adjacency) -> dict[tuple[int, int], int]:
    counts = adjacency.multiplicity
    each = np.ones(adjacency.pair_count, int) if counts is None else counts
    owners = np.repeat(np.arange(adjacency.size), np.diff(adjacency.offsets))
    ends = zip(owners.tolist(), adjacency.neighbours.tolist(), strict=True)
    return dict(zip(ends, each.tolist(), strict=True))


@settings(deadline=None)
@given(edges=pairs)
def test_every_pair_is_there_once_with_its_number_of_edges(edges: list[tuple[int, int]]) -> None:
    adjacency = of_pairs(edges)
    assert to_counts(adjacency) == dict(Counter(edges))
    assert adjacency.edge_count == len(edges)
    assert adjacency.pair_count == len(set(edges))
    assert (adjacency.multiplicity is None) == (len(set(edges)) == len(edges))
    assert len(adjacency.offsets) == SIZE + 1
    assert adjacency.offsets.dtype == np.uint32
    assert adjacency.neighbours.dtype == np.uint32
    for node in range(SIZE):
        start, end = adjacency.offsets[node : node + 2].tolist()
        assert adjacency.neighbours[start:end].tolist() == sorted(
            {b for a, b in edges if a == node}
        )


@settings(deadline=None)
@given(edges=pairs)
def test_both_ways_have_the_same_pairs(edges: list[tuple[int, int]]) -> None:
    nodes, neighbours = (np.array([edge[side] for edge in edges], np.uint32) for side in (0, 1))
    out, into = both_ways(join_halves(nodes, neighbours), source_count=SIZE, target_count=SIZE)
    assert to_counts(out) == dict(Counter(edges))
    assert to_counts(into) == dict(Counter((b, a) for a, b in edges))


@settings(deadline=None)
@given(edges=pairs, nodes=st.lists(st.integers(0, SIZE - 1), max_size=9))
def test_gathered_neighbours_are_in_the_order_of_the_nodes(
    edges: list[tuple[int, int]], nodes: list[int]
) -> None:
    counts, found = of_pairs(edges).gather(np.array(nodes, np.uint32))
    expected = [sorted({b for a, b in edges if a == node}) for node in nodes]
    assert counts.tolist() == [len(own) for own in expected]
    assert found.tolist() == [number for own in expected for number in own]
