"""Messages: what the nodes at one end of a link add to the weights of the nodes at the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from omnigraph.engine.local.matching.hops import Hop, PairHop, Steps
from omnigraph.engine.local.matching.weights import (
    NodeWeights,
    add_by_group,
    add_runs,
    multiply,
    plus,
)
from omnigraph.limits import MATCHED_BLOCK_STEPS

_BYTES_PER_STEP: Final = 32
_BYTES_PER_VALUE: Final = 16
"""About what a step of a block takes, and each value of a step or of a node at either end."""


@dataclass(frozen=True, slots=True)
class MessagePath:
    """The two directions of a link, seen from the variable that sends.

    Attributes:
        there: Steps from the sender's nodes; `back` leads from the receiver's.
        sizes: How many numbers the sender's nodes have, and the receiver's.
        edge_values: By the names of sums over edges, the value of each edge.
    """

    there: Hop
    back: Hop
    sizes: tuple[int, int]
    edge_values: Mapping[str, np.ndarray] = field(default_factory=dict)

    def cost(self, sender: NodeWeights, receiver: NodeWeights) -> int:
        """About how many steps a message takes."""
        if self._is_degree(sender):
            return self.sizes[1] if receiver.numbers is None else len(receiver.numbers)
        return min(self.there.cost(sender.numbers), self.back.cost(receiver.numbers))

    def count_bytes(self, sender: NodeWeights, receiver: NodeWeights) -> int:
        """About what a message takes while it is made."""
        step_count = self.cost(sender, receiver)
        node_count = min(step_count, sum(self.sizes))
        at_once = min(step_count, MATCHED_BLOCK_STEPS)
        value_count = 1 + len(sender.sums) + len(self.edge_values)
        return (_BYTES_PER_VALUE * value_count + 8) * node_count + (
            _BYTES_PER_VALUE * value_count + _BYTES_PER_STEP
        ) * at_once

    def message(self, sender: NodeWeights, receiver: NodeWeights) -> NodeWeights:
        """The nodes that the sender's nodes lead to, at least those of the receiver's, weighed."""
        if self._is_degree(sender):
            assert isinstance(self.back, PairHop), "degrees are of pairs"
            return _degrees(self.back, receiver)
        if self.there.cost(sender.numbers) <= self.back.cost(receiver.numbers):
            return self._push(sender)
        return self._pull(sender, receiver)

    def _is_degree(self, sender: NodeWeights) -> bool:
        is_plain = isinstance(self.back, PairHop) and not self.back.has_factor
        return sender.is_untouched and is_plain and not self.edge_values

    def _push(self, sender: NodeWeights) -> NodeWeights:
        """From each node of the sender, along its steps."""
        size = self.sizes[0]
        numbers = np.arange(size, dtype=np.uint32) if sender.numbers is None else sender.numbers
        pushed = _Accumulator(self.sizes[1])
        for part in self.there.blocks(numbers):
            steps = self.there.expand(numbers[part])
            weight = None if sender.weight is None else np.repeat(sender.weight[part], steps.counts)
            if steps.factor is not None:
                weight = steps.factor if weight is None else multiply(weight, steps.factor)
            sums = {}
            for name, values in sender.sums.items():
                sums[name] = multiply(np.repeat(values[part], steps.counts), steps.factor)
            sums |= self._sum_edges(steps, weight)
            pushed.add(steps.ends, weight, sums)
        return pushed.result()

    def _pull(self, sender: NodeWeights, receiver: NodeWeights) -> NodeWeights:
        """From each node of the receiver, back to the sender's nodes."""
        numbers = receiver.numbers
        if numbers is None:
            numbers = np.arange(self.sizes[1], dtype=np.uint32)
        weight_of = _by_number(sender, self.sizes[0])
        sums_of = {
            name: scatter(sender.numbers, values, self.sizes[0])
            for name, values in sender.sums.items()
        }
        weights: list[np.ndarray] = []
        sums: dict[str, list[np.ndarray]] = {name: [] for name in (*sums_of, *self.edge_values)}
        for part in self.back.blocks(numbers):
            steps = self.back.expand(numbers[part])
            weight = None if weight_of is None else weight_of[steps.ends]
            if steps.factor is not None:
                weight = steps.factor if weight is None else _times(weight, steps.factor)
            weights.append(steps.counts if weight is None else add_runs(weight, steps.counts))
            for name, values in sums_of.items():
                one_each = multiply(values[steps.ends], steps.factor)
                sums[name].append(add_runs(one_each, steps.counts))
            if weight is not None and weight.dtype == np.bool_:
                weight = weight.astype(np.int64)
            for name, values in self._sum_edges(steps, weight).items():
                sums[name].append(add_runs(values, steps.counts))
        if not weights:
            return NodeWeights(np.empty(0, np.uint32), np.empty(0, np.int64), _no_sums(sums))
        total = np.concatenate(weights).astype(np.int64, copy=False)
        totals = {name: np.concatenate(values) for name, values in sums.items()}
        return NodeWeights(numbers, total, totals).only(total > 0)

    def _sum_edges(self, steps: Steps, weight: np.ndarray | None) -> dict[str, np.ndarray]:
        if not self.edge_values:
            return {}
        assert steps.edges is not None, "the steps are edges"
        return {
            name: multiply(values[steps.edges], weight) for name, values in self.edge_values.items()
        }


@dataclass(slots=True)
class _Accumulator:
    """What has been added to the nodes of a receiver.

    It starts as lists of steps, and becomes arrays over all nodes once there are many.
    """

    size: int
    ends: list[np.ndarray] = field(default_factory=list)
    weights: list[np.ndarray | None] = field(default_factory=list)
    sums: dict[str, list[np.ndarray]] = field(default_factory=dict)
    count: int = 0
    total: np.ndarray | None = None
    totals: dict[str, np.ndarray] = field(default_factory=dict)

    def add(
        self, ends: np.ndarray, weight: np.ndarray | None, sums: Mapping[str, np.ndarray]
    ) -> None:
        self.ends.append(ends)
        self.weights.append(weight)
        for name, values in sums.items():
            self.sums.setdefault(name, []).append(values)
        self.count += len(ends)
        if self.count * 8 > self.size:
            self._fold()

    def result(self) -> NodeWeights:
        if self.total is not None:
            self._fold()
            numbers = np.flatnonzero(self.total)
            totals = {name: values[numbers] for name, values in self.totals.items()}
            return NodeWeights(numbers.astype(np.uint32), self.total[numbers], totals)
        ends = np.concatenate(self.ends) if self.ends else np.empty(0, np.uint32)
        numbers, groups = np.unique(ends, return_inverse=True)
        weight = add_by_group(self._weight(), groups, len(numbers))
        totals = {
            name: add_by_group(np.concatenate(values), groups, len(numbers))
            for name, values in self.sums.items()
        }
        return NodeWeights(numbers, weight, totals)

    def _fold(self) -> None:
        if not self.ends:
            return
        ends = np.concatenate(self.ends)
        self.total = plus(self.total, add_by_group(self._weight(), ends, self.size))
        for name, values in self.sums.items():
            added = add_by_group(np.concatenate(values), ends, self.size)
            self.totals[name] = plus(self.totals.get(name), added)
        self.ends, self.weights, self.sums = [], [], {}

    def _weight(self) -> np.ndarray | None:
        weights = [weight for weight in self.weights if weight is not None]
        return np.concatenate(weights) if weights else None


def _degrees(back: PairHop, receiver: NodeWeights) -> NodeWeights:
    if receiver.numbers is None:
        degrees = back.adjacency.degrees
        numbers = np.flatnonzero(degrees)
        return NodeWeights(numbers.astype(np.uint32), degrees[numbers].astype(np.int64))
    degrees = back.adjacency.degrees_of(receiver.numbers)
    return NodeWeights(receiver.numbers, degrees).only(degrees > 0)


def _by_number(sender: NodeWeights, size: int) -> np.ndarray | None:
    """The weight of each number, false or zero for those that are not among the nodes."""
    if sender.numbers is None:
        assert sender.weight is None, "weights are of listed nodes"
        return None
    if sender.weight is None:
        is_chosen = np.zeros(size, np.bool_)
        is_chosen[sender.numbers] = True
        return is_chosen
    return scatter(sender.numbers, sender.weight, size)


def scatter(numbers: np.ndarray | None, values: np.ndarray, size: int) -> np.ndarray:
    """Values by number, zero for a missing one."""
    if numbers is None:
        return values
    dense = np.zeros(size, values.dtype)
    dense[numbers] = values
    return dense


def _times(weight: np.ndarray, factor: np.ndarray) -> np.ndarray:
    return multiply(weight.astype(np.int64, copy=False), factor)


def _no_sums(names: Mapping[str, object]) -> dict[str, np.ndarray]:
    return {name: np.empty(0, np.int64) for name in names}
