"""Parameters: converts JSON or Python values to the types that a query declares."""

from __future__ import annotations

import binascii
import math
from base64 import b64decode
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final

from omnigraph.errors import InvalidParameterError
from omnigraph.lang.diagnostics import nearest
from omnigraph.model.types import BlobType, PropertyType, VectorType
from omnigraph.query.ir import Parameter, Query, Value
from omnigraph.schema.conversion import Reading, convert, convert_scalar, is_null, misfit_of_kind
from omnigraph.schema.values import Misfit

_SHOWN_MAX: Final = 100


def bind(query: Query, values: Mapping[str, object]) -> Mapping[str, Value]:
    """Every parameter of a query with its typed value; None for one that is null or omitted.

    - A name is written without its `$`.
    - Integers are ints, never bools; I64 and U64 also decimal text, since JSON readers round them.
    - F32 and F64 accept any number, and NaN and the infinities, which are also texts as in JSON. An
      F32 is rounded to the nearest 32-bit float.
    - Date and DateTime are ISO-8601 text, or Python's. An instant without an offset is UTC. A date
      is no instant, and an instant no date.
    - A list is any sequence but text; its items may not be null. A vector has its exact length, and
      its numbers are finite.
    - Blob is bytes, or base64 text.
    """
    parameters = {parameter.name: parameter for parameter in query.parameters}
    values_by_name: dict[str, Value] = {}
    faults = list(_unknown_faults(values, parameters))
    for name, parameter in parameters.items():
        value = values.get(name)
        if not is_null(value):
            converted = _convert_parameter(parameter, value)
            if isinstance(converted, Misfit):
                advice = f" ({converted.hint})" if converted.hint else ""
                faults.append(f"${name}: {converted.reason}{advice}")
            else:
                values_by_name[name] = converted
        elif parameter.nullable:
            values_by_name[name] = None
        else:
            what = "may not be null" if name in values else "is missing"
            faults.append(f"${name}: {parameter.type} {what}")
    if faults:
        message = f"query {query.name}: {'; '.join(faults)}"
        raise InvalidParameterError(message, hint=_signature(query), query=query.name)
    return MappingProxyType(values_by_name)


def _unknown_faults(values: Iterable[str], parameters: Iterable[str]) -> Iterator[str]:
    for name in values:
        if name not in parameters:
            near = nearest(name.lstrip("$"), parameters)
            advice = f" (did you mean {near}?)" if near else ""
            yield f"${name[:_SHOWN_MAX]}: the query has no such parameter{advice}"


def _signature(query: Query) -> str:
    if not query.parameters:
        return "it takes no parameters"
    words = (
        f"${parameter.name}: {parameter.type}{'?' * parameter.nullable}"
        for parameter in query.parameters
    )
    return f"it takes {', '.join(words)}"


def _convert_parameter(parameter: Parameter, value: object) -> Value | Misfit:
    converted = _convert(parameter.type, value)
    low, high = parameter.minimum, parameter.maximum
    if isinstance(converted, int) and (
        (low is not None and converted < low) or (high is not None and converted > high)
    ):
        range_ = f"from {low} up" if high is None else f"from {low} to {high}"
        return Misfit(f"{converted} is not {range_}")
    return converted


def _convert(type_: PropertyType, value: object) -> Value | Misfit:
    converted = convert(type_, value, _READING)
    if (
        isinstance(type_, VectorType)
        and isinstance(converted, tuple)
        and not _are_finite(converted)
    ):
        return Misfit(f"it is not {type_.dimension} finite numbers")
    assert not (isinstance(converted, tuple) and None in converted), (
        "items that are null are refused"
    )
    return converted  # type: ignore[return-value]  # the tuple has no null


def _are_finite(numbers: Iterable[object]) -> bool:
    return all(isinstance(number, float) and math.isfinite(number) for number in numbers)


def _read_bytes(value: object) -> bytes | Misfit:
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    if isinstance(value, str):
        try:
            return b64decode(value, validate=True)
        except (binascii.Error, ValueError):
            return Misfit("the text is not base64")
    return misfit_of_kind(BlobType(), value)


_READING: Final = Reading(scalar=convert_scalar, blob=_read_bytes)
