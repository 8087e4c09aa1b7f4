"""Pieces of trees: columns, names and tables, always quoted or of our own naming."""

from __future__ import annotations

from sqlglot import exp


def column(name: str, table: str) -> exp.Column:
    """A column of a table or relation by its own name, quoted."""
    return exp.column(exp.to_identifier(name, quoted=True), table=exp.to_identifier(table))


def named(tree: exp.Expr, name: str) -> exp.Alias:
    """An expression under one of our own names."""
    return exp.Alias(this=tree, alias=exp.to_identifier(name))


def table(name: str, known_as: str) -> exp.Table:
    """A relation or intermediate table, under an alias."""
    return exp.Table(this=exp.to_identifier(name), alias=alias(known_as))


def nested(query: exp.Query, known_as: str) -> exp.Subquery:
    """A query in the place of a table."""
    return exp.Subquery(this=query, alias=alias(known_as))


def alias(name: str) -> exp.TableAlias:
    """The name that the rest of a query knows a table by."""
    return exp.TableAlias(this=exp.to_identifier(name))
