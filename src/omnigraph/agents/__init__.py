"""Agents: a graph as tools of the Model Context Protocol, with writes on a branch for review."""
