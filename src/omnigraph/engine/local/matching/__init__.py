"""Matching of patterns on adjacency arrays: a plan's tree says the same by ids."""
