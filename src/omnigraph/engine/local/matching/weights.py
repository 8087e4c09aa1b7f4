"""Weights of nodes: which nodes can match, how many matches each stands for, and sums over those.

Weights are whole numbers in 64 bits. Before each product or sum its bound is computed in Python,
whose numbers do not wrap; what may not fit is answered by SQL.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from omnigraph.engine.local.matching.sources import UnmatchableError

INTEGER_MAX: Final = (1 << 62) - 1
FLOAT_EXACT_MAX: Final = 1 << 53
"""Whole numbers up to this are exact as floats, which numpy adds up by groups fastest."""


@dataclass(frozen=True, slots=True)
class NodeWeights:
    """Some nodes of a table.

    Attributes:
        numbers: The nodes, ascending; None for every one.
        weight: How many matches each stands for; None for 1.
        sums: By the names of the sums that have arrived, one for each node.
    """

    numbers: np.ndarray | None = None
    weight: np.ndarray | None = None
    sums: Mapping[str, np.ndarray] = field(default_factory=dict)

    @property
    def nbytes(self) -> int:
        """The memory that it takes."""
        arrays = (self.numbers, self.weight, *self.sums.values())
        return sum(array.nbytes for array in arrays if array is not None)

    @property
    def is_untouched(self) -> bool:
        """Whether it is every node of the table, once."""
        return self.numbers is None and self.weight is None and not self.sums

    def only(self, mask: np.ndarray) -> NodeWeights:
        """Those of the nodes for which it is true."""
        assert self.numbers is not None, "the nodes are listed"
        return NodeWeights(
            self.numbers[mask],
            None if self.weight is None else self.weight[mask],
            {name: values[mask] for name, values in self.sums.items()},
        )

    def times(self, other: NodeWeights) -> NodeWeights:
        """The same nodes, where other matches of theirs multiply these."""
        sums = {name: multiply(values, other.weight) for name, values in self.sums.items()}
        sums |= {name: multiply(values, self.weight) for name, values in other.sums.items()}
        weight = other.weight if self.weight is None else multiply(self.weight, other.weight)
        return NodeWeights(self.numbers, weight, sums)


def intersect(ours: NodeWeights, theirs: NodeWeights) -> NodeWeights:
    """The nodes that are in both, with the products of their weights."""
    assert theirs.numbers is not None, "the nodes are listed"
    if ours.numbers is None:
        assert ours.is_untouched, "weights are of listed nodes"
        return theirs
    if len(ours.numbers) == len(theirs.numbers) and np.array_equal(ours.numbers, theirs.numbers):
        return ours.times(theirs)
    places = np.searchsorted(theirs.numbers, ours.numbers)
    places[places == len(theirs.numbers)] = 0
    if not len(theirs.numbers):
        return ours.only(np.zeros(len(ours.numbers), np.bool_))
    mask = theirs.numbers[places] == ours.numbers
    at = places[mask]
    picked = NodeWeights(
        theirs.numbers[at],
        None if theirs.weight is None else theirs.weight[at],
        {name: values[at] for name, values in theirs.sums.items()},
    )
    return ours.only(mask).times(picked)


def multiply(values: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
    """Products that are exact, or floats."""
    if weight is None:
        return values
    if values.dtype.kind == "f":
        with np.errstate(over="ignore", invalid="ignore"):
            rounded: np.ndarray = values * weight
        return rounded
    require_fit(bound_of(values) * bound_of(weight))
    product: np.ndarray = values * weight
    return product


def bound_of(values: np.ndarray) -> int:
    """The largest magnitude of whole numbers."""
    if not len(values):
        return 0
    return max(abs(int(values.max())), abs(int(values.min())))


def require_fit(bound: int) -> None:
    """Refuse numbers that may not fit 64 bits."""
    if bound > INTEGER_MAX:
        message = "the numbers may not fit 64 bits"
        raise UnmatchableError(message)


def add_by_group(values: np.ndarray | None, groups: np.ndarray, size: int) -> np.ndarray:
    """The sum of the values of each group, or their number when None."""
    if values is None:
        return np.bincount(groups, minlength=size)
    if values.dtype.kind == "f":
        with np.errstate(over="ignore", invalid="ignore"):
            return np.bincount(groups, values, minlength=size)
    bound = bound_of(values) * len(values)
    if bound < FLOAT_EXACT_MAX:
        return np.bincount(groups, values, minlength=size).astype(np.int64)
    require_fit(bound)
    totals = np.zeros(size, np.int64)
    np.add.at(totals, groups, values)
    return totals


def add_runs(values: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """The sum of each of consecutive runs of so many values.

    >>> add_runs(np.array([1, 2, 3]), np.array([2, 0, 1])).tolist()
    [3, 0, 3]
    """
    is_float = values.dtype.kind == "f"
    if not is_float and values.dtype != np.bool_:
        require_fit(bound_of(values) * int(counts.max(initial=0)))
    kind = np.float64 if is_float else np.int64
    totals = np.zeros(len(counts), kind)
    filled = np.flatnonzero(counts)
    if len(filled):
        starts = (np.cumsum(counts) - counts)[filled]
        with np.errstate(over="ignore", invalid="ignore"):
            totals[filled] = np.add.reduceat(values, starts, dtype=kind)
    return totals


def plus(total: np.ndarray | None, added: np.ndarray) -> np.ndarray:
    """The total so far and what is added to it; None for no total yet."""
    if total is None:
        return added
    if added.dtype.kind != "f":
        require_fit(bound_of(total) + bound_of(added))
    with np.errstate(over="ignore", invalid="ignore"):
        result: np.ndarray = total + added
    return result
