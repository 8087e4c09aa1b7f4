"""Parameters: JSON or Python values made into the typed values that a query declares."""

from __future__ import annotations

import binascii
import re
from base64 import b64decode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from types import MappingProxyType
from typing import Final, SupportsIndex, assert_never

from omnigraph.errors import InvalidParameterError
from omnigraph.lang.diagnostics import nearest
from omnigraph.model.types import BlobType, EnumType, ListType, PropertyType, Scalar, VectorType
from omnigraph.query.ir import Parameter, Query, Value
from omnigraph.schema.catalog import Value as PlainValue
from omnigraph.schema.values import Misfit, fit

_DECIMAL: Final = re.compile(r"-?[0-9]{1,20}")
_SHOWN_MAX: Final = 100


def bind(query: Query, values: Mapping[str, object]) -> Mapping[str, Value]:
    """Every parameter of a query with its typed value; None for one that is null or left out.

    - A name is written without its `$`.
    - Integers are ints, never bools; I64 and U64 also decimal text, since JSON readers round them.
    - F32 and F64 take any finite number; NaN and infinities have no place in a query. An F32
      becomes the nearest one there is.
    - Date and DateTime are ISO-8601 text, or Python's. An instant without an offset is UTC. A date
      is no instant, and an instant no date.
    - A list is any sequence but text; its items may not be null. A vector has its exact length.
    - Blob is bytes, or base64 text.

    Raises:
        InvalidParameterError: a parameter is missing, unknown or of the wrong type; the message
            names all of them. Nothing has run.
    """
    declared = {each.name: each for each in query.parameters}
    bound: dict[str, Value] = {}
    faults = list(_unknown(values, declared))
    for name, parameter in declared.items():
        value = values.get(name)
        if value is not None:
            found = _typed(parameter, value)
            if isinstance(found, Misfit):
                advice = f" ({found.hint})" if found.hint else ""
                faults.append(f"${name}: {found.reason}{advice}")
            else:
                bound[name] = found
        elif parameter.nullable:
            bound[name] = None
        else:
            what = "may not be null" if name in values else "is missing"
            faults.append(f"${name}: {parameter.type} {what}")
    if faults:
        message = f"query {query.name}: {'; '.join(faults)}"
        raise InvalidParameterError(message, hint=_signature(query), query=query.name)
    return MappingProxyType(bound)


def _unknown(values: Iterable[str], declared: Iterable[str]) -> Iterator[str]:
    for name in values:
        if name not in declared:
            near = nearest(name.lstrip("$"), declared)
            advice = f" (did you mean {near}?)" if near else ""
            yield f"${name[:_SHOWN_MAX]}: there is no such parameter{advice}"


def _signature(query: Query) -> str:
    if not query.parameters:
        return "it takes no parameters"
    words = (f"${each.name}: {each.type}{'?' * each.nullable}" for each in query.parameters)
    return f"it takes {', '.join(words)}"


def _typed(parameter: Parameter, value: object) -> Value | Misfit:
    found = _fit(parameter.type, value)
    low, high = parameter.minimum, parameter.maximum
    if isinstance(found, int) and (
        (low is not None and found < low) or (high is not None and found > high)
    ):
        range_ = f"from {low} up" if high is None else f"from {low} to {high}"
        return Misfit(f"{found} is not {range_}")
    return found


def _fit(type_: PropertyType, value: object) -> Value | Misfit:
    match type_:
        case Scalar():
            return _fit_scalar(type_, value)
        case EnumType():
            return _fit_scalar(Scalar.STRING, value)
        case ListType(item):
            return _fit_items(item, value, type_)
        case VectorType(dimension):
            found = _fit_items(Scalar.F32, value, type_)
            if isinstance(found, tuple) and len(found) != dimension:
                return Misfit(f"{len(found)} numbers are no {type_}")
            return found
        case BlobType():
            return _fit_bytes(value)
        case _:
            assert_never(type_)


def _fit_scalar(type_: Scalar, value: object) -> PlainValue | Misfit:
    if type_ in (Scalar.I64, Scalar.U64) and isinstance(value, str) and _DECIMAL.fullmatch(value):
        value = int(value)
    elif type_.is_numeric and isinstance(value, SupportsIndex) and not isinstance(value, bool):
        # Integers of other libraries are integers too.
        value = value.__index__()
    if isinstance(value, str) and not _is_unicode(value):
        return Misfit("the text has half of a surrogate pair")
    if isinstance(value, str | int | float | date):
        return fit(type_, value)
    return _not_of(type_, value)


def _fit_items(
    item: Scalar | BlobType, value: object, type_: ListType | VectorType
) -> Value | Misfit:
    items = _sequence(value)
    if items is None:
        return _not_of(type_, value)
    found: list[PlainValue | bytes] = []
    for place, each in enumerate(items):
        fitted = _fit_bytes(each) if isinstance(item, BlobType) else _fit_scalar(item, each)
        if isinstance(fitted, Misfit):
            return Misfit(f"item {place}: {fitted.reason}", fitted.hint)
        found.append(fitted)
    return tuple(found)


def _sequence(value: object) -> Sequence[object] | None:
    if isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray):
        return value
    # An array of another library becomes a list of Python's own numbers.
    if callable(to_list := getattr(value, "tolist", None)):
        listed = to_list()
        return listed if isinstance(listed, list) else None
    return None


def _fit_bytes(value: object) -> bytes | Misfit:
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    if isinstance(value, str):
        try:
            return b64decode(value, validate=True)
        except (binascii.Error, ValueError):
            return Misfit("the text is not base64")
    return _not_of(BlobType(), value)


def _not_of(type_: PropertyType, value: object) -> Misfit:
    return Misfit(f"a value of Python's {type(value).__name__} is not of type {type_}")


def _is_unicode(text: str) -> bool:
    return not any("\ud800" <= each <= "\udfff" for each in text)
