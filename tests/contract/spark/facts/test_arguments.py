"""Arguments of `spark.sql`: what survives the journey, and what does not."""

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import AnalysisException, IllegalArgumentException
from pyspark.sql import functions


def asked(spark, text, **arguments):
    return spark.sql(text, args=arguments).toArrow().column(0)[0]


def test_an_early_instant_is_shifted_by_the_calendar(spark):
    found = asked(spark, "SELECT :v", v=datetime(1, 1, 1, tzinfo=UTC))

    assert found.as_py() == datetime(1, 1, 3, tzinfo=UTC)


def test_an_early_date_is_refused(spark):
    with pytest.raises(IllegalArgumentException):
        asked(spark, "SELECT :v", v=date(1, 1, 1))


def test_an_integer_beyond_64_bits_is_refused(spark):
    with pytest.raises(Py4JError, match="NumberFormatException"):
        asked(spark, "SELECT :v", v=2**63)


def test_a_decimal_is_exact(spark):
    assert asked(spark, "SELECT :v", v=Decimal(2**64 - 1)).as_py() == 2**64 - 1


def test_a_null_has_no_type_until_it_is_cast(spark):
    assert asked(spark, "SELECT :v", v=None).type == pa.null()
    assert asked(spark, "SELECT CAST(:v AS BIGINT)", v=None).type == pa.int64()


def test_an_argument_is_never_read_as_sql(spark):
    text = "a\0b'\"\\`:v ?{x} -- /*\n😀"

    assert asked(spark, "SELECT :v", v=text).as_py() == text


def test_an_argument_may_be_no_function_call(spark):
    with pytest.raises(AnalysisException, match="INVALID_SQL_ARG"):
        asked(spark, "SELECT :v", v=functions.upper(functions.lit("a")))


def test_a_limit_must_be_a_32_bit_integer(spark):
    with pytest.raises(AnalysisException, match="must be integer type"):
        asked(spark, "SELECT 1 LIMIT :n", n=2**31)

    assert asked(spark, "SELECT 1 LIMIT :n", n=2**31 - 1).as_py() == 1


def test_json_that_does_not_fit_is_null_unless_told_to_fail(spark):
    text = "SELECT from_json(:v, 'array<int>'{})"
    assert asked(spark, text.format(""), v="[1, 9999999999]").as_py() in (None, [1, None])

    with pytest.raises(Py4JError, match="MALFORMED_RECORD"):
        asked(spark, text.format(", map('mode', 'FAILFAST')"), v="[1, 9999999999]")
