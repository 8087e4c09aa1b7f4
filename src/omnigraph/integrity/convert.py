"""Converting raw rows, as JSON and Python bring them, into the typed rows of a delta.

A value converts exactly or is a violation: nothing becomes null, is cut off or rounded on the way.
(F32 and F64 are the nearest to a decimal fraction, since there is no other way to write one.)
"""

from __future__ import annotations

import binascii
import math
from base64 import b64decode
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Final, cast

import pyarrow as pa

from omnigraph.errors import InvalidInputError
from omnigraph.integrity.deltas import POSITION, delta_schema
from omnigraph.integrity.violations import (
    Breach,
    Report,
    Rule,
    Tally,
    ToOrigin,
    Violation,
    no_origin,
    origin_at,
    shortened,
)
from omnigraph.lang.diagnostics import did_you_mean
from omnigraph.limits import ROWS_PER_BATCH_MAX
from omnigraph.model.identity import KeyType, KeyValue, identity_of
from omnigraph.model.types import BlobType, PropertyType, Scalar
from omnigraph.relational.numbers import to_exact
from omnigraph.schema.catalog import ENDPOINTS, EdgeType, Property, SchemaType
from omnigraph.schema.catalog import Value as PlainValue
from omnigraph.schema.conversion import (
    ConvertedValue,
    Reading,
    convert,
    convert_scalar,
    misfit_of_kind,
)
from omnigraph.schema.values import Misfit, fit

_BASE64: Final = "base64:"


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

    A row with a violation is not among the rows. Rules that look at several rows at once take it
    for absent, so what they say then may only be due to that.
    """

    rows: pa.Table
    report: Report


def convert_rows(
    type_: SchemaType,
    rows: Iterable[RawRow],
    *,
    mint: Callable[[], str],
    ignores_unknown: bool = False,
    to_origin: ToOrigin = no_origin,
) -> Conversion:
    """Type every value, fill in defaults, and give each row its id.

    The id of a type with a key is spelt from it, and an `id` that is given too must be the same.
    Without a key, the given `id` is taken, or else one is minted.

    Args:
        mint: Makes an id, such as `Clock.ulid`.
        ignores_unknown: Whether values that no property takes are dropped instead of refused.
        to_origin: How to name the rows that do not convert.
    """
    converter = _Converter(type_, mint, to_origin, ignores_unknown=ignores_unknown)
    schema = delta_schema(type_)
    batches = list(_batches(schema, filter(None, map(converter.row, rows))))
    return Conversion(pa.Table.from_batches(batches, schema), converter.tally.report())


def convert_value(type_: PropertyType, value: object) -> ConvertedValue | Misfit:
    """One value, which is not null, as a row of that type would have it, or why it cannot."""
    return convert(type_, value, _READING)


def _batches(schema: pa.Schema, rows: Iterable[Mapping[str, object]]) -> Iterator[pa.RecordBatch]:
    waiting: list[Mapping[str, object]] = []

    def batch() -> pa.RecordBatch:
        columns = [pa.array([row[each.name] for row in waiting], each.type) for each in schema]
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
        """The row by its columns; None if it breaks something, which has then been counted."""
        faults: list[_Fault] = []
        typed: dict[str, object] = {POSITION: raw.position}
        if isinstance(self.type, EdgeType):
            for name, value in zip(ENDPOINTS, (raw.source, raw.target), strict=True):
                typed[name] = self._value(name, Scalar.STRING, value, faults)
        for each in self.type.properties:
            typed[each.name] = self._property(each, raw.values, faults)
        if not self.ignores_unknown:
            faults += self._unknown(raw.values)
        given = self._value("id", Scalar.STRING, raw.values.get("id"), faults)
        assert given is None or isinstance(given, str), "it was read as text"
        typed["id"] = given
        if not faults:
            typed["id"] = self._identity(given, typed, faults)
        if faults:
            origin = origin_at(raw.position, self.to_origin)
            for fault in faults:
                self.tally.add(self._violation(fault, given, origin))
        return None if faults else typed

    def _property(
        self, property_: Property, values: Mapping[str, object], faults: list[_Fault]
    ) -> ConvertedValue | None:
        if property_.name not in values:
            return property_.default
        return self._value(property_.name, property_.type, values[property_.name], faults)

    def _value(
        self, name: str, type_: PropertyType, value: object, faults: list[_Fault]
    ) -> ConvertedValue | None:
        if value is None:
            return None
        found = convert(type_, value, _READING)
        if isinstance(found, Misfit):
            advice = f" ({found.hint})" if found.hint else ""
            faults.append(_Fault(Rule.TYPE, (name,), value, f"{name}: {found.reason}{advice}"))
            return None
        return found

    def _unknown(self, values: Mapping[str, object]) -> Iterator[_Fault]:
        names = [each.name for each in self.type.properties]
        for name in values:
            if name in names or name == "id":
                continue
            near = did_you_mean(name, names)
            advice = f" ({near})" if near else ""
            reason = f"there is no property {name[:100]}{advice}"
            yield _Fault(Rule.TYPE, (name[:100],), values[name], reason)

    def _identity(
        self, given: str | None, typed: Mapping[str, object], faults: list[_Fault]
    ) -> str | None:
        key = self.type.key
        if not key:
            return self.mint() if given is None else given
        missing = [name for name in key if typed[name] is None]
        for name in missing:
            reason = f"{name} may not be null: it is part of the key"
            faults.append(_Fault(Rule.REQUIRED, (name,), None, reason))
        if missing:
            return None
        members = [cast("KeyValue", typed[name]) for name in key]
        try:
            spelt = identity_of([self._key_type(name) for name in key], members)
        except InvalidInputError as refusal:
            faults.append(_Fault(Rule.KEY, key, tuple(members), str(refusal)))
            return None
        if given not in (None, spelt):
            reason = f"the id {shortened(given)} is not what the key says, {shortened(spelt)}"
            faults.append(_Fault(Rule.TYPE, ("id",), given, reason))
        return spelt

    def _key_type(self, name: str) -> KeyType:
        if isinstance(self.type, EdgeType) and name in ENDPOINTS:
            return Scalar.STRING
        return cast("KeyType", self.type.property_named(name).type)

    def _violation(self, fault: _Fault, given: str | None, origin: str) -> Violation:
        breach = Breach(fault.rule, self.type.name, fault.properties)
        named = self.type.name if given is None else f"{self.type.name} {shortened(given)}"
        return Violation(breach, given, _kept(fault.value), origin, f"{named}: {fault.reason}")


@dataclass(frozen=True, slots=True)
class _Fault:
    rule: Rule
    properties: tuple[str, ...]
    value: object
    reason: str


def _kept(value: object) -> object:
    """A raw value as a report keeps it: whole if it is small, and of Python's own types."""
    if value is None or isinstance(value, bool | int | float):
        return value
    return value if isinstance(value, str) and len(value) <= 100 else shortened(value)


_OWN_NUMBERS: Final = frozenset({bool, int, float})


def _read_scalar(type_: Scalar, value: object) -> PlainValue | Misfit:
    if isinstance(value, Decimal) and type_.is_numeric:
        is_whole = value.is_finite() and value == value.to_integral_value()
        value = int(value) if is_whole else float(value)
    if isinstance(value, float) and type_.is_integer and value.is_integer():
        # JSON has one kind of number, and many writers spell whole ones 3.0.
        value = int(value)
    if isinstance(value, float) and type_.is_float and not math.isfinite(value):
        return value
    nanoseconds: object = getattr(value, "nanosecond", None)
    if isinstance(value, datetime) and nanoseconds:
        return Misfit(f"{value} has nanoseconds", "round it to microseconds")
    try:
        # Numbers of Python's own need not be asked whether they are some of another library.
        if isinstance(value, int | float) and type(value) in _OWN_NUMBERS:
            found = fit(type_, value)
        else:
            found = convert_scalar(type_, value)
    except TypeError:
        # An array of another library says that it can be an integer, and then has too many items.
        return misfit_of_kind(type_, value)
    if type_.is_float and isinstance(value, int) and not isinstance(found, Misfit):
        exact = to_exact(value, type_)
        return (
            Misfit(f"{value} is not exactly a number of type {type_}") if exact is None else found
        )
    return found


def _read_blob(value: object) -> bytes | Misfit:
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    if isinstance(value, str):
        if not value.startswith(_BASE64):
            return Misfit("the text is no blob", f"write {_BASE64} and the bytes in base64")
        try:
            return b64decode(value.removeprefix(_BASE64), validate=True)
        except (binascii.Error, ValueError):
            return Misfit(f"what follows {_BASE64} is not base64")
    return misfit_of_kind(BlobType(), value)


_READING: Final = Reading(scalar=_read_scalar, blob=_read_blob, keeps_null_items=True)
