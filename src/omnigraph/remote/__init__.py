"""Remote graphs: the facade of a graph over HTTP. Neither Lance nor DuckDB is imported here."""
