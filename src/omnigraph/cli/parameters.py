"""Parameters from the command line: one JSON object, and `name=value` pairs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final, NoReturn

from omnigraph.errors import InvalidParameterError

_TEXT_TYPES: Final = frozenset({"String", "Date", "DateTime", "I64", "U64", "Blob"})
"""The types whose values a query takes as text, so that a pair's value is passed on unchanged."""


def read_parameters(
    document: str | None, pairs: Iterable[str], *, types: Mapping[str, str]
) -> dict[str, object]:
    """The parameters of `--params` and `--param` together.

    A pair's value is the text after `=` where the parameter is declared as a String, a Date, a
    DateTime, an I64, a U64 or a Blob; anything else is read as JSON. What is not JSON stays text,
    which the query then refuses. So a String is never quoted, and null is given by `--params`, or
    by leaving the parameter out.

    >>> read_parameters('{"a": 1}', ["b=2", "c=2", "d=[1, 2]"], types={"b": "String", "c": "I32"})
    {'a': 1, 'b': '2', 'c': 2, 'd': [1, 2]}

    Args:
        types: The declared type of each parameter, as written in the query.
    """
    values = {} if document is None else _document(document)
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals or not name:
            message = f"{pair[:100]!r} is not a parameter"
            raise InvalidParameterError(message, hint="write --param name=value", name=pair[:100])
        if name in values:
            _refuse_second(name)
        values[name] = text if types.get(name) in _TEXT_TYPES else _value(text)
    return values


def declared_types(text: str, query_name: str | None) -> dict[str, str]:
    """The type of each parameter of a query, as written; empty if there is no such query.

    Faults of the text are left to the compiler.
    """
    from omnigraph.lang.source import Source
    from omnigraph.query.ast import NamedType
    from omnigraph.query.parser import read

    queries = read(Source("query.gq", text)).queries
    wanted = [query for query in queries if query_name is None or query.name.text == query_name]
    if len(wanted) != 1:
        return {}
    return {
        parameter.variable.name: parameter.type.name.text
        if isinstance(parameter.type, NamedType)
        else "list"
        for parameter in wanted[0].parameters
    }


def _document(text: str) -> dict[str, object]:
    try:
        values = _read_json(text)
    except InvalidParameterError:
        raise
    except (ValueError, RecursionError) as cause:
        message = f"--params is not JSON: {cause}"
        hint = """write an object, in single quotes for the shell: --params '{"name": "Ada"}'"""
        raise InvalidParameterError(message, hint=hint, name="params") from cause
    if not isinstance(values, dict):
        message = f"--params is not an object: {text[:100]}"
        raise InvalidParameterError(message, hint='write {"name": value}', name="params")
    return values


def _value(text: str) -> object:
    try:
        return _read_json(text)
    except (ValueError, RecursionError):
        return text


def _read_json(text: str) -> object:
    value: object = json.loads(
        text, object_pairs_hook=_without_repeats, parse_constant=_refuse_constant
    )
    return value


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, value in pairs:
        if name in values:
            _refuse_second(name)
        values[name] = value
    return values


def _refuse_second(name: str) -> NoReturn:
    message = f"the parameter {name[:100]} is given twice"
    raise InvalidParameterError(message, hint="give it once", name=name[:100])


def _refuse_constant(name: str) -> NoReturn:
    message = f"{name} is not JSON"
    raise ValueError(message)
