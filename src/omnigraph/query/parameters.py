"""Parameters: JSON or Python values made into the typed values that a query declares."""

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
from omnigraph.schema.conversion import Reading, convert, convert_scalar, misfit_of_kind
from omnigraph.schema.values import Misfit

_SHOWN_MAX: Final = 100


def bind(query: Query, values: Mapping[str, object]) -> Mapping[str, Value]:
    """Every parameter of a query with its typed value; None for one that is null or left out.

    - A name is written without its `$`.
    - Integers are ints, never bools; I64 and U64 also decimal text, since JSON readers round them.
    - F32 and F64 take any number, and NaN and the infinities, which are also texts as in JSON. An
      F32 becomes the nearest one there is.
    - Date and DateTime are ISO-8601 text, or Python's. An instant without an offset is UTC. A date
      is no instant, and an instant no date.
    - A list is any sequence but text; its items may not be null. A vector has its exact length, and
      its numbers are finite.
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
    found = _convert(parameter.type, value)
    low, high = parameter.minimum, parameter.maximum
    if isinstance(found, int) and (
        (low is not None and found < low) or (high is not None and found > high)
    ):
        range_ = f"from {low} up" if high is None else f"from {low} to {high}"
        return Misfit(f"{found} is not {range_}")
    return found


def _convert(type_: PropertyType, value: object) -> Value | Misfit:
    found = convert(type_, value, _READING)
    if isinstance(type_, VectorType) and isinstance(found, tuple) and not _are_finite(found):
        return Misfit(f"it is not {type_.dimension} finite numbers")
    assert not (isinstance(found, tuple) and None in found), "items that are null are refused"
    return found  # type: ignore[return-value]  # the tuple has no null


def _are_finite(numbers: Iterable[object]) -> bool:
    return all(isinstance(each, float) and math.isfinite(each) for each in numbers)


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
