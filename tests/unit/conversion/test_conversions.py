"""Every value of a column converts exactly, or its row is refused with a reason."""

from __future__ import annotations

import math
import random
import struct

import numpy as np
import pyarrow as pa
import pytest

from omnigraph.conversion.conversions import convert_values, explain_conversion
from omnigraph.conversion.texts import format_values
from omnigraph.model.identity import format_member
from omnigraph.model.types import Scalar
from omnigraph.schema.arrow import value_field
from omnigraph.schema.retyping import CONVERSIONS, TOTAL_CONVERSIONS
from tests.support.value_conversions import CASES, NOON, No


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


def test_every_conversion_has_cases_and_a_total_one_refuses_none():
    for source, targets in CONVERSIONS.items():
        for target in targets:
            is_total = target in TOTAL_CONVERSIONS[source]
            results = [value for _, value in CASES[f"{source} {target}"]]
            assert (No not in results) == is_total, (source, target)
    assert len(CASES) == sum(map(len, CONVERSIONS.values()))


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
