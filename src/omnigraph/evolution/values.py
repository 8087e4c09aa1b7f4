"""Recipes: the values of a new or converted column, computed of batches of rows, anywhere."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa

from omnigraph.conversion.conversions import convert_values, explain_conversion
from omnigraph.conversion.raw_values import to_python
from omnigraph.conversion.readings import NONE_REFUSED, explain_value, read_column
from omnigraph.conversion.texts import format_values
from omnigraph.conversion.typed_columns import Notation
from omnigraph.engine.local.row_expressions import evaluate, explain
from omnigraph.evolution.casts import complaint_in
from omnigraph.evolution.fills import CompiledFill, Input
from omnigraph.integrity.violations import Breach, Rule, Violation, shorten
from omnigraph.limits import OFFENDERS_SHOWN_MAX
from omnigraph.model.types import EnumType, PropertyType, Scalar
from omnigraph.schema.arrow import property_field
from omnigraph.schema.catalog import Property
from omnigraph.schema.catalog import Value as PlainValue
from omnigraph.schema.retyping import stored_scalar
from omnigraph.schema.values import Misfit
from omnigraph.storage.column_files import make_filler

_NULL: Final = "may not be null"


@dataclass(frozen=True, slots=True)
class Offender:
    """A row of a batch, by its place, and what is wrong with its value."""

    row: int
    value: object
    reason: str


@dataclass(frozen=True, slots=True)
class Fault:
    """Rows of a batch that have no value: how many, and the first `OFFENDERS_SHOWN_MAX`."""

    breach: Breach
    count: int
    first: tuple[Offender, ...]


@dataclass(frozen=True, slots=True)
class ColumnResult:
    """The values of a column for a batch, one for each row, of exactly the column's type.

    Where a row has no value, there is a null, or a filler if the column may not be null.
    """

    values: pa.Array
    faults: tuple[Fault, ...] = ()


@dataclass(frozen=True, slots=True)
class RecipeTarget:
    """The property that a recipe makes values of.

    Attributes:
        type_name: The name of its type, for reports.
    """

    type_name: str
    definition: Property

    @property
    def field(self) -> pa.Field:
        """The column of the values."""
        return property_field(self.definition)

    def breach(self, rule: Rule) -> Breach:
        """The breach of a row that has no value."""
        return Breach(rule, self.type_name, (self.definition.name,))


@dataclass(frozen=True, slots=True)
class ConstantRecipe:
    """The same value in every row: a default."""

    target: RecipeTarget
    value: PlainValue | None

    @property
    def reads(self) -> tuple[str, ...]:
        """The columns that the values are computed from."""
        return ()

    def compute(self, batch: pa.RecordBatch) -> ColumnResult:
        """The values of the rows of a batch."""
        value = pa.scalar(self.value, self.target.field.type)
        return _finish(self.target, pa.repeat(value, batch.num_rows))


@dataclass(frozen=True, slots=True)
class ConversionRecipe:
    """The values of a column of another type, each exactly or not at all."""

    target: RecipeTarget
    source: str
    source_type: PropertyType

    @property
    def reads(self) -> tuple[str, ...]:
        """The columns that the values are computed from."""
        return (self.source,)

    def compute(self, batch: pa.RecordBatch) -> ColumnResult:
        """The values of the rows of a batch, which has the columns of `reads`."""
        source, target = map(stored_scalar, (self.source_type, self.target.definition.type))
        assert source is not None, f"{self.source_type} is convertible"
        assert target is not None, f"{self.target.definition.type} is convertible"
        values = batch.column(self.source)
        typed = convert_values(source, target, values)

        def describe(row: int) -> Offender:
            value = _value_at(values, row)
            return Offender(row, value, _reason(explain_conversion(source, target, value)))

        return _finish(self.target, typed.values, typed.refused, describe)


@dataclass(frozen=True, slots=True)
class ExpressionRecipe:
    """The values of an expression of the same row, converted as a load converts them."""

    target: RecipeTarget
    fill: CompiledFill

    @property
    def reads(self) -> tuple[str, ...]:
        """The columns that the values are computed from."""
        return tuple(dict.fromkeys(input_.column for input_ in self.fill.inputs))

    def compute(self, batch: pa.RecordBatch) -> ColumnResult:
        """The values of the rows of a batch, which has the columns of `reads`."""
        type_ = self.target.definition.type
        assert isinstance(type_, Scalar | EnumType), "no other type can be filled"
        columns = [_input_values(input_, batch) for input_ in self.fill.inputs]
        evaluation = evaluate(self.fill.expression, columns, batch.num_rows)
        computed = _to_readable(evaluation.values, type_)
        typed = read_column(type_, computed, Notation.VALUES)

        def describe(row: int) -> Offender:
            if row in failures:
                failure = explain(self.fill.expression, columns, row)
                return Offender(row, None, f"{self.fill.text[:100]}: {complaint_in(failure)}")
            value = _value_at(computed, row)
            misfit = explain_value(type_, value, Notation.VALUES)
            return Offender(row, value, f"{self.fill.text[:100]}: {_reason(misfit)}")

        failures = frozenset(evaluation.failures.tolist())
        refused = np.union1d(evaluation.failures, typed.refused)
        return _finish(self.target, typed.values, refused, describe)


Recipe: TypeAlias = ConstantRecipe | ConversionRecipe | ExpressionRecipe
"""How to make the values of one column. Tasks carry them to other processes."""


def describe_offender(breach: Breach, offender: Offender, row_id: str) -> Violation:
    """The violation of a row whose id is known, in the words of a load."""
    [name] = breach.properties
    place = name if breach.rule is Rule.REQUIRED else f"{name}:"
    message = f"{breach.type_name} {shorten(row_id)}: {place} {offender.reason}"
    return Violation(breach, row_id, offender.value, "", message)


def _finish(
    target: RecipeTarget,
    values: pa.Array,
    refused: np.ndarray = NONE_REFUSED,
    describe: Callable[[int], Offender] | None = None,
) -> ColumnResult:
    """The values with the faults of the rows that were refused, and of those that lack a value."""
    faults: list[Fault] = []
    if describe is not None and len(refused):
        first = tuple(describe(row) for row in refused[:OFFENDERS_SHOWN_MAX].tolist())
        faults.append(Fault(target.breach(Rule.TYPE), len(refused), first))
    if target.definition.nullable or not values.null_count:
        return ColumnResult(values, tuple(faults))
    missing = np.setdiff1d(np.flatnonzero(values.is_null()), refused)
    if len(missing):
        nulls = missing[:OFFENDERS_SHOWN_MAX].tolist()
        first = tuple(Offender(row, None, _NULL) for row in nulls)
        faults.append(Fault(target.breach(Rule.REQUIRED), len(missing), first))
    return ColumnResult(_fill_nulls(values), tuple(faults))


def _fill_nulls(values: pa.Array) -> pa.Array:
    """The values with a filler for each null; of any type, so they are taken by position."""
    places = np.where(values.is_null(), len(values), np.arange(len(values)))
    return pa.concat_arrays([values, make_filler(values.type)]).take(pa.array(places))


def _reason(misfit: Misfit) -> str:
    return f"{misfit.reason} ({misfit.hint})" if misfit.hint else misfit.reason


def _value_at(values: pa.Array, row: int) -> object:
    [value] = to_python(values.slice(row, 1))
    return value


def _input_values(input_: Input, batch: pa.RecordBatch) -> pa.Array:
    values = batch.column(input_.column)
    if not input_.as_text:
        return values
    assert isinstance(input_.type, Scalar), "enums are texts already"
    return format_values(input_.type, values)


def _to_readable(values: pa.Array, type_: Scalar | EnumType) -> pa.Array:
    """The values in a type that is read all at once, where they all have it."""
    if pa.types.is_date32(values.type) and type_ is Scalar.DATETIME:
        return values.cast(pa.timestamp("us"))
    if pa.types.is_decimal(values.type):
        # DuckDB's integers of 128 bits.
        for kind in (pa.int64(), pa.uint64()):
            try:
                return values.cast(kind)
            except pa.ArrowInvalid:
                continue
    return values
