"""Proposals: their records in the graph's storage, and the rules by which they change."""
