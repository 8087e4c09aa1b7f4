"""Shares are whole, in order, within their bounds, and as even as any cut of the work can be."""

from itertools import combinations, pairwise
from random import Random

import pytest

from omnigraph.engine.shares import even_shares


def cuts(weights: list[int], count_max: int) -> list[list[list[int]]]:
    """All ways to cut the weights into at most so many groups."""
    found = []
    for count in range(1, min(count_max, len(weights)) + 1):
        for inner in combinations(range(1, len(weights)), count - 1):
            bounds = pairwise([0, *inner, len(weights)])
            found.append([weights[start:end] for start, end in bounds])
    return found


def heaviest(groups: list[list[int]]) -> int:
    return max(map(sum, groups))


@pytest.mark.parametrize("seed", range(200))
def test_no_cut_into_as_many_rounds_is_more_even(seed: int) -> None:
    random = Random(seed)
    weights = [random.randint(1, 9) for _ in range(random.randint(1, 9))]
    workers, weight_max = random.randint(1, 4), random.randint(9, 30)
    shares = even_shares(weights, workers, weight_min=1, weight_max=weight_max)
    assert [place for share in shares for place in share] == list(range(len(weights)))
    groups = [[weights[place] for place in share] for share in shares]
    assert heaviest(groups) <= weight_max
    fewest = min(len(cut) for cut in cuts(weights, len(weights)) if heaviest(cut) <= weight_max)
    rounds = -(-fewest // workers)
    assert len(groups) <= rounds * workers
    assert heaviest(groups) == min(map(heaviest, cuts(weights, rounds * workers)))


def test_groups_are_not_lighter_than_is_worth_a_task() -> None:
    assert even_shares([5] * 6, 4, weight_min=20, weight_max=100) == ((0, 1, 2, 3), (4, 5))
    assert even_shares([], 4, weight_min=20, weight_max=100) == ()
    assert even_shares([500, 1], 4, weight_min=20, weight_max=100) == ((0,), (1,))
