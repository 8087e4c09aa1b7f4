"""What is said of values that are not of a type: as they were written, with the next step."""

import json
import math

import pytest

from omnigraph.conversion.exact_values import convert_value
from omnigraph.model.types import ListType, PropertyType, Scalar, VectorType
from omnigraph.schema.conversion import Reading, convert, convert_scalar
from omnigraph.schema.values import Misfit

PARAMETERS = Reading(scalar=convert_scalar, blob=lambda _: Misfit("not asked here"))

# fmt: off
REFUSED = [
    (Scalar.I32,   '"36"',        "the text 36 is not of type I32", "leave the quotes out"),
    (Scalar.F64,   '"0.5"',       "the text 0.5 is not of type F64", "leave the quotes out"),
    (Scalar.BOOL,  '"true"',      "the text true is not of type Bool", "leave the quotes out"),
    (Scalar.I32,   '"old"',       "old is not of type I32", "write a whole number"),
    (Scalar.I32,   '"3.5"',       "3.5 is not of type I32", "write a whole number"),
    (Scalar.I32,   '"9999999999"', "the number does not fit in I32", "between"),
    (Scalar.F64,   '"1e999"',     "1e999 is too large for F64", ""),
    (Scalar.I64,   '"1e999"',     "1e999 is too large for I64", ""),
    (Scalar.DATE,  '"2023-02-29"', "2023-02-29 is not of type Date", "the day 2023-02-29 does not"),
    (Scalar.DATE,  '"soon"',      "soon is not of type Date", "write it as"),
    (Scalar.DATETIME, '"2024-04-31T10:00:00Z"', "is not of type DateTime", "the day 2024-04-31"),
    (Scalar.DATETIME, '"2024-04-30T25:00:00Z"', "is not of type DateTime", "write it as"),
    (Scalar.STRING, '{"a": 1}',   "an object is not of type String", ""),
    (Scalar.STRING, '["a"]',      "a list is not of type String", ""),
    (ListType(Scalar.STRING), '"x"', '"x" is not a list, and the type is [String]', 'write ["x"]'),
    (ListType(Scalar.I32), "7",   "7 is not a list, and the type is [I32]", "write [7]"),
    (ListType(Scalar.I32), '["7"]', "item 0: the text 7 is not of type I32", "leave the quotes"),
    (VectorType(2), '"x"',        '"x" is not a list, and the type is Vector(2)', ""),
    (VectorType(2), "{}",         "an object is not of type Vector(2)", ""),
]
# fmt: on


@pytest.mark.parametrize(("type_", "text", "reason", "hint"), REFUSED)
def test_a_misfit_says_what_was_written_and_what_to_write(
    type_: PropertyType, text: str, reason: str, hint: str
) -> None:
    value = json.loads(text)
    for found in (convert(type_, value, PARAMETERS), convert_value(type_, value)):
        assert isinstance(found, Misfit)
        assert reason in found.reason
        assert (hint in found.hint) if hint else not found.hint


@pytest.mark.parametrize("type_", [Scalar.F32, Scalar.F64])
@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity"])
def test_numbers_that_json_lacks_are_texts_in_rows_and_in_parameters(
    type_: Scalar, text: str
) -> None:
    found = convert_value(type_, text)
    assert isinstance(found, float)
    assert str(found) == str(float(text))
    assert convert_value(ListType(type_), [text, 1.0]) == pytest.approx(
        (float(text), 1.0), nan_ok=True
    )
    for given in (text, float(text)):
        assert convert(type_, given, PARAMETERS) == pytest.approx(float(text), nan_ok=True)
    assert convert_value(Scalar.STRING, text) == text
    assert isinstance(convert_value(Scalar.I32, text), Misfit)
    assert not math.isfinite(found)
