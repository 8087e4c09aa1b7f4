"""Checks: the pattern of `@check` matches the texts of a property."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from omnigraph.integrity.patterns import BEYOND_ASCII, STAND_IN, make_portable
from omnigraph.integrity.rows import RowRule, all_true, value_of
from omnigraph.integrity.violations import Breach, Rule
from omnigraph.model.types import Scalar
from omnigraph.relational.expressions import Bindings, Known
from omnigraph.schema.catalog import Check, SchemaType


def matches(type_: SchemaType, check: Check) -> RowRule:
    """The pattern matches somewhere in every text."""
    pattern = make_portable(check.pattern)

    def is_broken(bindings: Bindings) -> exp.Expr:
        def text(value: str) -> exp.Expr:
            return bindings.tree(Known(value, Scalar.STRING))

        searched: exp.Expr = value_of(check.property)
        if pattern.is_searched_in_ascii:
            searched = exp.RegexpReplace(
                this=searched,
                expression=text(BEYOND_ASCII),
                replacement=text(STAND_IN),
                modifiers=exp.Literal.string("g"),
            )
        return exp.Not(this=exp.RegexpLike(this=searched, expression=text(pattern.text)))

    def holds(values: pa.ChunkedArray) -> bool:
        texts = values.drop_null()
        if pattern.is_searched_in_ascii and not all_true(pc.string_is_ascii(texts)):
            return False
        try:
            return all_true(pc.match_substring_regex(texts, pattern.text))
        except pa.ArrowInvalid:
            # Arrow allows a pattern less memory than the engines do.
            return False

    breach = Breach(Rule.CHECK, type_.name, (check.property,))
    return RowRule(breach, is_broken, holds, Scalar.STRING, f"does not match {check.pattern!r}")
