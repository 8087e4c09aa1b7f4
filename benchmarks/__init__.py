"""Benchmarks: our work against the same work done another way, in one run on one machine."""
