"""Exports in parallel on Spark."""
