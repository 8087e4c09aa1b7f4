"""Upkeep: what keeps a graph fast and whole, and never changes an answer."""
