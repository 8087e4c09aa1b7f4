"""Lowering: a typed read query becomes a relational plan."""
