"""Embedding of rows that wait for it, and counts of those that do."""
