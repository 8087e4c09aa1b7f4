"""The pattern of a query, and what is made of its matches, beside the tree that says the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from omnigraph.choices import TableKind
from omnigraph.model.names import TypeName
from omnigraph.model.tables import TableKey
from omnigraph.model.types import Scalar
from omnigraph.query import ir
from omnigraph.query.functions import AggregateFunction
from omnigraph.query.lowering.elimination import (
    ColumnSum,
    adds_up,
    aggregates_of,
    grouped_values,
    lists_rows,
    name_ends,
    variables_in,
)
from omnigraph.query.lowering.expressions import filter_tree
from omnigraph.query.lowering.keys import FixedKey, fixed_key, fixes
from omnigraph.query.lowering.operands import Given, columns_in, operands_of
from omnigraph.query.lowering.optional import (
    has_optionals,
    has_paths,
    has_several_types,
    has_subqueries,
)
from omnigraph.query.lowering.row_tables import Rows
from omnigraph.query.lowering.state import LoweringState
from omnigraph.query.lowering.usage import Use, uses_of_results
from omnigraph.query.lowering.weights import WEIGHT
from omnigraph.relational.patterns import (
    VALUES,
    Function,
    GraphPattern,
    Link,
    LinkWay,
    NegatedPattern,
    PatternPlan,
    PlainResults,
    Result,
    RowCondition,
    Sum,
    Total,
)
from omnigraph.relational.plans import Plan
from omnigraph.relational.trees import column

_WAYS: Final = {
    ir.Direction.OUT: LinkWay.OUT,
    ir.Direction.IN: LinkWay.IN,
    ir.Direction.BOTH: LinkWay.BOTH,
}


@dataclass(frozen=True, slots=True)
class MatchingTemplate:
    """A pattern and its results, valid for all values of one `Given.shape`."""

    unbound: PatternPlan
    keys: Mapping[str, FixedKey]

    def matching(self, given: Given) -> PatternPlan:
        """The same for these values."""
        unbound, results = self.unbound, self.unbound.results
        values = {name: given.rebind(bound) for name, bound in unbound.values.items()}
        bound = {name: given.rebind(bound) for name, bound in results.values.items()}
        return replace(
            unbound,
            values=values,
            ids={variable: key.identity(given) for variable, key in self.keys.items()},
            results=replace(results, values=bound),
        )


@dataclass(frozen=True, slots=True)
class NoPattern:
    """Why a query has no pattern, in words that follow "because"."""

    why: str


NO_EDGES: Final = NoPattern("it follows no edges")


def match_pattern(
    query: ir.Selection,
    state: LoweringState,
    limit: int | None,
    results: Callable[[LoweringState, Rows], Plan],
) -> MatchingTemplate | NoPattern:
    """The pattern of a query and the plan of its results, unless patterns cannot say it.

    Args:
        state: For this alone: its values are those of the pattern.
        results: Makes a plan over a table of rows.
    """
    if query.follows_stage:
        return NoPattern("it continues from a stage")
    block = name_ends(query.match)
    if has_several_types(block):
        return NoPattern("a variable or an edge has several types")
    if has_paths(block):
        return NoPattern("it has a path")
    if has_optionals(block):
        return NoPattern("it has optional parts")
    if has_subqueries(block):
        return NoPattern("it has subqueries")
    if not block.traversals:
        return NO_EDGES
    if _negates_edges(block, frozenset(node.variable for node in block.nodes)):
        return NoPattern("a 'not' or an 'exists' uses an edge from outside")
    keys: dict[str, FixedKey] = {}
    pattern = _pattern(block, state, {}, keys=keys)
    is_weighted = query.is_grouped and not lists_rows(query)
    sums = tuple(_sums(query)) if is_weighted else ()
    carried = {what: sum_.name for what, sum_ in sums}
    uses = frozenset(_uses_of_groups(query) if is_weighted else uses_of_results(query))
    columns = {use: f"v{place}" for place, use in enumerate(sorted(uses))}
    weight = WEIGHT if is_weighted else None
    apart = LoweringState(state.catalog, state.given)
    rows = Rows(apart.builder.give(), columns, {}, weight, carried)
    matching = PatternPlan(
        pattern=pattern,
        kept=frozenset(variable for variable, _ in uses),
        columns=columns,
        weight=weight,
        sums=tuple(sum_ for _, sum_ in sums),
        results=results(apart, rows),
        shape=_shape(query, limit),
        values=dict(state.builder.bindings.values),
    )
    return MatchingTemplate(matching, keys)


def _uses_of_groups(query: ir.Selection) -> list[Use]:
    """The values that groups are made of, one by one; what is added up is summed before."""
    return [
        (each.variable, each.column)
        for operand in grouped_values(query)
        for each in columns_in(operand)
    ]


def _sums(query: ir.Selection) -> list[tuple[ColumnSum, Sum]]:
    wanted: dict[ColumnSum, None] = {}
    for each in aggregates_of(query):
        argument = each.argument
        if not adds_up(each) or not isinstance(argument, ir.ColumnValue):
            continue
        if each.function is not AggregateFunction.COUNT:
            wanted[ColumnSum(argument, counts=False)] = None
        # The sum of no values is null, so a sum has to know their number, too.
        if argument.nullable:
            wanted[ColumnSum(argument, counts=True)] = None
    return [
        (
            carried,
            Sum(
                f"s{place}",
                (carried.argument.variable, carried.argument.column),
                carried.counts,
                carried.argument.type in (Scalar.F32, Scalar.F64),
            ),
        )
        for place, carried in enumerate(wanted)
    ]


def _pattern(
    block: ir.Block,
    state: LoweringState,
    outer: Mapping[str, TableKey],
    prefix: str = "",
    keys: dict[str, FixedKey] | None = None,
    around: Sequence[str] = (),
) -> GraphPattern:
    """The pattern of a block.

    Args:
        outer: The variables of the blocks around it.
        around: Those among them that it uses.
    """
    nodes = {
        node.variable: TableKey(TableKind.NODE, node.type_name)
        for node in block.nodes
        if node.variable not in outer
    }
    conditions = []
    for node in block.nodes:
        alone = {node.variable}
        own = [each for each in block.filters if variables_in(each) == alone]
        type_ = state.catalog.node_type(node.type_name)
        key = fixed_key(type_, own, state.given)
        fixing = [each for each in own if fixes(type_, each, state.given)]
        # An id matches exactly the rows of its key, so filters that fix nothing else are done.
        if keys is not None and key is not None and len(fixing) == len(key.operands):
            keys[node.variable] = key
            own = [each for each in own if each not in fixing]
        conditions += own
    conditions += [each for each in block.filters if not _is_of_one_node(each, block)]
    known = {**outer, **nodes}
    some = next(iter(nodes), around[0] if around else "")
    return GraphPattern(
        nodes,
        tuple(_link(traversal, state) for traversal in block.traversals),
        tuple(_condition(each, state, some) for each in conditions),
        tuple(
            _negated(negation, state, known, prefix=f"{prefix}{place}.")
            for place, negation in enumerate(block.negations)
        ),
    )


def _negated(
    negation: ir.Negation, state: LoweringState, known: Mapping[str, TableKey], *, prefix: str
) -> NegatedPattern:
    """The pattern of a negation, with names for its ends that no other block has."""
    outer = {variable: known[variable] for variable in negation.outer if variable in known}
    block = name_ends(negation.block, prefix)
    pattern = _pattern(block, state, known, prefix, around=tuple(outer))
    return NegatedPattern(pattern, outer)


def _negates_edges(block: ir.Block, nodes: frozenset[str]) -> bool:
    for negation in block.negations:
        inner = frozenset(node.variable for node in negation.block.nodes)
        if not nodes.issuperset(negation.outer) or _negates_edges(negation.block, nodes | inner):
            return True
    return False


def _is_of_one_node(condition: ir.Filter, block: ir.Block) -> bool:
    variables = variables_in(condition)
    return len(variables) == 1 and variables <= {node.variable for node in block.nodes}


def _link(traversal: ir.Traversal, state: LoweringState) -> Link:
    (step,) = traversal.steps
    edge_type = state.catalog.edge_type(step.edge_type)
    assert isinstance(traversal.source, str), "every end has a name"
    assert isinstance(traversal.destination, str), "every end has a name"
    return Link(
        edges=edge_type.table_key,
        sources=TableKey(TableKind.NODE, TypeName(edge_type.source)),
        targets=TableKey(TableKind.NODE, TypeName(edge_type.target)),
        start=traversal.source,
        end=traversal.destination,
        way=_WAYS[step.direction],
        hops_min=traversal.hops_min,
        hops_max=traversal.hops_max,
        edge=traversal.edge_variable,
    )


def _condition(condition: ir.Filter, state: LoweringState, some: str) -> RowCondition:
    """A condition on rows; what is about none of them holds for all nodes of `some`, or for none.

    Args:
        some: A variable of the pattern.
    """
    operands = (each for each in operands_of(condition) if isinstance(each, ir.ColumnValue))
    uses = tuple(dict.fromkeys((each.variable, each.column) for each in operands))
    uses = uses or ((some, "id"),)
    scope = {use: column(str(place), VALUES) for place, use in enumerate(uses)}
    return RowCondition(uses, filter_tree(condition, scope, state.given, state.builder.bindings))


def _shape(query: ir.Selection, limit: int | None) -> PlainResults | None:
    if query.skip is not None:
        return None
    columns = [_result(each.expression) for each in query.columns]
    order = [(_result(key.expression), key.descending) for key in query.order]
    order += [(_result(operand), False) for operand in query.tie_breakers]
    if None in columns or None in (result for result, _ in order):
        return None
    keys = None
    if query.is_grouped:
        operands = [each for each in query.group_keys if isinstance(each, ir.ColumnValue)]
        keys = tuple((each.variable, each.column) for each in operands)
    return PlainResults(
        tuple(each for each in columns if each is not None),
        keys,
        tuple((result, descending) for result, descending in order if result is not None),
        limit,
    )


def _result(expression: ir.Expression) -> Result | None:
    """A result that needs nothing but values and what is added up; None for any other."""
    match expression:
        case ir.ColumnValue(variable, name):
            return variable, name
        case ir.Aggregate(function, ir.ColumnValue(variable, name), nullable=_) if adds_up(
            expression
        ):
            return Total(Function(function.value), (variable, name), expression.argument.nullable)
        case _:
            return None
