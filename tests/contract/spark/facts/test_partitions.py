"""How Spark divides rows into partitions by a value."""

from pyspark.sql import functions as sql

from omnigraph.engine.spark.routing import hash_integer

NUMBERS = [0, 1, -1, 7, 2**31 - 1, -(2**31)]


def test_integers_are_hashed_as_spark_does(spark):
    frame = spark.createDataFrame([(number,) for number in NUMBERS], "n int")

    found = frame.select(sql.hash("n").alias("h")).toArrow()["h"].to_pylist()

    assert found == [hash_integer(number) for number in NUMBERS]
