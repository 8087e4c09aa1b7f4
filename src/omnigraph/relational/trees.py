"""Builders of tree nodes: columns, aliases and tables, always quoted or with generated names."""

from __future__ import annotations

from sqlglot import exp, parse_one


def column(name: str, table: str) -> exp.Column:
    """A column of a table or relation by its own name, quoted."""
    return exp.column(exp.to_identifier(name, quoted=True), table=exp.to_identifier(table))


def named(tree: exp.Expr, name: str) -> exp.Alias:
    """An expression under a generated name."""
    return exp.Alias(this=tree, alias=exp.to_identifier(name))


def named_column(tree: exp.Expr, name: str) -> exp.Alias:
    """An expression under the name of a column, quoted."""
    return exp.Alias(this=tree, alias=exp.to_identifier(name, quoted=True))


def table(name: str, alias_name: str) -> exp.Table:
    """A relation or intermediate table, under an alias."""
    return exp.Table(this=exp.to_identifier(name), alias=alias(alias_name))


def subquery(query: exp.Query, alias_name: str) -> exp.Subquery:
    """A query in the place of a table."""
    return exp.Subquery(this=query, alias=alias(alias_name))


def alias(name: str) -> exp.TableAlias:
    """The alias of a table."""
    return exp.TableAlias(this=exp.to_identifier(name))


def fill_in(template: str, operand: exp.Expr) -> exp.Expr:
    """The expression of a template in SQL of DuckDB, with an operand for each `x`."""
    tree = parse_one(template, dialect="duckdb")

    def substitute(node: exp.Expr) -> exp.Expr:
        is_operand = isinstance(node, exp.Column) and node.name == "x"
        return exp.Paren(this=operand.copy()) if is_operand else node

    return tree.transform(substitute)
