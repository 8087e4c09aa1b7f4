"""Values of one property type as values of another: exactly, or as no value."""

import math
from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
import pytest

from omnigraph.changes.casts import cast_exactly, is_total
from omnigraph.model.types import EnumType, ListType, PropertyType, Scalar, VectorType
from omnigraph.schema.arrow import value_field

NEW_YEAR = datetime(2024, 1, 1, tzinfo=UTC)

# fmt: off
CASES: list[tuple[PropertyType, PropertyType, list[Any], list[Any]]] = [
    (Scalar.I32, Scalar.I64, [-(2**31), 2**31 - 1], [-(2**31), 2**31 - 1]),
    (Scalar.I64, Scalar.I32, [2**31 - 1, 2**31, -(2**31) - 1], [2**31 - 1, None, None]),
    (Scalar.U32, Scalar.I32, [2**31, 7], [None, 7]),
    (Scalar.I64, Scalar.U64, [-1, 2**63 - 1], [None, 2**63 - 1]),
    (Scalar.U64, Scalar.I64, [2**63, 1], [None, 1]),
    (Scalar.I64, Scalar.F64, [2**53, 2**53 + 1, 2**62], [2.0**53, None, 2.0**62]),
    (Scalar.I32, Scalar.F32, [2**24, 2**24 + 1], [2.0**24, None]),
    (Scalar.F32, Scalar.F64, [0.5, math.inf], [0.5, math.inf]),
    (Scalar.F64, Scalar.F32, [0.5, 0.1, 1e300, -math.inf], [0.5, None, None, -math.inf]),
    (Scalar.F64, Scalar.I32, [2.0, 2.5, math.inf, 2.0**31, -0.0], [2, None, None, None, 0]),
    (Scalar.I64, Scalar.STRING, [-7, 2**62], ["-7", str(2**62)]),
    (Scalar.F64, Scalar.STRING, [0.1, 3.0, -0.0, 1e300, math.inf, -math.inf],
     ["0.1", "3", "0", "1e+300", "Infinity", "-Infinity"]),
    (Scalar.F32, Scalar.STRING, [0.1], ["0.1"]),
    (Scalar.BOOL, Scalar.STRING, [True, False], ["true", "false"]),
    (Scalar.DATE, Scalar.STRING, [date(2024, 2, 29), date(1, 1, 1)], ["2024-02-29", "0001-01-01"]),
    (Scalar.DATETIME, Scalar.STRING, [NEW_YEAR], ["2024-01-01T00:00:00Z"]),
    (Scalar.STRING, Scalar.I32, ["7", "-7", "+7", "7.0", "", "\u0661", str(2**31)],
     [7, -7, None, None, None, None, None]),
    (Scalar.STRING, Scalar.F64, ["0.1", "1e3", "1e999", "Infinity", "x"],
     [0.1, 1000.0, None, math.inf, None]),
    (Scalar.STRING, Scalar.BOOL, ["true", "True", "1"], [True, None, None]),
    (Scalar.STRING, Scalar.DATE, ["2024-02-29", "2023-02-29"], [date(2024, 2, 29), None]),
    (Scalar.BOOL, Scalar.I32, [True, False], [1, 0]),
    (Scalar.I32, Scalar.BOOL, [1, 0, 2], [True, False, None]),
    (Scalar.DATE, Scalar.DATETIME, [date(2024, 1, 1)], [NEW_YEAR]),
    (Scalar.DATETIME, Scalar.DATE, [NEW_YEAR, NEW_YEAR.replace(hour=1)], [date(2024, 1, 1), None]),
    (Scalar.DATE, Scalar.I32, [date(2024, 1, 1)], [None]),
    (Scalar.I32, EnumType(("1", "2")), [1], ["1"]),
    (EnumType(("1", "x")), Scalar.I32, ["1", "x"], [1, None]),
    (ListType(Scalar.I32), ListType(Scalar.I64), [[1], []], [None, None]),
    (VectorType(2), VectorType(3), [[1.0, 2.0]], [None]),
]
# fmt: on


def kind(type_: PropertyType) -> pa.DataType:
    return value_field("", type_, nullable=True).type


@pytest.mark.parametrize(
    ("source", "wanted", "values", "expected"), CASES, ids=[f"{s} {w}" for s, w, *_ in CASES]
)
def test_values_convert_exactly_or_not_at_all(source, wanted, values, expected):
    stored = pa.chunked_array([pa.array(values, kind(source)), pa.array([None], kind(source))])
    converted = cast_exactly(stored, source, wanted, kind(wanted))
    assert converted.type == kind(wanted)
    assert converted.to_pylist() == [*expected, None]
    if is_total(source, wanted):
        assert None not in expected
    elif isinstance(source, Scalar) and isinstance(wanted, Scalar):
        assert None in expected


def test_values_that_are_not_numbers_convert_too():
    stored = pa.chunked_array([pa.array([math.nan])])
    (text,) = cast_exactly(stored, Scalar.F64, Scalar.STRING, pa.utf8()).to_pylist()
    (number,) = cast_exactly(stored, Scalar.F64, Scalar.F32, pa.float32()).to_pylist()
    assert text == "NaN"
    assert math.isnan(number)
