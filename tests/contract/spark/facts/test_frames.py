"""DataFrames: Arrow in and out, order, views, sessions."""

import pyarrow as pa
import pytest
from pyspark.errors import PySparkTypeError, PythonException, UnsupportedOperationException


def test_unsigned_integers_are_refused_from_arrow(spark):
    for type_ in (pa.uint32(), pa.uint64()):
        with pytest.raises(PySparkTypeError, match="UNSUPPORTED_DATA_TYPE_FOR_ARROW_CONVERSION"):
            spark.createDataFrame(pa.table({"x": pa.array([1], type_)}))


def test_fixed_size_lists_are_refused_from_a_worker(spark):
    def vectors(batches):
        import pyarrow as pa

        for _ in batches:
            yield pa.record_batch({"x": pa.array([[1, 2]], pa.list_(pa.float32(), 2))})

    with pytest.raises(UnsupportedOperationException, match="FixedSizeList"):
        spark.range(1).mapInArrow(vectors, "x array<float>").toArrow()


def test_a_worker_that_yields_nothing_gives_an_empty_frame_of_its_schema(spark):
    found = spark.range(1).mapInArrow(lambda _: iter(()), "x decimal(20,0)").toArrow()

    assert (found.num_rows, found.schema.field("x").type) == (0, pa.decimal128(20, 0))


def test_an_exception_of_a_worker_reaches_the_driver_as_text(spark):
    def fail(_):
        message = "what went wrong"
        raise LookupError(message)

    with pytest.raises(PythonException, match="LookupError: what went wrong"):
        spark.range(1).mapInArrow(fail, "x int").toArrow()


def test_a_range_may_have_one_number_in_each_partition(spark):
    frame = spark.range(0, 5, 1, numPartitions=5)

    assert frame.rdd.glom().map(len).collect() == [1] * 5


def test_each_chunk_of_a_large_arrow_table_becomes_a_partition(spark):
    beside = spark.newSession()
    beside.conf.set("spark.sql.execution.arrow.localRelationThreshold", "0")
    rows = pa.Table.from_batches([pa.record_batch({"x": [each]}) for each in range(7)])

    assert beside.createDataFrame(rows).rdd.getNumPartitions() == 7


def test_a_frame_without_columns_keeps_its_rows(spark):
    frame = spark.range(5).select()

    assert (frame.columns, frame.count()) == ([], 5)


def test_a_collected_frame_keeps_the_order_of_its_sort(spark):
    frame = spark.range(0, 50_000, 1, numPartitions=8).selectExpr("-id AS x").sort("x")

    found = frame.toArrow()["x"].to_pylist()

    assert found == sorted(found)
    assert len(found) == 50_000


def test_columns_may_share_a_name_in_a_result(spark):
    found = spark.sql("SELECT 1 AS a, 2 AS a").toArrow()

    assert [column.to_pylist() for column in found.columns] == [[1], [2]]


def test_a_view_may_go_once_its_query_is_analysed(spark):
    spark.range(3).createTempView("short_lived")
    frame = spark.sql("SELECT sum(id) AS s FROM short_lived")
    spark.catalog.dropTempView("short_lived")

    assert frame.toArrow().to_pylist() == [{"s": 3}]


def test_columns_that_differ_in_case_are_two_when_names_are_case_sensitive(spark):
    assert spark.conf.get("spark.sql.caseSensitive") == "true"
    spark.createDataFrame(pa.table({"name": ["a"], "Name": ["b"]})).createTempView("cases")

    try:
        assert spark.sql("SELECT Name, name FROM cases").toArrow().to_pylist() == [
            {"Name": "b", "name": "a"}
        ]
    finally:
        spark.catalog.dropTempView("cases")


def test_a_new_session_shares_the_context_but_neither_settings_nor_views(spark):
    spark.range(1).createTempView("mine")
    try:
        beside = spark.newSession()
        beside.conf.set("spark.sql.ansi.enabled", "false")

        assert beside.sparkContext is spark.sparkContext
        assert spark.conf.get("spark.sql.ansi.enabled") == "true"
        assert not beside.catalog.tableExists("mine")
    finally:
        spark.catalog.dropTempView("mine")


def test_a_new_session_does_not_become_the_active_one(spark):
    from pyspark.sql import SparkSession

    spark.newSession()

    assert SparkSession.active().conf.get("spark.app.name") == "omnigraph"
    assert SparkSession.active() is not None
