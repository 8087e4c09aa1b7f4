"""Relational plans: one tree over named relations that every engine can run."""
