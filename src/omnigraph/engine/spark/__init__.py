"""The Spark engine: plans run by PySpark, on this machine or on a cluster."""
