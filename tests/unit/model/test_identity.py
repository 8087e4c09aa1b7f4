"""The id of a row is the canonical spelling of its key."""

import json
import math
import struct
from datetime import UTC, date, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.errors import InvalidInputError
from omnigraph.model.identity import format_member, identity_of
from omnigraph.model.types import EnumType, Scalar

PARIS = timezone(timedelta(hours=1))

# fmt: off
SPELLINGS = [
    (Scalar.STRING,   "Ada",                                        "Ada"),
    (Scalar.STRING,   "",                                           ""),
    (Scalar.STRING,   ' "[é😀]\n%_ ',                               ' "[é😀]\n%_ '),
    (EnumType(("a-b",)), "a-b",                                     "a-b"),
    (Scalar.BOOL,     True,                                         "true"),
    (Scalar.BOOL,     False,                                        "false"),
    (Scalar.I32,      -2147483648,                                  "-2147483648"),
    (Scalar.I64,      9223372036854775807,                          "9223372036854775807"),
    (Scalar.U64,      18446744073709551615,                         "18446744073709551615"),
    (Scalar.DATE,     date(2024, 2, 29),                            "2024-02-29"),
    (Scalar.DATE,     date(1, 1, 1),                                "0001-01-01"),
    (Scalar.DATETIME, datetime(2024, 1, 1, tzinfo=UTC),             "2024-01-01T00:00:00Z"),
    (Scalar.DATETIME, datetime(2024, 1, 1, 0, 0, 0, 5, tzinfo=UTC), "2024-01-01T00:00:00.000005Z"),
    (Scalar.DATETIME, datetime(2024, 1, 1, 0, 30, tzinfo=PARIS),    "2023-12-31T23:30:00Z"),
    (Scalar.F64,      0.1,                                          "0.1"),
    (Scalar.F64,      -0.0,                                         "0"),
    (Scalar.F64,      0.0,                                          "0"),
    (Scalar.F64,      -2.5,                                         "-2.5"),
    (Scalar.F64,      5e-324,                                       "5e-324"),
    (Scalar.F64,      1.7976931348623157e308,                       "1.7976931348623157e+308"),
    (Scalar.F64,      3,                                            "3"),
    (Scalar.F32,      0.10000000149011612,                          "0.1"),
    (Scalar.F32,      -0.0,                                         "0"),
    (Scalar.F32,      3.4028234663852886e38,                        "3.4028235e+38"),
    (Scalar.F32,      1.401298464324817e-45,                        "1e-45"),
    (Scalar.F32,      16777216.0,                                   "16777216"),
]
# fmt: on


@pytest.mark.parametrize(("type_", "value", "spelling"), SPELLINGS)
def test_a_value_has_one_spelling(type_, value, spelling):
    assert format_member(type_, value) == spelling
    assert identity_of([type_], [value]) == spelling


def test_several_members_are_a_json_array_in_declared_order():
    found = identity_of([Scalar.STRING, Scalar.I64, Scalar.F64], ['a"b', 1, -0.0])

    assert found == '["a\\"b","1","0"]'
    assert json.loads(found) == ['a"b', "1", "0"]


def test_members_cannot_run_into_one_another():
    pair = [Scalar.STRING, Scalar.STRING]

    assert identity_of(pair, ['a","b', "c"]) != identity_of(pair, ["a", 'b","c'])


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("type_", [Scalar.F32, Scalar.F64])
def test_a_float_that_is_not_finite_is_refused(type_, value):
    with pytest.raises(InvalidInputError, match="cannot be part of a key"):
        identity_of([type_], [value])


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_the_spelling_of_a_float_reads_back_as_it(value):
    assert float(format_member(Scalar.F64, value)) == value


@given(st.floats(allow_nan=False, allow_infinity=False, width=32))
def test_the_spelling_of_a_short_float_reads_back_as_it(value):
    spelling = format_member(Scalar.F32, value)

    assert struct.unpack("f", struct.pack("f", float(spelling))) == (value,)
    assert len(spelling) <= len(format_member(Scalar.F64, value))
