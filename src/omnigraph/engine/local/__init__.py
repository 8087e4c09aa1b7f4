"""The embedded engine: DuckDB over Lance and Arrow, in process."""
