"""Backends: what each engine does for readers and writers, and a registry of them by name."""
