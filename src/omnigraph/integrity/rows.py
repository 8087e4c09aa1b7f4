"""Row rules: what one row can break by itself, all of a type found in one pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias, assert_never

from sqlglot import exp

from omnigraph.integrity.deltas import ORIGIN, Shape
from omnigraph.integrity.drafts import Draft, Offenders, Question, aliased, origin_of
from omnigraph.integrity.patterns import BEYOND_ASCII, STAND_IN, portable
from omnigraph.integrity.violations import Breach, Rule, Violation, shortened
from omnigraph.model.types import (
    BlobType,
    EnumType,
    ListType,
    PropertyType,
    Scalar,
    VectorType,
)
from omnigraph.relational.expressions import Bindings, Known, Typed, compare, is_null, sql_type
from omnigraph.relational.numbers import Comparator
from omnigraph.relational.plans import OutputColumn
from omnigraph.relational.trees import column, named, table
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.catalog import Property, Range, SchemaType, Value

_ROW: Final = "d"
_ITEM: Final = "x"

Condition: TypeAlias = "Callable[[Bindings], exp.Expr]"
"""True of the rows that break a rule; false or null of all others."""


@dataclass(frozen=True, slots=True)
class RowRule:
    """One rule about one column.

    Attributes:
        type: The type of the column's values, if an offender's value is worth showing.
        complaint: What is wrong, to follow the name of the type and the property.
    """

    breach: Breach
    broken: Condition
    type: Scalar | EnumType | None
    complaint: str

    @property
    def column(self) -> str:
        """The column that it looks at."""
        return self.breach.properties[0]

    def described(self, row: dict[str, object]) -> Violation:
        """The violation that a row of `offenders` is."""
        found = row["id"]
        value = row.get("value")
        shown = f" {shortened(value)}" if self.type is not None else ""
        message = (
            f"{self.breach.type_name} {shortened(found)}: {self.column}{shown} {self.complaint}"
            if self.column != "id"
            else f"{self.breach.type_name}: id {self.complaint}"
        )
        identity = None if found is None else str(found)
        return Violation(self.breach, identity, value, str(row["origin"]), message)


@dataclass(frozen=True, slots=True)
class RowRules:
    """All row rules of one type."""

    type: SchemaType
    rules: tuple[RowRule, ...]

    def counts(self, shape: Shape) -> Question:
        """One row: how many rows of the delta break each rule. The delta is read once."""
        draft = Draft(shape)
        columns = dict.fromkeys(each.column for each in self.rules)
        relation = draft.upserts(self.type.table_key, *columns)
        one = exp.Literal.number(1)
        counts = [
            exp.Count(this=exp.Case(ifs=[exp.If(this=each.broken(draft.bindings), true=one)]))
            for each in self.rules
        ]
        query = exp.select(*(named(tree, f"n{place}") for place, tree in enumerate(counts)))
        outputs = [
            OutputColumn(f"n{place}", Scalar.I64, nullable=False) for place in range(len(counts))
        ]
        return draft.question(query.from_(table(relation, _ROW)), outputs)

    def offenders(self, rule: RowRule, shape: Shape) -> Offenders:
        """The rows of the delta that break one rule."""
        draft = Draft(shape)
        columns = dict.fromkeys(["id", ORIGIN, rule.column])
        relation = draft.upserts(self.type.table_key, *columns)
        shown: dict[str, exp.Expr] = {"origin": origin_of(_ROW), "id": column("id", _ROW)}
        more: list[tuple[str, PropertyType]] = []
        if rule.type is not None:
            shown["value"] = column(rule.column, _ROW)
            more.append(("value", rule.type))
        query = exp.select(*aliased(**shown)).from_(table(relation, _ROW))
        return draft.offenders(query.where(rule.broken(draft.bindings)), *more)


def row_rules(type_: SchemaType) -> RowRules:
    """The row rules that a type states, in the order of its columns."""
    return RowRules(type_, tuple(_stated(type_)))


def _stated(type_: SchemaType) -> Iterator[RowRule]:
    kept = len(table_schema(type_)) - len(type_.properties)
    for name in table_schema(type_).names[:kept]:
        yield _required(type_, name)
    for property_ in type_.properties:
        if not property_.nullable:
            yield _required(type_, property_.name)
        yield from _typed(type_, property_)
        if property_.name in type_.key and _is_float(property_.type):
            yield _finite(type_, property_)
    for range_ in type_.ranges:
        yield _in_range(type_, range_)
    for check in type_.checks:
        yield _checked(type_, check.property, check.pattern)


def _required(type_: SchemaType, name: str) -> RowRule:
    def broken(bindings: Bindings) -> exp.Expr:
        return is_null(Typed(column(name, _ROW), Scalar.STRING), bindings)

    return RowRule(Breach(Rule.REQUIRED, type_.name, (name,)), broken, None, "may not be null")


def _typed(type_: SchemaType, property_: Property) -> Iterator[RowRule]:
    match property_.type:
        case EnumType() as enum:
            yield _one_of(type_, property_.name, enum)
        case ListType():
            breach = Breach(Rule.REQUIRED, type_.name, (property_.name,))
            yield RowRule(breach, _null_items(property_.name), None, "has an item that is null")
        case VectorType(dimension):
            breach = Breach(Rule.TYPE, type_.name, (property_.name,))
            complaint = f"is not {dimension} finite numbers"
            yield RowRule(breach, _no_vector(property_.name, dimension), None, complaint)
        case Scalar() | BlobType():
            return
        case _:
            assert_never(property_.type)


def _one_of(type_: SchemaType, name: str, enum: EnumType) -> RowRule:
    def broken(bindings: Bindings) -> exp.Expr:
        values = [bindings.tree(Known(each, Scalar.STRING)) for each in enum.values]
        return exp.Not(this=exp.In(this=column(name, _ROW), expressions=values))

    breach = Breach(Rule.ENUM, type_.name, (name,))
    return RowRule(breach, broken, Scalar.STRING, f"is not one of {', '.join(enum.values)}")


def _null_items(name: str) -> Condition:
    def broken(bindings: Bindings) -> exp.Expr:  # noqa: ARG001
        is_missing = exp.Is(this=exp.column(_ITEM), expression=exp.Null())
        return _has_items(column(name, _ROW), is_missing)

    return broken


def _no_vector(name: str, dimension: int) -> Condition:
    def broken(bindings: Bindings) -> exp.Expr:
        # The local engine has vectors as arrays of fixed length, which few functions take.
        numbers = exp.Cast(this=column(name, _ROW), to=sql_type(VectorType(dimension)))
        item = Typed(exp.column(_ITEM), Scalar.F32)
        wrong = exp.or_(is_null(item, bindings), _is_not_finite(item, bindings))
        length = exp.NEQ(this=exp.ArraySize(this=numbers), expression=exp.Literal.number(dimension))
        is_there = exp.Not(this=is_null(Typed(column(name, _ROW), Scalar.F32), bindings))
        return exp.and_(is_there, exp.or_(length, _has_items(numbers, wrong)))

    return broken


def _has_items(items: exp.Expr, condition: exp.Expr) -> exp.Expr:
    # Not the test whether any item meets a condition: in that, a null answers for all of them.
    each = exp.Lambda(this=condition, expressions=[exp.to_identifier(_ITEM)])
    found = exp.ArraySize(this=exp.ArrayFilter(this=items.copy(), expression=each))
    return exp.GT(this=found, expression=exp.Literal.number(0))


def _finite(type_: SchemaType, property_: Property) -> RowRule:
    assert isinstance(property_.type, Scalar), "a list cannot be part of a key"
    value = Typed(column(property_.name, _ROW), property_.type)

    def broken(bindings: Bindings) -> exp.Expr:
        return _is_not_finite(value, bindings)

    breach = Breach(Rule.KEY, type_.name, (property_.name,))
    return RowRule(breach, broken, property_.type, "cannot be part of a key: it is not finite")


def _is_not_finite(value: Typed, bindings: Bindings) -> exp.Expr:
    infinite = [
        compare(Comparator.EQ, value, Known(each, Scalar.F64), bindings)
        for each in (float("inf"), float("-inf"))
    ]
    return exp.or_(exp.IsNan(this=value.tree.copy()), *infinite)


def _in_range(type_: SchemaType, range_: Range) -> RowRule:
    kind = type_.property_named(range_.property).type
    assert isinstance(kind, Scalar), "only numbers and dates have a range"
    value = Typed(column(range_.property, _ROW), kind)

    def broken(bindings: Bindings) -> exp.Expr:
        outside: list[exp.Expr] = []
        if range_.low is not None:
            outside.append(compare(Comparator.LT, value, Known(range_.low, kind), bindings))
        if range_.high is not None:
            outside.append(compare(Comparator.GT, value, Known(range_.high, kind), bindings))
        if kind.is_float:
            # NaN is above every bound there is, and within a range that has none above.
            outside.append(exp.IsNan(this=value.tree.copy()))
        return exp.or_(*outside)

    breach = Breach(Rule.RANGE, type_.name, (range_.property,))
    return RowRule(breach, broken, kind, f"is not in {_spelt(range_.low)}..{_spelt(range_.high)}")


def _checked(type_: SchemaType, name: str, pattern: str) -> RowRule:
    words = portable(pattern)

    def broken(bindings: Bindings) -> exp.Expr:
        def text(value: str) -> exp.Expr:
            return bindings.tree(Known(value, Scalar.STRING))

        searched: exp.Expr = column(name, _ROW)
        if words.is_searched_in_ascii:
            searched = exp.RegexpReplace(
                this=searched,
                expression=text(BEYOND_ASCII),
                replacement=text(STAND_IN),
                modifiers=exp.Literal.string("g"),
            )
        return exp.Not(this=exp.RegexpLike(this=searched, expression=text(words.text)))

    breach = Breach(Rule.CHECK, type_.name, (name,))
    return RowRule(breach, broken, Scalar.STRING, f"does not match {pattern!r}")


def _is_float(type_: PropertyType) -> bool:
    return isinstance(type_, Scalar) and type_.is_float


def _spelt(bound: Value | None) -> str:
    return "" if bound is None else str(bound)
