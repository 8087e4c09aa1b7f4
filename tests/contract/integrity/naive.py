"""The rules by trying everything, over dictionaries: what the engines are held to.

Nothing here is shared with `omnigraph.integrity` but the words of a violation.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from omnigraph.model.types import EnumType, ListType, VectorType
from omnigraph.schema.catalog import Catalog, EdgeType, SchemaType
from tests.contract.integrity.builders import Change, Row, Rows

Broken = tuple[str, str, str]
"""A rule, a type and its properties."""


def counts(catalog: Catalog, committed: Rows, change: Change) -> dict[Broken, int]:
    """How many offenders each rule has, once the change is in."""
    found: Counter[Broken] = Counter()
    for type_ in catalog.types:
        for row in change.put.get(type_.name, ()):
            found.update(_row(type_, row))
        found.update(_identity(type_, committed, change))
        found.update(_uniques(type_, committed, change))
    for edge in catalog.edge_types:
        found.update(_ends(edge, committed, change))
        found.update(_cardinality(edge, committed, change))
    return dict(found)


def left(type_name: str, committed: Rows, change: Change) -> list[Row]:
    """The committed rows of a type that the change does not touch."""
    if type_name in change.overwrite:
        return []
    written = {row["id"] for row in change.put.get(type_name, ())}
    gone = written | set(change.delete.get(type_name, ()))
    return [row for row in committed.get(type_name, ()) if row["id"] not in gone]


def after(type_name: str, committed: Rows, change: Change) -> list[Row]:
    """All rows of a type with the change in."""
    return [*left(type_name, committed, change), *change.put.get(type_name, ())]


def _row(type_: SchemaType, row: Row) -> Iterator[Broken]:
    ends = ("src", "dst") if isinstance(type_, EdgeType) else ()
    for name in ("id", *ends):
        if row.get(name) is None:
            yield "required", type_.name, name
    for each in type_.properties:
        value = row.get(each.name)
        if value is None:
            if not each.nullable:
                yield "required", type_.name, each.name
        elif isinstance(each.type, EnumType) and value not in each.type.values:
            yield "enum", type_.name, each.name
        elif isinstance(each.type, ListType) and None in value:
            yield "required", type_.name, each.name
        elif isinstance(each.type, VectorType) and (
            len(value) != each.type.dimension
            or any(item is None or not math.isfinite(item) for item in value)
        ):
            yield "type", type_.name, each.name
        elif each.name in type_.key and isinstance(value, float) and not math.isfinite(value):
            yield "key", type_.name, each.name
    for range_ in type_.ranges:
        value = row.get(range_.property)
        if value is not None and not _is_within(value, range_.low, range_.high):
            yield "range", type_.name, range_.property
    for length in type_.lengths:
        value = row.get(length.property)
        if value is not None and not _is_within(len(value), length.low, length.high):
            yield "length", type_.name, length.property
    for check in type_.checks:
        value = row.get(check.property)
        if value is not None and not search(check.pattern, value):
            yield "check", type_.name, check.property


def search(pattern: str, text: str) -> bool:
    """Whether Python finds a pattern of the common dialect in a text."""
    parts = re.findall(r"\\.|\[\^?(?:\\.|[^\\\]])+\]|.", pattern, re.DOTALL)
    # Its `$` also matches before a final newline.
    strict = "".join(r"\Z" if part == "$" else part for part in parts)
    return re.search(strict, text, re.ASCII) is not None


def _is_within(value: Any, low: Any, high: Any) -> bool:
    if isinstance(value, float) and math.isnan(value):
        return False
    return (low is None or value >= low) and (high is None or value <= high)


def _identity(type_: SchemaType, committed: Rows, change: Change) -> Iterator[Broken]:
    named = ",".join(type_.key or ("id",))
    written = [row["id"] for row in change.put.get(type_.name, ()) if row["id"] is not None]
    for times in Counter(written).values():
        if times > 1:
            yield "key", type_.name, named
    if type_.name in change.append and type_.name not in change.overwrite:
        there = {row["id"] for row in committed.get(type_.name, ())}
        there -= set(change.delete.get(type_.name, ()))
        for each in written:
            if each in there:
                yield "exists", type_.name, named


def _uniques(type_: SchemaType, committed: Rows, change: Change) -> Iterator[Broken]:
    for members in type_.uniques:
        holders: dict[Any, set[Any]] = {}
        for row in after(type_.name, committed, change):
            held = _tuple(row, members)
            if held is not None:
                holders.setdefault(held, set()).add(row["id"])
        claimed = {_tuple(row, members) for row in change.put.get(type_.name, ())}
        for held, ids in holders.items():
            if held in claimed and len(ids) > 1:
                yield "unique", type_.name, ",".join(members)


def _tuple(row: Row, members: Sequence[str]) -> Any:
    values = [row.get(name) for name in members]
    if None in values:
        return None
    return tuple("NaN" if value != value else value for value in values)


def _ends(edge: EdgeType, committed: Rows, change: Change) -> Iterator[Broken]:
    for end, node in (("src", edge.source), ("dst", edge.target)):
        there = {row["id"] for row in after(node, committed, change)}
        for row in change.put.get(edge.name, ()):
            if row[end] is not None and row[end] not in there:
                yield "endpoint", edge.name, end
        for row in left(edge.name, committed, change):
            if row[end] not in there:
                yield "stranded", edge.name, end


def _cardinality(edge: EdgeType, committed: Rows, change: Change) -> Iterator[Broken]:
    ids: dict[Any, set[Any]] = {}
    for row in after(edge.name, committed, change):
        ids.setdefault(row["src"], set()).add(row["id"])
    low, high = edge.cardinality.minimum, edge.cardinality.maximum
    broken = ("cardinality", edge.name, "src")
    for source, edges in ids.items():
        if source is not None and high is not None and len(edges) > high:
            yield broken
    for node in {row["id"] for row in after(edge.source, committed, change)} - {None}:
        if len(ids.get(node, ())) < low:
            yield broken
