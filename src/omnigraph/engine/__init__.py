"""One relational plan, two executors: DuckDB in process, and Spark."""
