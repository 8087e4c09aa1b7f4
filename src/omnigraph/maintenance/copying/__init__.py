"""Copies: one state of a graph with its history, in another place."""
