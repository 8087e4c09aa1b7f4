"""Hypothesis strategies: small graphs that a catalog allows, and catalogs made for query tests.

Values are from small pools, those of `strategies.queries` among them, so that joins, filters and
groups of random queries have rows.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from typing import Any, Final

from hypothesis import assume
from hypothesis import strategies as st

from omnigraph.model.identity import KeyType, identity_of
from omnigraph.model.types import EnumType, ListType, PropertyType, Scalar, VectorType
from omnigraph.query.ir import Value
from omnigraph.schema.catalog import (
    ENDPOINTS,
    Catalog,
    Check,
    Declaration,
    EdgeType,
    Length,
    NodeType,
    Property,
    Range,
    SchemaType,
)
from omnigraph.schema.resolve import catalog_of
from tests.oracle.equality import sort_key
from tests.oracle.reference import ReferenceGraph, Row
from tests.strategies.queries import values

_NODES_MAX: Final = 8
_EDGES_MAX: Final = 12
_NODES_LEAST: Final = (3, 4, 5, 6, 0)
_EDGES_LEAST: Final = (4, 6, 8, 10, 0)
"""How many rows to draw at least: 0 is last, since most queries find nothing in few rows."""

_IDS: Final = ("a", "b", "c", "A", "é", "😀", "1", "2", "10", "%", "_", 'q"', "it's", "x\ny", " ")

_MORE: Final[Mapping[Scalar, tuple[str | int | float | bool | date, ...]]] = {
    Scalar.STRING: ("O'Brien", "100%", "snake_case", "\ttab", "e\u0301", "\uffff", "😀", "null"),
    Scalar.BOOL: (True, False),
    Scalar.I32: (16_777_217, -2),
    Scalar.I64: (2**53, -(2**53) - 1, 2**31),
    Scalar.U32: (2**31, 2**24 + 1),
    Scalar.U64: (2**53 + 1, 2**63 - 1),
    Scalar.F32: (
        *(-0.0, math.nan, math.inf, -math.inf),
        *(3.4028234663852886e38, 1.401298464324817e-45, 16_777_216.0),
    ),
    Scalar.F64: (
        *(-0.0, math.nan, math.inf, -math.inf),
        *(1.7976931348623157e308, 5e-324, 2.0**53, 2.0**63, 0.10000000149011612, 2.7),
    ),
    # Before 1583 engines disagree on the calendar.
    Scalar.DATE: (date(1583, 1, 1), date(1970, 1, 1), date(9999, 12, 31)),
    Scalar.DATETIME: (
        datetime(1583, 1, 1, tzinfo=UTC),
        datetime(1970, 1, 1, tzinfo=UTC),
        datetime(2024, 3, 1, tzinfo=UTC),
        datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
    ),
}
"""Values of data beyond those that queries use: extremes, and values without a literal."""


def stored_values(type_: PropertyType) -> st.SearchStrategy[Value]:
    """A value that a row may hold in a property of this type; never null."""
    match type_:
        case Scalar():
            pool_values = _pool_values(type_)
            return st.one_of(pool_values, pool_values, pool_values, st.sampled_from(_MORE[type_]))
        case ListType(Scalar() as item):
            items: st.SearchStrategy[Any] = stored_values(item)
            return st.lists(items, max_size=3).map(tuple)
        case VectorType(dimension):
            # Drawing each number of a wide vector would exhaust Hypothesis's entropy.
            numbers = st.sampled_from((-1.0, 0.0, 0.5, 1.0))
            return st.tuples(numbers, numbers).map(
                lambda pair: (pair[0],) * (dimension - 1) + pair[1:]
            )
        case ListType():
            return _pool_values(type_).map(tuple)
        case _:
            return _pool_values(type_)


def _pool_values(type_: PropertyType) -> st.SearchStrategy[Any]:
    return values(type_)


@st.composite
def graphs(draw: st.DrawFn, catalog: Catalog) -> ReferenceGraph:
    """A small graph that breaks no rule of the catalog; any table of it may be empty.

    Ids of different types collide; edges may be loops, parallel, and form cycles.
    """
    # A node that must have edges needs target nodes for them.
    least = 1 if any(edge_type.cardinality.minimum for edge_type in catalog.edge_types) else 0
    rows: dict[str, list[Row]] = {}
    for node in catalog.node_types:
        low = max(least, draw(st.sampled_from(_NODES_LEAST)))
        properties = draw(st.lists(_properties(node), min_size=low, max_size=_NODES_MAX))
        rows[node.name] = _without_duplicates(
            node, [draw(_add_id(node, values)) for values in properties]
        )
    for edge in catalog.edge_types:
        rows[edge.name] = draw(_edges(edge, rows))
    return ReferenceGraph(rows)


@st.composite
def _edges(draw: st.DrawFn, edge: EdgeType, rows: Mapping[str, list[Row]]) -> list[Row]:
    sources = [str(row["id"]) for row in rows[edge.source]]
    targets = [str(row["id"]) for row in rows[edge.target]]
    if not sources or not targets:
        return []
    low, high = edge.cardinality.minimum, edge.cardinality.maximum
    least = draw(st.sampled_from(_EDGES_LEAST))
    more = st.lists(st.sampled_from(sources), min_size=least, max_size=_EDGES_MAX)
    starts = [source for source in sources for _ in range(low)] + draw(more)
    rows_drawn: list[Row] = []
    for source in starts:
        if high is None or sum(row["src"] == source for row in rows_drawn) < high:
            target = draw(st.sampled_from(targets))
            row = {"src": source, "dst": target, **draw(_properties(edge))}
            rows_drawn.append(draw(_add_id(edge, row)))
    valid_rows = _without_duplicates(edge, rows_drawn)
    counts = Counter(valid_row["src"] for valid_row in valid_rows)
    assume(all(counts[source] >= low for source in sources))
    return valid_rows


def _properties(type_: SchemaType) -> st.SearchStrategy[dict[str, Value]]:
    return st.fixed_dictionaries(
        {property_.name: _property(type_, property_) for property_ in type_.properties}
    )


def _property(type_: SchemaType, property_: Property) -> st.SearchStrategy[Value]:
    values_drawn = stored_values(property_.type)
    if property_.name in type_.key:
        values_drawn = values_drawn.map(lambda value: value if _is_finite(value) else 1.0)
    for range_ in type_.ranges:
        if range_.property == property_.name:
            values_drawn = values_drawn.map(_clamp_to(range_))
    for length in type_.lengths:
        if length.property == property_.name:
            values_drawn = _of_length(property_.type, length)
    checks = [check for check in type_.checks if check.property == property_.name]
    if checks:
        pattern = re.compile(checks[0].pattern, re.ASCII)
        values_drawn = st.from_regex(pattern).filter(lambda text: _passes(text, checks))
    # Null is one of four, so that it does not dominate comparisons.
    return (
        st.one_of(st.none(), values_drawn, values_drawn, values_drawn)
        if property_.nullable
        else values_drawn
    )


def _is_finite(value: Value) -> bool:
    return not isinstance(value, float) or math.isfinite(value)


def _clamp_to(range_: Range) -> Callable[[Value], Value]:
    """A function that replaces values outside the range by its nearest bound."""

    def clamp(value: Value) -> Value:
        if isinstance(value, float) and math.isnan(value):
            return range_.high if range_.low is None else range_.low
        if range_.low is not None and sort_key(value) < sort_key(range_.low):
            return range_.low
        if range_.high is not None and sort_key(value) > sort_key(range_.high):
            return range_.high
        return value

    return clamp


def _of_length(type_: PropertyType, length: Length) -> st.SearchStrategy[Value]:
    """Texts or lists that are as long as they must be."""
    low = length.low or 0
    if isinstance(type_, ListType):
        items: st.SearchStrategy[Any] = stored_values(type_.item)
        high = low + 3 if length.high is None else length.high
        return st.lists(items, min_size=low, max_size=high).map(tuple)
    return stored_values(type_).map(lambda text: str(text)[: length.high].ljust(low, "x"))


def _passes(text: str, checks: list[Check]) -> bool:
    # Python's `$` also matches before a final newline, which the language rules out.
    return not text.endswith("\n") and all(
        re.search(check.pattern, text, re.ASCII) for check in checks
    )


@st.composite
def _add_id(draw: st.DrawFn, type_: SchemaType, row: dict[str, Value]) -> Row:
    if not type_.key:
        return {"id": draw(st.sampled_from(_IDS)), **row}
    members = [row[name] for name in type_.key]
    types = [_key_type(type_, name) for name in type_.key]
    return {"id": identity_of(types, members), **row}  # type: ignore[arg-type]


def _key_type(type_: SchemaType, name: str) -> KeyType:
    if name in ENDPOINTS:
        return Scalar.STRING
    property_type = type_.property_named(name).type
    assert isinstance(property_type, Scalar | EnumType), "a key has scalars and enums only"
    return property_type


def _without_duplicates(type_: SchemaType, rows: list[Row]) -> list[Row]:
    """The rows without those that share an id or a unique tuple with an earlier one."""
    valid_rows: list[Row] = []
    taken: set[object] = set()
    for row in rows:
        claims: set[object] = {row["id"]}
        for members in type_.uniques:
            if all(row[name] is not None for name in members):
                claims.add((members, tuple(sort_key(row[name]) for name in members)))
        if not claims & taken:
            valid_rows.append(row)
            taken |= claims
    return valid_rows


_UNIVERSE: Final[Mapping[str, PropertyType]] = {
    "text": Scalar.STRING,
    "label": Scalar.STRING,
    "flag": Scalar.BOOL,
    "small": Scalar.I32,
    "big": Scalar.I64,
    "big_too": Scalar.I64,
    "count": Scalar.U32,
    "huge": Scalar.U64,
    "short": Scalar.F32,
    "ratio": Scalar.F64,
    "day": Scalar.DATE,
    "at": Scalar.DATETIME,
    "kind": EnumType(("a", "b", "in-review", "Z")),
    "tags": ListType(Scalar.STRING),
    "numbers": ListType(Scalar.I64),
    "ratios": ListType(Scalar.F64),
}
"""The properties of catalogs for query tests: every type that a query can compare."""

_NODE_KEYS: Final[tuple[tuple[str, ...], ...]] = ((), ("text",), ("big",), ("text", "small"))


@st.composite
def query_catalogs(draw: st.DrawFn) -> Catalog:
    """A catalog of two or three node types and two to four edge types, made for query tests.

    There is always an edge between nodes of one type and one between nodes of two types; one of the
    optional edges has the key `src, dst`.
    """
    keys = draw(st.permutations(_NODE_KEYS))
    names = ["Person", "Company", "Tag"][: draw(st.integers(2, 3))]
    nodes: list[Declaration] = [
        NodeType(name, draw(_some_properties(3, 6, key)), key=key)
        for name, key in zip(names, keys, strict=False)
    ]
    edges = [
        EdgeType("Knows", "Person", "Person", properties=draw(_some_properties(0, 3))),
        EdgeType("WorksAt", "Person", "Company", properties=draw(_some_properties(0, 2))),
    ]
    optional = [
        EdgeType("Follows", "Person", "Person", key=("src", "dst")),
        EdgeType("Cites", names[-1], "Person", uniques=(("src", "dst"),)),
        EdgeType("PartOf", names[-1], names[-1], properties=draw(_some_properties(0, 2))),
    ]
    chosen = draw(st.lists(st.sampled_from(range(3)), max_size=2, unique=True))
    return catalog_of(*nodes, *edges, *(optional[place] for place in chosen))


@st.composite
def _some_properties(
    draw: st.DrawFn, least: int, most: int, key: tuple[str, ...] = ()
) -> tuple[Property, ...]:
    others = [name for name in _UNIVERSE if name not in key]
    low, high = max(0, least - len(key)), most - len(key)
    chosen = draw(st.lists(st.sampled_from(others), min_size=low, max_size=high, unique=True))
    return tuple(
        Property(name, _UNIVERSE[name], nullable=name not in key and draw(st.booleans()))
        for name in [*key, *chosen]
    )


catalogs_and_graphs: st.SearchStrategy[tuple[Catalog, ReferenceGraph]] = query_catalogs().flatmap(
    lambda catalog: st.tuples(st.just(catalog), graphs(catalog))
)
"""A catalog for query tests, and a graph of it."""
