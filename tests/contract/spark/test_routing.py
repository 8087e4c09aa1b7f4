"""Routing: rows in the partition whose number they have, on every Spark."""

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from omnigraph.engine.spark.routing import route


@pytest.mark.parametrize("by_id", [True, False], ids=["by its function", "as spark 4.0 has to"])
def test_rows_are_in_the_partition_whose_number_they_have_in_spark(spark, monkeypatch, by_id):
    if not by_id:
        monkeypatch.delattr(DataFrame, "repartitionById", raising=False)
    numbers = sql.expr("cast(id % 5 as int)").alias("@to")
    frame = spark.range(0, 100, 1, 3).select("id", numbers)

    routed = route(frame, 5, "@to").select("@to", sql.spark_partition_id().alias("at"))

    places = routed.toArrow()
    assert places.num_rows == 100
    assert places["@to"].to_pylist() == places["at"].to_pylist()
