"""Topology: which nodes the edges of a table connect, in numbers (docs/decisions/0015)."""
