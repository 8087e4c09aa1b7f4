"""The reference: what a query returns, found by trying everything; engines are held to it.

Nothing here is shared with an engine, and nothing is clever: a match takes every combination of
nodes and keeps those for which each clause is true. `query.ir` says what the clauses mean.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import assert_never

from omnigraph.query import ir
from omnigraph.query.ir import Value
from omnigraph.testing.aggregates import aggregate, fitting
from omnigraph.testing.equality import SortKey, are_equal, distinct, sort_key, unsigned_zero

Row = Mapping[str, Value]
"""A node or an edge: `id`, for an edge `src` and `dst`, and every property, null as None."""

Assignment = Mapping[str, Row]
"""What each variable stands for."""


@dataclass(frozen=True, slots=True)
class ReferenceGraph:
    """A graph as dictionaries: the rows of each type, by the name of the type.

    It is taken to be valid: ids are unique in their type, and the ends of edges exist.
    """

    rows: Mapping[str, Sequence[Row]]

    def rows_of(self, type_name: str) -> Sequence[Row]:
        """All rows of a type; none if nothing was said about it."""
        return self.rows.get(type_name, ())


@dataclass(frozen=True, slots=True)
class _Question:
    """What stays the same while a query is answered."""

    graph: ReferenceGraph
    values: Mapping[str, Value]
    now: datetime


@dataclass(frozen=True, slots=True)
class _Group:
    """Assignments that agree on the group keys, and the values they agree on."""

    keys: tuple[Value, ...]
    members: list[Assignment]


def evaluate(
    query: ir.ReadQuery, graph: ReferenceGraph, values: Mapping[str, Value], now: datetime
) -> list[dict[str, Value]]:
    """The rows of a query in their final order, each by the names of its columns.

    A number that depends on the order in which floats were added is `aggregates.Rounded`, and says
    how far from it an engine may be.

    Args:
        values: As `query.parameters.bind` gives them.

    Raises:
        SumTooLargeError: a sum of integers that is returned does not fit its type.
        NotImplementedError: the query searches or ranks, which has no naive meaning.
    """
    question = _Question(graph, values, now)
    assignments = list(_solutions(query.match, {}, question))
    rows: Sequence[Assignment | _Group] = assignments
    if query.is_grouped:
        rows = _groups(query, assignments, question)
    returned: list[tuple[dict[str, Value], list[SortKey]]] = []
    for row in rows:
        columns = {
            each.name: _value(each.expression, row, query, question) for each in query.columns
        }
        keys = [_value(each, row, query, question) for each in _sorted_by(query)]
        returned.append((columns, [sort_key(each) for each in keys]))
    # The last key first, since sorting is stable; reversed sorting is stable too.
    directions = [*(each.descending for each in query.order), *(False for _ in query.tie_breakers)]
    for place in reversed(range(len(directions))):
        returned.sort(key=lambda each: each[1][place], reverse=directions[place])
    types = {each.name: each.expression.type for each in query.columns}
    # Rows are cut first: order goes by exact sums, and only those that are returned have to fit.
    return [
        {name: fitting(value, types[name]) for name, value in columns.items()}
        for columns, _ in returned[: _limit(query, question)]
    ]


def _sorted_by(query: ir.ReadQuery) -> list[ir.Expression]:
    return [*(each.expression for each in query.order), *query.tie_breakers]


def _limit(query: ir.ReadQuery, question: _Question) -> int | None:
    if not isinstance(query.limit, ir.ParameterValue):
        return query.limit
    limit = question.values[query.limit.name]
    assert isinstance(limit, int), "a limit is a whole number"
    return limit


def _solutions(block: ir.Block, outer: Assignment, question: _Question) -> Iterator[Assignment]:
    """Every way to complete the outer assignment so that all clauses of the block are true."""
    found = [outer]
    for node in block.nodes:
        found = [
            {**each, node.variable: row}
            for each in found
            for row in question.graph.rows_of(node.type_name)
        ]
    for traversal in block.traversals:
        found = [after for each in found for after in _crossings(traversal, each, question.graph)]
    for each in found:
        if all(_holds(filter_, each, question) for filter_ in block.filters) and not any(
            _has_solution(negation.block, each, question) for negation in block.negations
        ):
            yield each


def _has_solution(block: ir.Block, outer: Assignment, question: _Question) -> bool:
    return any(True for _ in _solutions(block, outer, question))


def _crossings(
    traversal: ir.Traversal, assignment: Assignment, graph: ReferenceGraph
) -> Iterator[Assignment]:
    """The assignment once for each way in which the traversal connects its ends."""
    for source in _candidates(traversal.source, assignment, graph):
        for destination in _candidates(traversal.destination, assignment, graph):
            if traversal.edge_variable is None:
                hops = _distance(traversal, source["id"], destination["id"], graph)
                if hops is not None and traversal.hops_min <= hops <= traversal.hops_max:
                    yield assignment
                continue
            for edge in graph.rows_of(traversal.edge_type):
                if _leads(edge, traversal.direction, source["id"], destination["id"]):
                    yield {**assignment, traversal.edge_variable: edge}


def _candidates(
    end: str | ir.Anonymous, assignment: Assignment, graph: ReferenceGraph
) -> Sequence[Row]:
    if isinstance(end, ir.Anonymous):
        return graph.rows_of(end.type_name)
    return [assignment[end]]


def _distance(
    traversal: ir.Traversal, source: Value, destination: Value, graph: ReferenceGraph
) -> int | None:
    """The least number of hops from the source to the destination, up to `hops_max`.

    The source itself is only ever reached by one hop from itself.
    """
    edges = graph.rows_of(traversal.edge_type)
    if any(_leads(each, traversal.direction, source, destination) for each in edges):
        return 1
    visited, frontier = {source}, {source}
    for hops in range(1, traversal.hops_max + 1):
        frontier = _neighbours(frontier, traversal.direction, edges) - visited
        if destination in frontier:
            return hops
        if not frontier:
            return None
        visited |= frontier
    return None


def _neighbours(nodes: set[Value], direction: ir.Direction, edges: Sequence[Row]) -> set[Value]:
    found: set[Value] = set()
    for each in edges:
        if direction is not ir.Direction.IN and each["src"] in nodes:
            found.add(each["dst"])
        if direction is not ir.Direction.OUT and each["dst"] in nodes:
            found.add(each["src"])
    return found


def _leads(edge: Row, direction: ir.Direction, source: Value, destination: Value) -> bool:
    """Whether one walk over the edge goes from the source to the destination."""
    forwards = (edge["src"], edge["dst"]) == (source, destination)
    backwards = (edge["dst"], edge["src"]) == (source, destination)
    match direction:
        case ir.Direction.OUT:
            return forwards
        case ir.Direction.IN:
            return backwards
        case ir.Direction.BOTH:
            return forwards or backwards
        case _:
            assert_never(direction)


def _holds(filter_: ir.Filter, assignment: Assignment, question: _Question) -> bool:
    match filter_:
        case ir.Comparison(left, operator, right):
            return _compares(
                _operand(left, assignment, question),
                operator,
                _operand(right, assignment, question),
            )
        case ir.NullTest(operand, negated):
            return (_operand(operand, assignment, question) is None) is not negated
        case ir.TextMatch():
            message = "the reference does not search texts"
            raise NotImplementedError(message)
        case _:
            assert_never(filter_)


def _compares(left: Value, operator: ir.Operator, right: Value) -> bool:
    if left is None or right is None:
        return False
    match operator:
        case ir.Operator.EQ:
            return are_equal(left, right)
        case ir.Operator.NE:
            return not are_equal(left, right)
        case ir.Operator.LT:
            return sort_key(left) < sort_key(right)
        case ir.Operator.LE:
            return sort_key(left) <= sort_key(right)
        case ir.Operator.GT:
            return sort_key(left) > sort_key(right)
        case ir.Operator.GE:
            return sort_key(left) >= sort_key(right)
        case ir.Operator.CONTAINS_ITEM:
            assert isinstance(left, tuple), "only a list contains items"
            return any(are_equal(item, right) for item in left)
        case ir.Operator.CONTAINS_TEXT:
            assert isinstance(left, str), "only a text contains texts"
            assert isinstance(right, str), "a text contains only texts"
            return right in left
        case ir.Operator.STARTS_WITH:
            assert isinstance(left, str), "only a text starts with a text"
            assert isinstance(right, str), "a text starts only with a text"
            return left.startswith(right)
        case _:
            assert_never(operator)


def _operand(operand: ir.Operand, assignment: Assignment, question: _Question) -> Value:
    match operand:
        case ir.ColumnValue(variable, column):
            return assignment[variable][column]
        case ir.ParameterValue(name):
            return question.values[name]
        case ir.Constant(value):
            return value
        case ir.Now():
            return question.now
        case _:
            assert_never(operand)


def _groups(
    query: ir.ReadQuery, assignments: Sequence[Assignment], question: _Question
) -> list[_Group]:
    """The assignments by their group keys; without keys one group, even of nothing."""
    groups = [] if query.group_keys else [_Group((), [])]
    for assignment in assignments:
        keys = tuple(_operand(each, assignment, question) for each in query.group_keys)
        for group in groups:
            if all(map(are_equal, group.keys, keys)):
                group.members.append(assignment)
                break
        else:
            groups.append(_Group(tuple(map(unsigned_zero, keys)), [assignment]))
    return groups


def _value(
    expression: ir.Expression,
    row: Assignment | _Group,
    query: ir.ReadQuery,
    question: _Question,
) -> Value:
    """The value that an expression has for a row of the result."""
    match expression:
        case ir.Nearest() | ir.Bm25() | ir.Rrf():
            message = "the reference does not rank rows"
            raise NotImplementedError(message)
        case ir.Aggregate():
            assert isinstance(row, _Group), "only groups have aggregates"
            return _aggregate(expression, row, question)
        case _:
            if isinstance(row, _Group):
                return row.keys[query.group_keys.index(expression)]
            return _operand(expression, row, question)


def _aggregate(expression: ir.Aggregate, group: _Group, question: _Question) -> Value:
    values = [_operand(expression.argument, each, question) for each in group.members]
    values = [each for each in values if each is not None]
    if expression.distinct:
        values = distinct(values)
    return aggregate(expression.function, values, expression.type)
