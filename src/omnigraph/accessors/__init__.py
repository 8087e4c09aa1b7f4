"""Accessors: the parts of a graph that a handle names, such as `graph.branches`."""
