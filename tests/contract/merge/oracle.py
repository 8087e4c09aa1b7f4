"""Merging by the book: write-protocol section 7 on dictionaries, written without looking."""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

Row = dict[str, Any]
Rows = dict[str, dict[str, Row]]
"""By type, then by id."""

ENDS = {"K": {"src": "P", "dst": "P"}}
Told = tuple[str, str, str, str | None]
"""Kind, type, id and property of a conflict."""


@dataclass
class Expected:
    """What a merge must do.

    Attributes:
        rows: The target afterwards, had nobody objected: what is undecided stands as ours has it.
    """

    rows: Rows
    conflicts: set[Told] = field(default_factory=set)


def merge(
    base: Rows, ours: Rows, theirs: Rows, *, resolve: str | None = None, strict: bool = False
) -> Expected:
    """The three-way merge, type by type, id by id, value by value; then the ends of edges."""
    expected = Expected({})
    for name in base:
        merged = expected.rows[name] = {}
        for id_ in base[name] | ours[name] | theirs[name]:
            sides = (rows[name].get(id_) for rows in (base, ours, theirs))
            row, told = _row(*sides, resolve=resolve, strict=strict)
            expected.conflicts |= {(kind, name, id_, where) for kind, where in told}
            if row is not None:
                merged[id_] = row
    _mend_edges(expected, ours, theirs, resolve)
    return expected


def _row(
    base: Row | None, ours: Row | None, theirs: Row | None, *, resolve: str | None, strict: bool
) -> tuple[Row | None, set[tuple[str, str | None]]]:
    if theirs == base or ours == theirs:
        return ours, set()
    if ours == base:
        return theirs, set()
    if ours is None or theirs is None:
        if resolve is None:
            return ours, {("delete_vs_update", None)}
        return (ours if resolve == "ours" else theirs), set()
    kind = "divergent_insert" if base is None else "divergent_update"
    row = dict(ours)
    told: set[tuple[str, str | None]] = set()
    for name in ours:
        before = None if base is None else base[name]
        mine, other = ours[name], theirs[name]
        if mine == other:
            continue
        if base is not None and not strict and other == before:
            continue
        if (base is not None and not strict and mine == before) or resolve == "theirs":
            row[name] = other
        elif resolve is None:
            told.add((kind, name))
    return row, told


def _mend_edges(expected: Expected, ours: Rows, theirs: Rows, resolve: str | None) -> None:
    rows = expected.rows
    for name, ends in ENDS.items():
        for id_ in list(rows[name]):
            loose = [end for end, type_ in ends.items() if rows[name][id_][end] not in rows[type_]]
            if resolve is None:
                expected.conflicts |= {("orphan_edge", name, id_, end) for end in loose}
            elif loose:
                side = ours if resolve == "ours" else theirs
                _decide_edge(rows, name, id_, side, is_ours=resolve == "ours")


def _decide_edge(rows: Rows, name: str, id_: str, side: Rows, *, is_ours: bool) -> None:
    """An edge that leads to a node that is gone stays if the side that wins has it.

    Ours is as it was. Theirs is as it was merged, unless its end is ours and theirs has another.
    """
    if id_ not in side[name]:
        del rows[name][id_]
        return
    row = rows[name][id_]
    every = [(row[end], type_) for end, type_ in ENDS[name].items()]
    if is_ours or any(node not in rows[type_] | side[type_] for node, type_ in every):
        row = rows[name][id_] = side[name][id_]
    for end, type_ in ENDS[name].items():
        rows[type_].setdefault(row[end], side[type_].get(row[end], {}))


def difference(before: Rows, after: Rows) -> set[tuple[str, str, str]]:
    """Operation, type and id of every change."""
    found = set()
    for name in before:
        for id_ in before[name] | after[name]:
            old, new = before[name].get(id_), after[name].get(id_)
            if old != new:
                op = "insert" if old is None else "delete" if new is None else "update"
                found.add((op, name, id_))
    return found


def changed(rows: Rows, changes: Mapping[str, Mapping[str, Row | None]]) -> Rows:
    """The rows after some were put and others, None, deleted."""
    after = deepcopy(rows)
    for name, some in changes.items():
        for id_, row in some.items():
            if row is None:
                after[name].pop(id_, None)
            else:
                after[name][id_] = row
    return after
