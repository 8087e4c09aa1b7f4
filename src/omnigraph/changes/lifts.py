"""Lifts: rows of a table of one schema as rows of a type of another schema.

Rows of two commits are compared as rows of one type. Properties are matched by their origins
(`model.identities`), so it does not matter what either commit calls them. A value of another type
is converted as a schema change converts it, so it equals the value that it was converted to. One
that does not convert is null, and a column beside the others has it as a text: it equals no value
of the wanted type, not even null, and the row counts as updated.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Final, Self, TypeAlias, assert_never

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.changes.digests import describe_values, slim
from omnigraph.conversion.conversions import convert_values
from omnigraph.model.identities import TypeIdentity
from omnigraph.model.types import PropertyType
from omnigraph.schema.arrow import table_schema, value_field
from omnigraph.schema.catalog import Property, SchemaType, Value
from omnigraph.schema.retyping import CONVERSIONS, TOTAL_CONVERSIONS, stored_scalar
from omnigraph.storage.equality import are_equal
from omnigraph.storage.pairs import ColumnPair

_UNLIKE: Final = "@unlike "
"""Begins the names of columns with values that the wanted type lacks; no property has such one."""


@dataclass(frozen=True, slots=True)
class SourceColumn:
    """A column whose values are taken as they are."""

    name: str
    source: str


@dataclass(frozen=True, slots=True)
class ConvertedColumn:
    """A column whose property has another type in the table: its values are converted."""

    name: str
    source: str
    source_type: PropertyType
    type: PropertyType

    @property
    def is_total(self) -> bool:
        """Whether every value converts."""
        source = stored_scalar(self.source_type)
        return source is not None and stored_scalar(self.type) in TOTAL_CONVERSIONS[source]

    def convert(self, values: pa.ChunkedArray) -> pa.ChunkedArray:
        """The values as a schema change converts them; null where the type has no such value."""
        kind = value_field("", self.type, nullable=True).type
        source, target = stored_scalar(self.source_type), stored_scalar(self.type)
        if source is None or target is None or target not in CONVERSIONS[source]:
            return pa.chunked_array([pa.nulls(len(values), kind)], kind)
        parts = [convert_values(source, target, part).values for part in values.chunks]
        return pa.chunked_array(parts, kind)


@dataclass(frozen=True, slots=True)
class ConstantColumn:
    """A column that the table lacks: every row has the default of the property, or null."""

    name: str
    value: Value | None


LiftColumn: TypeAlias = SourceColumn | ConvertedColumn | ConstantColumn


@dataclass(frozen=True, slots=True)
class Lift:
    """How rows of a table become rows of a type; small, and sent to executors.

    Attributes:
        type: The wanted type.
        columns: For each column of its table, in their order, where the values come from.
    """

    type: SchemaType
    columns: tuple[LiftColumn, ...]

    @classmethod
    def identity(cls, type_: SchemaType) -> Self:
        """The lift of rows of the type itself: each column is its own source."""
        return cls(type_, tuple(SourceColumn(name, name) for name in table_schema(type_).names))

    @classmethod
    def between(
        cls,
        type_: SchemaType,
        identity: TypeIdentity,
        *,
        wanted: SchemaType,
        wanted_identity: TypeIdentity,
    ) -> Self:
        """The lift from one type to another one with the same origin.

        Args:
            type_: The type whose table is read, with its identity.
            wanted: The type whose rows are wanted; of the same kind.
        """
        if type_ == wanted and identity == wanted_identity:
            return cls.identity(wanted)
        have = {identity.origin_of(own.name): own for own in type_.properties}
        wanted_names = {own.name for own in wanted.properties}
        columns: list[LiftColumn] = [
            SourceColumn(name, name)
            for name in table_schema(wanted).names
            if name not in wanted_names
        ]
        columns += (
            _column(own, have.get(wanted_identity.origin_of(own.name))) for own in wanted.properties
        )
        return cls(wanted, tuple(columns))

    @property
    def is_identity(self) -> bool:
        """Whether it changes nothing."""
        return all(
            isinstance(column, SourceColumn) and column.name == column.source
            for column in self.columns
        )

    def sources(self, names: Iterable[str]) -> list[str]:
        """The columns of the table to read for some columns of the type.

        Names of other columns, such as `ROW_ADDRESS`, are their own.
        """
        columns = {column.name: column for column in self.columns}
        sources: dict[str, None] = {}
        for name in names:
            match columns.get(name):
                case SourceColumn(_, source) | ConvertedColumn(_, source):
                    sources[source] = None
                case ConstantColumn():
                    pass
                case None:
                    sources[name] = None
        return list(sources)

    def source_of(self, name: str) -> str | None:
        """The column of the table that has the values of a column as they are; None if none has."""
        for column in self.columns:
            if column.name == name and isinstance(column, SourceColumn):
                return column.source
        return None

    def apply(self, rows: pa.Table, names: Sequence[str]) -> pa.Table:
        """Some columns of the type, made of rows that were read from the table.

        Columns of `unlike_columns` follow, where values may not convert.

        Args:
            rows: At least the columns of `sources`; at least one, which says how many rows.
        """
        schema = table_schema(self.type)
        columns = {column.name: column for column in self.columns}
        fields: list[pa.Field] = []
        arrays: list[pa.ChunkedArray] = []
        unlike: dict[str, pa.ChunkedArray] = {}
        for name in names:
            column = columns.get(name)
            if column is None:
                fields.append(rows.schema.field(name))
                arrays.append(rows[name])
                continue
            field = schema.field(name)
            values = _values(column, rows, field.type)
            fields.append(field)
            arrays.append(values)
            if isinstance(column, ConvertedColumn) and not column.is_total:
                stored = rows[column.source]
                is_lost = pc.and_(stored.is_valid(), values.is_null())
                unlike[f"{_UNLIKE}{name}"] = describe_values(stored, is_lost)
        fields += [pa.field(name, pa.utf8()) for name in unlike]
        return pa.Table.from_arrays([*arrays, *unlike.values()], schema=pa.schema(fields))


@dataclass(frozen=True, slots=True)
class LiftPair:
    """The lifts of two versions of a table to one type; a `storage.differences.ColumnComparison`.

    Small, and sent to executors.
    """

    before: Lift
    after: Lift

    @classmethod
    def identity(cls, type_: SchemaType) -> Self:
        """The lifts of two tables of the type itself."""
        lift = Lift.identity(type_)
        return cls(lift, lift)

    @property
    def columns(self) -> tuple[ColumnPair, ...]:
        """All columns that are compared: those that are not the same constant on both sides."""
        pairs = zip(self.before.columns, self.after.columns, strict=True)
        return tuple(_column_pair(old, new) for old, new in pairs if not _is_same(old, new))

    def reads(self, names: Sequence[str]) -> tuple[list[str], list[str]]:
        """The columns of the earlier and of the later version that have the values of some."""
        return self.before.sources(names), self.after.sources(names)

    def unlike(self, names: Sequence[str], before: pa.Table, after: pa.Table) -> np.ndarray:
        """Whether each row differs in some columns."""
        old, new = (
            slim(lift.apply(rows, names))
            for lift, rows in ((self.before, before), (self.after, after))
        )
        compared = dict.fromkeys([*old.column_names, *new.column_names])
        unlike = [_differs(old, new, name) for name in compared]
        return reduce(np.logical_or, unlike, np.zeros(before.num_rows, np.bool_))


def unlike_columns(rows: pa.Table) -> list[str]:
    """The columns with values that the type of the rows lacks."""
    return [name for name in rows.column_names if name.startswith(_UNLIKE)]


def _column(wanted: Property, have: Property | None) -> LiftColumn:
    if have is None:
        return ConstantColumn(wanted.name, wanted.default)
    kinds = [value_field("", own.type, nullable=True).type for own in (have, wanted)]
    if kinds[0] == kinds[1]:
        return SourceColumn(wanted.name, have.name)
    return ConvertedColumn(wanted.name, have.name, have.type, wanted.type)


def _values(column: LiftColumn, rows: pa.Table, kind: pa.DataType) -> pa.ChunkedArray:
    match column:
        case SourceColumn(_, source):
            return rows[source].cast(kind)
        case ConvertedColumn(_, source):
            return column.convert(rows[source])
        case ConstantColumn(_, value):
            count = rows.num_rows
            constant = pa.nulls(count, kind) if value is None else pa.repeat(value, count)
            return pa.chunked_array([constant.cast(kind)], kind)
        case _:
            assert_never(column)


def _is_same(old: LiftColumn, new: LiftColumn) -> bool:
    return isinstance(old, ConstantColumn) and old == new


def _column_pair(old: LiftColumn, new: LiftColumn) -> ColumnPair:
    sides = (old, new)
    return ColumnPair(
        old.name,
        None if isinstance(old, ConstantColumn) else old.source,
        None if isinstance(new, ConstantColumn) else new.source,
        is_stored_alike=all(isinstance(side, SourceColumn) for side in sides),
        is_null=all(not isinstance(side, ConstantColumn) or side.value is None for side in sides),
    )


def _differs(old: pa.Table, new: pa.Table, name: str) -> np.ndarray:
    """Whether values of a column differ; a side without the column has nulls."""
    was, now = (
        rows[name]
        if name in rows.column_names
        else pa.chunked_array([pa.nulls(rows.num_rows, pa.utf8())])
        for rows in (old, new)
    )
    differs: np.ndarray = ~are_equal(was, now)
    return differs
