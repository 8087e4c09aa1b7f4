"""Stages: what is kept of the rows of a match, as the rows outside of the next one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from sqlglot import exp

from omnigraph.model.tables import TableKey
from omnigraph.model.types import ResultType, Scalar, WideType
from omnigraph.query import ir
from omnigraph.query.expressions import is_whole, kept_magnitude
from omnigraph.query.functions import AggregateFunction
from omnigraph.query.lowering.results import ROWS
from omnigraph.query.lowering.row_tables import Rows, place_key, places_of
from omnigraph.query.lowering.state import LoweringState
from omnigraph.query.lowering.usage import Use, uses_of_block, uses_of_results
from omnigraph.query.lowering.walks import stored_column, typed_column, union
from omnigraph.relational.expressions import WIDE, sql_type
from omnigraph.relational.plans import OutputColumn, Place
from omnigraph.relational.trees import column, named, named_column, table

GIVEN_STAGE: Final = "r0"
"""The relation of the rows of a stage: the first of the plan that they are given to."""

_STAGE: Final = "k"


def is_boundary(stage: ir.Stage) -> bool:
    """Whether a stage has other rows than its match, so that it is worth a plan of its own."""
    return stage.is_grouped or stage.is_cut


def uses_after(query: ir.ReadQuery) -> list[frozenset[Use]]:
    """For each stage, the columns that are used later of the variables that it keeps.

    Ids are not among them: a stage has these in any case.
    """
    after = _uses(query)
    found: list[frozenset[Use]] = []
    for stage in reversed(query.stages):
        names = {variable.name for variable in stage.kept}
        later = frozenset(use for use in after if use[0] in names and use[1] != "id")
        found.append(later)
        after = _uses(stage) if is_boundary(stage) else _uses(stage) | later
    return found[::-1]


def _uses(selection: ir.Selection) -> frozenset[Use]:
    return frozenset([*uses_of_block(selection.match), *uses_of_results(selection)])


def kept_rows(
    state: LoweringState,
    stage: ir.Stage,
    rows: Rows,
    select: exp.Select,
    later: frozenset[Use],
) -> Rows:
    """The rows that a stage keeps, with the columns that are used later.

    Args:
        rows: Those of the match.
        select: What the stage selects of them: its columns, in their order.
        later: What is used of the variables that it keeps.
    """
    convert_columns(stage, select)
    columns = _columns(stage)
    places = places_of((variable.name for variable in stage.kept), rows.places)
    optional = _optional(stage)
    if not is_boundary(stage):
        # Each row is one of the match, which has the columns.
        carried = {use: f"x{place}" for place, use in enumerate(sorted(later))}
        values = [named(column(rows.columns[use], ROWS), name) for use, name in carried.items()]
        kept = state.builder.define(select.select(*values))
        return Rows(kept, {**columns, **carried}, places, optional=optional)
    kept = state.builder.define(select, reused=True)
    return _load(state, Rows(kept, columns, places, optional=optional), stage, later)


def given_rows(state: LoweringState, stage: ir.Stage, later: frozenset[Use]) -> tuple[str, Rows]:
    """The rows that a stage keeps as a relation that is given, and the name of that relation."""
    relation = state.builder.give()
    assert relation == GIVEN_STAGE, "it is the first"
    columns = _columns(stage)
    places = {
        variable.name: (Place(relation, columns[variable.name, "id"]),)
        for variable in stage.kept
        if len(variable.type_names) == 1
    }
    rows = Rows(relation, columns, places, optional=_optional(stage))
    return relation, _load(state, rows, stage, later)


def output_columns(stage: ir.Stage) -> list[OutputColumn]:
    """The columns of a stage that is run by itself, under the names that `given_rows` expects."""
    return [
        OutputColumn(f"c{place}", _output_type(each.expression), each.expression.nullable)
        for place, each in enumerate(stage.columns)
    ]


def convert_columns(stage: ir.Stage, select: exp.Select) -> None:
    """Give computed numbers the types in which later matches use them."""
    for place, kept in enumerate(stage.columns):
        alias = select.expressions[place]
        alias.set("this", _converted(alias.this, kept.expression))


def _converted(tree: exp.Expr, expression: ir.Expression) -> exp.Expr:
    if kept_magnitude(expression) is not None:
        return exp.Cast(this=tree, to=exp.DataType.build(WIDE))
    match expression:
        case ir.Aggregate(AggregateFunction.COUNT):
            return exp.Cast(this=tree, to=sql_type(Scalar.I64))
        case ir.Aggregate(AggregateFunction.SUM | AggregateFunction.AVG):
            return exp.Cast(this=tree, to=sql_type(Scalar.F64))
        case _:
            return tree


def _output_type(expression: ir.Expression) -> ResultType:
    is_wide = kept_magnitude(expression) is not None
    assert not is_wide or (isinstance(expression.type, Scalar) and is_whole(expression.type))
    return WideType() if is_wide else expression.type


def _columns(stage: ir.Stage) -> dict[Use, str]:
    names = {variable.name for variable in stage.kept}
    return {
        (each.name, "id") if each.name in names else (ir.KEPT, each.name): f"c{place}"
        for place, each in enumerate(stage.columns)
    }


def _optional(stage: ir.Stage) -> frozenset[str]:
    return frozenset(variable.name for variable in stage.kept if variable.is_optional)


def _load(state: LoweringState, rows: Rows, stage: ir.Stage, later: frozenset[Use]) -> Rows:
    """The rows with columns of the variables that were kept, found by their ids."""
    wanted = {
        variable: sorted(name for owner, name in later if owner == variable.name)
        for variable in stage.kept
    }
    if not any(wanted.values()):
        return rows
    columns = dict(rows.columns)
    values: list[exp.Expr] = [column(name, _STAGE) for name in columns.values()]
    query = exp.Select().from_(table(rows.table, _STAGE))
    for variable, names in wanted.items():
        if not names:
            continue
        alias = f"n{len(columns)}"
        loaded = _rows_of(state, variable, names, rows)
        id_ = column(rows.columns[variable.name, "id"], _STAGE)
        query = query.join(
            table(loaded, alias),
            on=exp.EQ(this=id_, expression=column("id", alias)),
            join_type="left" if variable.is_optional else "",
        )
        for name in names:
            columns[variable.name, name] = f"x{len(columns)}"
            values.append(named(column(name, alias), columns[variable.name, name]))
    defined = state.builder.define(query.select(*values))
    return Rows(defined, columns, rows.places, optional=rows.optional)


def _rows_of(
    state: LoweringState, variable: ir.KeptVariable, names: Sequence[str], rows: Rows
) -> str:
    """A table of the rows that a variable may be: their ids, and these columns."""
    parts: list[exp.Query] = []
    for type_name in variable.type_names:
        label = type_name if len(variable.type_names) > 1 else None
        relation = state.builder.scan(TableKey(variable.kind, type_name), _stored(names))
        columns = dict.fromkeys(("id", *names))
        values = (named_column(typed_column(name, "n", label), name) for name in columns)
        parts.append(exp.select(*values).from_(table(relation, "n")))
        state.builder.link(
            rows.places.get(place_key(variable.name, label), ()), [Place(relation, "id")]
        )
    return state.builder.define(union(parts, distinct=False))


def _stored(names: Iterable[str]) -> list[str]:
    return ["id", *(stored for name in names if (stored := stored_column(name)) is not None)]
