"""The check of a graph: every invariant, verified by reading storage."""
