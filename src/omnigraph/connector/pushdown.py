"""Filter pushdown: Spark's filters as filters of Lance that select exactly the same rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, Final, Self

from omnigraph.limits import KEYS_PER_LOOKUP_MAX
from omnigraph.model.types import INTEGER_BOUNDS, EnumType, PropertyType, Scalar
from omnigraph.storage import filters

# Spark 4.0 has none.
if TYPE_CHECKING:
    from pyspark.sql.datasource import Filter

_NEW_CALENDAR_YEAR: Final = 1600
"""Days from 1582-10-15 on are the same in both calendars, and this year is well after it."""

_OPERATORS: Final[Mapping[str, str]] = {
    "EqualTo": "=",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
}


@dataclass(frozen=True, slots=True)
class Condition:
    """A filter of Spark, under the name that it has there.

    Attributes:
        path: The column that is tested.
        negated: For `Not`, what it negates.
    """

    kind: str
    path: tuple[str, ...] = ()
    value: Any = None
    negated: Condition | None = None

    @classmethod
    def of(cls, pushed: Filter) -> Self:
        """The condition that Spark pushes down."""
        child = getattr(pushed, "child", None)
        return cls(
            type(pushed).__name__,
            getattr(pushed, "attribute", ()),
            getattr(pushed, "value", None),
            None if child is None else cls.of(child),
        )


def filter_text(condition: Condition, types: Mapping[str, PropertyType]) -> str | None:
    """The filter in Lance's syntax; None where Lance would not select the same rows as Spark.

    Args:
        types: Properties by name; other columns are ids.
    """
    if condition.negated is not None:
        # Null-safe comparison is never null, so its negation lets nulls pass.
        if condition.negated.kind == "EqualNullSafe":
            return None
        text = filter_text(condition.negated, types)
        return None if text is None else filters.negate(text)
    if len(condition.path) != 1:
        return None
    [name] = condition.path
    type_ = types.get(name, Scalar.STRING)
    return _column_filter(condition, name, type_) if _is_exact(type_) else None


def _column_filter(condition: Condition, name: str, type_: PropertyType) -> str | None:
    match condition:
        case Condition(kind="IsNull"):
            return filters.is_null(name)
        case Condition(kind="IsNotNull"):
            return filters.negate(filters.is_null(name))
        case Condition(kind="EqualNullSafe", value=None):
            return filters.is_null(name)
        case Condition(kind="In", value=values):
            # No row passes by a null among them.
            keys = [value for value in values if value is not None]
            if len(keys) > KEYS_PER_LOOKUP_MAX or not all(_fits(key, type_) for key in keys):
                return None
            return filters.is_one_of(name, keys)
        case Condition(kind="StringStartsWith", value=text):
            return filters.starts_with(name, text) if _fits(text, type_) else None
        case Condition(kind="EqualNullSafe", value=value):
            return filters.compare(name, "=", value) if _fits(value, type_) else None
        case Condition(kind=kind, value=value) if (operator := _OPERATORS.get(kind)) is not None:
            return filters.compare(name, operator, value) if _fits(value, type_) else None
        case _:
            return None


def _is_exact(type_: PropertyType) -> bool:
    match type_:
        case Scalar.STRING | Scalar.BOOL | Scalar.I32 | Scalar.I64 | Scalar.DATE | Scalar.DATETIME:
            return True
        case EnumType():
            return True
        case _:
            return False


def _fits(value: Any, type_: PropertyType) -> bool:
    """Whether a value is of the column's own type, so that no engine converts it."""
    match type_:
        case Scalar.STRING | EnumType():
            return isinstance(value, str)
        case Scalar.BOOL:
            return isinstance(value, bool)
        case Scalar.I32 | Scalar.I64:
            low, high = INTEGER_BOUNDS[type_]
            is_whole = isinstance(value, int) and not isinstance(value, bool)
            return is_whole and low <= value <= high
        case Scalar.DATE:
            return (
                isinstance(value, date)
                and not isinstance(value, datetime)
                and _is_new_calendar(value)
            )
        case Scalar.DATETIME:
            return isinstance(value, datetime) and _is_new_calendar(value)
        case _:
            return False


def _is_new_calendar(value: date) -> bool:
    """Whether Spark passed the day as it was written: it shifts days of the old calendar."""
    return value.year >= _NEW_CALENDAR_YEAR
