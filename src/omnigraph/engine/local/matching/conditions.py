"""Conditions on values in memory: by Arrow where it agrees to the last bit, else by DuckDB."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from omnigraph.engine.protocol import Data
from omnigraph.model.types import Scalar
from omnigraph.relational.patterns import VALUES, RowCondition
from omnigraph.relational.plans import BoundValue, GivenRows, OutputColumn, Plan
from omnigraph.relational.trees import named, table

Run = Callable[[Plan, Data], pa.Table]
"""Runs a plan by SQL."""

_COMPARE: Final[Mapping[type[exp.Expr], Callable[[Any, Any], Any]]] = {
    exp.EQ: pc.equal,
    exp.NEQ: pc.not_equal,
    exp.LT: pc.less,
    exp.LTE: pc.less_equal,
    exp.GT: pc.greater,
    exp.GTE: pc.greater_equal,
}
_WITH_NAN: Final = (exp.GT, exp.GTE)
"""What NaN fulfils of every number: it is the greatest."""


def holds(
    condition: RowCondition,
    columns: Sequence[pa.ChunkedArray],
    values: Mapping[str, BoundValue],
    run: Run,
) -> np.ndarray:
    """Whether the condition holds, for each row of its columns."""
    by_arrow = _by_arrow(condition.tree, columns, values)
    if by_arrow is not None:
        mask: np.ndarray = pc.fill_null(by_arrow, fill_value=False).to_numpy(zero_copy_only=False)
        return mask
    return _by_sql(condition, columns, values, run)


def _by_arrow(
    tree: exp.Expr, columns: Sequence[pa.ChunkedArray], values: Mapping[str, BoundValue]
) -> pa.ChunkedArray | None:
    """A mask that may have nulls for false; None where Arrow's meaning may be another one."""
    match tree:
        case exp.Is(this=exp.Column() as at, expression=exp.Null()):
            return pc.is_null(columns[int(at.name)])
        case exp.Not(this=exp.Is(this=exp.Column() as at, expression=exp.Null())):
            return pc.is_valid(columns[int(at.name)])
        case exp.Boolean(this=False) if columns:
            return pc.and_(pc.is_null(columns[0]), pa.scalar(value=False))
        case exp.Contains(this=exp.Column() as at, expression=other):
            pattern = _value(other, values)
            if isinstance(pattern, str) and _is_text(columns[int(at.name)]):
                return pc.match_substring(columns[int(at.name)], pattern)
        case exp.StartsWith(this=exp.Column() as at, expression=other):
            pattern = _value(other, values)
            if isinstance(pattern, str) and _is_text(columns[int(at.name)]):
                return pc.starts_with(columns[int(at.name)], pattern)
        case exp.Binary(this=exp.Column() as at, expression=exp.Column() as to):
            left, right = columns[int(at.name)], columns[int(to.name)]
            is_plain = left.type == right.type and not pa.types.is_floating(left.type)
            if is_plain and _has_order(left.type) and type(tree) in _COMPARE:
                return _COMPARE[type(tree)](left, right)
        case exp.Binary(this=exp.Column() as at, expression=other) if type(tree) in _COMPARE:
            return _compare(type(tree), columns[int(at.name)], _value(other, values))
        case _:
            pass
    return None


def _compare(kind: type[exp.Expr], column: pa.ChunkedArray, value: Any) -> pa.ChunkedArray | None:
    if value is None or not _has_order(column.type):
        return None
    if isinstance(value, float) and not math.isfinite(value):
        return None
    try:
        known = pa.scalar(value, column.type)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return None
    if known.as_py() != value:
        return None
    outcome = _COMPARE[kind](column, known)
    if pa.types.is_floating(column.type) and kind in _WITH_NAN:
        return pc.or_(outcome, pc.is_nan(column))
    return outcome


def _value(tree: exp.Expr, values: Mapping[str, BoundValue]) -> Any:
    """The value of a bound operand; None for any other."""
    if isinstance(tree, exp.Cast) and isinstance(tree.this, exp.Placeholder):
        return values[tree.this.name].value
    return None


def _is_text(column: pa.ChunkedArray) -> bool:
    return bool(pa.types.is_string(column.type) or pa.types.is_large_string(column.type))


def _has_order(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_date(kind)
        or pa.types.is_timestamp(kind)
    )


def _by_sql(
    condition: RowCondition,
    columns: Sequence[pa.ChunkedArray],
    values: Mapping[str, BoundValue],
    run: Run,
) -> np.ndarray:
    is_true = exp.Is(this=exp.Paren(this=condition.tree.copy()), expression=exp.true())
    needed = {each.name for each in condition.tree.find_all(exp.Placeholder)}
    plan = Plan(
        tree=exp.select(named(is_true, "c0")).from_(table(VALUES, VALUES)),
        relations={VALUES: GivenRows()},
        columns=(OutputColumn("holds", Scalar.BOOL, nullable=False),),
        values={name: bound for name, bound in values.items() if name in needed},
    )
    names = [str(place) for place in range(len(columns))]
    given = {VALUES: pa.table(list(columns), names=names)}
    answer = run(plan, Data(_no_table, given))
    mask: np.ndarray = answer.column(0).to_numpy(zero_copy_only=False)
    return mask.astype(np.bool_)


def _no_table(key: object) -> Any:
    message = f"{key} is no relation of a condition"
    raise AssertionError(message)
