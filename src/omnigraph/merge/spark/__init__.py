"""Merges on Spark: executors decide about rows and write them; the driver has counts and files."""
