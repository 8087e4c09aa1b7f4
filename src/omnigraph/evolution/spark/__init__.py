"""Schema changes on Spark: executors compute and write the values of columns."""
