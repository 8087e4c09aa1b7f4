"""Fills: `Type.property=expression`, the values of a new property from other ones of its row.

The expression is SQL with the operators and functions below, each of which gives the same value
in any process and at any time; everything else is refused. It names properties as the schema
before the change has them, `id`, and on edges `src` and `dst`. Whole numbers have 64 bits, and more
where a U64 is involved; a value that overflows, a division by zero and a cast that is not exact
make the row a violation. `/` gives a float, `concat` takes null as the empty text, `||` gives null.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa
import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from omnigraph.engine.local.row_expressions import RowExpression, infer_type
from omnigraph.errors import InvalidInputError, LimitExceededError
from omnigraph.evolution.casts import KIND_OF, SQL_TYPES, Kind, cast_to, kind_of
from omnigraph.lang.diagnostics import did_you_mean
from omnigraph.model.types import EnumType, PropertyType, Scalar
from omnigraph.relational.trees import fill_in
from omnigraph.schema.arrow import value_field
from omnigraph.schema.catalog import ENDPOINTS, EdgeType, Property, SchemaType

FILL_LENGTH_MAX: Final = 4_000
"""Characters of an expression that fills a property."""

FILL_SQL_LENGTH_MAX: Final = 64_000
"""Characters of the SQL of such an expression: casts and divisions repeat their operands."""


ALLOWED: Final = (
    "+ - * / %, = <> < <= > >=, and, or, not, is null, case when, coalesce, nullif, concat, ||, "
    "lower, upper, trim, length, substring, replace, round, floor, ceil, abs, year, month, day, "
    "cast(x as I64), numbers, 'texts', true, false, null, date '2024-12-31', "
    "timestamp '2024-12-31 23:59:59'"
)
"""What an expression may consist of, beside names of properties."""

_PLAIN: Final[frozenset[type[exp.Expr]]] = frozenset(
    {
        *(exp.Boolean, exp.Null, exp.Paren, exp.Neg, exp.Add, exp.Sub, exp.Mul, exp.Mod),
        *(exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.And, exp.Or, exp.Not),
        *(exp.Case, exp.If, exp.Coalesce, exp.Nullif, exp.Lower, exp.Upper, exp.Length),
        *(exp.Substring, exp.Replace, exp.Abs, exp.Year, exp.Month, exp.Day),
    }
)
"""Operators and functions that DuckDB computes as they are."""

_LOWERED: Final[frozenset[type[exp.Expr]]] = frozenset(
    {
        *(exp.Column, exp.Literal, exp.Cast, exp.Div, exp.Is, exp.Concat, exp.DPipe),
        *(exp.Round, exp.Floor, exp.Ceil, exp.Trim),
    }
)
"""Those that are allowed in some forms, or written differently for DuckDB."""

_TYPES: Final[Mapping[exp.DType, Scalar]] = {
    exp.DType.TEXT: Scalar.STRING,
    exp.DType.VARCHAR: Scalar.STRING,
    exp.DType.BOOLEAN: Scalar.BOOL,
    exp.DType.DATE: Scalar.DATE,
    exp.DType.DATETIME: Scalar.DATETIME,
    exp.DType.TIMESTAMP: Scalar.DATETIME,
    exp.DType.TIMESTAMPNTZ: Scalar.DATETIME,
}
"""The types of ours that sqlglot knows; the others are names to it."""


_WHOLE_MAX: Final = 2.0**64


@dataclass(frozen=True, slots=True)
class Fill:
    """The text of an expression, and the property that it is for."""

    type_name: str
    property: str
    expression: str


@dataclass(frozen=True, slots=True)
class Input:
    """A column that an expression reads.

    Attributes:
        as_text: Whether the expression gets the canonical text of its values.
    """

    column: str
    type: Scalar | EnumType
    as_text: bool = False

    @property
    def arrow_type(self) -> pa.DataType:
        """The type of the values that the expression gets."""
        return pa.utf8() if self.as_text else value_field("", self.type, nullable=True).type

    @property
    def sql_type(self) -> str:
        """The type that the expression works with."""
        is_text = self.as_text or isinstance(self.type, EnumType)
        return SQL_TYPES[Scalar.STRING if is_text or isinstance(self.type, EnumType) else self.type]


@dataclass(frozen=True, slots=True)
class CompiledFill:
    """An expression that DuckDB computes, and the columns for it, in order."""

    expression: RowExpression
    inputs: tuple[Input, ...]
    text: str


def parse_fill(text: str) -> Fill:
    """The parts of `Type.property=expression`.

    >>> parse_fill("Person.full=concat(first, ' ', last)")
    Fill(type_name='Person', property='full', expression="concat(first, ' ', last)")
    """
    place, equals, expression = text.partition("=")
    type_name, dot, name = place.strip().partition(".")
    parts = type_name.strip(), name.strip(), expression.strip()
    if not (equals and dot and all(parts)):
        message = f"{text[:200]!r} is not a valid fill"
        raise InvalidInputError(message, hint="write Type.property=expression")
    return Fill(*parts)


def compile_fill(
    type_: SchemaType, property_: Property, text: str, *, new_name: str | None = None
) -> CompiledFill:
    """The expression of a fill, if it is allowed and gives values for the property.

    Args:
        type_: The type before the change; the expression names its properties.
        property_: The property of the new schema that gets the values.
        new_name: The name of the type after the change, for messages, where it differs.
    """
    compiler = _Compiler(type_, f"{new_name or type_.name}.{property_.name}", text)
    try:
        tree = compiler.lower(compiler.parse())
        compiler.require_kind(tree, property_.type)
        return CompiledFill(compiler.expression(tree), tuple(compiler.inputs), text)
    except RecursionError as cause:
        message = f"the fill of {compiler.place} nests too deeply"
        raise LimitExceededError(message, hint="compute it in several steps") from cause


@dataclass(slots=True)
class _Compiler:
    type: SchemaType
    place: str
    text: str
    inputs: list[Input] = field(default_factory=list)

    def parse(self) -> exp.Expr:
        if len(self.text) > FILL_LENGTH_MAX:
            message = f"the fill of {self.place} has {len(self.text):,} characters"
            raise LimitExceededError(message, hint=f"at most {FILL_LENGTH_MAX:,} are possible")
        try:
            return sqlglot.parse_one(self.text, dialect="duckdb")
        except SqlglotError as cause:
            message = f"the fill of {self.place} is not an expression: {self.text[:200]}"
            raise InvalidInputError(message, hint=f"it may consist of {ALLOWED}") from cause

    def lower(self, node: exp.Expr) -> exp.Expr:
        """The node in terms of the inputs, every part of it allowed."""
        if type(node) in _PLAIN:
            return self._plain(node)
        if type(node) not in _LOWERED or not _has_plain_form(node):
            raise self._refusal(node)
        match node:
            case exp.Column():
                return self._column(node)
            case exp.Literal():
                return self._literal(node)
            case exp.Cast():
                return self._cast(node)
            case exp.Div():
                return self._divide(self.lower(node.this), self.lower(node.expression))
            case exp.Is():
                return exp.Is(this=self.lower(node.this), expression=exp.Null())
            case exp.Concat():
                return exp.Concat(
                    expressions=[self._as_text(part) for part in node.expressions],
                    safe=node.args.get("safe"),
                    coalesce=node.args.get("coalesce"),
                )
            case exp.DPipe():
                left, right = self._as_text(node.this), self._as_text(node.expression)
                return exp.DPipe(this=left, expression=right, safe=True)
            case exp.Round() | exp.Floor() | exp.Ceil():
                return self._round(node)
            case exp.Trim():
                return self._plain(node)
            case _:
                message = f"{type(node).__name__} is allowed, and nothing lowers it"
                raise AssertionError(message)

    def _plain(self, node: exp.Expr) -> exp.Expr:
        arguments: dict[str, object] = {}
        for name, value in node.args.items():
            if isinstance(value, exp.Expr):
                arguments[name] = self.lower(value)
            elif isinstance(value, list):
                arguments[name] = [self.lower(item) for item in value]
            else:
                arguments[name] = value
        return type(node)(**arguments)

    def _column(self, node: exp.Column) -> exp.Expr:
        if node.table or not isinstance(node.this, exp.Identifier):
            raise self._refusal(node)
        return self._input(Input(node.name, self._type_of(node.name)))

    def _type_of(self, name: str) -> Scalar | EnumType:
        ends = ENDPOINTS if isinstance(self.type, EdgeType) else ()
        known: dict[str, PropertyType] = dict.fromkeys(("id", *ends), Scalar.STRING)
        known.update({property_.name: property_.type for property_ in self.type.properties})
        if name not in known:
            named = f"the fill of {self.place} names {name[:200]}"
            message = f"{named}, and {self.type.name} has no such property"
            present = f"before the change it has {', '.join(list(known)[:20])}"
            hint = did_you_mean(name, known, otherwise=present)
            raise InvalidInputError(message, hint=hint)
        type_ = known[name]
        if not isinstance(type_, Scalar | EnumType):
            message = f"the fill of {self.place} names {name}, which is of type {type_}"
            raise InvalidInputError(
                message, hint="use properties that are no lists, vectors or blobs"
            )
        return type_

    def _input(self, wanted: Input) -> exp.Expr:
        if wanted not in self.inputs:
            self.inputs.append(wanted)
        return exp.column(f"c{self.inputs.index(wanted)}")

    def _literal(self, node: exp.Literal) -> exp.Expr:
        if node.is_string:
            return node.copy()
        # Not a decimal fraction of DuckDB's: a float, as in schemas and queries.
        is_whole = node.this.isdigit()
        if abs(float(node.this)) > (_WHOLE_MAX if is_whole else sys.float_info.max):
            message = (
                f"the fill of {self.place} has the number {node.this[:50]}, which fits no type"
            )
            raise InvalidInputError(message, hint="write a smaller number")
        is_large = is_whole and int(node.this) >= 2**63
        kind = ("HUGEINT" if is_large else "BIGINT") if is_whole else "DOUBLE"
        return exp.Cast(this=exp.Literal.string(node.this), to=exp.DataType.build(kind, "duckdb"))

    def _cast(self, node: exp.Cast) -> exp.Expr:
        to = node.args["to"]
        name = str(to.args.get("kind") or "").casefold()
        own = {scalar.casefold(): scalar for scalar in Scalar}.get(name)
        target = own or _TYPES.get(to.this)
        if target is None or node.args.get("format") or to.expressions:
            message = f"the fill of {self.place} casts to {to.sql(dialect='duckdb')[:100]}"
            raise InvalidInputError(message, hint=f"cast to one of {', '.join(Scalar)}")
        if target is Scalar.STRING:
            return self._as_text(node.this)
        return self._cast_to(self.lower(node.this), target)

    def _cast_to(self, operand: exp.Expr, target: Scalar) -> exp.Expr:
        kind = self._kind(operand)
        cast = cast_to(operand, kind, target)
        if cast is None:
            message = f"the fill of {self.place} casts {kind.value} to {target}"
            raise InvalidInputError(message, hint="numbers and truth values are no dates")
        return cast

    def _as_text(self, node: exp.Expr) -> exp.Expr:
        """The canonical text of a value."""
        node = node.unnest()
        if isinstance(node, exp.Column):
            lowered = self._column(node)
            type_ = self._type_of(node.name)
            if type_ is Scalar.F32:
                # As a float of 64 bits it would have more digits than it needs.
                return self._input(Input(node.name, type_, as_text=True))
            return self._cast_to(lowered, Scalar.STRING)
        return self._cast_to(self.lower(node), Scalar.STRING)

    def _divide(self, left: exp.Expr, right: exp.Expr) -> exp.Expr:
        # DuckDB divides a float by zero to infinity.
        divisor = fill_in("CASE WHEN x = 0 THEN 1 % 0 ELSE x END", right)
        return exp.Div(this=exp.Paren(this=left), expression=divisor, typed=False, safe=False)

    def _round(self, node: exp.Round | exp.Floor | exp.Ceil) -> exp.Expr:
        operand = self.lower(node.this)
        decimals = node.args.get("decimals")
        if decimals is not None:
            number = decimals.this if isinstance(decimals, exp.Neg) else decimals
            if not (
                isinstance(node, exp.Round) and isinstance(number, exp.Literal) and number.is_int
            ):
                raise self._refusal(node)
            return exp.Round(this=operand, decimals=decimals.copy())
        # DuckDB makes floats of whole numbers, and not all whole numbers are floats.
        is_whole = self._kind(operand) is Kind.WHOLE
        return exp.Paren(this=operand) if is_whole else type(node)(this=operand)

    def _kind(self, tree: exp.Expr) -> Kind:
        expression = self.expression(tree)
        try:
            sql_type = infer_type(expression, [input_.arrow_type for input_ in self.inputs])
        except InvalidInputError as cause:
            fill = f"the fill of {self.place}, {self.text[:200]}"
            message = f"{fill}, has operands that do not fit: {cause.message}"
            raise InvalidInputError(
                message, hint="cast(x as String) and such convert them"
            ) from cause
        kind = kind_of(sql_type)
        if kind is None:
            message = (
                f"the fill of {self.place} has values of type {sql_type}, which no property has"
            )
            raise InvalidInputError(message, hint=f"cast them to one of {', '.join(Scalar)}")
        return kind

    def expression(self, tree: exp.Expr) -> RowExpression:
        """The SQL of a lowered tree."""
        sql = tree.sql(dialect="duckdb")
        if len(sql) > FILL_SQL_LENGTH_MAX:
            message = f"the fill of {self.place} nests too many casts and divisions"
            raise LimitExceededError(message, hint="compute it in several steps")
        return RowExpression(sql, tuple(input_.sql_type for input_ in self.inputs))

    def require_kind(self, tree: exp.Expr, target: PropertyType) -> None:
        """Refuse an expression whose values are of another kind than those of a property."""
        kind = self._kind(tree)
        match target:
            case Scalar():
                wanted = KIND_OF[target]
            case EnumType():
                wanted = Kind.TEXT
            case _:
                message = f"{self.place} is of type {target}, which no expression gives"
                raise InvalidInputError(message, hint="add it as nullable, and load its values")
        numbers = {Kind.WHOLE, Kind.FLOAT}
        if kind in (wanted, Kind.NULL) or {kind, wanted} == numbers:
            return
        if (kind, wanted) == (Kind.DATE, Kind.INSTANT):
            return
        message = (
            f"the fill of {self.place} gives {kind.value}, and the property is of type {target}"
        )
        raise InvalidInputError(
            message,
            hint=f"write cast(… as {Scalar.STRING if isinstance(target, EnumType) else target})",
        )

    def _refusal(self, node: exp.Expr) -> InvalidInputError:
        shown = node.sql(dialect="duckdb")[:100]
        message = f"the fill of {self.place} may not use {shown}"
        return InvalidInputError(
            message, hint=f"it may consist of names of properties and {ALLOWED}"
        )


def _has_plain_form(node: exp.Expr) -> bool:
    """Whether a node has no clauses beyond those that are documented."""
    match node:
        case exp.Is():
            return isinstance(node.expression, exp.Null)
        case exp.Trim():
            return not (node.args.get("position") or node.args.get("collation"))
        case exp.Literal():
            return node.is_string or node.is_number
        case _:
            return True
