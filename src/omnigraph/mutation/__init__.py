"""Mutations: one compiled query becomes a plan of changes to each table."""
