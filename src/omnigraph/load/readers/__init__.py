"""Readers of splits, one module for each form that rows have outside of a graph."""
