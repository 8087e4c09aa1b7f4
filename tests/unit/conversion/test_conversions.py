"""Every value of a column converts exactly, or its row is refused with a reason."""

from __future__ import annotations

import math
import random
import struct
from datetime import UTC, date, datetime
from typing import Final

import numpy as np
import pyarrow as pa
import pytest

from omnigraph.conversion.conversions import convert_values, explain_conversion, is_convertible
from omnigraph.conversion.texts import format_values
from omnigraph.model.identity import format_member
from omnigraph.model.types import EnumType, ListType, Scalar, VectorType
from omnigraph.schema.arrow import value_field

NAN, INF = math.nan, math.inf
NOON: Final = datetime(2024, 2, 29, 12, tzinfo=UTC)
LAST: Final = datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)


HALF: Final = datetime(1, 1, 1, 0, 0, 0, 500000, tzinfo=UTC)


class No:
    """What a value that is refused has instead of a result."""


# fmt: off
CASES: Final[dict[str, list[tuple[object, object]]]] = {
    "I32 I64": [(2**31 - 1, 2**31 - 1), (-(2**31), -(2**31)), (None, None)],
    "I32 U32": [(2**31 - 1, 2**31 - 1), (0, 0), (-1, No)],
    "I32 U64": [(2**31 - 1, 2**31 - 1), (-(2**31), No)],
    "I64 I32": [(2**31 - 1, 2**31 - 1), (2**31, No), (-(2**31), -(2**31)), (-(2**31) - 1, No)],
    "I64 U32": [(2**32 - 1, 2**32 - 1), (2**32, No), (-1, No)],
    "I64 U64": [(2**63 - 1, 2**63 - 1), (-1, No), (-(2**63), No)],
    "U32 I32": [(2**31 - 1, 2**31 - 1), (2**31, No)],
    "U32 U64": [(2**32 - 1, 2**32 - 1)],
    "U64 I64": [(2**63 - 1, 2**63 - 1), (2**63, No), (2**64 - 1, No)],
    "U64 U32": [(2**32 - 1, 2**32 - 1), (2**32, No)],
    "I32 F32": [(2**24, 2.0**24), (2**24 + 1, No), (-(2**31), -(2.0**31)), (2**31 - 1, No)],
    "I32 F64": [(2**31 - 1, 2147483647.0), (-(2**31), -2147483648.0)],
    "I64 F32": [(2**62, 2.0**62), (2**62 + 2**30, No)],
    "I64 F64": [(2**53, 2.0**53), (2**53 + 1, No), (2**53 + 2, 2.0**53 + 2),
                (-(2**53) - 1, No), (-(2**63), -(2.0**63)), (2**63 - 1, No)],
    "U64 F64": [(2**64 - 2**11, 18446744073709549568.0), (2**64 - 1, No), (2**63, 2.0**63)],
    "F32 F64": [(0.5, 0.5), (-0.0, 0.0), (NAN, NAN), (-INF, -INF)],
    "F64 F32": [(0.5, 0.5), (0.1, No), (-0.0, 0.0), (1e300, No), (NAN, NAN), (INF, INF),
                (2.0**-149, 2.0**-149), (2.0**-150, No)],
    "F32 I32": [(-(2.0**31), -(2**31)), (2.0**31, No), (-0.0, 0), (0.5, No)],
    "F64 I32": [(3.0, 3), (2.5, No), (2147483647.0, 2**31 - 1), (2147483648.0, No),
                (NAN, No), (INF, No)],
    "F64 I64": [(2.0**63, No), (-(2.0**63), -(2**63)), (2.0**63 - 1024, 2**63 - 1024)],
    "F64 U32": [(-1.0, No), (-0.0, 0), (4294967295.0, 2**32 - 1), (4294967296.0, No)],
    "F64 U64": [(2.0**64, No), (2.0**63, 2**63), (-0.5, No)],
    "Bool I32": [(True, 1), (False, 0), (None, None)],
    "Bool U64": [(True, 1), (False, 0)],
    "Bool F64": [(True, 1.0), (False, 0.0)],
    "Bool String": [(True, "true"), (False, "false")],
    "I32 Bool": [(0, False), (1, True), (2, No), (-1, No)],
    "F64 Bool": [(-0.0, False), (1.0, True), (0.5, No), (NAN, No)],
    "Date DateTime": [(date(2024, 2, 29), datetime(2024, 2, 29, tzinfo=UTC)),
                      (date(1, 1, 1), datetime(1, 1, 1, tzinfo=UTC)),
                      (date(9999, 12, 31), datetime(9999, 12, 31, tzinfo=UTC))],
    "DateTime Date": [(datetime(1, 1, 1, tzinfo=UTC), date(1, 1, 1)), (NOON, No), (LAST, No),
                      # A night on which clocks change elsewhere.
                      (datetime(2024, 3, 31, tzinfo=UTC), date(2024, 3, 31)),
                      (datetime(1969, 12, 31, tzinfo=UTC), date(1969, 12, 31)),
                      (datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC), No)],
    "I64 String": [(-(2**63), "-9223372036854775808"), (0, "0"), (None, None)],
    "U64 String": [(2**64 - 1, "18446744073709551615")],
    "F32 String": [(0.1, "0.1"), (-0.0, "0"), (3.0, "3"), (16777216.0, "16777216"), (NAN, "NaN"),
                   (1e-5, "1e-05"), (-INF, "-Infinity"), (None, None)],
    "F64 String": [(0.1, "0.1"), (-0.0, "0"), (3.0, "3"), (1e300, "1e+300"), (1e16, "1e+16"),
                   (1e15, "1000000000000000"), (NAN, "NaN"), (INF, "Infinity")],
    "Date String": [(date(2024, 2, 29), "2024-02-29"), (date(1, 1, 1), "0001-01-01")],
    "DateTime String": [(NOON, "2024-02-29T12:00:00Z"), (LAST, "9999-12-31T23:59:59.999999Z"),
                        (HALF, "0001-01-01T00:00:00.500000Z")],
    "String Bool": [("true", True), ("false", False), ("True", No), ("1", No), ("", No)],
    "String I32": [("7", 7), ("-0", 0), ("007", 7), ("3.0", 3), ("3.5", No), (" 7", No),
                   ("\u0661", No), ("2147483647", 2**31 - 1), ("2147483648", No),
                   ("NaN", No), ("", No)],
    "String U64": [("18446744073709551615", 2**64 - 1), ("18446744073709551616", No), ("-1", No)],
    "String F32": [("0.1", struct.unpack("f", struct.pack("f", 0.1))[0]), ("16777217", No),
                   ("NaN", NAN), ("-Infinity", -INF), ("nan", No)],
    "String F64": [("0.1", 0.1), ("1e3", 1000.0), ("9007199254740993", No), ("-0.0", 0.0),
                   ("x", No), ("1e999", No)],
    "String Date": [("2024-02-29", date(2024, 2, 29)), ("2023-02-29", No),
                    ("0001-01-01", date(1, 1, 1)), ("9999-12-31", date(9999, 12, 31)),
                    ("0000-01-01", No), ("2024-2-9", No)],
    "String DateTime": [("2024-02-29T12:00:00Z", NOON), ("2024-02-29 14:00:00+02:00", NOON),
                        ("2024-02-29", datetime(2024, 2, 29, tzinfo=UTC)), ("noon", No),
                        ("9999-12-31T23:59:59.999999Z", LAST), ("2023-02-29T00:00:00Z", No),
                        ("2024-02-29T12:00:00.0000001Z", No)],
}
# fmt: on


def arrow_type(type_: Scalar) -> pa.DataType:
    return value_field("", type_, nullable=True).type


def column(type_: Scalar, values: list[object]) -> pa.Array:
    return pa.array(values, arrow_type(type_))


@pytest.mark.parametrize("padding", [0, 100], ids=["alone", "among others"])
@pytest.mark.parametrize("name", CASES)
def test_a_column_converts_exactly(name, padding):
    source, target = map(Scalar, name.split())
    before = [value for value, _ in CASES[name]] + [None] * padding
    after = [value for _, value in CASES[name]] + [None] * padding

    # Of a longer array, so that places are those of the part.
    values = column(source, [None, *before]).slice(1)
    typed = convert_values(source, target, values)

    typed.values.validate(full=True)
    assert typed.values.type == arrow_type(target)
    assert typed.refused.tolist() == [place for place, value in enumerate(after) if value is No]
    results = [
        No if value is No else got
        for value, got in zip(after, typed.values.to_pylist(), strict=True)
    ]
    assert list(map(str, results)) == list(map(str, after))


@pytest.mark.parametrize(
    ("source", "target", "value", "reason"),
    [
        (Scalar.F64, Scalar.I32, 2.5, "2.5 is not of type I32"),
        (Scalar.I64, Scalar.I32, 2**31, "the number does not fit in I32"),
        (Scalar.I64, Scalar.F64, 2**53 + 1, "9007199254740993 is not exactly a number of type F64"),
        (Scalar.F64, Scalar.F32, 0.1, "0.1 is not exactly a number of type F32"),
        (Scalar.STRING, Scalar.I32, "x", "x is not of type I32"),
        (Scalar.DATETIME, Scalar.DATE, NOON, "2024-02-29 12:00:00+00:00 is not of type Date"),
        (Scalar.I32, Scalar.BOOL, 2, "2 is not of type Bool"),
    ],
)
def test_a_refusal_has_the_words_of_a_load(source, target, value, reason):
    assert explain_conversion(source, target, value).reason == reason


def test_every_pair_of_plain_types_converts_but_numbers_and_truths_to_dates():
    temporal = {Scalar.DATE, Scalar.DATETIME}
    for source in Scalar:
        for target in Scalar:
            kinds = {source in temporal, target in temporal}
            expected = source != target and (Scalar.STRING in (source, target) or len(kinds) == 1)
            assert is_convertible(source, target) == expected, (source, target)


def test_enums_convert_as_texts_and_what_is_no_plain_type_does_not_convert():
    colours = EnumType(("red", "blue"))
    assert is_convertible(colours, Scalar.I32)
    assert not is_convertible(Scalar.STRING, colours)
    assert not is_convertible(Scalar.I32, ListType(Scalar.I32))
    assert not is_convertible(VectorType(2), Scalar.STRING)


@pytest.mark.parametrize(
    ("type_", "letter", "bits"), [(Scalar.F32, "f", 32), (Scalar.F64, "d", 64)]
)
def test_the_text_of_a_float_is_that_of_an_id(type_, letter, bits):
    generator = random.Random(7)
    drawn = [generator.getrandbits(bits) for _ in range(2_000)]
    floats = [
        struct.unpack(letter, drawn_bits.to_bytes(bits // 8, "little"))[0] for drawn_bits in drawn
    ]
    floats += [
        float(np.float32(generator.uniform(-1, 1) * 10 ** (n % 24 - 6))) for n in range(2_000)
    ]
    floats = [value for value in floats if math.isfinite(value)]

    texts = format_values(type_, column(type_, list(floats))).to_pylist()

    assert texts == [format_member(type_, value) for value in floats]


def test_many_texts_with_a_few_bad_ones_convert_as_one_by_one():
    texts = [str(number) for number in range(10_000)]
    for place in (0, 31, 4_999, 9_999):
        texts[place] = f"{place}!"

    typed = convert_values(Scalar.STRING, Scalar.I64, pa.array(texts))

    assert typed.refused.tolist() == [0, 31, 4_999, 9_999]
    assert typed.values.null_count == 4
    assert typed.values[5_000].as_py() == 5_000
