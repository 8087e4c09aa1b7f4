"""Shares: pieces of work in groups, so that workers that take one after the other end together."""

from __future__ import annotations

from collections.abc import Sequence


def even_shares(
    weights: Sequence[int], workers: int, *, weight_min: int, weight_max: int
) -> tuple[tuple[int, ...], ...]:
    """Group the places of weights, in order.

    A group of several places has at most `weight_max`. There are no more groups than fill the last
    round of the workers, and the heaviest is as light as that allows, but not lighter than
    `weight_min`: with one group more than workers, all but one would wait for it.

    >>> even_shares([3, 3, 3, 3, 3, 3, 3], workers=2, weight_min=4, weight_max=9)
    ((0, 1), (2, 3), (4, 5), (6,))
    >>> even_shares([4, 4, 4], workers=8, weight_min=12, weight_max=100)
    ((0, 1, 2),)
    """
    if not weights:
        return ()
    count = len(_fill(weights, weight_max))
    count_max = -(-count // workers) * workers
    # A group of one place may be heavier than all others can be.
    least, most = min(weight_max, max(weight_min, *weights)), weight_max
    while least < most:
        middle = (least + most) // 2
        if len(_fill(weights, middle)) <= count_max:
            most = middle
        else:
            least = middle + 1
    return tuple(map(tuple, _fill(weights, most)))


def _fill(weights: Sequence[int], weight_max: int) -> list[list[int]]:
    """Groups that are each filled before the next one begins."""
    groups: list[list[int]] = []
    so_far = 0
    for place, weight in enumerate(weights):
        if not groups or so_far + weight > weight_max:
            groups.append([])
            so_far = 0
        groups[-1].append(place)
        so_far += weight
    return groups
