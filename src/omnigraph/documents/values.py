"""Values as documents: JSON that becomes the same values of the same types again.

What JSON has stands for itself. All else is an object whose `$` names its type: a tuple, a time, an
enum, a dataclass. Only classes of `documents.classes` are made of what was received.
"""

from __future__ import annotations

import dataclasses
import json
import math
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from functools import cache
from types import MappingProxyType
from typing import Any, Final, get_args, get_origin, get_type_hints

from omnigraph.documents.classes import class_named, name_of
from omnigraph.errors import ErrorCode, FormatError, InvalidInputError

_TYPE: Final = "$"
_SAME_RELEASE: Final = "use the same release of Omnigraph on both sides"
_MICROSECOND: Final = timedelta(microseconds=1)

PLAIN: Final = frozenset(
    {
        "BranchName",
        "Commit",
        "CommitId",
        "EdgeDirection",
        "EmbedScope",
        "EmbedWhen",
        "EngineName",
        "EngineRequest",
        "ExportFormat",
        "Mode",
        "OnError",
        "Op",
        "OperationKind",
        "ProposalState",
        "SettingKey",
        "Source",
        "StreamBatch",
        "TableKind",
        "TagName",
        "Target",
    }
)
"""The classes that arguments may have."""


def to_document(value: object) -> Any:
    """A value as what JSON has.

    >>> to_document((1, {"a": b"b"}))
    {'$': 'tuple', 'items': [1, {'a': {'$': 'bytes', 'value': 'Yg=='}}]}
    """
    kind = type(value)
    if value is None or kind in (str, int, bool):
        return value
    if kind is float:
        assert isinstance(value, float), "that is its type"
        return value if math.isfinite(value) else _tagged("float", value=repr(value))
    if kind is list:
        assert isinstance(value, list), "that is its type"
        return [to_document(item) for item in value]
    if kind in _WRITERS:
        return _WRITERS[kind](value)
    if isinstance(value, Mapping):
        return _from_mapping(value)
    return _from_object(value)


def _tagged(name: str, /, **fields: object) -> dict[str, object]:
    return {_TYPE: name, **fields}


def _from_items(name: str) -> Callable[[Any], object]:
    return lambda items: _tagged(name, items=[to_document(item) for item in items])


_WRITERS: Final[Mapping[type, Callable[[Any], object]]] = {
    tuple: _from_items("tuple"),
    set: _from_items("frozenset"),
    frozenset: _from_items("frozenset"),
    bytes: lambda value: _tagged("bytes", value=b64encode(value).decode()),
    bytearray: lambda value: _tagged("bytes", value=b64encode(value).decode()),
    memoryview: lambda value: _tagged("bytes", value=b64encode(value).decode()),
    datetime: lambda value: _tagged("datetime", value=value.isoformat()),
    date: lambda value: _tagged("date", value=value.isoformat()),
    timedelta: lambda value: _tagged("timedelta", value=value // _MICROSECOND),
    Decimal: lambda value: _tagged("decimal", value=str(value)),
}


def _from_mapping(value: Mapping[Any, object]) -> object:
    frozen = isinstance(value, MappingProxyType)
    if all(type(name) is str and name != _TYPE for name in value) and not frozen:
        return {name: to_document(item) for name, item in value.items()}
    items = [[to_document(name), to_document(item)] for name, item in value.items()]
    return _tagged("mapping" if frozen else "dict", items=items)


def _from_object(value: object) -> object:
    kind: type[Any] = type(value)
    name = name_of(kind)
    if name is not None and isinstance(value, Enum):
        return _tagged(name, value=value.value)
    if name is not None and isinstance(value, str):
        return _tagged(name, value=str(value))
    if name is not None and dataclasses.is_dataclass(value):
        fields = {field: to_document(getattr(value, field)) for field in _fields(kind)}
        return _tagged(name, **fields)
    scalar = _plain_scalar(value)
    if scalar is not value:
        return to_document(scalar)
    message = f"a value of Python's {kind.__name__} cannot be sent"
    hint = "use what JSON has, times, bytes or Decimal"
    raise InvalidInputError(message, hint=hint, code=ErrorCode.INVALID_PARAMETER)


def _plain_scalar(value: object) -> object:
    """Python's own value of a subclass, or of a scalar or an array of numpy; else the same one."""
    for kind in (bool, int, float, str):
        if isinstance(value, kind):
            return kind(value)
    convert = getattr(value, "tolist", None)
    return convert() if callable(convert) else value


def _fields(kind: type[Any]) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(kind) if field.init)


def from_document(document: Any, *, only: frozenset[str] | None = None) -> Any:
    """The value that `to_document` was called for.

    Args:
        only: The names of classes that may occur; all of `documents.classes` when None.
    """
    try:
        return _Reader(only).read(document)
    except RecursionError as cause:
        message = "the document is nested too deeply"
        raise InvalidInputError(message, hint=_SAME_RELEASE) from cause


def parse_json(data: bytes, place: str) -> Any:
    """What a text of JSON has.

    Args:
        place: What the text is, and where: errors begin with it.
    """
    try:
        return json.loads(data)
    except json.JSONDecodeError as cause:
        line = f"line {cause.lineno}, " if cause.lineno > 1 else ""
        why = f"it is not JSON: {cause.msg}, {line}column {cause.colno}"
    except UnicodeDecodeError as cause:
        why = f"it is not UTF-8: byte {cause.start + 1}"
    except RecursionError:
        why = "it is nested too deeply"
    except ValueError:
        why = "it has a number with too many digits"
    message = f"{place}: {why}"
    raise InvalidInputError(message, hint=_SAME_RELEASE)


class _Reader:
    def __init__(self, only: frozenset[str] | None) -> None:
        self._only = only

    def read(self, document: Any) -> Any:
        if isinstance(document, list):
            return [self.read(item) for item in document]
        if not isinstance(document, dict):
            return document
        if _TYPE not in document:
            return {name: self.read(item) for name, item in document.items()}
        return self._read_tagged(dict(document))

    def _read_tagged(self, fields: dict[str, Any]) -> Any:
        name = fields.pop(_TYPE)
        if not isinstance(name, str):
            raise _malformed_error(name)
        try:
            if name in _READERS:
                return _READERS[name](fields["value"])
            if name in _COLLECTIONS:
                return _COLLECTIONS[name](self.read(fields["items"]))
            return self._read_object(name, fields)
        except (KeyError, TypeError, ValueError, ArithmeticError) as cause:
            raise _malformed_error(name) from cause

    def _read_object(self, name: str, fields: dict[str, Any]) -> Any:
        kind = class_named(name) if self._only is None or name in self._only else None
        if kind is None:
            message = f"the other side sent a value of the type {name[:100]!r}"
            # A request that has a value which no call takes is wrong, whatever sent it.
            error = FormatError if self._only is None else InvalidInputError
            raise error(message, hint=_SAME_RELEASE)
        if not dataclasses.is_dataclass(kind):
            return kind(fields["value"])
        # A newer release may have added fields.
        known = {field: self.read(fields[field]) for field in _fields(kind) if field in fields}
        if self._only is not None:
            _require_types(kind, known)
        return kind(**known)


def _require_types(kind: type[Any], fields: Mapping[str, object]) -> None:
    """Refuse fields that are not of the types that a dataclass declares."""
    for name, type_ in _field_types(kind).items():  # type: ignore[arg-type]  # classes have hashes
        if name in fields and not _is_of(fields[name], type_):
            message = f"{name} cannot be {str(fields[name])[:100]!r}"
            raise TypeError(message)


@cache
def _field_types(kind: type[Any]) -> Mapping[str, Any]:
    return get_type_hints(kind)


def _is_of(value: object, type_: Any) -> bool:
    """Whether a value is of a type, which may be a union or a tuple.

    >>> _is_of((("a", "b"),), tuple[tuple[str, str], ...]), _is_of((1,), tuple[str, ...])
    (True, False)
    """
    of = get_args(type_)
    if get_origin(type_) is tuple and isinstance(value, tuple):
        if of[-1] is Ellipsis:
            return all(_is_of(item, of[0]) for item in value)
        return len(of) == len(value) and all(map(_is_of, value, of))
    if of:
        return any(_is_of(value, each) for each in of)
    return isinstance(value, type_)


_READERS: Final[Mapping[str, Callable[[Any], object]]] = {
    "float": float,
    "bytes": lambda text: b64decode(text, validate=True),
    "datetime": datetime.fromisoformat,
    "date": date.fromisoformat,
    "timedelta": lambda count: count * _MICROSECOND,
    "decimal": Decimal,
}
_COLLECTIONS: Final[Mapping[str, Callable[[list[Any]], object]]] = {
    "tuple": tuple,
    "frozenset": frozenset,
    "dict": dict,
    "mapping": lambda items: MappingProxyType(dict(items)),
}


def _malformed_error(name: object) -> InvalidInputError:
    message = f"the document has a value that is not a valid {str(name)[:100]!r}"
    return InvalidInputError(message, hint=_SAME_RELEASE)
