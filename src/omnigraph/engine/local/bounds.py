"""Bounds: how many combinations of rows a tree can make at most, before it runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from math import prod

from sqlglot import exp


def relation_uses(tree: exp.Query) -> Counter[str] | None:
    """How often each relation is read, by way of other parts too; None if the tree is recursive.

    >>> from sqlglot import parse_one
    >>> tree = parse_one("WITH c AS (SELECT * FROM r0, r1) SELECT * FROM c AS x, c AS y, r1")
    >>> sorted(relation_uses(tree).items())
    [('r0', 2), ('r1', 3)]
    """
    if any(each.args.get("recursive") for each in tree.find_all(exp.With)):
        return None
    uses: dict[str, Counter[str]] = {}
    # A part reads only parts before it.
    for part in tree.find_all(exp.CTE, bfs=False):
        uses[part.alias] = _uses(part, uses)
    return _uses(tree, uses)


def _uses(node: exp.Expr, parts: Mapping[str, Counter[str]]) -> Counter[str]:
    own_parts = {id(part) for part in node.find_all(exp.CTE) if part is not node}
    total: Counter[str] = Counter()
    for table in node.find_all(exp.Table):
        if id(table.find_ancestor(exp.CTE)) not in own_parts:
            total += parts.get(table.name, Counter({table.name: 1}))
    return total


def combinations(uses: Counter[str], row_counts: Mapping[str, int]) -> int:
    """The most combinations of rows that there can be."""
    return prod(max(1, row_counts[name]) ** count for name, count in uses.items())
