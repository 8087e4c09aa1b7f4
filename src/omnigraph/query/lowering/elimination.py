"""Leaf elimination: variables that only multiply the rows of a neighbour become weights of it.

Variables are vertices of the pattern, traversals its edges. A grouped query returns few of its
variables; a variable that is not returned, and has one traversal left, is replaced by a message:
for each node of its neighbour, how many rows it would have added, and the sums of its values over
those rows. The rows that remain are weighted by their messages.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from omnigraph.query import ir
from omnigraph.query.functions import AggregateFunction
from omnigraph.query.lowering.operands import columns_in, operands_of


@dataclass(frozen=True, slots=True)
class ColumnSum:
    """What messages add up besides the number of rows, for one column of an eliminated variable.

    Attributes:
        counts: Whether values that are not null are counted, or else added.
    """

    argument: ir.ColumnValue
    counts: bool


@dataclass(frozen=True, slots=True)
class Summary:
    """What later steps use of the rows of a block, if they do not need each by itself.

    Attributes:
        needed: The variables whose values they use.
        sums: What they add up of other variables, besides the number of rows.
    """

    needed: frozenset[str]
    sums: tuple[ColumnSum, ...]

    @classmethod
    def of(cls, query: ir.Selection) -> Summary | None:
        """What a query uses of its match; None where rows have to be enumerated.

        That is so if the result has one row, or a list one item, for each match.
        """
        if not query.is_grouped or lists_rows(query):
            return None
        values = (each for operand in grouped_values(query) for each in columns_in(operand))
        return cls(frozenset(each.variable for each in values), tuple(_sums(query)))

    def within(self, variables: frozenset[str], outer: Iterable[str]) -> Summary:
        """The same of an optional part that has these variables, and others from outside."""
        sums = (each for each in self.sums if each.argument.variable in variables)
        return Summary(frozenset(outer), tuple(sums))


@dataclass(frozen=True, slots=True)
class Message:
    """An eliminated variable, and the neighbour that it weighs.

    Attributes:
        parent: None for a variable without neighbours: its rows multiply all others.
        traversal: The one that leads to the parent; it goes with the variable.
    """

    leaf: str
    parent: str | None = None
    traversal: ir.Traversal | None = None


@dataclass(frozen=True, slots=True)
class Elimination:
    """What is left of a block, and the messages that replace the rest.

    Attributes:
        block: The whole block, with a name for each end of its traversals.
        kept: The variables that are not eliminated.
        messages: Each after all messages to its variable.
        carried: What the messages carry, of eliminated variables only.
    """

    block: ir.Block
    kept: frozenset[str]
    messages: tuple[Message, ...]
    carried: tuple[ColumnSum, ...]

    @property
    def traversals(self) -> tuple[ir.Traversal, ...]:
        """The traversals between variables that are kept."""
        removed = [message.traversal for message in self.messages]
        return tuple(each for each in self.block.traversals if each not in removed)


def eliminate(block: ir.Block, summary: Summary) -> Elimination | None:
    """What messages replace of a block; None if they replace nothing."""
    block = name_ends(block)
    peeling = _Peeling(block, frozenset(_needed(block, summary)), set(block.traversals))
    messages = tuple(peeling.run())
    if not messages:
        return None
    gone = {message.leaf for message in messages} | {
        message.traversal.edge_variable
        for message in messages
        if message.traversal is not None and message.traversal.edge_variable is not None
    }
    kept = frozenset(variable for variable in _variables_of(block) if variable not in gone)
    carried = tuple(each for each in summary.sums if each.argument.variable in gone)
    return Elimination(block, kept, messages, carried)


def name_ends(block: ir.Block, prefix: str = "") -> ir.Block:
    """The same block with a variable for each end that the query does not name.

    No query can bind such a name: it starts with a digit, or with the prefix.
    """
    nodes, traversals = list(block.nodes), []

    def name(end: str | ir.Anonymous, place: int) -> str:
        if isinstance(end, str):
            return end
        name = f"{prefix}{place} {end.type_name}"
        nodes.append(ir.NodeBinding(name, end.type_name, end.other_types))
        return nodes[-1].variable

    for place, traversal in enumerate(block.traversals):
        source = name(traversal.source, 2 * place)
        destination = name(traversal.destination, 2 * place + 1)
        traversals.append(replace(traversal, source=source, destination=destination))
    return replace(block, nodes=tuple(nodes), traversals=tuple(traversals))


def aggregates_of(query: ir.Selection) -> Iterator[ir.Aggregate]:
    """The aggregates that a query returns or sorts by."""
    expressions = [column.expression for column in query.columns]
    for expression in (*expressions, *(key.expression for key in query.order)):
        if isinstance(expression, ir.Aggregate):
            yield expression


def lists_rows(query: ir.Selection) -> bool:
    """Whether a list of the result has an item for each match: weights do not repeat items."""
    return any(
        each.function is AggregateFunction.COLLECT and not each.distinct
        for each in aggregates_of(query)
    )


def grouped_values(query: ir.Selection) -> Iterator[ir.Operand]:
    """The values that groups are made of one by one: messages do not add these up."""
    yield from query.group_keys
    for each in aggregates_of(query):
        if not adds_up(each) or isinstance(each.argument, ir.Computed):
            yield each.argument


def adds_up(aggregate: ir.Aggregate) -> bool:
    """Whether the aggregate of many rows follows from those of their parts, by weights."""
    function = aggregate.function
    return not aggregate.distinct and function not in (
        AggregateFunction.MIN,
        AggregateFunction.MAX,
        AggregateFunction.COLLECT,
    )


def variables_in(condition: ir.Filter) -> set[str]:
    """The variables that a filter compares."""
    return {
        operand.variable
        for operand in operands_of(condition)
        if isinstance(operand, ir.ColumnValue)
    }


def _needed(block: ir.Block, summary: Summary) -> Iterator[str]:
    """The variables whose values decide about rows together with others, or are used later."""
    yield from summary.needed
    for condition in block.filters:
        variables = variables_in(condition)
        if len(variables) > 1:
            yield from variables
    for part in block.parts:
        yield from part.outer
    for traversal in block.traversals:
        # The best walk between two nodes is no sum over one of them.
        if traversal.path is not None:
            ends = (traversal.source, traversal.destination)
            yield from (end for end in ends if isinstance(end, str))


def _sums(query: ir.Selection) -> Iterator[ColumnSum]:
    sums: dict[ColumnSum, None] = {}
    for each in aggregates_of(query):
        argument = each.argument
        if not adds_up(each) or not isinstance(argument, ir.ColumnValue):
            continue
        if each.function is not AggregateFunction.COUNT:
            sums[ColumnSum(argument, counts=False)] = None
        if each.function is not AggregateFunction.SUM and argument.nullable:
            sums[ColumnSum(argument, counts=True)] = None
    yield from sums


def _variables_of(block: ir.Block) -> Iterator[str]:
    yield from (node.variable for node in block.nodes)
    for traversal in block.traversals:
        if traversal.edge_variable is not None:
            yield traversal.edge_variable


@dataclass(slots=True)
class _Peeling:
    """Takes leaf after leaf off a pattern.

    Attributes:
        selective: The variables of which an equality leaves few nodes, or whose messages do. Their
            messages are short, so they come first, and what they lead to follows.
        heights: How many messages lead to a variable, one after the other. Without equalities, low
            ones come first, so that messages meet in the middle of a path.
    """

    block: ir.Block
    needed: frozenset[str]
    left: set[ir.Traversal]
    selective: set[str] = field(default_factory=set)
    heights: dict[str, int] = field(default_factory=dict)

    def run(self) -> Iterator[Message]:
        self.selective = {
            variable
            for condition in self.block.filters
            if isinstance(condition, ir.Comparison) and condition.operator is ir.Operator.EQ
            for variable in variables_in(condition)
        }
        waiting = [node.variable for node in self.block.nodes if node.variable not in self.needed]
        self.heights = dict.fromkeys((node.variable for node in self.block.nodes), 0)
        while leaves := [leaf for leaf in waiting if self._is_leaf(leaf)]:
            leaf = min(leaves, key=lambda leaf: (leaf not in self.selective, self.heights[leaf]))
            waiting.remove(leaf)
            yield self._message(leaf)

    def _message(self, leaf: str) -> Message:
        touching = self._touching(leaf)
        if not touching:
            return Message(leaf)
        (traversal,) = touching
        self.left.remove(traversal)
        (parent,) = {traversal.source, traversal.destination} - {leaf}
        assert isinstance(parent, str), "every end has a name"
        self.heights[parent] = max(self.heights.get(parent, 0), self.heights[leaf] + 1)
        if leaf in self.selective or traversal.edge_variable in self.selective:
            self.selective.add(parent)
        return Message(leaf, parent, traversal)

    def _is_leaf(self, variable: str) -> bool:
        touching = self._touching(variable)
        return len(touching) <= 1 and all(
            traversal.source != traversal.destination and traversal.edge_variable not in self.needed
            for traversal in touching
        )

    def _touching(self, variable: str) -> list[ir.Traversal]:
        return [each for each in self.left if variable in (each.source, each.destination)]
