"""Canonical texts of whole columns, as ids have them; NaN and the infinities as loads read them."""

from __future__ import annotations

from functools import cache
from typing import Final, assert_never

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from omnigraph.engine.local.row_expressions import RowExpression, evaluate
from omnigraph.model.types import Scalar
from omnigraph.relational.trees import fill_in

FLOAT_TEXT: Final = (
    "CASE WHEN x = 0 THEN '0' WHEN isnan(x) THEN 'NaN'"
    " WHEN isinf(x) THEN CASE WHEN x > 0 THEN 'Infinity' ELSE '-Infinity' END"
    r" ELSE regexp_replace(CAST(x AS VARCHAR), '\.0$', '') END"
)
"""The canonical text of a 64-bit float: DuckDB's, like Python's, has the fewest digits."""


def format_values(type_: Scalar, values: pa.Array) -> pa.Array:
    """The text of each value, as `model.identity.format_member` formats it; null for null.

    >>> format_values(Scalar.F32, pa.array([0.1, -0.0, 3, float("-inf")], pa.float32())).to_pylist()
    ['0.1', '0', '3', '-Infinity']
    """
    match type_:
        case Scalar.STRING:
            return values
        case Scalar.BOOL | Scalar.I32 | Scalar.I64 | Scalar.U32 | Scalar.U64 | Scalar.DATE:
            return values.cast(pa.utf8())
        case Scalar.DATETIME:
            # Arrow always has six digits, and a space where we have a T; without a zone it is
            # faster.
            texts = values.view(pa.timestamp("us")).cast(pa.utf8())
            texts = pc.replace_substring(texts, " ", "T")
            texts = pc.replace_substring(texts, ".000000", "")
            return pc.binary_join_element_wise(texts, "Z", "")
        case Scalar.F32:
            # Arrow has the fewest digits that a 32-bit float needs, in another notation: the
            # 64-bit float that they denote has no other ones.
            return _format_floats(values.cast(pa.utf8()).cast(pa.float64()))
        case Scalar.F64:
            return _format_floats(values)
        case _:
            assert_never(type_)


def _format_floats(values: pa.Array) -> pa.Array:
    return evaluate(_float_text(), [values], len(values)).values


@cache
def _float_text() -> RowExpression:
    sql = fill_in(FLOAT_TEXT, exp.column("c0")).sql(dialect="duckdb")
    return RowExpression(sql, ("DOUBLE",))
