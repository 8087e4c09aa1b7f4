"""Relational plans: one tree over named relations, run by whichever engine is given it."""
