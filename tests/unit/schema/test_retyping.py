"""Every change of a property's type against verdicts written by hand."""

from __future__ import annotations

from itertools import product
from typing import Final

import pytest

from omnigraph.model.types import BlobType, EnumType, ListType, PropertyType, Scalar, VectorType
from omnigraph.schema.catalog import NodeType, Property
from omnigraph.schema.plan import plan_by_hints
from omnigraph.schema.resolve import catalog_of

TYPES: Final[dict[str, PropertyType]] = {
    **{str(scalar): scalar for scalar in Scalar},
    "enum(a,b)": EnumType(("a", "b")),
    "enum(a)": EnumType(("a",)),
    "enum(b,a)": EnumType(("b", "a")),
    "Vector(2)": VectorType(2),
    "Vector(3)": VectorType(3),
    "Blob": BlobType(),
    "[String]": ListType(Scalar.STRING),
    "[I32]": ListType(Scalar.I32),
}

# . the same   m metadata   v validated   w rewritten without a request
# c rewritten on request, refused otherwise   x refused: there is no conversion
VERDICTS: Final = """
            String Bool I32 I64 U32 U64 F32 F64 Date DateTime a,b a b,a V2 V3 Blob [S] [I]
String         .    c    c   c   c   c   c   c   c      c      v  v  v   x  x   x    x   x
Bool           w    .    c   c   c   c   c   c   x      x      c  c  c   x  x   x    x   x
I32            w    c    .   w   c   c   c   c   x      x      c  c  c   x  x   x    x   x
I64            w    c    c   .   c   c   c   c   x      x      c  c  c   x  x   x    x   x
U32            w    c    c   w   .   w   c   c   x      x      c  c  c   x  x   x    x   x
U64            w    c    c   c   c   .   c   c   x      x      c  c  c   x  x   x    x   x
F32            w    c    c   c   c   c   .   w   x      x      c  c  c   x  x   x    x   x
F64            w    c    c   c   c   c   c   .   x      x      c  c  c   x  x   x    x   x
Date           c    x    x   x   x   x   x   x   .      c      c  c  c   x  x   x    x   x
DateTime       c    x    x   x   x   x   x   x   c      .      c  c  c   x  x   x    x   x
enum(a,b)      m    c    c   c   c   c   c   c   c      c      .  v  m   x  x   x    x   x
enum(a)        m    c    c   c   c   c   c   c   c      c      m  .  m   x  x   x    x   x
enum(b,a)      m    c    c   c   c   c   c   c   c      c      m  v  .   x  x   x    x   x
Vector(2)      x    x    x   x   x   x   x   x   x      x      x  x  x   .  x   x    x   x
Vector(3)      x    x    x   x   x   x   x   x   x      x      x  x  x   x  .   x    x   x
Blob           x    x    x   x   x   x   x   x   x      x      x  x  x   x  x   .    x   x
[String]       x    x    x   x   x   x   x   x   x      x      x  x  x   x  x   x    .   x
[I32]          x    x    x   x   x   x   x   x   x      x      x  x  x   x  x   x    x   .
"""
MATRIX: Final = {line.split()[0]: line.split()[1:] for line in VERDICTS.splitlines()[2:]}
COSTS: Final = {
    "m": "metadata",
    "v": "validated",
    "w": "rewritten",
    "c": "OG-MF-02",
    "x": "OG-DS-04",
}


def one_property(type_: PropertyType, *, nullable: bool):
    return catalog_of(NodeType("A", (Property("p", type_, nullable=nullable),)))


def verdicts(old, new, *, rows, conversions=()):
    """Each step's kind, with its cost or the code of its refusal."""
    counts = {type_.table_key: rows for type_ in old.types}
    plan = plan_by_hints(old, new, row_counts=counts, conversions=conversions)
    return {
        str(step.kind): str(step.refusal.code if step.refusal else step.cost) for step in plan.steps
    }


def nullability(old: bool, new: bool, cost: str) -> dict[str, str]:  # noqa: FBT001
    if old == new:
        return {}
    return {"require_value": cost} if old else {"allow_null": "metadata"}


def expected_kind(old: PropertyType, new: PropertyType) -> str:
    if isinstance(old, EnumType) and isinstance(new, EnumType):
        sets = set(old.values), set(new.values)
        return {-1: "widen_enum", 0: "reorder_enum", 1: "narrow_enum"}[len(sets[0]) - len(sets[1])]
    return "change_type"


def test_the_matrix_has_a_row_and_a_column_for_each_type():
    assert list(MATRIX) == list(TYPES)
    assert {len(row) for row in MATRIX.values()} == {len(TYPES)}


@pytest.mark.parametrize("before", TYPES)
def test_a_change_of_type_costs_what_the_matrix_says(before):
    for (after, verdict), old_null, new_null in product(
        zip(TYPES, MATRIX[before], strict=True), (False, True), (False, True)
    ):
        old = one_property(TYPES[before], nullable=old_null)
        new = one_property(TYPES[after], nullable=new_null)
        kind = expected_kind(TYPES[before], TYPES[after])
        change = {} if verdict == "." else {kind: COSTS[verdict]}
        expected = change | nullability(old_null, new_null, "validated")
        assert verdicts(old, new, rows=3) == expected, (after, old_null, new_null)


@pytest.mark.parametrize("before", TYPES)
def test_a_type_without_rows_accepts_every_change(before):
    for after, old_null, new_null in product(TYPES, (False, True), (False, True)):
        old = one_property(TYPES[before], nullable=old_null)
        new = one_property(TYPES[after], nullable=new_null)
        kind = expected_kind(TYPES[before], TYPES[after])
        change = {} if before == after else {kind: "metadata"}
        expected = change | nullability(old_null, new_null, "metadata")
        assert verdicts(old, new, rows=0) == expected, (after, old_null, new_null)


@pytest.mark.parametrize("before", TYPES)
def test_a_request_allows_what_converts_and_nothing_else(before):
    for after, verdict in zip(TYPES, MATRIX[before], strict=True):
        if verdict in "cx":
            old, new = (one_property(TYPES[name], nullable=False) for name in (before, after))
            cost = "rewritten" if verdict == "c" else "OG-DS-04"
            assert verdicts(old, new, rows=3, conversions=[("A", "p")]) == {"change_type": cost}
