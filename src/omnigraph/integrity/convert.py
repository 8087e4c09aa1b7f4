"""Conversion of raw rows, as in JSON and Python, into the typed rows of a delta.

A value that does not convert exactly (`conversion.exact_values`) is a violation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import cast

import pyarrow as pa

from omnigraph.conversion.exact_values import convert_value
from omnigraph.errors import InvalidInputError
from omnigraph.integrity.deltas import POSITION, delta_schema
from omnigraph.integrity.violations import (
    Breach,
    IntegrityReport,
    Rule,
    Tally,
    ToOrigin,
    Violation,
    no_origin,
    origin_at,
    shorten,
)
from omnigraph.lang.diagnostics import did_you_mean
from omnigraph.limits import ROWS_PER_BATCH_MAX
from omnigraph.model.identity import KeyType, KeyValue, identity_of
from omnigraph.model.types import PropertyType, Scalar
from omnigraph.schema.catalog import ENDPOINTS, EdgeType, Property, SchemaType
from omnigraph.schema.conversion import ConvertedValue, is_null
from omnigraph.schema.values import Misfit


@dataclass(frozen=True, slots=True)
class RawRow:
    """One row before conversion.

    Attributes:
        values: By property; `id` may be among them. A property that is left out gets its default.
        position: Where the row is from, for reports.
        source: The id of the node that an edge leads from, and `target` of the one it leads to.
    """

    values: Mapping[str, object]
    position: int | None = None
    source: object = None
    target: object = None


@dataclass(frozen=True, slots=True)
class Conversion:
    """The rows that converted, with the columns of `delta_schema`, and what the others break.

    A row with a violation is not among the rows. Set rules treat it as absent, so their violations
    may be due to that alone.
    """

    rows: pa.Table
    report: IntegrityReport


def convert_rows(
    type_: SchemaType,
    rows: Iterable[RawRow],
    *,
    mint: Callable[[], str],
    ignores_unknown: bool = False,
    to_origin: ToOrigin = no_origin,
) -> Conversion:
    """Type every value, fill in defaults, and give each row its id.

    The id of a type with a key is made from it, and a given `id` must be equal to it. Without a
    key, the id is the given `id`, or else one is minted.

    Args:
        mint: Makes an id, such as `Clock.ulid`.
        ignores_unknown: Whether values that no property takes are dropped instead of refused.
        to_origin: How to name the rows that do not convert.
    """
    converter = _Converter(type_, mint, to_origin, ignores_unknown=ignores_unknown)
    schema = delta_schema(type_)
    batches = list(_batches(schema, filter(None, map(converter.row, rows))))
    return Conversion(pa.Table.from_batches(batches, schema), converter.tally.report())


def _batches(schema: pa.Schema, rows: Iterable[Mapping[str, object]]) -> Iterator[pa.RecordBatch]:
    waiting: list[Mapping[str, object]] = []

    def batch() -> pa.RecordBatch:
        columns = [pa.array([row[field.name] for row in waiting], field.type) for field in schema]
        return pa.RecordBatch.from_arrays(columns, schema=schema)

    for row in rows:
        waiting.append(row)
        if len(waiting) == ROWS_PER_BATCH_MAX:
            yield batch()
            waiting.clear()
    yield batch()


@dataclass(slots=True)
class _Converter:
    type: SchemaType
    mint: Callable[[], str]
    to_origin: ToOrigin
    ignores_unknown: bool
    tally: Tally = field(default_factory=Tally)

    def row(self, raw: RawRow) -> dict[str, object] | None:
        """The row by its columns; None if it has violations, which are then counted."""
        faults: list[_Fault] = []
        row: dict[str, object] = {POSITION: raw.position}
        if isinstance(self.type, EdgeType):
            for name, value in zip(ENDPOINTS, (raw.source, raw.target), strict=True):
                row[name] = self._value(name, Scalar.STRING, value, faults)
        for property_ in self.type.properties:
            row[property_.name] = self._property(property_, raw.values, faults)
        if not self.ignores_unknown:
            faults += self._unknown_properties(raw.values)
        given_id = self._value("id", Scalar.STRING, raw.values.get("id"), faults)
        assert given_id is None or isinstance(given_id, str), "it was read as text"
        row["id"] = given_id
        if not faults:
            row["id"] = self._identity(given_id, row, faults)
        if faults:
            origin = origin_at(raw.position, self.to_origin)
            for fault in faults:
                self.tally.add(self._violation(fault, given_id, origin))
        return None if faults else row

    def _property(
        self, property_: Property, values: Mapping[str, object], faults: list[_Fault]
    ) -> ConvertedValue | None:
        if property_.name not in values:
            return property_.default
        return self._value(property_.name, property_.type, values[property_.name], faults)

    def _value(
        self, name: str, type_: PropertyType, value: object, faults: list[_Fault]
    ) -> ConvertedValue | None:
        if is_null(value):
            return None
        converted = convert_value(type_, value)
        if isinstance(converted, Misfit):
            advice = f" ({converted.hint})" if converted.hint else ""
            faults.append(_Fault(Rule.TYPE, (name,), value, f"{name}: {converted.reason}{advice}"))
            return None
        return converted

    def _unknown_properties(self, values: Mapping[str, object]) -> Iterator[_Fault]:
        names = [property_.name for property_ in self.type.properties]
        for name in values:
            if name in names or name == "id":
                continue
            near = did_you_mean(name, names)
            advice = f" ({near})" if near else ""
            reason = f"unknown property {name[:100]}{advice}"
            yield _Fault(Rule.TYPE, (name[:100],), values[name], reason)

    def _identity(
        self, given_id: str | None, row: Mapping[str, object], faults: list[_Fault]
    ) -> str | None:
        key = self.type.key
        if not key:
            return self.mint() if given_id is None else given_id
        missing = [name for name in key if row[name] is None]
        for name in missing:
            reason = f"{name} may not be null: it is part of the key"
            faults.append(_Fault(Rule.REQUIRED, (name,), None, reason))
        if missing:
            return None
        members = [cast("KeyValue", row[name]) for name in key]
        try:
            key_id = identity_of([self._key_type(name) for name in key], members)
        except InvalidInputError as refusal:
            faults.append(_Fault(Rule.KEY, key, tuple(members), str(refusal)))
            return None
        if given_id not in (None, key_id):
            reason = (
                f"the id {shorten(given_id)} does not match the key, which gives {shorten(key_id)}"
            )
            faults.append(_Fault(Rule.TYPE, ("id",), given_id, reason))
        return key_id

    def _key_type(self, name: str) -> KeyType:
        if isinstance(self.type, EdgeType) and name in ENDPOINTS:
            return Scalar.STRING
        return cast("KeyType", self.type.property_named(name).type)

    def _violation(self, fault: _Fault, given_id: str | None, origin: str) -> Violation:
        breach = Breach(fault.rule, self.type.name, fault.properties)
        subject = self.type.name if given_id is None else f"{self.type.name} {shorten(given_id)}"
        value = _to_report_value(fault.value)
        return Violation(breach, given_id, value, origin, f"{subject}: {fault.reason}")


@dataclass(frozen=True, slots=True)
class _Fault:
    rule: Rule
    properties: tuple[str, ...]
    value: object
    reason: str


def _to_report_value(value: object) -> object:
    """A raw value for a report: whole if it is small and of a builtin type, else shortened."""
    if value is None or isinstance(value, bool | int | float):
        return value
    return value if isinstance(value, str) and len(value) <= 100 else shorten(value)
