"""Matching a pattern: leaves become weights of their neighbours, what is left is joined by numbers.

The cheapest message goes first, so that a pattern around one node never looks at the whole graph.
Joins run in blocks of bounded size; between blocks a match can be interrupted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.local.matching.conditions import Run, holds
from omnigraph.engine.local.matching.hops import EdgeHop, EitherHop, Hop, PairHop, WalkHop
from omnigraph.engine.local.matching.memory import Memory, count_bytes
from omnigraph.engine.local.matching.messages import MessagePath
from omnigraph.engine.local.matching.sources import (
    EdgeSource,
    NodeSource,
    Source,
    UnmatchableError,
    take,
)
from omnigraph.engine.local.matching.weights import (
    NodeWeights,
    add_by_group,
    intersect,
    multiply,
)
from omnigraph.engine.local.topology.numbers import NOTHING
from omnigraph.engine.local.topology.topologies import EdgeTables, Topologies
from omnigraph.engine.local.topology.topology import Topology
from omnigraph.engine.protocol import Data
from omnigraph.model.tables import TableKey
from omnigraph.relational import patterns
from omnigraph.relational.patterns import GraphPattern, Link, NegatedPattern, RowCondition, Sum
from omnigraph.relational.plans import BoundValue, Plan

_SMALL_ROWS_MAX: Final = 1 << 12
"""Rows of a table whose conditions are cheaper to test at once than to put off."""


@dataclass(frozen=True, slots=True)
class MatchedGraph:
    """What patterns are matched on: the tables of a snapshot, and their topologies.

    Attributes:
        values: Of the placeholders in conditions.
        run: Runs a plan by SQL, for conditions and results that need it.
        memory: What the match may hold.
    """

    data: Data
    topologies: Topologies
    values: Mapping[str, BoundValue]
    run: Run
    memory: Memory

    def check(self) -> None:
        """Raise where the match is to end early; called between blocks."""
        self.data.budget.check()

    def beside(self, byte_count: int) -> MatchedGraph:
        """The same for a match inside of one that holds so many bytes."""
        return replace(self, memory=self.memory.within(byte_count))

    def nodes(self, key: TableKey) -> NodeSource:
        """The nodes of a table."""
        table = self.data.table(key)
        known = self.topologies.numbers(table)
        if known is None:
            message = f"the row ids of {key} are too sparse"
            raise UnmatchableError(message)
        return NodeSource(table, known)

    def topology(self, link: Link) -> Topology:
        """Which nodes the edges of a link connect."""
        topology = self.topologies.of(self.data, tables_of(link))
        if topology is None:
            message = f"the arrays of {link.edges} do not fit into memory"
            raise UnmatchableError(message)
        self.memory.use(topology)
        return topology

    def test(self, condition: RowCondition, columns: list[pa.ChunkedArray]) -> np.ndarray:
        """Whether a condition holds, for each row."""
        return holds(condition, columns, self.values, self._run_condition)

    def _run_condition(self, plan: Plan, data: Data) -> pa.Table:
        # It is a column of booleans, of rows that are there already.
        return self.run(plan, data.within(replace(self.data.budget, memory=None, rows=None)))


def tables_of(link: Link) -> EdgeTables:
    """The tables of a link's edges and of their ends."""
    return EdgeTables(link.edges, link.sources, link.targets)


@dataclass(slots=True)
class PatternMatch:
    """The match of one pattern, of which leaves are taken off.

    Attributes:
        kept: The variables that the caller wants rows of.
        sums: The sums over matches that it wants.
        candidates: The nodes that can match, by variable, as far as it is known.
        scalars: Weights and sums of variables that nothing connects with others.
        untested: The conditions and negations of single variables that are still to be tested.
        edge_values: What sums over the edges of a link add up, for every edge.
    """

    graph: MatchedGraph
    pattern: GraphPattern
    kept: frozenset[str]
    sums: tuple[Sum, ...] = ()
    sources: dict[str, Source] = field(default_factory=dict)
    candidates: dict[str, NodeWeights] = field(default_factory=dict)
    hops: dict[Link, tuple[Hop, Hop]] = field(default_factory=dict)
    links: list[Link] = field(default_factory=list)
    scalars: list[NodeWeights] = field(default_factory=list)
    untested: dict[str, list[RowCondition | NegatedPattern]] = field(default_factory=dict)
    edge_values: dict[Link, dict[str, np.ndarray]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        graph: MatchedGraph,
        pattern: GraphPattern,
        kept: Iterable[str],
        *,
        sums: tuple[Sum, ...] = (),
        outer: Mapping[str, TableKey] | None = None,
        outer_nodes: Mapping[str, NodeWeights] | None = None,
        ids: Mapping[str, str] | None = None,
    ) -> PatternMatch:
        """Prepare a match.

        Args:
            outer: The tables of variables that are bound outside the pattern, and `outer_nodes`
                the nodes that they may be bound to.
            ids: The ids of the only node that a variable can be bound to.
        """
        match = cls(graph, pattern, frozenset(kept), sums)
        for variable, key in {**(outer or {}), **pattern.nodes}.items():
            match.sources[variable] = source = graph.nodes(key)
            known = (outer_nodes or {}).get(variable, NodeWeights())
            if ids and variable in ids:
                number = source.known.find([ids[variable]])
                known = NodeWeights(number[number != NOTHING])
            match.candidates[variable] = known
        match.links = list(dict.fromkeys(pattern.links))
        match._put_off()
        for link in match.links:
            match.hops[link] = match._hops(link)
        return match

    def reduce(self) -> None:
        """Replace all leaves that are not needed by weights of their neighbours."""
        for variable in self.candidates:
            if self.sources[variable].row_count <= _SMALL_ROWS_MAX:
                self.test(variable)
        while moves := [move for leaf in self.candidates for move in self._moves(leaf)]:
            _, leaf, link = min(moves, key=lambda move: move[0])
            self.graph.check()
            self.test(leaf)
            if link is None:
                self.scalars.append(_total(self.complete(leaf), self.sources[leaf]))
            else:
                self._send(leaf, link)
            del self.candidates[leaf]

    @property
    def nbytes(self) -> int:
        """The memory that it holds."""
        nodes = sum(each.nbytes for each in (*self.candidates.values(), *self.scalars))
        return nodes + sum(count_bytes(values) for values in self.edge_values.values())

    @property
    def core(self) -> list[str]:
        """The node variables that are left."""
        return list(self.candidates)

    def joint_conditions(self) -> list[RowCondition]:
        """The conditions on several variables."""
        return [each for each in self.pattern.conditions if len(each.variables) > 1]

    def joint_negations(self) -> list[NegatedPattern]:
        """The negations around several variables."""
        return [each for each in self.pattern.negations if len(each.outer) > 1]

    def test(self, variable: str) -> None:
        """Keep the nodes of a variable that pass its own conditions and negations."""
        for each in self.untested.pop(variable, ()):
            if isinstance(each, RowCondition):
                self.candidates[variable] = self._pass(variable, each)
            else:
                self.candidates[variable] = self._without(variable, each)

    def complete(self, variable: str) -> NodeWeights:
        """The nodes of a variable, with the sums over its own columns."""
        own = [each for each in self.sums if each.use[0] == variable]
        nodes = self.candidates[variable]
        if not own:
            return nodes
        nodes = self.listed(variable)
        assert nodes.numbers is not None, "they are listed"
        sums = dict(nodes.sums)
        for each in own:
            values = read_numbers(self.sources[variable], each, nodes.numbers)
            sums[each.name] = multiply(values, nodes.weight)
        return NodeWeights(nodes.numbers, nodes.weight, sums)

    def listed(self, variable: str) -> NodeWeights:
        """The nodes of a variable, every one of them listed."""
        nodes = self.candidates[variable]
        return nodes if nodes.numbers is not None else NodeWeights(self.sources[variable].every)

    def way(self, link: Link, sender: str) -> MessagePath:
        """The steps of a link as they are seen from one of its ends."""
        there, back = self.hops[link]
        if sender != link.start:
            there, back = back, there
        sizes = self.sources[sender].size, self.sources[link.other(sender)].size
        return MessagePath(there, back, sizes, self._edge_values(link))

    def is_read(self, edge: str) -> bool:
        """Whether the pattern reads anything of an edge but that it is there."""
        return (
            edge in self.kept
            or any(each.use[0] == edge for each in self.sums)
            or any(edge in each.variables for each in self.pattern.conditions)
        )

    def _put_off(self) -> None:
        for condition in self.pattern.conditions:
            variables = condition.variables
            if len(variables) == 1 and not variables.isdisjoint(self.candidates):
                self.untested.setdefault(next(iter(variables)), []).append(condition)
        for negation in self.pattern.negations:
            if len(negation.outer) == 1:
                self.untested.setdefault(next(iter(negation.outer)), []).append(negation)

    def _moves(self, leaf: str) -> list[tuple[int, str, Link | None]]:
        """The message that would replace a variable, and its cost; nothing for one that stays."""
        if leaf in self._needed:
            return []
        touching = [link for link in self.links if leaf in (link.start, link.end)]
        if not touching:
            return [(0, leaf, None)]
        (link, *others) = touching
        if others or link.start == link.end or link.edge in self._needed:
            return []
        parent = link.other(leaf)
        cost = self.way(link, leaf).cost(self.candidates[leaf], self.candidates[parent])
        return [(cost + self.sources[leaf].row_count * (leaf in self.untested), leaf, link)]

    @property
    def _needed(self) -> frozenset[str]:
        joint = (each.variables for each in self.joint_conditions())
        negated = (frozenset(each.outer) for each in self.joint_negations())
        return self.kept.union(*joint, *negated)

    def _send(self, leaf: str, link: Link) -> None:
        parent = link.other(leaf)
        sender, receiver = self.complete(leaf), self.candidates[parent]
        way = self.way(link, leaf)
        if self.graph.memory.is_limited:
            self.graph.memory.require(self.nbytes + way.count_bytes(sender, receiver))
        message = way.message(sender, receiver)
        self.candidates[parent] = intersect(receiver, message)
        self.links.remove(link)

    def _pass(self, variable: str, condition: RowCondition) -> NodeWeights:
        nodes, source = self.candidates[variable], self.sources[variable]
        names = [name for _, name in condition.uses]
        if nodes.numbers is None:
            mask = self.graph.test(condition, [source.column(name) for name in names])
            return NodeWeights(source.numbers(mask))
        columns = [take(source, name, nodes.numbers) for name in names]
        return nodes.only(self.graph.test(condition, columns))

    def _without(self, variable: str, negation: NegatedPattern) -> NodeWeights:
        nodes = self.listed(variable)
        # Only which nodes they are matters for whether the negated pattern has a match.
        outer_nodes = {variable: NodeWeights(self.candidates[variable].numbers)}
        inner = PatternMatch.of(
            self.graph.beside(self.nbytes),
            negation.pattern,
            [variable],
            outer=negation.outer,
            outer_nodes=outer_nodes,
        )
        found = find_rows(inner)[variable]
        assert nodes.numbers is not None, "they are listed"
        return nodes.only(~np.isin(nodes.numbers, found))

    def _hops(self, link: Link) -> tuple[Hop, Hop]:
        topology = self.graph.topology(link)
        out, into = topology.out, topology.into
        if link.edge is not None and self.is_read(link.edge):
            return self._edge_hops(link, topology)
        if link.way is patterns.LinkWay.BOTH:
            self.graph.memory.require(topology.symmetric_bytes)
            out = into = topology.symmetric
        elif link.way is patterns.LinkWay.IN:
            out, into = into, out
        if link.hops_max > 1:
            walk = link.hops_min, link.hops_max, self.graph.check
            return WalkHop(out, *walk), WalkHop(into, *walk)
        counts_edges = link.edge is not None
        return PairHop(out, counts_edges), PairHop(into, counts_edges)

    def _edge_hops(self, link: Link, topology: Topology) -> tuple[Hop, Hop]:
        assert link.edge is not None, "the edge has a name"
        self.graph.memory.require(topology.rows_bytes)
        source = EdgeSource(topology.edges)
        self.sources[link.edge] = source
        chosen: np.ndarray | None = None
        for condition in self.pattern.conditions:
            if condition.variables == {link.edge}:
                columns = [source.column(name) for _, name in condition.uses]
                mask = self.graph.test(condition, columns)
                chosen = mask if chosen is None else chosen & mask
        out = EdgeHop(topology.out, topology.out_rows, chosen)
        into = EdgeHop(topology.into, topology.into_rows, chosen)
        match link.way:
            case patterns.LinkWay.OUT:
                return out, into
            case patterns.LinkWay.IN:
                return into, out
            case patterns.LinkWay.BOTH:
                return EitherHop(out, into), EitherHop(into, out)

    def _edge_values(self, link: Link) -> dict[str, np.ndarray]:
        own = [each for each in self.sums if each.use[0] == link.edge]
        if link.edge is None or not own:
            return {}
        if link not in self.edge_values:
            source = self.sources[link.edge]
            self.graph.memory.require(self.nbytes + 16 * len(own) * source.size)
            self.edge_values[link] = {each.name: read_numbers(source, each, None) for each in own}
        return self.edge_values[link]


def find_rows(match: PatternMatch) -> dict[str, np.ndarray]:
    """The combinations of the kept variables of a pattern that match, each once."""
    from omnigraph.engine.local.matching.join import collect

    return collect(match).columns


def read_numbers(source: Source, wanted: Sum, numbers: np.ndarray | None) -> np.ndarray:
    """The values that a sum adds up, zero for null; for a count, 1 for each that is not null."""
    name = wanted.use[1]
    column = source.column(name) if numbers is None else take(source, name, numbers)
    if wanted.counts:
        is_valid: np.ndarray = pc.is_valid(column).to_numpy(zero_copy_only=False)
        return is_valid.astype(np.int64)
    if column.null_count:
        column = pc.fill_null(column, pa.scalar(0, column.type))
    values: np.ndarray = column.to_numpy()
    if wanted.is_float:
        return values.astype(np.float64)
    if values.dtype == np.uint64 and len(values) and int(values.max()) >> 62:
        message = "the numbers may not fit 64 bits"
        raise UnmatchableError(message)
    return values.astype(np.int64)


def _total(nodes: NodeWeights, source: Source) -> NodeWeights:
    """The weight and the sums of all nodes together."""
    if nodes.numbers is None:
        return NodeWeights(np.zeros(1, np.uint32), np.array([source.row_count]))
    together = np.zeros(len(nodes.numbers), np.int64)
    weight = add_by_group(nodes.weight, together, 1)
    sums = {name: add_by_group(values, together, 1) for name, values in nodes.sums.items()}
    return NodeWeights(np.zeros(1, np.uint32), weight, sums)
