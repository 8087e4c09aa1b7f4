"""Hypothesis strategies: small catalogs with many rules, and changes that may break them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import Any, Final

from hypothesis import strategies as st

from omnigraph.model.types import EnumType, ListType, PropertyType, Scalar, VectorType
from omnigraph.schema.catalog import (
    Cardinality,
    Catalog,
    Check,
    EdgeType,
    Length,
    NodeType,
    Property,
    Range,
    SchemaType,
)
from omnigraph.schema.resolve import catalog_of
from tests.contract.integrity.builders import POSITION, Change, Row, Rows
from tests.oracle.reference import ReferenceGraph
from tests.strategies.graphs import graphs

_DAYS: Final = (date(2024, 1, 1), date(2024, 2, 29), date(2025, 1, 1))
_INSTANTS: Final = tuple(datetime(each.year, each.month, each.day, tzinfo=UTC) for each in _DAYS)

_POOLS: Final[Mapping[str, tuple[PropertyType, tuple[Any, ...]]]] = {
    "text": (Scalar.STRING, ("", "a", "ab", "B", "é", "it's", "a\n", "\x0b")),
    "small": (Scalar.I32, (-(2**31), 0, 1, 5)),
    "big": (Scalar.I64, (2**53, 2**53 + 1, -1)),
    "huge": (Scalar.U64, (0, 2**63, 2**64 - 1)),
    "ratio": (Scalar.F64, (0.0, -0.0, 0.5, math.nan, math.inf, -math.inf)),
    "short": (Scalar.F32, (0.0, -0.0, 0.5, math.nan)),
    "flag": (Scalar.BOOL, (True, False)),
    "day": (Scalar.DATE, _DAYS),
    "at": (Scalar.DATETIME, _INSTANTS),
    "kind": (EnumType(("a", "b")), ("a", "b", "A", "")),
    "tags": (ListType(Scalar.STRING), ((), ("a",), ("a", None))),
    "vector": (VectorType(2), ((0.0, 1.0), (0.0,), (0.0, math.nan), (1.0, None))),
}
"""Each property with its type and values, of which some are wrong."""

_RANGES: Final[Mapping[str, tuple[Range, ...]]] = {
    "small": (Range("small", 0, 4), Range("small", None, 0)),
    "big": (Range("big", None, 2**53),),
    "huge": (Range("huge", 1, None),),
    "ratio": (Range("ratio", 0.0, None), Range("ratio", None, 0.5)),
    "short": (Range("short", -1.0, 0.25),),
    "day": (Range("day", _DAYS[0], _DAYS[1]),),
    "at": (Range("at", _INSTANTS[1], None),),
}
_LENGTHS: Final[Mapping[str, tuple[Length, ...]]] = {
    "text": (Length("text", 1, None), Length("text", None, 1), Length("text", 2, 2)),
    "tags": (Length("tags", 1, None), Length("tags", 0, 1)),
}
_PATTERNS: Final = ("^a", "b$", r"^[^\s]*$", r"(?i)b", ".")
_IDS: Final = ("a", "b", "c", "é", "7")
_CARDINALITIES: Final = (
    Cardinality(),
    Cardinality(0, 1),
    Cardinality(0, 2),
    Cardinality(1, 1),
    Cardinality(1, 2),
    Cardinality(1),
)


@st.composite
def catalogs(draw: st.DrawFn) -> Catalog:
    """Two node types and one to three edge types, with rules of every kind."""
    ends = st.sampled_from(("A", "B"))
    nodes = [NodeType(name, **draw(_bodies((), at_least=1))) for name in ("A", "B")]
    edges = [
        EdgeType(
            name,
            draw(ends),
            draw(ends),
            draw(st.sampled_from(_CARDINALITIES)),
            **draw(_bodies(("src", "dst"), at_least=0)),
        )
        for name in ("K", "L", "M")[: draw(st.integers(1, 3))]
    ]
    return catalog_of(*nodes, *edges)


@st.composite
def _bodies(draw: st.DrawFn, ends: tuple[str, ...], *, at_least: int) -> dict[str, Any]:
    names = draw(
        st.lists(st.sampled_from(list(_POOLS)), min_size=at_least, max_size=4, unique=True)
    )
    plain = [each for each in names if isinstance(_POOLS[each][0], Scalar | EnumType)]
    members = st.lists(st.sampled_from([*ends, *plain] or ["-"]), max_size=2, unique=True)
    uniques = draw(st.lists(members, max_size=2, unique_by=frozenset))
    checks = tuple(
        Check("text", draw(st.sampled_from(_PATTERNS)))
        for _ in range(draw(st.integers(0, 1)))
        if "text" in names
    )
    # Few texts have both a length and a pattern; rows that keep both could hardly be drawn.
    measured = [name for name in names if name in _LENGTHS and not (checks and name == "text")]
    return {
        "properties": tuple(
            Property(name, _POOLS[name][0], nullable=draw(st.booleans())) for name in names
        ),
        "uniques": tuple(tuple(each) for each in uniques if each and "-" not in each),
        "ranges": tuple(draw(st.sampled_from(_RANGES[name])) for name in names if name in _RANGES),
        "checks": checks,
        "lengths": tuple(
            draw(st.sampled_from(_LENGTHS[name])) for name in measured if draw(st.booleans())
        ),
    }


@st.composite
def worlds(draw: st.DrawFn) -> tuple[Catalog, Rows, Change]:
    """A catalog, a graph that keeps its rules, and a change that may not."""
    catalog = draw(catalogs())
    graph: ReferenceGraph = draw(graphs(catalog))
    committed = {name: [*rows] for name, rows in graph.rows.items()}
    put, delete = {}, {}
    touched = draw(st.lists(st.sampled_from([each.name for each in catalog.types]), unique=True))
    for type_ in (catalog.type_named(name) for name in touched):
        there = [str(row["id"]) for row in committed[type_.name]]
        put[type_.name] = draw(st.lists(_rows(type_, committed), max_size=4))
        delete[type_.name] = draw(
            st.lists(st.sampled_from([*there, "nobody"]), max_size=3, unique=True)
        )
    names = st.lists(st.sampled_from(touched or ["A"]), max_size=2, unique=True)
    overwrite = tuple(draw(names)) if draw(st.booleans()) else ()
    return catalog, committed, Change(put, delete, overwrite, append=tuple(draw(names)))


@st.composite
def _rows(draw: st.DrawFn, type_: SchemaType, committed: Rows) -> Row:
    there = [str(row["id"]) for row in committed[type_.name]]
    row: dict[str, Any] = {
        # What is there already is the more interesting: it is replaced, moved, or in the way.
        "id": draw(st.sampled_from([*there, *there, *_IDS])),
        POSITION: draw(st.sampled_from((None, 1, 9, 10))),
    }
    if isinstance(type_, EdgeType):
        for end, node in (("src", type_.source), ("dst", type_.target)):
            nodes = [str(each["id"]) for each in committed[node]]
            row[end] = draw(st.sampled_from([*nodes, *nodes, *_IDS, None]))
    for each in type_.properties:
        held = [other[each.name] for other in committed[type_.name]]
        pool = [*_POOLS[each.name][1], *held]
        row[each.name] = draw(st.sampled_from([*pool, None]))
    return row
