"""Omnigraph: a branchable lakehouse graph database."""
