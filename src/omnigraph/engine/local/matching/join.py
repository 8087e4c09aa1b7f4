"""Joins of what is left of a pattern, in blocks: by steps, membership in adjacency, and conditions.

Each stage makes blocks of a block. The first variable leads, so the rows of a block are sorted by
it; where it has many rows for each node, a pair is looked up for all rows of one node at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from omnigraph.engine.local.matching.grouping import Grouping, codes_of
from omnigraph.engine.local.matching.hops import Hop, PairHop, WalkHop
from omnigraph.engine.local.matching.match import PatternMatch
from omnigraph.engine.local.matching.memory import Memory, count_bytes
from omnigraph.engine.local.matching.messages import scatter
from omnigraph.engine.local.matching.sources import UnmatchableError, take
from omnigraph.engine.local.matching.weights import NodeWeights, multiply
from omnigraph.engine.local.topology.adjacency import Adjacency, lower_half, upper_half
from omnigraph.engine.local.topology.sketch import PairSketch
from omnigraph.limits import MATCHED_BLOCK_STEPS, MATCHED_ROWS_MAX
from omnigraph.relational.patterns import Link, NegatedPattern, RowCondition

_ROWS_PER_RUN_MIN: Final = 128
"""Rows of one leading node from which on its neighbours are marked, not searched."""

_NUMBERS_PER_ROW_MAX: Final = 8
"""Numbers that nodes may have, for each row, up to which nodes are marked and not sorted."""


_BYTES_PER_STEP: Final = 32
"""About what a step takes beside the columns of its row."""


@dataclass(frozen=True, slots=True)
class MatchedRows:
    """Rows over the kept variables of a pattern: numbers, and what each row stands for."""

    columns: dict[str, np.ndarray]
    count: int
    weight: np.ndarray | None = None
    sums: dict[str, np.ndarray] = field(default_factory=dict)

    @property
    def nbytes(self) -> int:
        """The memory that they take."""
        return count_bytes(self.columns, self.weight, self.sums)

    def pick(self, rows: np.ndarray) -> MatchedRows:
        """Some of the rows, by position."""
        return MatchedRows(
            {name: each[rows] for name, each in self.columns.items()},
            len(rows),
            None if self.weight is None else self.weight[rows],
            {name: each[rows] for name, each in self.sums.items()},
        )


@dataclass(frozen=True, slots=True)
class JoinBlock:
    """Some rows of a join.

    Attributes:
        factor: How many edges each row stands for; None for one.
    """

    columns: dict[str, np.ndarray]
    count: int
    factor: np.ndarray | None = None

    @property
    def nbytes(self) -> int:
        """The memory that it takes."""
        return count_bytes(self.columns, self.factor)

    def pick(self, rows: np.ndarray) -> JoinBlock:
        """Rows by position, or by a mask."""
        count = int(np.count_nonzero(rows)) if rows.dtype == np.bool_ else len(rows)
        factor = None if self.factor is None else self.factor[rows]
        return JoinBlock({name: each[rows] for name, each in self.columns.items()}, count, factor)


Stage = Callable[[JoinBlock], Iterator[JoinBlock]]


def collect(match: PatternMatch, *, with_weights: bool = True) -> MatchedRows:
    """The combinations of kept variables that match, each once, with weights and sums.

    Args:
        with_weights: Without, a combination may be there several times, with any weight.
    """
    match.reduce()
    if len(match.core) == 1 and not match.links and not match.joint_conditions():
        return _single(match)
    join = _Join(match)
    sizes = {name: match.sources[name].size for name in match.kept}
    grouping = Grouping(sizes, join.is_distinct, may_repeat=not with_weights)
    for block in join.blocks():
        match.graph.check()
        weight, sums = join.weigh(block)
        columns = {name: block.columns[name] for name in match.kept}
        grouping.add(columns, block.count, weight, sums)
        join.require(grouping.nbytes)
        if grouping.count > MATCHED_ROWS_MAX:
            message = f"more than {MATCHED_ROWS_MAX:,} rows are found"
            raise UnmatchableError(message)
    return _multiply_all(match, MatchedRows(*grouping.result()))


def _single(match: PatternMatch) -> MatchedRows:
    """The nodes of one variable, which nothing has to be joined with."""
    (variable,) = match.core
    match.test(variable)
    nodes = match.complete(variable)
    if nodes.numbers is None:
        nodes = match.listed(variable)
    assert nodes.numbers is not None, "they are listed"
    columns = {variable: nodes.numbers} if variable in match.kept else {}
    found = MatchedRows(columns, len(nodes.numbers), nodes.weight, dict(nodes.sums))
    return _multiply_all(match, found)


def _multiply_all(match: PatternMatch, found: MatchedRows) -> MatchedRows:
    """The rows, each multiplied by what is not connected with them."""
    weights = [scalar.weight for scalar in match.scalars]
    if not found.count or any(weight is not None and not weight[0] for weight in weights):
        # A match that ends early has not computed every sum.
        empty = found.pick(np.arange(0))
        sums = {each.name: np.empty(0, np.int64) for each in match.sums}
        return MatchedRows(empty.columns, 0, np.zeros(0, np.int64), sums)
    for scalar in match.scalars:
        assert scalar.weight is not None, "a total has a weight"
        many = np.broadcast_to(scalar.weight, found.count)
        sums = {name: multiply(each, many) for name, each in found.sums.items()}
        for name, each in scalar.sums.items():
            sums[name] = multiply(np.broadcast_to(each, found.count), found.weight)
        weight = many.astype(np.int64)
        if found.weight is not None:
            weight = multiply(found.weight, weight)
        found = MatchedRows(found.columns, found.count, weight, sums)
    return found


@dataclass(slots=True)
class _Join:
    """A join of the variables that are left of a match, with its stages in order."""

    match: PatternMatch
    stages: list[Stage] = field(default_factory=list)
    start: str | None = None
    masks: dict[str, np.ndarray] = field(default_factory=dict)
    weights: dict[str, tuple[np.ndarray | None, dict[str, np.ndarray]]] = field(
        default_factory=dict
    )

    open_bytes: int = 0

    def __post_init__(self) -> None:
        self._plan()

    def require(self, byte_count: int) -> None:
        """Refuse to hold so many bytes in addition to those of the join."""
        memory = self.match.graph.memory
        if memory.is_limited:
            memory.require(self.nbytes + byte_count)

    @property
    def nbytes(self) -> int:
        """The memory that it holds: of the match, of nodes, and of the blocks of its stages."""
        weighed = sum(count_bytes(weight, sums) for weight, sums in self.weights.values())
        return self.match.nbytes + weighed + count_bytes(self.masks) + self.open_bytes

    @property
    def is_distinct(self) -> bool:
        """Whether no two rows of the join agree on all kept variables."""
        match = self.match
        return match.kept.issuperset(match.core) and all(
            link.edge is None or link.edge in match.kept for link in match.links
        )

    def blocks(self) -> Iterator[JoinBlock]:
        """The rows of the join."""
        if self.start is None:
            yield JoinBlock({}, 1)
            return
        numbers = self.match.listed(self.start).numbers
        assert numbers is not None, "they are listed"
        for first in range(0, len(numbers), MATCHED_BLOCK_STEPS):
            part = numbers[first : first + MATCHED_BLOCK_STEPS]
            yield from self._run(JoinBlock({self.start: part}, len(part)), 0)

    def weigh(self, block: JoinBlock) -> tuple[np.ndarray | None, dict[str, np.ndarray]]:
        """The weight of each row, and what it adds to each sum."""
        factors: list[np.ndarray] = [] if block.factor is None else [block.factor]
        sums: dict[str, np.ndarray] = {}
        for variable in self.match.core:
            weight, own = self._weights_of(variable)
            numbers = block.columns[variable]
            sums = {name: multiply(each, _at(weight, numbers)) for name, each in sums.items()}
            for name, values in own.items():
                sums[name] = values[numbers]
                for factor in factors:
                    sums[name] = multiply(sums[name], factor)
            if weight is not None:
                factors.append(weight[numbers])
        total: np.ndarray | None = None
        for factor in factors:
            total = factor if total is None else multiply(total, factor)
        for link in self.match.links:
            for name, values in self.match.way(link, link.start).edge_values.items():
                assert link.edge is not None, "it has values"
                sums[name] = multiply(values[block.columns[link.edge]], total)
        return total, sums

    def _weights_of(self, variable: str) -> tuple[np.ndarray | None, dict[str, np.ndarray]]:
        """The weight of each number of a variable, and its sums."""
        if variable not in self.weights:
            size = self.match.sources[variable].size
            nodes = self.match.complete(variable)
            weight = None if nodes.weight is None else scatter(nodes.numbers, nodes.weight, size)
            sums = {name: scatter(nodes.numbers, each, size) for name, each in nodes.sums.items()}
            self.weights[variable] = weight, sums
        return self.weights[variable]

    def _run(self, block: JoinBlock, place: int) -> Iterator[JoinBlock]:
        if not block.count:
            return
        if place == len(self.stages):
            yield block
            return
        self.match.graph.check()
        self.open_bytes += block.nbytes
        for part in self.stages[place](block):
            yield from self._run(part, place + 1)
        self.open_bytes -= block.nbytes

    def _plan(self) -> None:
        """Choose the order: the fewest nodes first, then what keeps rows few."""
        match = self.match
        waiting, links = set(match.core), list(match.links)
        pending: list[RowCondition | NegatedPattern] = [
            *match.joint_conditions(),
            *match.joint_negations(),
        ]
        joined: set[str] = set()
        while waiting:
            ready = [link for link in links if self._is_within(link, joined)]
            onward = [link for link in links if {link.start, link.end} & joined]
            if ready:
                link = ready[0]
                self.stages.append(self._check(link))
            elif onward:
                link = min(onward, key=lambda link: self._growth(link, joined))
                new = link.end if link.start in joined else link.start
                self.stages.append(self._expand(link, new))
                waiting.discard(new)
                joined.add(new)
            else:
                variable = min(waiting, key=lambda name: (self._count(name), name))
                match.test(variable)
                if self.start is None:
                    self.start = variable
                else:
                    self.stages.append(self._cross(variable))
                waiting.discard(variable)
                joined.add(variable)
                continue
            links.remove(link)
            if link.edge is not None:
                joined.add(link.edge)
            pending = self._add_tests(pending, joined)
        for link in links:
            self.stages.append(self._check(link))
            if link.edge is not None:
                joined.add(link.edge)
        left = self._add_tests(pending, joined)
        assert not left, "every variable is joined"

    def _add_tests(
        self, pending: list[RowCondition | NegatedPattern], joined: set[str]
    ) -> list[RowCondition | NegatedPattern]:
        left: list[RowCondition | NegatedPattern] = []
        for each in pending:
            variables = each.variables if isinstance(each, RowCondition) else frozenset(each.outer)
            if not variables <= joined:
                left.append(each)
            elif isinstance(each, RowCondition):
                self.stages.append(self._filter(each))
            else:
                self.stages.append(self._exclude(each))
        return left

    def _is_within(self, link: Link, joined: set[str]) -> bool:
        return link.start in joined and link.end in joined

    def _count(self, variable: str) -> int:
        numbers = self.match.candidates[variable].numbers
        return self.match.sources[variable].row_count if numbers is None else len(numbers)

    def _growth(self, link: Link, joined: set[str]) -> float:
        """About how many rows a step along the link makes of one."""
        known = link.start if link.start in joined else link.end
        way = self.match.way(link, known)
        numbers = self.match.candidates[known].numbers
        count = self.match.sources[known].row_count if numbers is None else len(numbers)
        new = link.other(known)
        share = self._count(new) / max(1, self.match.sources[new].row_count)
        return way.there.cost(numbers) / max(1, count) * share

    def _expand(self, link: Link, new: str) -> Stage:
        known = link.other(new)
        hop = self.match.way(link, known).there

        def expand(block: JoinBlock) -> Iterator[JoinBlock]:
            for part in hop.blocks(block.columns[known]):
                self._require_steps(hop, block, block.columns[known][part])
                yield self._passing(_step(block, part, hop, link, known, new), new)

        return expand

    def _require_steps(self, hop: Hop, block: JoinBlock, nodes: np.ndarray) -> None:
        """Refuse to take all steps of these nodes at once, if one has very many."""
        if self.match.graph.memory.is_limited and not isinstance(hop, WalkHop):
            row_bytes = _BYTES_PER_STEP + 4 * len(block.columns)
            self.require(row_bytes * hop.cost(nodes))

    def _passing(self, block: JoinBlock, variable: str) -> JoinBlock:
        """The rows whose new node can match."""
        numbers = block.columns[variable]
        untested = self.match.untested.get(variable)
        source = self.match.sources[variable]
        if untested:
            # Few nodes are tested one by one, for many it is done once for all.
            is_few = block.count * 4 < source.row_count
            if is_few and all(isinstance(each, RowCondition) for each in untested):
                for each in untested:
                    assert isinstance(each, RowCondition), "negations are tested for all"
                    columns = [take(source, name, block.columns[variable]) for _, name in each.uses]
                    block = block.pick(self.match.graph.test(each, columns))
                numbers = block.columns[variable]
            else:
                self.match.test(variable)
                self.masks.pop(variable, None)
        nodes = self.match.candidates[variable]
        if nodes.numbers is None:
            return block
        if variable not in self.masks:
            self.masks[variable] = np.zeros(source.size, np.bool_)
            self.masks[variable][nodes.numbers] = True
        return block.pick(self.masks[variable][numbers])

    def _cross(self, variable: str) -> Stage:
        numbers = self.match.listed(variable).numbers
        assert numbers is not None, "they are listed"
        rows_max = max(1, MATCHED_BLOCK_STEPS // max(1, len(numbers)))

        def cross(block: JoinBlock) -> Iterator[JoinBlock]:
            for first in range(0, block.count, rows_max):
                part = block.pick(np.arange(first, min(first + rows_max, block.count)))
                wide = part.pick(np.repeat(np.arange(part.count), len(numbers)))
                columns = {**wide.columns, variable: np.tile(numbers, part.count)}
                yield JoinBlock(columns, wide.count, wide.factor)

        return cross

    def _check(self, link: Link) -> Stage:
        """Keep rows whose two nodes the link connects; once for each edge, if it is bound."""
        hop = self.match.way(link, link.start).there
        memory = self.match.graph.memory
        if isinstance(hop, PairHop) and not hop.has_factor:
            there = hop.adjacency

            def is_linked(block: JoinBlock) -> Iterator[JoinBlock]:
                pairs = block.columns[link.start], block.columns[link.end]
                yield block.pick(are_linked(there, *pairs, memory=memory))

            return is_linked

        def step_and_compare(block: JoinBlock) -> Iterator[JoinBlock]:
            for part in hop.blocks(block.columns[link.start]):
                self._require_steps(hop, block, block.columns[link.start][part])
                # No variable has this name.
                stepped = _step(block, part, hop, link, link.start, "")
                reached = stepped.columns.pop("")
                yield stepped.pick(reached == stepped.columns[link.end])

        return step_and_compare

    def _filter(self, condition: RowCondition) -> Stage:
        sources = self.match.sources

        def filter_rows(block: JoinBlock) -> Iterator[JoinBlock]:
            columns = [
                take(sources[variable], name, block.columns[variable])
                for variable, name in condition.uses
            ]
            yield block.pick(self.match.graph.test(condition, columns))

        return filter_rows

    def _exclude(self, negation: NegatedPattern) -> Stage:
        """Drop rows for which the negated pattern has a match."""
        link = _only_link(negation)
        memory = self.match.graph.memory
        if link is not None:
            way = PatternMatch.of(self.match.graph, negation.pattern, (), outer=negation.outer).way(
                link, link.start
            )
            if isinstance(way.there, PairHop):
                there = way.there.adjacency

                def exclude_linked(block: JoinBlock) -> Iterator[JoinBlock]:
                    pairs = block.columns[link.start], block.columns[link.end]
                    yield block.pick(~are_linked(there, *pairs, memory=memory))

                return exclude_linked

        def exclude(block: JoinBlock) -> Iterator[JoinBlock]:
            names = list(negation.outer)
            nodes = {name: NodeWeights(self._distinct(block, name)) for name in names}
            graph = self.match.graph.beside(self.nbytes)
            inner = PatternMatch.of(
                graph, negation.pattern, names, outer=negation.outer, outer_nodes=nodes
            )
            found = collect(inner, with_weights=False).columns
            columns = [block.columns[name] for name in names]
            yield block.pick(~are_among(columns, [found[name] for name in names]))

        return exclude

    def _distinct(self, block: JoinBlock, variable: str) -> np.ndarray:
        """The nodes of a variable in some rows, ascending."""
        numbers, size = block.columns[variable], self.match.sources[variable].size
        if size > _NUMBERS_PER_ROW_MAX * block.count:
            return np.unique(numbers)
        is_there = np.zeros(size, np.bool_)
        is_there[numbers] = True
        return np.flatnonzero(is_there).astype(np.uint32)


def _only_link(negation: NegatedPattern) -> Link | None:
    """The link that a negation consists of, if it is that alone."""
    pattern = negation.pattern
    if pattern.nodes or pattern.conditions or pattern.negations or len(pattern.links) != 1:
        return None
    (link,) = pattern.links
    return None if link.start == link.end else link


def _step(block: JoinBlock, part: slice, hop: Hop, link: Link, known: str, new: str) -> JoinBlock:
    steps = hop.expand(block.columns[known][part])
    count = len(steps.ends)
    if count == block.count == len(steps.counts) and steps.counts.all():
        # One step from each row, as along an edge that every node has once.
        wide = block
    else:
        rows = np.arange(part.start, part.start + len(steps.counts))
        wide = block.pick(np.repeat(rows, steps.counts))
    columns = {**wide.columns, new: steps.ends}
    if link.edge is not None and steps.edges is not None:
        columns[link.edge] = steps.edges
    factor = wide.factor
    if steps.factor is not None:
        factor = steps.factor if factor is None else multiply(factor, steps.factor)
    return JoinBlock(columns, count, factor)


def are_among(columns: Sequence[np.ndarray], found: Sequence[np.ndarray]) -> np.ndarray:
    """Whether each row of some columns is one of the rows of others, which may be there again."""
    count = len(columns[0])
    codes = codes_of([np.concatenate(both) for both in zip(columns, found, strict=True)])
    wanted, known = codes[:count].view(np.uint64), codes[count:].view(np.uint64)
    # Most rows of a negation are not among the others, which a sketch tells faster.
    sketch = PairSketch.of(upper_half(known), lower_half(known))
    are_in = sketch.may_have(upper_half(wanted), lower_half(wanted))
    at = np.flatnonzero(are_in)
    likely = wanted[at]
    sketch = PairSketch.of(upper_half(likely), lower_half(likely))
    near = known[sketch.may_have(upper_half(known), lower_half(known))]
    are_in[at] = np.isin(likely, near)
    return are_in


def are_linked(
    adjacency: Adjacency, starts: np.ndarray, ends: np.ndarray, *, memory: Memory | None = None
) -> np.ndarray:
    """Whether each pair is in adjacency.

    Args:
        memory: What it may hold; anything when None.
    """
    run_count = int(np.count_nonzero(starts[1:] != starts[:-1])) + 1
    if run_count * _ROWS_PER_RUN_MIN > len(starts):
        may_sketch = memory is None or memory.has_room(adjacency.sketch_bytes)
        return adjacency.are_pairs(starts, ends, may_sketch=may_sketch)
    return _mark(adjacency, starts, ends)


def _mark(adjacency: Adjacency, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Mark the neighbours of a node, then look at all rows of this node."""
    firsts = np.append(0, np.flatnonzero(starts[1:] != starts[:-1]) + 1)
    arrays = adjacency.whole
    starts_at, ends_at = arrays.bounds(starts[firsts])
    lasts = np.append(firsts[1:], len(starts)).tolist()
    is_neighbour = np.zeros(int(ends.max()) + 1, np.bool_)
    limit = len(is_neighbour)
    are_in = np.empty(len(starts), np.bool_)
    runs = firsts.tolist(), lasts, starts_at.tolist(), ends_at.tolist()
    for first, last, low, high in zip(*runs, strict=True):
        neighbours = arrays.neighbours[low:high]
        if high - low and int(neighbours[-1]) >= limit:
            neighbours = neighbours[: int(np.searchsorted(neighbours, limit))]
        is_neighbour[neighbours] = True
        are_in[first:last] = is_neighbour[ends[first:last]]
        is_neighbour[neighbours] = False
    return are_in


def _at(values: np.ndarray | None, places: np.ndarray) -> np.ndarray | None:
    return None if values is None else values[places]
