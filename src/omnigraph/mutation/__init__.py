"""Mutations: one compiled query made into a plan of changes to each table."""
