"""Maintenance that runs on Spark."""
