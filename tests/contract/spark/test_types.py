"""Types: every property type reaches Spark and comes back with every value."""

import math

import pyarrow as pa
import pytest

from omnigraph.engine.spark.types import spark_type, to_crossing
from omnigraph.errors import InvalidInputError
from omnigraph.model.types import BlobType, EnumType, ListType, PropertyType, Scalar, VectorType
from tests.contract.spark.builders import (
    GIVEN,
    VALUES,
    data,
    every_type,
    outputs,
    person,
    plan,
    stored,
)

COLUMNS = {f"c{place}": type_ for place, type_ in enumerate(VALUES)}
SELECT = f"SELECT {', '.join(COLUMNS)} FROM {{}} ORDER BY id"


def same(ours: object, theirs: object) -> bool:
    """Equality that tells zeros apart and finds NaN equal to itself."""
    if isinstance(ours, list) and isinstance(theirs, list):
        return len(ours) == len(theirs) and all(map(same, ours, theirs))
    if isinstance(ours, float) and isinstance(theirs, float):
        both_nan = math.isnan(ours) and math.isnan(theirs)
        return both_nan or (ours == theirs and math.copysign(1, ours) == math.copysign(1, theirs))
    return type(ours) is type(theirs) and ours == theirs


def assert_same(found: pa.Table, expected: pa.Table):
    for name, type_ in COLUMNS.items():
        assert same(found[name].to_pylist(), expected[name].to_pylist()), type_


def test_values_of_every_type_survive_a_table(engine, store):
    table = stored(store, every_type())

    found = engine.run(
        plan(SELECT.format("person"), COLUMNS, relations=person("id", *COLUMNS)), data(table)
    )

    assert_same(found, every_type())


def test_values_of_every_type_survive_being_given(engine):
    rows = every_type()

    found = engine.run(plan(SELECT.format("given"), COLUMNS, relations=GIVEN), data(given=rows))

    assert_same(found, rows)


def test_a_result_has_exactly_the_declared_arrow_types(engine):
    rows = every_type()

    found = engine.run(plan(SELECT.format("given"), COLUMNS, relations=GIVEN), data(given=rows))

    expected = rows.select(list(COLUMNS)).schema
    assert found.schema.equals(expected, check_metadata=True)


def test_a_frame_has_the_declared_spark_types(engine):
    frame = engine.frame(
        plan(SELECT.format("given"), COLUMNS, relations=GIVEN), data(given=every_type())
    )

    assert frame.columns == list(COLUMNS)
    assert [field.dataType.simpleString() for field in frame.schema] == [
        spark_type(column.type).simpleString() for column in outputs(COLUMNS)
    ]


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (Scalar.STRING, "string"),
        (Scalar.BOOL, "boolean"),
        (Scalar.I32, "int"),
        (Scalar.I64, "bigint"),
        (Scalar.U32, "bigint"),
        (Scalar.U64, "decimal(20,0)"),
        (Scalar.F32, "float"),
        (Scalar.F64, "double"),
        (Scalar.DATE, "date"),
        (Scalar.DATETIME, "timestamp"),
        (EnumType(("a",)), "string"),
        (VectorType(3), "array<float>"),
        (BlobType(), "binary"),
        (ListType(Scalar.U64), "array<decimal(20,0)>"),
        (ListType(BlobType()), "array<binary>"),
    ],
    ids=str,
)
def test_spark_calls_each_type_by_one_name(ours, theirs):
    assert spark_type(ours).simpleString() == theirs


def test_rows_of_other_arrow_libraries_are_taken_too(engine):
    rows = pa.table(
        {
            "s": pa.array(["é"], pa.large_utf8()),
            "d": pa.array(["é"]).dictionary_encode(),
            "l": pa.array([[2**64 - 1]], pa.large_list(pa.uint64())),
            "t": pa.array([1_000], pa.timestamp("ns", tz="Europe/Paris")),
        }
    )
    texts: dict[str, PropertyType] = {"s": Scalar.STRING, "d": Scalar.STRING}
    columns = {**texts, "l": ListType(Scalar.U64), "t": Scalar.DATETIME}

    found = engine.run(
        plan("SELECT s, d, l, t FROM given", columns, relations=GIVEN), data(given=rows)
    )

    assert found["l"].to_pylist() == [[2**64 - 1]]
    assert found["t"].cast(pa.int64()).to_pylist() == [1]
    assert found["s"].to_pylist() == found["d"].to_pylist() == ["é"]


def test_a_column_that_no_property_has_is_refused(engine):
    rows = pa.table({"x": pa.array([1], pa.duration("s"))})

    with pytest.raises(InvalidInputError, match="duration"):
        engine.run(
            plan("SELECT 1 FROM given", {"n": Scalar.I32}, relations=GIVEN), data(given=rows)
        )


def test_a_crossing_batch_keeps_every_value():
    batch = every_type().to_batches()[0]

    crossed = pa.Table.from_batches([to_crossing(batch)])

    assert same(crossed["c3"].to_pylist(), batch.column("c3").to_pylist())
    assert [int(each) for each in crossed["c5"].to_pylist() if each is not None] == [
        0,
        2**63,
        2**64 - 1,
    ]


def test_an_instant_finer_than_a_microsecond_is_refused(engine):
    rows = pa.table({"t": pa.array([1_001], pa.timestamp("ns", tz="UTC"))})

    with pytest.raises(InvalidInputError, match="would lose data"):
        engine.run(
            plan("SELECT t FROM given", {"t": Scalar.DATETIME}, relations=GIVEN), data(given=rows)
        )
