"""Every pair of property types that converts: values with their results, and values that fail."""

import math
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any, Final

EVERY_TYPE: Final = (
    *("String", "Bool", "I32", "I64", "U32", "U64", "F32", "F64", "Date", "DateTime"),
    *("enum(red, green)", "enum(1, 2)", "[I32]", "[String]", "Vector(2)", "Blob"),
)

NOON: Final = datetime(2024, 2, 29, 12, 30, tzinfo=UTC)
MIDNIGHT: Final = datetime(2024, 2, 29, tzinfo=UTC)
DAY: Final = date(2024, 2, 29)
BIG: Final = 2**53 + 1


@dataclass(frozen=True)
class Pair:
    """Two types: values of the first, and what each is in the second.

    Attributes:
        fails: Values that have no counterpart; a conversion of which none fails needs no request.
        stays: Whether the stored values stay, so that failures are those of a rule.
    """

    before: str
    after: str
    values: dict[Any, Any]
    fails: tuple[Any, ...] = ()
    stays: bool = False
    requested: bool = True


def _widening(before: str, after: str, values: dict[Any, Any]) -> Pair:
    return Pair(before, after, values, requested=False)


def _restriction(before: str, after: str, values: dict[Any, Any], fails: tuple[Any, ...]) -> Pair:
    return Pair(before, after, values, fails, stays=True, requested=False)


_TEXTS: Final = (
    Pair("String", "Bool", {"true": True, "false": False}, ("True", "1", "")),
    Pair("String", "I32", {"7": 7, "-2147483648": -(2**31)}, ("2147483648", "1.5", " 7", "x")),
    Pair("String", "I64", {"9223372036854775807": 2**63 - 1}, ("9223372036854775808", "")),
    Pair("String", "U32", {"4294967295": 2**32 - 1}, ("-1", "4294967296")),
    Pair("String", "U64", {"18446744073709551615": 2**64 - 1, "1e3": 1000}, ("-1", "1e-3")),
    Pair("String", "F32", {"1.5": 1.5, "-Infinity": -math.inf}, ("1e39", "one")),
    Pair("String", "F64", {"0.1": 0.1, "1e300": 1e300}, ("1,5", "one")),
    Pair("String", "Date", {"2024-02-29": DAY}, ("2023-02-29", "29.02.2024")),
    Pair(
        "String",
        "DateTime",
        {"2024-02-29T14:30:00+02:00": NOON, "2024-02-29T12:30:00": NOON},
        ("2024-02-29T25:00:00Z", "noon"),
    ),
    _restriction("String", "enum(red, green)", {"red": "red", "green": "green"}, ("blue", "Red")),
    _restriction("String", "enum(1, 2)", {"1": "1", "2": "2"}, ("3", "01")),
)
_TRUTHS: Final = (
    _widening("Bool", "String", {True: "true", False: "false"}),
    *(Pair("Bool", number, {True: 1, False: 0}) for number in ("I32", "I64", "U32", "U64")),
    *(Pair("Bool", number, {True: 1.0, False: 0.0}) for number in ("F32", "F64")),
    Pair("Bool", "enum(red, green)", {}, (True, False)),
    Pair("Bool", "enum(1, 2)", {}, (True, False)),
)
_WHOLE: Final = (
    _widening("I32", "String", {-7: "-7", 0: "0"}),
    Pair("I32", "Bool", {1: True, 0: False}, (2, -1)),
    _widening("I32", "I64", {2**31 - 1: 2**31 - 1, -(2**31): -(2**31)}),
    Pair("I32", "U32", {0: 0, 2**31 - 1: 2**31 - 1}, (-1,)),
    Pair("I32", "U64", {0: 0, 2**31 - 1: 2**31 - 1}, (-1,)),
    Pair("I32", "F32", {2**24: 16777216.0, -3: -3.0}, (2**24 + 1,)),
    Pair("I32", "F64", {2**31 - 1: 2147483647.0, -3: -3.0}),
    Pair("I32", "enum(1, 2)", {1: "1", 2: "2"}, (3,)),
    _widening("I64", "String", {-(2**63): "-9223372036854775808"}),
    Pair("I64", "Bool", {1: True, 0: False}, (2**40,)),
    Pair("I64", "I32", {2**31 - 1: 2**31 - 1}, (2**31, -(2**31) - 1)),
    Pair("I64", "U32", {2**32 - 1: 2**32 - 1}, (2**32, -1)),
    Pair("I64", "U64", {2**63 - 1: 2**63 - 1}, (-1,)),
    Pair("I64", "F32", {2**62: 4611686018427387904.0}, (2**24 + 1, BIG)),
    Pair("I64", "F64", {2**53: 9007199254740992.0, BIG + 1: 9007199254740994.0}, (BIG, -BIG)),
    Pair("I64", "enum(1, 2)", {2: "2"}, (0,)),
    _widening("U32", "String", {2**32 - 1: "4294967295"}),
    Pair("U32", "Bool", {1: True, 0: False}, (7,)),
    Pair("U32", "I32", {2**31 - 1: 2**31 - 1}, (2**31,)),
    _widening("U32", "I64", {2**32 - 1: 2**32 - 1}),
    _widening("U32", "U64", {2**32 - 1: 2**32 - 1}),
    Pair("U32", "F32", {2**31: 2147483648.0}, (2**24 + 1,)),
    Pair("U32", "F64", {2**32 - 1: 4294967295.0}),
    Pair("U32", "enum(1, 2)", {1: "1"}, (11,)),
    _widening("U64", "String", {2**64 - 1: "18446744073709551615"}),
    Pair("U64", "Bool", {1: True, 0: False}, (2**63,)),
    Pair("U64", "I32", {7: 7}, (2**31, 2**64 - 1)),
    Pair("U64", "I64", {2**63 - 1: 2**63 - 1}, (2**63,)),
    Pair("U64", "U32", {2**32 - 1: 2**32 - 1}, (2**32,)),
    Pair("U64", "F32", {2**63: 9223372036854775808.0}, (2**64 - 1,)),
    Pair("U64", "F64", {2**63: 9223372036854775808.0}, (2**64 - 1, BIG)),
    Pair("U64", "enum(1, 2)", {1: "1"}, (10,)),
)
_FLOATS: Final = (
    _widening("F32", "String", {1.5: "1.5", -2.0: "-2", math.inf: "Infinity"}),
    Pair("F32", "Bool", {1.0: True, 0.0: False}, (0.5,)),
    Pair("F32", "I32", {-3.0: -3}, (0.5, 2147483648.0, math.nan)),
    Pair("F32", "I64", {2.0**62: 2**62}, (2.0**63, math.inf)),
    Pair("F32", "U32", {3.0: 3}, (-1.0, 2.0**32)),
    Pair("F32", "U64", {2.0**63: 2**63}, (-1.0, 2.0**64)),
    _widening("F32", "F64", {1.5: 1.5, -math.inf: -math.inf}),
    Pair("F32", "enum(1, 2)", {2.0: "2"}, (2.5,)),
    _widening("F64", "String", {0.1: "0.1", 3.0: "3", -math.inf: "-Infinity"}),
    Pair("F64", "Bool", {1.0: True, 0.0: False}, (0.5, math.nan)),
    Pair("F64", "I32", {-3.0: -3}, (0.5, 2147483648.0)),
    Pair("F64", "I64", {-(2.0**63): -(2**63)}, (2.0**63, 1e300)),
    Pair("F64", "U32", {3.0: 3}, (-1.0, 0.1)),
    Pair("F64", "U64", {2.0**63: 2**63}, (-1.0, 2.0**64)),
    Pair("F64", "F32", {0.5: 0.5, math.inf: math.inf}, (0.1, 1e39)),
    Pair("F64", "enum(1, 2)", {1.0: "1"}, (1.5,)),
)
_TIMES: Final = (
    Pair("Date", "String", {DAY: "2024-02-29"}),
    Pair("Date", "DateTime", {DAY: MIDNIGHT}),
    Pair("DateTime", "String", {NOON: "2024-02-29T12:30:00Z"}),
    Pair("DateTime", "Date", {MIDNIGHT: DAY}, (NOON,)),
)
_ENUMS: Final = (
    Pair("enum(red, green)", "String", {"red": "red"}, requested=False),
    _restriction("enum(red, green)", "enum(1, 2)", {}, ("red", "green")),
    Pair("enum(1, 2)", "String", {"1": "1"}, requested=False),
    _restriction("enum(1, 2)", "enum(red, green)", {}, ("1", "2")),
    *(Pair("enum(1, 2)", number, {"1": 1, "2": 2}) for number in ("I32", "I64", "U32", "U64")),
    *(Pair("enum(1, 2)", number, {"1": 1.0, "2": 2.0}) for number in ("F32", "F64")),
    Pair("enum(1, 2)", "Bool", {}, ("1", "2")),
    Pair("enum(1, 2)", "Date", {}, ("1",)),
    Pair("enum(1, 2)", "DateTime", {}, ("2",)),
    *(
        Pair("enum(red, green)", other, {}, ("red", "green"))
        for other in ("Bool", "I32", "I64", "U32", "U64", "F32", "F64", "Date", "DateTime")
    ),
)
_NOT_IN_ENUMS: Final = tuple(
    Pair(before, after, {}, (value,))
    for before, value in (
        *(("I32", 1), ("I64", 1), ("U32", 1), ("U64", 1), ("F32", 1.0), ("F64", 1.0)),
        *(("Date", DAY), ("DateTime", NOON)),
    )
    for after in ("enum(red, green)", "enum(1, 2)")
    if after == "enum(red, green)" or before in ("Date", "DateTime")
)
PAIRS: Final = (*_TEXTS, *_TRUTHS, *_WHOLE, *_FLOATS, *_TIMES, *_ENUMS, *_NOT_IN_ENUMS)
"""Every pair of `EVERY_TYPE` that converts while there are rows; the others are refused."""
