"""Graphs of the Rust releases: their layout as it is read, and their import."""
