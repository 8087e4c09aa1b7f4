"""The reference evaluator: runs queries by exhaustive search; engines must return the same rows.

It shares no code with an engine and optimizes nothing: a match enumerates every combination of
nodes and keeps those for which each clause is true. `query.ir` defines the clauses.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import assert_never

from omnigraph.query import ir
from omnigraph.query.ir import Value
from tests.oracle import functions, paths, searches
from tests.oracle.aggregates import RoundedFloat, aggregate, require_fit
from tests.oracle.equality import SortKey, are_equal, distinct, sort_key, unsigned_zero

Row = Mapping[str, Value]
"""A node or an edge: `id`, for an edge `src` and `dst`, and every property, null as None."""

Assignment = Mapping[str, Row | None]
"""The row of each variable; None where an optional part has none."""


@dataclass(frozen=True, slots=True)
class ReferenceGraph:
    """A graph as dictionaries: the rows of each type, by the name of the type.

    It must be valid: ids are unique in their type, and the ends of edges exist.
    """

    rows: Mapping[str, Sequence[Row]]

    def rows_of(self, type_name: str) -> Sequence[Row]:
        """All rows of a type; none if the graph does not mention it."""
        return self.rows.get(type_name, ())


@dataclass(frozen=True, slots=True)
class _Run:
    """The inputs of one evaluation.

    Attributes:
        scope: Every solution of the match, once it is solved.
    """

    graph: ReferenceGraph
    values: Mapping[str, Value]
    now: datetime
    scope: Sequence[Assignment] = ()


@dataclass(frozen=True, slots=True)
class _Group:
    """Assignments that agree on the group keys, and the values they agree on."""

    keys: tuple[Value, ...]
    members: list[Assignment]


def evaluate(
    query: ir.ReadQuery, graph: ReferenceGraph, values: Mapping[str, Value], now: datetime
) -> list[dict[str, Value]]:
    """The rows of a query in their final order, each by the names of its columns.

    A number that depends on the order in which floats were added is `aggregates.RoundedFloat`,
    which has the tolerance for engines.

    Args:
        values: As `query.parameters.bind` returns them.

    Raises:
        SumTooLargeError: a sum of integers that is returned does not fit its type.
    """
    run = _Run(graph, values, now)
    outer: list[Assignment] = [{}]
    for stage in query.stages:
        outer = [_kept(stage, row) for row in _results(stage, outer, run)]
    types = {column.name: column.expression.type for column in query.columns}
    # The limit applies first: sorting uses exact sums, and only returned sums have to fit.
    return [
        {name: require_fit(value, types[name]) for name, value in result.columns.items()}
        for result in _results(query, outer, run)
    ]


@dataclass(frozen=True, slots=True)
class _Result:
    """A row of a result: its columns, the keys it is sorted by, and what it was made of."""

    columns: Mapping[str, Value]
    keys: Sequence[SortKey]
    origin: Assignment | _Group


def _results(query: ir.Selection, outer: Sequence[Assignment], run: _Run) -> list[_Result]:
    """The rows that a match has for each of those outside: grouped, sorted and limited."""
    assignments = [each for row in outer for each in _solutions(query.match, row, run)]
    run = replace(run, scope=assignments)
    rows: Sequence[Assignment | _Group] = assignments
    if query.is_grouped:
        rows = _groups(query, assignments, run)
    results: list[_Result] = []
    for row in rows:
        columns = {
            column.name: _value(column.expression, row, query, run) for column in query.columns
        }
        keys = [_sort_key(key, row, query, run) for key in _order_keys(query)]
        results.append(_Result(columns, keys, row))
    # The last key first, since sorting is stable; reversed sorting is stable too.
    directions = [key.descending for key in _order_keys(query)]
    for place in reversed(range(len(directions))):
        results.sort(key=lambda result: result.keys[place], reverse=directions[place])
    return results[_count(query.skip, run) or 0 :][: _count(query.limit, run)]


def _kept(stage: ir.Stage, result: _Result) -> Assignment:
    """What later matches see of a row: the variables that are kept, and the values."""
    names = {variable.name for variable in stage.kept}
    values = {name: value for name, value in result.columns.items() if name not in names}
    origin = result.origin
    if isinstance(origin, _Group):
        # All members of a group have the same variables; a group of nothing has none.
        origin = next(iter(origin.members), {})
    return {**{name: origin[name] for name in names}, ir.KEPT: values}


def _order_keys(query: ir.Selection) -> list[ir.OrderKey]:
    return [*query.order, *(ir.OrderKey(each, descending=False) for each in query.tie_breakers)]


def _sort_key(
    key: ir.OrderKey, row: Assignment | _Group, query: ir.Selection, run: _Run
) -> SortKey:
    value = _value(key.expression, row, query, run)
    if value is None and isinstance(key.expression, ir.Ranking) and not key.descending:
        # What has no score is last, from whichever end one looks.
        return (3,)
    return sort_key(value)


def _count(count: int | ir.ParameterValue | None, run: _Run) -> int | None:
    if not isinstance(count, ir.ParameterValue):
        return count
    value = run.values[count.name]
    assert isinstance(value, int), "a limit is a whole number"
    return value


def _solutions(block: ir.Block, outer: Assignment, run: _Run) -> Iterator[Assignment]:
    """Every completion of the outer assignment for which all clauses of the block are true."""
    assignments = [outer]
    for node in block.nodes:
        assignments = [
            {**assignment, node.variable: row}
            for assignment in assignments
            for row in _rows_of(node.type_names, run.graph)
        ]
    for traversal in block.traversals:
        assignments = [
            extended
            for assignment in assignments
            for extended in _crossings(traversal, assignment, run.graph)
        ]
    for part in block.optionals:
        nothing = dict.fromkeys(_variables(part.block))
        assignments = [
            extended
            for assignment in assignments
            for extended in (
                list(_solutions(part.block, assignment, run)) or [{**assignment, **nothing}]
            )
        ]
    for subquery in block.subqueries:
        assignments = [
            {**assignment, subquery.name: {ir.VALUE: _subquery(subquery, assignment, run)}}
            for assignment in assignments
        ]
    for assignment in assignments:
        if all(_truth(filter_, assignment, run) for filter_ in block.filters) and not any(
            _has_solution(negation.block, assignment, run) for negation in block.negations
        ):
            yield assignment


def _variables(block: ir.Block) -> Iterator[str]:
    """Every variable that a solution of the block has beyond the outer ones."""
    yield from (node.variable for node in block.nodes)
    yield from (each.edge_variable for each in block.traversals if each.edge_variable is not None)
    yield from (each.path.variable for each in block.traversals if each.path is not None)
    for part in block.optionals:
        yield from _variables(part.block)


def _subquery(subquery: ir.Subquery, outer: Assignment, run: _Run) -> Value:
    """The value of a subquery for one assignment."""
    solutions = list(_solutions(subquery.block, outer, run))
    if subquery.function is None:
        return bool(solutions)
    if subquery.argument is None:
        return len(solutions)
    values = [_operand(subquery.argument, each, run) for each in solutions]
    values = [value for value in values if value is not None]
    return aggregate(subquery.function, values, subquery.type)


def _has_solution(block: ir.Block, outer: Assignment, run: _Run) -> bool:
    return any(True for _ in _solutions(block, outer, run))


def _crossings(
    traversal: ir.Traversal, assignment: Assignment, graph: ReferenceGraph
) -> Iterator[Assignment]:
    """The assignment once for each way in which the traversal connects its ends."""
    for source in _candidates(traversal.source, assignment, graph):
        for destination in _candidates(traversal.destination, assignment, graph):
            if traversal.path is not None:
                path = paths.best_path(traversal, source, destination, graph.rows_of)
                if path is not None:
                    yield {**assignment, traversal.path.variable: path}
                continue
            if traversal.edge_variable is None:
                hops = _distance(traversal, source, destination, graph)
                if hops is not None and traversal.hops_min <= hops <= traversal.hops_max:
                    yield assignment
                continue
            types = [step.edge_type for step in traversal.steps]
            for step in _steps(traversal, source, destination):
                for edge in _rows_of(types, graph, only=step.edge_type):
                    if _connects(edge, step.direction, _own_id(source), _own_id(destination)):
                        yield {**assignment, traversal.edge_variable: edge}


def _candidates(
    end: str | ir.Anonymous, assignment: Assignment, graph: ReferenceGraph
) -> Sequence[Row]:
    if isinstance(end, ir.Anonymous):
        return _rows_of(end.type_names, graph)
    row = assignment[end]
    return [] if row is None else [row]


def _rows_of(types: Sequence[str], graph: ReferenceGraph, only: str | None = None) -> Sequence[Row]:
    """The rows of all types, or of one of them; where there are several, each knows its own."""
    if len(types) == 1:
        return graph.rows_of(types[0])
    return [
        {**row, "id": f"{type_}:{row['id']!s}", ir.LOCAL_ID: row["id"], ir.TYPE: str(type_)}
        for type_ in types
        if only in (None, type_)
        for row in graph.rows_of(type_)
    ]


def _own_id(row: Row) -> Value:
    """The id of a row among those of its type."""
    return row.get(ir.LOCAL_ID, row["id"])


def _steps(traversal: ir.Traversal, source: Row, destination: Row) -> Iterator[ir.EdgeStep]:
    """The edge types that join rows of the types that these two have."""
    for step in traversal.steps:
        ends = (step.source, source), (step.destination, destination)
        if all(type_ is None or row[ir.TYPE] == type_ for type_, row in ends):
            yield step


def _distance(
    traversal: ir.Traversal, source: Row, destination: Row, graph: ReferenceGraph
) -> int | None:
    """The least number of hops from the source to the destination, up to `hops_max`.

    The source itself is reached only by a self-loop, at one hop.
    """
    steps = list(_steps(traversal, source, destination))
    start, end = _own_id(source), _own_id(destination)
    if any(
        _connects(edge, step.direction, start, end)
        for step in steps
        for edge in graph.rows_of(step.edge_type)
    ):
        return 1
    if traversal.hops_max == 1:
        return None
    visited, frontier = {start}, {start}
    for hops in range(1, traversal.hops_max + 1):
        frontier = _neighbours(frontier, steps, graph) - visited
        if end in frontier:
            return hops
        if not frontier:
            return None
        visited |= frontier
    return None


def _neighbours(
    nodes: set[Value], steps: Sequence[ir.EdgeStep], graph: ReferenceGraph
) -> set[Value]:
    neighbours: set[Value] = set()
    for step in steps:
        for edge in graph.rows_of(step.edge_type):
            if step.direction is not ir.Direction.IN and edge["src"] in nodes:
                neighbours.add(edge["dst"])
            if step.direction is not ir.Direction.OUT and edge["dst"] in nodes:
                neighbours.add(edge["src"])
    return neighbours


def _connects(edge: Row, direction: ir.Direction, source: Value, destination: Value) -> bool:
    """Whether the edge leads from the source to the destination in this direction."""
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


def _truth(filter_: ir.Filter, assignment: Assignment, run: _Run) -> bool | None:
    """Whether the condition is true or false; None if it is unknown."""
    match filter_:
        case ir.Comparison(left, operator, right):
            return _compares(
                _operand(left, assignment, run),
                operator,
                _operand(right, assignment, run),
            )
        case ir.NullTest(operand, negated):
            return (_operand(operand, assignment, run) is None) is not negated
        case ir.TextMatch(_, text, query, edits):
            limit = None if edits is None else _operand(edits, assignment, run)
            assert limit is None or isinstance(limit, int), "edits are a whole number"
            sides = _operand(text, assignment, run), _operand(query, assignment, run)
            return searches.passes(filter_, *sides, limit)
        case ir.Junction(connective, conditions):
            truths = [_truth(condition, assignment, run) for condition in conditions]
            decisive = connective is ir.Connective.OR
            if decisive in truths:
                return decisive
            return None if None in truths else not decisive
        case ir.Inverse(condition):
            truth = _truth(condition, assignment, run)
            return None if truth is None else not truth
        case _:
            assert_never(filter_)


def _compares(left: Value, operator: ir.Operator, right: Value) -> bool | None:
    if left is None or right is None:
        return None
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


def _operand(operand: ir.Operand, assignment: Assignment, run: _Run) -> Value:
    match operand:
        case ir.ColumnValue(variable, column):
            row = assignment[variable]
            return None if row is None else row[column]
        case ir.ParameterValue(name):
            return run.values[name]
        case ir.Constant(value):
            return value
        case ir.Now():
            return run.now
        case ir.SubqueryValue(name):
            row = assignment[name]
            return None if row is None else row[ir.VALUE]
        case ir.Call(function, arguments, type_):
            values = [_operand(argument, assignment, run) for argument in arguments]
            return functions.call(function, values, type_)
        case ir.Case(branches, otherwise, type_):
            chosen = (value for when, value in branches if _truth(when, assignment, run))
            return functions.converted(_operand(next(chosen, otherwise), assignment, run), type_)
        case _:
            assert_never(operand)


def _groups(query: ir.Selection, assignments: Sequence[Assignment], run: _Run) -> list[_Group]:
    """The assignments by their group keys; without keys one group, even of nothing."""
    groups = [] if query.group_keys else [_Group((), [])]
    for assignment in assignments:
        keys = tuple(_operand(key, assignment, run) for key in query.group_keys)
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
    query: ir.Selection,
    run: _Run,
) -> Value:
    """The value of an expression for a row of the result."""
    match expression:
        case ir.Nearest() | ir.Bm25() | ir.Rrf():
            assert not isinstance(row, _Group), "groups have no rankings"
            score = _score(expression, row, run)
            return None if score is None else RoundedFloat(score, abs(score) * 1e-9)
        case ir.ObjectValue(of, values):
            assert not isinstance(row, _Group), "an object is of one row"
            if _operand(of, row, run) is None:
                return None
            return {name: _operand(value, row, run) for name, value in values}  # type: ignore[return-value]  # of a column only
        case ir.Aggregate():
            assert isinstance(row, _Group), "only groups have aggregates"
            return _aggregate(expression, row, run)
        case _:
            if isinstance(row, _Group):
                return row.keys[query.group_keys.index(expression)]
            return _operand(expression, row, run)


def _score(ranking: ir.Ranking, row: Assignment, run: _Run) -> float | None:
    match ranking:
        case ir.Bm25(text, query, table, analyzer):
            texts = [each[text.column] for each in run.graph.rows_of(table.type_name)]
            sides = (_operand(each, row, run) for each in (text, query))
            score = searches.relevance(analyzer, texts, *sides)
        case ir.Nearest(vector, query, _, metric):
            sides = (_operand(each, row, run) for each in (vector, query))
            score = searches.distance(metric, *sides)
        case ir.Rrf(rankings, k):
            variables = [_variable(each) for each in rankings]
            scores = [_scores(each, run) for each in rankings]
            weight = _operand(k, row, run)
            assert isinstance(weight, int), "k is a whole number"
            score = searches.fuse(scores, [_id(row[name]) for name in variables], weight)
        case _:
            assert_never(ranking)
    assert score is None or isinstance(score, float), "a score is a number"
    return score


def _scores(ranking: ir.Nearest | ir.Bm25, run: _Run) -> dict[str, float]:
    """The scores of the rows in scope that have one, by id; less is better."""
    sign = -1 if isinstance(ranking, ir.Bm25) else 1
    scores = {_id(each[_variable(ranking)]): _score(ranking, each, run) for each in run.scope}
    return {
        id_: sign * score for id_, score in scores.items() if id_ is not None and score is not None
    }


def _id(row: Row | None) -> str | None:
    return None if row is None else str(row["id"])


def _variable(ranking: ir.Nearest | ir.Bm25) -> str:
    return ranking.vector.variable if isinstance(ranking, ir.Nearest) else ranking.text.variable


def _aggregate(expression: ir.Aggregate, group: _Group, run: _Run) -> Value:
    values = [_operand(expression.argument, member, run) for member in group.members]
    values = [value for value in values if value is not None]
    if expression.distinct:
        values = distinct(values)
    return aggregate(expression.function, values, expression.type)
