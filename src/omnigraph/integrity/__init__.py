"""Integrity: one set of rules, compiled from the catalog, that every writer is held to."""
