"""Graph algorithms on Spark: iterations over DataFrames of numbers."""
