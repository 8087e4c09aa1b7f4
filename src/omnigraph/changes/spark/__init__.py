"""Changes on Spark: rows are compared where executors read them, and never all in one place."""
