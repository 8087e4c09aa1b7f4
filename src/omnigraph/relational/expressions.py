"""Typed expressions over columns and bound values, with the same meaning on every engine.

Where an engine would round (an integer compared with a float), the comparison is rewritten to avoid
it: `number = 2.7` is never true of a whole number, and 2**53 + 1 is not 2**53. NaN equals itself
and is greater than every other number, as in both engines' own order.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Final, assert_never

from sqlglot import exp

from omnigraph.model.types import (
    BlobType,
    EnumType,
    ListType,
    PropertyType,
    Scalar,
    VectorType,
)
from omnigraph.relational.numbers import Comparator, Number, rewrite_comparison, to_exact
from omnigraph.relational.plans import BoundValue

_SQL_TYPES: Final[dict[Scalar, str]] = {
    Scalar.STRING: "TEXT",
    Scalar.BOOL: "BOOLEAN",
    Scalar.I32: "INT",
    Scalar.I64: "BIGINT",
    # Spark has no unsigned integers. Both engines compare these with any integer exactly.
    Scalar.U32: "BIGINT",
    Scalar.U64: "DECIMAL(20, 0)",
    Scalar.F32: "FLOAT",
    Scalar.F64: "DOUBLE",
    Scalar.DATE: "DATE",
    Scalar.DATETIME: "TIMESTAMPTZ",
}

_TREES: Final[dict[Comparator, type[exp.Binary]]] = {
    Comparator.EQ: exp.EQ,
    Comparator.NE: exp.NEQ,
    Comparator.LT: exp.LT,
    Comparator.LE: exp.LTE,
    Comparator.GT: exp.GT,
    Comparator.GE: exp.GTE,
}

MIRROR: Final[dict[Comparator, Comparator]] = {
    Comparator.EQ: Comparator.EQ,
    Comparator.NE: Comparator.NE,
    Comparator.LT: Comparator.GT,
    Comparator.LE: Comparator.GE,
    Comparator.GT: Comparator.LT,
    Comparator.GE: Comparator.LE,
}
"""The comparison that holds when the sides are exchanged."""

_HOLDS: Final[dict[Comparator, Callable[[Any, Any], bool]]] = {
    Comparator.EQ: operator.eq,
    Comparator.NE: operator.ne,
    Comparator.LT: operator.lt,
    Comparator.LE: operator.le,
    Comparator.GT: operator.gt,
    Comparator.GE: operator.ge,
}
"""The outcome of each comparison of two ranks; Python rounds no number in them."""


WIDE: Final = "DECIMAL(38, 0)"
"""The type of whole numbers that were computed: neither engine rounds or wraps them."""


@dataclass(frozen=True, slots=True)
class Typed:
    """An expression over columns, and the property type of its values.

    Attributes:
        is_wide: Whether it is a computed whole number, of the type `WIDE`: it need not be in the
            range of its property type.
    """

    tree: exp.Expr
    type: PropertyType
    is_wide: bool = False


@dataclass(frozen=True, slots=True)
class Known:
    """A value that is known before any row is read.

    Attributes:
        source: The parameter (or `now()`) it is from, if another value would change nothing else.
    """

    value: Any
    type: PropertyType
    source: str | None = None


Side = Typed | Known


@dataclass(slots=True)
class Bindings:
    """Collects the values that a plan binds outside its text."""

    values: dict[str, BoundValue] = field(default_factory=dict)

    def tree(self, side: Side) -> exp.Expr:
        """The expression of a column, or a placeholder for a known value, cast to its type."""
        if isinstance(side, Typed):
            return side.tree.copy()
        if side.value is None:
            return exp.Cast(this=exp.Null(), to=sql_type(side.type))
        if isinstance(side.type, ListType | VectorType):
            item = side.type.item if isinstance(side.type, ListType) else Scalar.F32
            items = [self.tree(Known(each, item)) for each in side.value]
            return exp.Cast(this=exp.Array(expressions=items), to=sql_type(side.type))
        name = f"p{len(self.values)}"
        self.values[name] = BoundValue(side.value, side.type, side.source)
        return exp.Cast(this=exp.Placeholder(this=name), to=sql_type(side.type))


def sql_type(type_: PropertyType) -> exp.DataType:
    """The SQL type of a property type in a plan."""
    return exp.DataType.build(_sql_type_name(type_))


def _sql_type_name(type_: PropertyType) -> str:
    match type_:
        case Scalar():
            return _SQL_TYPES[type_]
        case EnumType():
            return "TEXT"
        case ListType(item):
            return f"ARRAY<{_sql_type_name(item)}>"
        case VectorType():
            return "ARRAY<FLOAT>"
        case BlobType():
            return "VARBINARY"
        case _:
            assert_never(type_)


def _rank(value: Number) -> tuple[bool, Number]:
    """What orders numbers as both engines do: NaN is equal to itself and greater than others."""
    is_nan = isinstance(value, float) and math.isnan(value)
    return is_nan, 0 if is_nan else value


def compare(comparator: Comparator, left: Side, right: Side, bindings: Bindings) -> exp.Expr:
    """A comparison that is true exactly when it holds for both values; never for a null."""
    if isinstance(left, Known) and isinstance(right, Typed):
        return compare(MIRROR[comparator], right, left, bindings)
    if isinstance(right, Known) and right.value is None:
        return exp.false()
    if isinstance(left, Known) and left.value is not None and _is_number(left.type):
        assert isinstance(right, Known), "a column is on the left"
        return exp.convert(_HOLDS[comparator](_rank(left.value), _rank(right.value)))
    if isinstance(left, Typed) and _is_number(left.type):
        if left.is_wide or (isinstance(right, Typed) and right.is_wide):
            return _compare_wide(comparator, left, right, bindings)
        if isinstance(right, Known):
            return _compare_with_number(comparator, left, right, bindings)
        if _is_float(left.type) != _is_float(right.type):
            return _compare_mixed(comparator, left, right)
    return _TREES[comparator](this=bindings.tree(left), expression=bindings.tree(right))


def contains_item(items: Side, item: Side, bindings: Bindings) -> exp.Expr:
    """Whether a list holds a value equal to `item`; never true for a null."""
    assert isinstance(items.type, ListType)
    item_tree = _as_item(item, items.type.item, bindings)
    if item_tree is None:
        return exp.false()
    return exp.ArrayContains(this=bindings.tree(items), expression=item_tree)


def is_null(side: Side, bindings: Bindings) -> exp.Expr:
    """Whether the value is null."""
    return exp.Is(this=bindings.tree(side), expression=exp.Null())


def without_negative_zero(tree: exp.Expr, type_: PropertyType) -> exp.Expr:
    """The value, with -0.0 as 0.0: they are equal, so they form one group and distinct value."""
    if not _is_float(type_):
        return tree.copy()
    zero = exp.Cast(this=exp.Literal.number(0), to=sql_type(type_))
    is_zero = exp.EQ(this=tree.copy(), expression=zero)
    return exp.Case(ifs=[exp.If(this=is_zero, true=zero.copy())], default=tree.copy())


def _compare_with_number(
    comparator: Comparator, column: Typed, known: Known, bindings: Bindings
) -> exp.Expr:
    assert isinstance(column.type, Scalar)
    outcome = rewrite_comparison(comparator, known.value, column.type)
    if outcome is True:
        return exp.Not(this=is_null(column, bindings))
    if outcome is False:
        return exp.false()
    comparator, value = outcome
    bound = bindings.tree(Known(value, column.type, known.source))
    return _TREES[comparator](this=column.tree.copy(), expression=bound)


def _compare_wide(comparator: Comparator, left: Typed, right: Side, bindings: Bindings) -> exp.Expr:
    """Compare computed whole numbers with any number."""
    if _is_float(left.type) or _is_float(right.type):
        other = right if isinstance(right, Typed) else Typed(bindings.tree(right), right.type)
        return _compare_mixed(comparator, left, other, WIDE)
    trees = (
        exp.Cast(this=bindings.tree(each), to=exp.DataType.build(WIDE)) for each in (left, right)
    )
    return _TREES[comparator](this=next(trees), expression=next(trees))


def _compare_mixed(
    comparator: Comparator, left: Typed, right: Typed, exact_type: str = "DECIMAL(20, 0)"
) -> exp.Expr:
    """Compare an integer column with a float column.

    Both are compared as doubles; if these are equal, the integer may have been rounded, but the
    double is whole and small enough to be compared as a decimal.
    """
    tree = _TREES[comparator]
    ours, theirs = _cast(left, "DOUBLE"), _cast(right, "DOUBLE")
    rounded = tree(this=ours, expression=theirs)
    if exact_type != WIDE and {left.type, right.type}.isdisjoint({Scalar.I64, Scalar.U64}):
        return rounded
    looks_equal = exp.EQ(this=ours.copy(), expression=theirs.copy())
    exact = tree(this=_cast(left, exact_type), expression=_cast(right, exact_type))
    return exp.Case(ifs=[exp.If(this=looks_equal, true=exact)], default=rounded)


def _as_item(item: Side, item_type: Scalar | BlobType, bindings: Bindings) -> exp.Expr | None:
    """The value in the list's item type, null if no item can equal it; None if none ever can."""
    if isinstance(item, Known):
        value = item.value
        if value is not None and isinstance(item_type, Scalar) and item_type.is_numeric:
            value = to_exact(value, item_type)
        return None if value is None else bindings.tree(replace(item, value=value, type=item_type))
    if not item.is_wide and (item.type == item_type or not _is_number(item_type)):
        return item.tree.copy()
    cast = exp.TryCast(this=item.tree.copy(), to=sql_type(item_type), safe=True)
    same = compare(Comparator.EQ, Typed(cast, item_type), item, bindings)
    return exp.Case(ifs=[exp.If(this=same, true=cast.copy())])


def _cast(typed: Typed, sql: str) -> exp.Cast:
    return exp.Cast(this=typed.tree.copy(), to=exp.DataType.build(sql))


def _is_number(type_: PropertyType) -> bool:
    return isinstance(type_, Scalar) and type_.is_numeric


def _is_float(type_: PropertyType) -> bool:
    return isinstance(type_, Scalar) and type_.is_float
