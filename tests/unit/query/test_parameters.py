"""Parameters are bound all at once, or refused by name."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta, timezone

import pytest

from omnigraph.errors import ErrorCode, InvalidParameterError
from omnigraph.model.types import BlobType, ListType, PropertyType, Scalar, VectorType
from omnigraph.query.ir import MutationQuery, Parameter
from omnigraph.query.parameters import bind

NOON = datetime(2024, 2, 29, 12, tzinfo=UTC)


def query(*parameters: Parameter) -> MutationQuery:
    return MutationQuery("q", None, None, parameters, (), frozenset(), frozenset())


def bound(type_: PropertyType, value: object) -> object:
    return bind(query(Parameter("x", type_, nullable=False)), {"x": value})["x"]


# fmt: off
ACCEPTED = [
    (Scalar.STRING,          "",                          ""),
    (Scalar.BOOL,            True,                        True),
    (Scalar.I32,             -(2**31),                    -(2**31)),
    (Scalar.I64,             "9007199254740993",          2**53 + 1),
    (Scalar.I64,             "-3",                        -3),
    (Scalar.U64,             str(2**64 - 1),              2**64 - 1),
    (Scalar.F64,             3,                           3.0),
    (Scalar.F64,             0.1,                         0.1),
    (Scalar.F32,             0.1,                         0.10000000149011612),
    (Scalar.F64,             math.inf,                    math.inf),
    (Scalar.F32,             "-Infinity",                 -math.inf),
    (ListType(Scalar.F64),   [0.5, "Infinity"],           (0.5, math.inf)),
    (Scalar.DATE,            "2024-02-29",                date(2024, 2, 29)),
    (Scalar.DATE,            date(2024, 2, 29),           date(2024, 2, 29)),
    (Scalar.DATETIME,        "2024-02-29T12:00:00Z",      NOON),
    (Scalar.DATETIME,        "2024-02-29T13:00:00+01:00", NOON),
    (Scalar.DATETIME,        "2024-02-29T12:00:00",       NOON),
    (Scalar.DATETIME,        datetime(2024, 2, 29, 12),   NOON),
    (Scalar.DATETIME,        NOON.astimezone(timezone(timedelta(hours=5))), NOON),
    (ListType(Scalar.I64),   [1, "2"],                    (1, 2)),
    (ListType(Scalar.DATE),  ("2024-02-29",),             (date(2024, 2, 29),)),
    (ListType(Scalar.STRING), [],                         ()),
    (VectorType(2),          [1, 0.5],                    (1.0, 0.5)),
    (BlobType(),             b"\x00\xff",                 b"\x00\xff"),
    (BlobType(),             "AP8=",                      b"\x00\xff"),
]
REFUSED = [
    (Scalar.STRING,          1),
    (Scalar.STRING,          "\ud800"),
    (Scalar.STRING,          b"x"),
    (Scalar.BOOL,            1),
    (Scalar.BOOL,            "true"),
    (Scalar.I32,             True),
    (Scalar.I32,             2**31),
    (Scalar.I32,             "3"),
    (Scalar.I32,             3.0),
    (Scalar.I64,             "3.0"),
    (Scalar.I64,             "9" * 30),
    (Scalar.I64,             str(2**63)),
    (Scalar.U32,             -1),
    (Scalar.U64,             "-1"),
    (Scalar.F64,             "0.5"),
    (Scalar.F64,             "nan"),
    (Scalar.F64,             10**400),
    (Scalar.F32,             1e39),
    (Scalar.DATE,            "2023-02-29"),
    (Scalar.DATE,            NOON),
    (Scalar.DATE,            20240229),
    (Scalar.DATETIME,        date(2024, 2, 29)),
    (Scalar.DATETIME,        "noon"),
    (ListType(Scalar.I64),   3),
    (ListType(Scalar.STRING), "abc"),
    (ListType(Scalar.I64),   [1, None]),
    (ListType(Scalar.I64),   [1, True]),
    (ListType(Scalar.I64),   {1: 2}),
    (VectorType(2),          [1]),
    (VectorType(2),          [1, 2, 3]),
    (VectorType(2),          [1, math.nan]),
    (VectorType(2),          [1, "Infinity"]),
    (VectorType(2),          [1, "2"]),
    (BlobType(),             "not base64!"),
    (BlobType(),             3),
]
# fmt: on


@pytest.mark.parametrize(("type_", "value", "expected"), ACCEPTED, ids=repr)
def test_a_value_becomes_one_of_the_declared_type(type_, value, expected):
    found = bound(type_, value)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(("type_", "value"), REFUSED, ids=repr)
def test_a_value_of_another_type_is_refused_by_name(type_, value):
    with pytest.raises(InvalidParameterError, match=r"\$x: ") as caught:
        bound(type_, value)
    assert caught.value.code is ErrorCode.INVALID_PARAMETER


@pytest.mark.parametrize("value", [math.nan, "NaN"])
@pytest.mark.parametrize("type_", [Scalar.F32, Scalar.F64])
def test_nan_is_a_number_to_a_query_as_it_is_to_data(type_, value):
    found = bound(type_, value)
    assert isinstance(found, float)
    assert math.isnan(found)


def test_instants_are_held_in_utc():
    found = bound(Scalar.DATETIME, "2024-02-29T13:00:00+01:00")
    assert isinstance(found, datetime)
    assert found.tzinfo is UTC


def test_every_fault_is_named_at_once():
    asked = query(
        Parameter("name", Scalar.STRING, nullable=False),
        Parameter("age", Scalar.I32, nullable=False),
        Parameter("born", Scalar.DATE, nullable=True),
    )
    with pytest.raises(InvalidParameterError) as caught:
        bind(asked, {"nam": "x", "age": "old", "born": 3})
    message = str(caught.value)
    assert "$nam: the query has no such parameter (did you mean name?)" in message
    assert "$name: String is missing" in message
    assert "$age: old is not of type I32" in message
    assert "$born: 3 is not of type Date" in message
    assert "it takes $name: String, $age: I32, $born: Date?" in message


def test_a_nullable_parameter_may_be_null_or_left_out():
    asked = query(Parameter("x", Scalar.I32, nullable=True))
    assert bind(asked, {}) == bind(asked, {"x": None}) == {"x": None}


def test_a_parameter_that_is_not_nullable_may_not_be_null():
    with pytest.raises(InvalidParameterError, match=r"\$x: I32 may not be null"):
        bound(Scalar.I32, None)


def test_a_parameter_stays_within_what_its_uses_allow():
    asked = query(Parameter("k", Scalar.I64, nullable=False, minimum=0, maximum=2))
    assert bind(asked, {"k": 2}) == {"k": 2}
    for wrong in (-1, 3, "-1"):
        with pytest.raises(InvalidParameterError, match=r"\$k: -?\d is not from 0 to 2"):
            bind(asked, {"k": wrong})


def test_a_query_without_parameters_says_so():
    with pytest.raises(InvalidParameterError, match="it takes no parameters"):
        bind(query(), {"x": 1})


def test_integers_and_arrays_of_other_libraries_are_taken():
    class Whole:
        def __index__(self) -> int:
            return 3

    class Array:
        def tolist(self) -> list[float]:
            return [1.0, 2.0]

    assert bound(Scalar.I32, Whole()) == 3
    assert bound(VectorType(2), Array()) == (1.0, 2.0)
