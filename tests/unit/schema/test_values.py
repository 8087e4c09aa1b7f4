from __future__ import annotations

import struct
from datetime import UTC, date, datetime, timedelta, timezone

import pytest

from omnigraph.model.types import BlobType, EnumType, ListType, Scalar, VectorType
from omnigraph.schema.values import Misfit, fit

NOON = datetime(2024, 2, 29, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("type_", "value", "fitted"),
    [
        (Scalar.I32, 2**31 - 1, 2**31 - 1),
        (Scalar.U64, 2**64 - 1, 2**64 - 1),
        (Scalar.F64, 2, 2.0),
        (Scalar.F32, 0.1, struct.unpack("f", struct.pack("f", 0.1))[0]),
        (Scalar.BOOL, False, False),
        (Scalar.DATE, "2024-02-29", date(2024, 2, 29)),
        (Scalar.DATETIME, "2024-02-29T12:00:00Z", NOON),
        (Scalar.DATETIME, "2024-02-29 14:00+02:00", NOON),
        (Scalar.DATETIME, "2024-02-29T12:00:00", NOON),
        (Scalar.DATETIME, "2024-02-29T12:00:00.123456Z", NOON.replace(microsecond=123456)),
        (Scalar.DATETIME, "2024-02-29", NOON.replace(hour=0)),
        (Scalar.DATETIME, datetime(2024, 2, 29, 14, tzinfo=timezone(timedelta(hours=2))), NOON),
        (EnumType(("a", "b")), "b", "b"),
    ],
)
def test_a_value_that_fits_takes_the_type(type_, value, fitted):
    result = fit(type_, value)
    assert result == fitted
    assert type(result) is type(fitted)


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        (Scalar.I32, 2**31),
        (Scalar.U32, -1),
        (Scalar.I64, True),
        (Scalar.I64, 1.0),
        (Scalar.F64, float("inf")),
        (Scalar.F64, 10**400),
        (Scalar.F32, 1e39),
        (Scalar.F32, True),
        (Scalar.STRING, 1),
        (Scalar.BOOL, 1),
        (Scalar.DATE, NOON),
        (Scalar.DATE, "2024-2-29"),
        (Scalar.DATE, "20240229"),
        (Scalar.DATE, "2023-02-29"),
        (Scalar.DATETIME, date(2024, 2, 29)),
        (Scalar.DATETIME, "2024-02-29T12:00:00.1234567Z"),
        (Scalar.DATETIME, "2024-02-29T25:00:00Z"),
        (Scalar.DATETIME, "0001-01-01T00:00:00+10:00"),
        (EnumType(("a",)), "A"),
        (EnumType(("1",)), 1),
        (ListType(Scalar.STRING), "a"),
        (VectorType(1), 1.0),
        (BlobType(), "a"),
    ],
)
def test_a_value_that_does_not_fit_is_told_why(type_, value):
    result = fit(type_, value)
    assert isinstance(result, Misfit)
    assert result.reason


def test_zero_has_one_spelling():
    assert str(fit(Scalar.F64, -0.0)) == "0.0"
