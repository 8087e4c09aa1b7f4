"""Loads on Spark: one pass over the input by executors, rules by joins on keys, one transaction."""
