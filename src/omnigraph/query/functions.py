"""Functions of the language, under the names that queries call them by."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class ValueFunction(StrEnum):
    """A function of the values of one row; null if one of them is, unless it says otherwise.

    Whole numbers are computed without a bound, so that comparing and sorting by them is exact; one
    that is returned or assigned has to fit its type. Floats are those of IEEE 754, 64 bits.

    ADD, SUBTRACT, MULTIPLY: Of numbers; if one is a float, of the nearest floats. ADD and SUBTRACT
    also of a Date or DateTime and a number of days, of 24 hours each, null beyond the years 1 to
    9999; SUBTRACT of two Dates is the number of days between them, and of two DateTimes their
    microseconds as a float, divided by those of a day. DIVIDE: Of the nearest floats; null by zero.
    REMAINDER: Of whole numbers, with the sign of the first; null by zero. ROUND: To the nearest
    whole number, half away from zero. FLOOR, CEIL: Downwards and upwards. LENGTH: In characters, or
    items of a list. LOWER, UPPER: Each character that has a counterpart of one character, whatever
    is beside it. TRIM: Without spaces, tabs and line ends around it. SUBSTRING: From a character
    on, the first being 1, and so many; null before the first, or for a negative number. REPLACE:
    Every occurrence; of no text, none. YEAR, MONTH, DAY: Of a date, or of an instant in UTC.
    COALESCE: The first not null.
    """

    ADD = "+"
    SUBTRACT = "-"
    MULTIPLY = "*"
    DIVIDE = "/"
    REMAINDER = "%"
    ABS = "abs"
    ROUND = "round"
    FLOOR = "floor"
    CEIL = "ceil"
    LENGTH = "length"
    LOWER = "lower"
    UPPER = "upper"
    TRIM = "trim"
    SUBSTRING = "substring"
    CONCAT = "concat"
    REPLACE = "replace"
    YEAR = "year"
    MONTH = "month"
    DAY = "day"
    COALESCE = "coalesce"


CALLED: Final = tuple(function for function in ValueFunction if function.isalpha())
"""Those that are called by a name; the others are signs between values."""


class AggregateFunction(StrEnum):
    """A function over the non-null values of a group.

    COUNT is their number, an I64. The others are null for no values. SUM is I64, U64 or F64, as its
    argument is signed, unsigned or a float; a sum that does not fit is an error, never a wrong
    number. AVG is F64. MIN and MAX have the type of their argument. COLLECT is the list of them,
    ascending, and of no values an empty one; of an enum, a list of texts.
    """

    COUNT = "count"
    SUM = "sum"
    AVG = "avg"
    MIN = "min"
    MAX = "max"
    COLLECT = "collect"
