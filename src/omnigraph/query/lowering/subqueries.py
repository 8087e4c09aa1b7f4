"""Subqueries as values: the rows of their blocks grouped by the rows that they are values of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from sqlglot import exp

from omnigraph.model.names import TypeName
from omnigraph.model.types import Scalar
from omnigraph.query import ir
from omnigraph.query.expressions import is_whole
from omnigraph.query.functions import AggregateFunction
from omnigraph.query.lowering.elimination import ColumnSum
from omnigraph.query.lowering.optional import stands_alone
from omnigraph.query.lowering.results import ROWS, Results
from omnigraph.query.lowering.row_tables import Rows
from omnigraph.query.lowering.state import LoweringState
from omnigraph.query.lowering.usage import Use, uses_of_argument, uses_of_block
from omnigraph.query.lowering.weights import or_zero
from omnigraph.relational.expressions import WIDE
from omnigraph.relational.trees import column, named, table
from omnigraph.schema.catalog import Catalog

_VALUES: Final = "x"
"""The alias of the table of values."""


def grouped_query(subquery: ir.Subquery, keys: Sequence[Use]) -> ir.Stage:
    """The query whose rows are the keys of what is outside, and the value, where there is a row."""
    columns = [
        # The type makes no difference: keys are grouped and joined as they are.
        ir.Column(name, ir.ColumnValue(variable, name, Scalar.STRING, nullable=False))
        for variable, name in keys
    ]
    value: ir.Expression = ir.Constant(value=True, type=Scalar.BOOL)
    if subquery.function is not None:
        value = ir.Aggregate(
            subquery.function,
            subquery.argument or ir.Constant(1, Scalar.I64),
            distinct=False,
            type=subquery.type,
            nullable=subquery.nullable,
        )
    stage = _grouped_stage(subquery.block)
    return replace(
        stage,
        columns=(*columns, ir.Column(ir.VALUE, value)),
        is_distinct=subquery.function is None,
    )


def _grouped_stage(block: ir.Block) -> ir.Stage:
    """A stage of a block, without columns."""
    return ir.Stage(
        match=block,
        variables=(),
        columns=(),
        order=(),
        tie_breakers=(),
        limit=None,
        skip=None,
        is_distinct=False,
        kept=(),
        follows_stage=False,
    )


def separate_query(subquery: ir.Subquery, keys: Sequence[Use], catalog: Catalog) -> ir.Stage | None:
    """The same as a query of its own, over all nodes that may be outside.

    None if it depends on more than their ids, or is not made of counts and sums: those are what
    messages add up.
    """
    uses = frozenset([*uses_of_block(subquery.block), *uses_of_argument(subquery)])
    argument, function = subquery.argument, subquery.function
    is_added = argument is None or isinstance(argument, ir.ColumnValue)
    is_added &= function not in (AggregateFunction.MIN, AggregateFunction.MAX)
    block = _with_outer_nodes(subquery, uses, catalog) if is_added else None
    if block is None:
        return None
    type_ = subquery.type
    if argument is None:
        # Every row has the id, so that it can be counted like any other column.
        function, type_ = AggregateFunction.COUNT, Scalar.I64
        argument = ir.ColumnValue(subquery.outer[0], "id", Scalar.STRING, nullable=False)
    counted = replace(subquery, function=function, argument=argument, block=block, type=type_)
    return grouped_query(counted, keys)


def separate_sums(
    part: ir.OptionalPart, keys: Sequence[Use], sums: Sequence[ColumnSum], catalog: Catalog
) -> ir.Stage | None:
    """The query of the number of rows that an optional part has for each node outside, and sums.

    None as for a subquery. The columns are the keys, the number, and the sums.
    """
    uses = [(each.argument.variable, each.argument.column) for each in sums]
    block = _with_outer_nodes(part, frozenset([*uses_of_block(part.block), *uses]), catalog)
    if block is None:
        return None
    everything = ir.ColumnValue(part.outer[0], "id", Scalar.STRING, nullable=False)
    number = ColumnSum(everything, counts=True)
    columns = [
        ir.Column(name, ir.ColumnValue(variable, name, Scalar.STRING, nullable=False))
        for variable, name in keys
    ]
    columns += [ir.Column(ir.VALUE, _total(each)) for each in (number, *sums)]
    return replace(_grouped_stage(block), columns=tuple(columns))


def _total(carried: ColumnSum) -> ir.Aggregate:
    argument = carried.argument
    # Of a row of the part itself, what is null only where there is none is not null.
    argument = replace(argument, nullable=argument.nullable and argument.column != "id")
    if carried.counts:
        function: AggregateFunction = AggregateFunction.COUNT
        type_ = Scalar.I64
    else:
        function = AggregateFunction.SUM
        type_ = Scalar.I64 if is_whole(argument.type) else Scalar.F64
    return ir.Aggregate(function, argument, distinct=False, type=type_, nullable=True)


def _with_outer_nodes(
    part: ir.Subquery | ir.OptionalPart, uses: frozenset[Use], catalog: Catalog
) -> ir.Block | None:
    """The block of a part that binds what is outside itself; None if it depends on more."""
    if not part.outer or not stands_alone(part, uses):
        return None
    nodes = [_outer_node(name, part.block, catalog) for name in part.outer]
    known = tuple(node for node in nodes if node is not None)
    if len(known) < len(nodes):
        return None
    return replace(part.block, nodes=(*known, *part.block.nodes))


def _outer_node(name: str, block: ir.Block, catalog: Catalog) -> ir.NodeBinding | None:
    """A variable from outside as one of the block; None if it may have several types.

    An edge of the block may fit only one of them, so that the variable seems to have that type.
    """
    types: set[str] = set()
    for traversal in block.traversals:
        ends = traversal.source, traversal.destination
        for step in traversal.steps:
            edge = catalog.edge_type(step.edge_type)
            edge_ends = edge.source, edge.target
            edge_ends = edge_ends[::-1] if step.direction is ir.Direction.IN else edge_ends
            labels = step.source, step.destination
            for end, type_, label in zip(ends, edge_ends, labels, strict=True):
                if end == name and label is not None:
                    return None
                if end == name:
                    types.add(type_)
    return ir.NodeBinding(name, TypeName(types.pop())) if len(types) == 1 else None


def join_value(
    state: LoweringState, rows: Rows, inner: Rows, subquery: ir.Subquery, keys: Sequence[Use]
) -> Rows:
    """The rows, each with the value of the subquery for it.

    Args:
        inner: The rows of the subquery's block, as its `grouped_query` uses them.
        keys: The columns by which they belong to those outside.
    """
    found, value = _values(state, inner, subquery, keys)
    return _joined(state, rows, subquery, keys, found, value)


def join_separate(
    state: LoweringState, rows: Rows, relation: str, subquery: ir.Subquery, keys: Sequence[Use]
) -> Rows:
    """The same with a relation that has the rows of the subquery's `separate_query`."""
    columns = {use: f"c{place}" for place, use in enumerate(keys)}
    value: exp.Expr = column(f"c{len(keys)}", _VALUES)
    if subquery.function is None:
        value = exp.Not(this=exp.Is(this=value, expression=exp.Null()))
    return _joined(state, rows, subquery, keys, Rows(relation, columns, {}), value)


def _joined(
    state: LoweringState,
    rows: Rows,
    subquery: ir.Subquery,
    keys: Sequence[Use],
    found: Rows,
    value: exp.Expr,
) -> Rows:
    name = f"v{len(rows.columns)}"
    query = exp.select(
        *(column(each, "k") for each in rows.values),
        named(_or_nothing(subquery, value), name),
    ).from_(table(rows.table, "k"))
    if keys:
        on = rows.same(keys, found, ours="k", theirs=_VALUES)
        query = query.join(table(found.table, _VALUES), on=on, join_type="left")
    else:
        query = query.join(table(found.table, _VALUES), join_type="cross")
    columns = {**rows.columns, (subquery.name, ir.VALUE): name}
    return replace(rows, table=state.builder.define(query), columns=columns)


def _values(
    state: LoweringState, inner: Rows, subquery: ir.Subquery, keys: Sequence[Use]
) -> tuple[Rows, exp.Expr]:
    """A table that has the keys of what is outside once, and the value in a row of it."""
    if (value := _message(inner, subquery)) is not None:
        return inner, value
    source = exp.Select().from_(table(inner.table, ROWS))
    grouped = Results(state, inner).grouped_select(grouped_query(subquery, keys), source)
    columns = {use: f"c{place}" for place, use in enumerate(keys)}
    return Rows(state.builder.define(grouped), columns, {}), column(f"c{len(keys)}", _VALUES)


def _message(inner: Rows, subquery: ir.Subquery) -> exp.Expr | None:
    """The value in a row of the inner rows, if they have each id once and what it needs."""
    if not subquery.outer or not inner.is_distinct or inner.weight is None:
        return None
    weight, argument = column(inner.weight, _VALUES), subquery.argument
    match subquery.function:
        case None:
            return exp.Not(this=exp.Is(this=weight, expression=exp.Null()))
        case AggregateFunction.COUNT if argument is None or not argument.nullable:
            return weight
        case AggregateFunction.SUM if isinstance(argument, ir.ColumnValue):
            name = inner.carried.get(ColumnSum(argument, counts=False))
            return None if name is None else column(name, _VALUES)
        case _:
            return None


def _or_nothing(subquery: ir.Subquery, value: exp.Expr) -> exp.Expr:
    """The value, or that of no rows; a whole number is as wide as it may become."""
    if subquery.function is None:
        return exp.Coalesce(this=value, expressions=[exp.false()])
    if subquery.function is AggregateFunction.COUNT:
        value = or_zero(value)
    if is_whole(subquery.type):
        return exp.Cast(this=value, to=exp.DataType.build(WIDE))
    return value
