"""Integrity: one set of rules, compiled from the catalog, that applies to every writer."""
