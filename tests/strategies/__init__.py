"""Hypothesis strategies: random schemas, graphs and queries."""
