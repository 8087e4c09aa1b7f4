"""Adjacency on plain arrays, against a dictionary."""

from collections import Counter

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
from hypothesis import given, settings

from omnigraph.engine.local.topology import build
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


changes = st.lists(
    st.tuples(
        st.lists(st.tuples(st.integers(0, SIZE), st.integers(0, SIZE)), max_size=5),
        st.lists(st.integers(0, 60), max_size=5),
        st.booleans(),
    ),
    min_size=1,
    max_size=6,
)


@settings(deadline=None)
@given(edges=pairs, steps=changes)
def test_a_patched_adjacency_is_that_of_the_edges_that_are_left(
    edges: list[tuple[int, int]], steps: list[tuple[list[tuple[int, int]], list[int], bool]]
) -> None:
    adjacency, now = of_pairs(edges), Counter(edges)
    for added, removed, folds in steps:
        differences = Counter(added)
        for choice in removed:
            if left := sorted((now + differences).elements()):
                differences[left[choice % len(left)]] -= 1
        net = {pair: count for pair, count in sorted(differences.items()) if count}
        keys = join_halves(*(np.array([pair[side] for pair in net], np.uint32) for side in (0, 1)))
        changed = adjacency.change(keys, np.array([*net.values()], np.int64), SIZE + 1)
        assert changed is not None
        now = Counter({pair: now[pair] + net.get(pair, 0) for pair in {*now, *net}})
        now = +now
        nodes = np.array([3, SIZE, 0, 3], np.uint32)
        lists = [sorted(b for a, b in now if a == node) for node in nodes.tolist()]
        counts, found = changed.gather(nodes)
        assert counts.tolist() == [*map(len, lists)] == changed.degrees_of(nodes).tolist()
        assert found.tolist() == [number for own in lists for number in own]
        every = [(a, b) for a in range(SIZE + 1) for b in range(SIZE + 1)]
        ends = [np.array([pair[side] for pair in every], np.uint32) for side in (0, 1)]
        assert changed.count_edges(*ends).tolist() == [now[pair] for pair in every]
        # So many tests make a sketch, which the next change has too.
        assert changed.are_pairs(*ends).tolist() == [now[pair] > 0 for pair in every]
        assert changed.sketch is not None
        adjacency = changed
        if folds:
            assert to_counts(adjacency) == dict(now)
            assert adjacency.edge_count == now.total()
    assert to_counts(adjacency.fold()) == dict(now)


def test_no_pair_can_have_fewer_edges_than_none() -> None:
    adjacency = of_pairs([(1, 2), (1, 2)])
    keys = join_halves(np.array([1]), np.array([2]))
    assert adjacency.change(keys, np.array([-2]), SIZE) is not None
    assert adjacency.change(keys, np.array([-3]), SIZE) is None


def test_a_large_patch_is_joined_with_the_arrays() -> None:
    adjacency = of_pairs([(0, 1)])
    keys = np.arange(10_000, dtype=np.uint64) + np.uint64(1 << 32)
    changed = adjacency.change(keys, np.ones(10_000, np.int64), SIZE)
    assert changed is not None
    assert not len(changed.patch)
    assert changed.pair_count == 10_001


def test_threads_see_the_same_pairs_while_a_patch_is_joined() -> None:
    adjacency = of_pairs([(0, 1), (2, 3)])
    keys = join_halves(np.array([0, 0, 2]), np.array([1, 4, 3]))
    changed = adjacency.change(keys, np.array([-1, 2, 1]), SIZE)
    assert changed is not None
    patch = changed.patch
    nodes = np.arange(SIZE, dtype=np.uint32)
    before = [part.tolist() for part in changed.gather(nodes)]
    assert to_counts(changed) == {(0, 4): 2, (2, 3): 2}
    # Whoever has read the patch before it was joined, and the arrays after that:
    late = Adjacency(changed.base, SIZE, patch)
    assert [part.tolist() for part in late.gather(nodes)] == before
    assert late.count_edges(np.array([0, 0, 2]), np.array([1, 4, 3])).tolist() == [0, 2, 2]
    assert to_counts(late) == {(0, 4): 2, (2, 3): 2}


def test_edges_are_numbered_many_at_a_time() -> None:
    arrays = [pa.array(["a"] * count, pa.string()) for count in (3, 0, 4, 1, 9, 2)]
    batches = [pa.RecordBatch.from_arrays([each], ["src"]) for each in arrays]
    sizes = [len(rows) for rows in build._gather(batches, 5)]
    assert sizes == [7, 10, 2]
    assert [*build._gather([], 5)] == []
