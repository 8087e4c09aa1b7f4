"""Caps: trees that stop when they have more rows than their caller may get."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

_COMPLETE: Final = ("group", "having", "where", "joins", "distinct", "limit", "offset")
"""What needs every row that is read: rows that are left out would change the others."""


def cap_rows(tree: exp.Query, row_count: int) -> exp.Query:
    """The same rows if they are fewer than so many, else so many of them, whichever.

    A tree that only orders and names rows stops before it orders them: to order all pairs of a
    million rows takes for ever.

    >>> from sqlglot import parse_one
    >>> cap_rows(parse_one("SELECT q.a AS c0 FROM t AS q ORDER BY q.b"), 3).sql()
    'SELECT q.a AS c0 FROM (SELECT * FROM t AS q LIMIT 3) AS q ORDER BY q.b'
    >>> cap_rows(parse_one("SELECT q.a, COUNT(q.b) FROM t AS q GROUP BY q.a"), 3).sql()
    'SELECT q.a, COUNT(q.b) FROM t AS q GROUP BY q.a LIMIT 3'
    >>> cap_rows(parse_one("SELECT q.a FROM t AS q LIMIT 9"), 3).sql()
    'SELECT q.a FROM t AS q LIMIT 9'
    """
    if tree.args.get("limit") is not None:
        return tree
    source = tree.args.get("from_")
    is_plain = (
        isinstance(tree, exp.Select)
        and source is not None
        and isinstance(source.this, exp.Table)
        and not any(tree.args.get(name) for name in _COMPLETE)
        and not any(each.find(exp.AggFunc) for each in tree.expressions)
    )
    if not is_plain:
        return tree.limit(row_count)
    capped = tree.copy()
    table = capped.args["from_"].this
    some = exp.select("*").from_(table.copy()).limit(row_count).subquery(table.alias_or_name)
    capped.args["from_"].set("this", some)
    return capped
