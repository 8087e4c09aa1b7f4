"""What Spark calls or does otherwise than DuckDB, where sqlglot does not know it."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from omnigraph.engine.local.letters import other_cases

_NAMES: Final = {"LIST_SORT": "SORT_ARRAY", "MAKE_TIMESTAMPTZ": "TIMESTAMP_MICROS"}
"""Functions by their names in DuckDB."""


def to_spark(node: exp.Expr) -> exp.Expr:
    """A node of a plan's tree as Spark has it."""
    match node:
        case exp.Anonymous(this=name) if name in _NAMES:
            node.set("this", _NAMES[name])
        case exp.Lower() | exp.Upper():
            return _change_case(node)
        case _:
            pass
    return node


def _change_case(node: exp.Lower | exp.Upper) -> exp.Expr:
    """Each letter by itself: Java looks at the whole text, and makes two characters of some."""
    text = node.this
    letters, others = other_cases("lower" if isinstance(node, exp.Lower) else "upper")
    each = exp.Anonymous(
        this="TRANSLATE",
        expressions=[text.copy(), exp.Literal.string(letters), exp.Literal.string(others)],
    )
    if not isinstance(text, exp.Column):
        return each
    is_ascii = exp.EQ(
        this=exp.Anonymous(this="OCTET_LENGTH", expressions=[text.copy()]),
        expression=exp.Anonymous(this="CHAR_LENGTH", expressions=[text.copy()]),
    )
    kind = "LOWER" if isinstance(node, exp.Lower) else "UPPER"
    plain = exp.Anonymous(this=kind, expressions=[text.copy()])
    return exp.Case(ifs=[exp.If(this=is_ascii, true=plain)], default=each)
