"""Looks at one column: whether each of its values plainly keeps a row rule, told by Arrow alone.

A look may be in doubt and say False; where it says True, no engine finds an offender.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, assert_never

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.integrity.patterns import Pattern, portable
from omnigraph.integrity.rows import RowRule
from omnigraph.integrity.violations import Rule
from omnigraph.model.types import EnumType, ListType, VectorType
from omnigraph.schema.catalog import ENDPOINTS, SchemaType

Look: TypeAlias = "Callable[[pa.ChunkedArray], bool]"


def looks_of(type_: SchemaType, rule: RowRule) -> tuple[Look, ...]:
    """What a column must show for a rule of its type to be kept plainly."""
    name = rule.column
    kind = None if name in ("id", *ENDPOINTS) else type_.property_named(name).type
    match rule.breach.rule:
        case Rule.REQUIRED:
            # Nullable lists have a rule too: that none of their items is null.
            has_items = isinstance(kind, ListType)
            must_be = kind is None or not type_.property_named(name).nullable
            return (*[without_nulls] * must_be, *[without_null_items] * has_items)
        case Rule.ENUM:
            assert isinstance(kind, EnumType), "only these state the rule"
            return (among(kind.values),)
        case Rule.TYPE:
            assert isinstance(kind, VectorType), "only these state the rule"
            return (finite_vectors(kind.dimension),)
        case Rule.KEY:
            return (finite,)
        case Rule.RANGE:
            return tuple(
                within(each.low, each.high) for each in type_.ranges if each.property == name
            )
        case Rule.CHECK:
            patterns = [each.pattern for each in type_.checks if each.property == name]
            return tuple(matching(portable(each)) for each in patterns)
        case Rule.EXISTS | Rule.UNIQUE | Rule.ENDPOINT | Rule.CARDINALITY | Rule.STRANDED:
            return (in_doubt,)
        case _:
            assert_never(rule.breach.rule)


def in_doubt(values: pa.ChunkedArray) -> bool:  # noqa: ARG001  # a look's
    """Nothing can be told."""
    return False


def without_nulls(values: pa.ChunkedArray) -> bool:
    """No value is null."""
    return bool(values.null_count == 0)


def among(allowed: tuple[str, ...]) -> Look:
    """Every value is one of these, or null."""

    def look(values: pa.ChunkedArray) -> bool:
        return _all(pc.is_in(values.drop_null(), value_set=pa.array(allowed, pa.utf8())))

    return look


def without_null_items(values: pa.ChunkedArray) -> bool:
    """No list has an item that is null."""
    return bool(pc.list_flatten(values).null_count == 0)


def finite_vectors(dimension: int) -> Look:
    """Every value has so many numbers, all finite, or is null."""

    def look(values: pa.ChunkedArray) -> bool:
        kind = values.type
        if not pa.types.is_fixed_size_list(kind) or kind.list_size != dimension:
            return False
        items = pc.list_flatten(values)
        return items.null_count == 0 and _all(pc.is_finite(items))

    return look


def finite(values: pa.ChunkedArray) -> bool:
    """Every number is finite, or null."""
    return _all(pc.is_finite(values.drop_null()))


def within(low: Any, high: Any) -> Look:
    """Every value lies between the bounds, both included, or is null; None leaves an end open."""

    def look(values: pa.ChunkedArray) -> bool:
        if pa.types.is_floating(values.type) and not finite(values):
            return False
        extremes = pc.min_max(values).as_py()
        least, greatest = extremes["min"], extremes["max"]
        if least is None:
            return True
        return (low is None or low <= least) and (high is None or greatest <= high)

    return look


def matching(pattern: Pattern) -> Look:
    """The pattern is found in every text that is not null."""

    def look(values: pa.ChunkedArray) -> bool:
        texts = values.drop_null()
        if pattern.is_searched_in_ascii and not _all(pc.string_is_ascii(texts)):
            return False
        try:
            return _all(pc.match_substring_regex(texts, pattern.text))
        except pa.ArrowInvalid:
            # Arrow allows a pattern less memory than the engines do.
            return False

    return look


def _all(truths: pa.ChunkedArray) -> bool:
    return bool(pc.all(truths, min_count=0).as_py())
