"""Data sources written in Python: how Spark finds them, makes them, and hands them filters."""

import re

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import datasource
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

PUSHDOWN = "spark.sql.python.filterPushdown.enabled"
needs_pushdown = pytest.mark.skipif(not hasattr(datasource, "EqualTo"), reason="needs Spark 4.1")


class NumbersReader(DataSourceReader):
    def __init__(self, schema):
        self.schema = schema

    def read(self, partition: InputPartition):  # noqa: ARG002
        yield pa.record_batch({name: pa.array([1, 2], pa.int32()) for name in self.schema.names})


class Numbers(DataSource):
    """Says, in the name of a column, in which process and how often it was made."""

    def __init__(self, options):
        from random import getrandbits

        self.made = getrandbits(60)
        super().__init__(options)

    @classmethod
    def name(cls):
        return "numbers"

    def schema(self):
        return f"a int, b int, n{self.made} int"

    def reader(self, schema):
        return NumbersReader(schema)


class PushingReader(NumbersReader):
    def pushFilters(self, filters):
        return [each for each in filters if not isinstance(each, datasource.EqualTo)]


class Pushing(Numbers):
    @classmethod
    def name(cls):
        return "pushing"

    def reader(self, schema):
        return PushingReader(schema)


class KeepingReader(PushingReader):
    def __init__(self, schema):
        super().__init__(schema)
        self.kept = [1, 2]

    def pushFilters(self, filters):
        self.kept = [each.value for each in filters if isinstance(each, datasource.EqualTo)]
        return super().pushFilters(filters)

    def read(self, partition: InputPartition):  # noqa: ARG002
        yield pa.record_batch({"a": pa.array(self.kept, pa.int32())})


class Keeping(Numbers):
    @classmethod
    def name(cls):
        return "keeping"

    def schema(self):
        return "a int"

    def reader(self, schema):
        return KeepingReader(schema)


class TellingReader(NumbersReader):
    def pushFilters(self, filters):
        raise ValueError(repr(filters))


class Telling(Numbers):
    @classmethod
    def name(cls):
        return "telling"

    def schema(self):
        return "day date, at timestamp"

    def reader(self, schema):
        return TellingReader(schema)


@pytest.fixture(scope="module")
def session(spark):
    """A session of its own, so that nothing is registered in that of the run."""
    own = spark.newSession()
    for each in (Numbers, Pushing, Keeping, Telling):
        own.dataSource.register(each)
    return own


@pytest.fixture
def pushing_down(session):
    session.conf.set(PUSHDOWN, "true")
    yield session
    session.conf.set(PUSHDOWN, "false")


def test_a_package_named_like_pyspark_is_found_without_registration(spark):
    from pyspark_omnigraph import DefaultSource

    with pytest.raises(AnalysisException, match="the option graph is missing"):
        spark.newSession().read.format(DefaultSource.name()).load("Person")


@needs_pushdown
def test_filters_are_not_pushed_unless_asked_for(session):
    assert session.conf.get(PUSHDOWN) == "false"
    assert session.read.format("numbers").load().where("a = 1").count() == 1


@needs_pushdown
def test_a_source_that_pushes_filters_is_refused_where_that_is_off(session):
    with pytest.raises(PySparkException, match="DATA_SOURCE_PUSHDOWN_DISABLED"):
        session.read.format("pushing").load().count()


@needs_pushdown
def test_a_filter_that_the_source_takes_is_not_applied_again(pushing_down):
    assert pushing_down.read.format("pushing").load().where("a = 1").count() == 2


@needs_pushdown
def test_a_filter_that_is_pushed_for_one_use_of_a_frame_applies_to_all_its_uses(pushing_down):
    frame = pushing_down.read.format("keeping").load()

    assert [row["a"] for row in frame.where("a = 1").collect()] == [1]
    assert [row["a"] for row in frame.collect()] == [1]
    both = frame.where("a = 1").union(frame.where("a = 2"))
    assert [row["a"] for row in both.collect()] == [2, 2]


@needs_pushdown
@pytest.mark.parametrize(
    ("filter_text", "told"),
    [
        ("day = DATE'1600-01-01'", "datetime.date(1600, 1, 1)"),
        ("day = DATE'1582-10-10'", "datetime.date(1582, 10, 15)"),
        ("at = TIMESTAMP'1582-10-10T01:02:03Z'", "datetime.datetime(1582, 10, 15, 1, 2, 3"),
    ],
)
def test_early_days_in_filters_are_shifted_by_the_calendar(pushing_down, filter_text, told):
    frame = pushing_down.read.format("telling").load().where(filter_text)

    with pytest.raises(PySparkException, match=re.escape(told)):
        frame.count()


def test_a_source_is_made_once_for_a_frame(session):
    frame = session.read.format("numbers").load()

    assert frame.columns == frame.columns
    assert len(frame.toArrow().column_names) == 3
    assert session.read.format("numbers").load().columns != frame.columns


def test_a_source_is_not_told_which_columns_are_used(session):
    plan = session.read.format("numbers").load().select("a")

    assert "b#" in plan._jdf.queryExecution().executedPlan().toString()


def test_a_schema_that_is_given_is_the_schema_that_is_read(session):
    frame = session.read.format("numbers").schema("b int").load()

    assert frame.toArrow().column_names == ["b"]


def test_batches_must_have_exactly_the_types_of_the_schema(session):
    frame = session.read.format("numbers").schema("b long").load()

    # Spark 4.0 looks at a value first.
    with pytest.raises(PySparkException, match=r"DATA_SOURCE_RETURN_SCHEMA_MISMATCH|getLong"):
        frame.count()
