"""Exact casts as SQL of DuckDB, whose own casts round, skip white space and ignore offsets.

A value that does not convert exactly fails: its text with a complaint is cast to the target, since
`TRY` does not take DuckDB's `error()`. `complaint_in` finds the complaint in the failure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum
from typing import Final

from sqlglot import exp

from omnigraph.conversion.texts import FLOAT_TEXT
from omnigraph.model.types import Scalar
from omnigraph.relational.trees import fill_in


class Kind(Enum):
    """What values an expression has; whole numbers of all widths are one kind."""

    NULL = "null"
    TEXT = "text"
    TRUTH = "a truth value"
    WHOLE = "a whole number"
    FLOAT = "a float"
    DATE = "a date"
    INSTANT = "an instant"


_KINDS: Final[Mapping[str, Kind]] = {
    "NULL": Kind.NULL,
    "VARCHAR": Kind.TEXT,
    "BOOLEAN": Kind.TRUTH,
    "FLOAT": Kind.FLOAT,
    "DOUBLE": Kind.FLOAT,
    "DATE": Kind.DATE,
    "TIMESTAMP": Kind.INSTANT,
    **dict.fromkeys(("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT"), Kind.WHOLE),
    **dict.fromkeys(("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT"), Kind.WHOLE),
}

KIND_OF: Final[Mapping[Scalar, Kind]] = {
    Scalar.STRING: Kind.TEXT,
    Scalar.BOOL: Kind.TRUTH,
    **dict.fromkeys((Scalar.I32, Scalar.I64, Scalar.U32, Scalar.U64), Kind.WHOLE),
    Scalar.F32: Kind.FLOAT,
    Scalar.F64: Kind.FLOAT,
    Scalar.DATE: Kind.DATE,
    Scalar.DATETIME: Kind.INSTANT,
}

SQL_TYPES: Final[Mapping[Scalar, str]] = {
    Scalar.STRING: "VARCHAR",
    Scalar.BOOL: "BOOLEAN",
    Scalar.I32: "BIGINT",
    Scalar.I64: "BIGINT",
    Scalar.U32: "BIGINT",
    Scalar.U64: "HUGEINT",
    Scalar.F32: "DOUBLE",
    Scalar.F64: "DOUBLE",
    Scalar.DATE: "DATE",
    Scalar.DATETIME: "TIMESTAMP",
}
"""The types of columns in expressions: wide, so that a sum of 32 bits does not overflow."""

_NARROW: Final[Mapping[Scalar, str]] = {
    Scalar.I32: "INTEGER",
    Scalar.I64: "BIGINT",
    Scalar.U32: "UINTEGER",
    Scalar.U64: "UBIGINT",
    Scalar.F32: "FLOAT",
    Scalar.F64: "DOUBLE",
}

_COMPLAINT: Final = " is not of type "
_COMPLAINTS: Final = re.compile(rf"['\"](.*{_COMPLAINT}\w+)['\"]", re.DOTALL)
_OUTSIDE: Final = re.compile(r"Type \w+ with value (\S+) can't be cast .* destination type (\w+)")
_NOT_CONVERTED: Final = re.compile(r"Could not convert string '(.*)' to (\w+)", re.DOTALL)
_SOURCE: Final = " when casting from source column "
_NAMES: Final[Mapping[str, Scalar]] = {
    "INT32": Scalar.I32,
    "INT64": Scalar.I64,
    "UINT32": Scalar.U32,
    "UINT64": Scalar.U64,
    "FLOAT": Scalar.F32,
    "DOUBLE": Scalar.F64,
}
"""Our names of the types that errors of DuckDB name."""

_NUMBER: Final = r"-?[0-9]{1,400}(\.[0-9]{1,400})?([eE][+-]?[0-9]{1,9})?|NaN|-?Infinity"
_DAY: Final = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_TIME: Final = r"[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?(Z|[+-][0-9]{2}:[0-9]{2})?"
_INSTANT: Final = f"{_DAY}({_TIME})?"

_INSTANT_TEXT: Final = r"regexp_replace(strftime(x, '%Y-%m-%dT%H:%M:%S.%fZ'), '\.000000Z$', 'Z')"
_PLAIN: Final = "CAST(x AS {sql})"
_REFUSE: Final = "CAST(CAST(x AS VARCHAR) || '" + _COMPLAINT + "{name}' AS {sql})"
_NARROWED: Final = "CAST(CAST(x AS {narrow}) AS {sql})"
_TRUTH: Final = "CASE WHEN x = 0 THEN FALSE WHEN x = 1 THEN TRUE ELSE {refuse} END"

_CASTS: Final[Mapping[tuple[Kind, Kind], str]] = {
    (Kind.TEXT, Kind.TEXT): "x",
    (Kind.TRUTH, Kind.TEXT): _PLAIN,
    (Kind.WHOLE, Kind.TEXT): _PLAIN,
    (Kind.FLOAT, Kind.TEXT): FLOAT_TEXT,
    (Kind.DATE, Kind.TEXT): _PLAIN,
    (Kind.INSTANT, Kind.TEXT): _INSTANT_TEXT,
    (Kind.TRUTH, Kind.TRUTH): "x",
    (Kind.TEXT, Kind.TRUTH): (
        "CASE WHEN x = 'true' THEN TRUE WHEN x = 'false' THEN FALSE ELSE {refuse} END"
    ),
    (Kind.WHOLE, Kind.TRUTH): _TRUTH,
    (Kind.FLOAT, Kind.TRUTH): _TRUTH,
    (Kind.TEXT, Kind.WHOLE): (
        "CASE WHEN regexp_full_match(x, '-?[0-9]{{1,20}}') THEN " + _NARROWED + " ELSE {refuse} END"
    ),
    (Kind.TRUTH, Kind.WHOLE): _PLAIN,
    (Kind.WHOLE, Kind.WHOLE): _NARROWED,
    (Kind.FLOAT, Kind.WHOLE): "CASE WHEN x = floor(x) THEN " + _NARROWED + " ELSE {refuse} END",
    (Kind.TEXT, Kind.FLOAT): (
        "CASE WHEN regexp_full_match(x, '{number}') THEN " + _NARROWED + " ELSE {refuse} END"
    ),
    (Kind.TRUTH, Kind.FLOAT): _PLAIN,
    (Kind.WHOLE, Kind.FLOAT): (
        "CASE WHEN CAST(CAST(x AS {narrow}) AS HUGEINT) = x THEN "
        + _NARROWED
        + " ELSE {refuse} END"
    ),
    (Kind.FLOAT, Kind.FLOAT): _NARROWED,
    (Kind.DATE, Kind.DATE): "x",
    (Kind.TEXT, Kind.DATE): (
        "CASE WHEN regexp_full_match(x, '{day}') THEN " + _PLAIN + " ELSE {refuse} END"
    ),
    (Kind.INSTANT, Kind.DATE): (
        "CASE WHEN x = date_trunc('day', x) THEN " + _PLAIN + " ELSE {refuse} END"
    ),
    (Kind.INSTANT, Kind.INSTANT): "x",
    (Kind.DATE, Kind.INSTANT): _PLAIN,
    # By way of an instant with a zone: otherwise DuckDB ignores the offset of a text.
    (Kind.TEXT, Kind.INSTANT): (
        "CASE WHEN regexp_full_match(x, '{instant}') THEN"
        " CAST(CAST(x AS TIMESTAMPTZ) AS TIMESTAMP) ELSE {refuse} END"
    ),
}


def kind_of(sql_type: str) -> Kind | None:
    """The kind of values of a type of DuckDB; None for types that no property has."""
    return _KINDS.get(sql_type)


def cast_to(operand: exp.Expr, kind: Kind, target: Scalar) -> exp.Expr | None:
    """The operand as a value of a type; null stays null. None if there is no such cast.

    The value of a whole number is as wide as a column is in expressions, so that sums of it do not
    overflow.
    """
    parts = {
        "name": target,
        "sql": SQL_TYPES[target],
        "narrow": _NARROW.get(target, ""),
        "number": _NUMBER,
        "day": _DAY,
        "instant": _INSTANT,
    }
    if kind is Kind.NULL:
        template: str | None = _PLAIN
    else:
        template = _CASTS.get((kind, KIND_OF[target]))
    if template is None:
        return None
    refuse = _REFUSE.format_map(parts)
    text = template.format_map({**parts, "refuse": f"CASE WHEN NOT x IS NULL THEN {refuse} END"})
    return fill_in(text, operand)


def complaint_in(failure: str) -> str:
    """Why a value has no result, in our words where DuckDB's failure is a known one."""
    if failure.startswith("Division by zero"):
        return "division by zero"
    if complaint := _COMPLAINTS.search(failure):
        return complaint[1]
    if outside := _OUTSIDE.search(failure):
        return f"the number {outside[1]} does not fit in {_NAMES.get(outside[2], outside[2])}"
    if text := _NOT_CONVERTED.search(failure):
        return f"{text[1]}{_COMPLAINT}{_NAMES.get(text[2], text[2])}"
    return failure.partition(_SOURCE)[0]
