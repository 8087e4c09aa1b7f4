"""The rules of docs/merging.md on dictionaries, written independently of the implementation."""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any

Row = dict[str, Any]
Rows = dict[str, dict[str, Row]]
"""By type, then by id."""


class Gap(Enum):
    """A missing part of several bases merged with each other. It equals nothing, not even itself.

    Attributes:
        UNKNOWN: Replaces a value on which the bases disagree.
        CONTESTED: Replaces a row on whose existence the bases disagree.
    """

    UNKNOWN = auto()
    CONTESTED = auto()


Base = Mapping[str, Mapping[str, Row | Gap]]
"""The rows of a commit, or of bases merged with each other: rows and values may be gaps."""

ENDS = {"K": {"src": "P", "dst": "P"}}
ConflictKey = tuple[str, str, str, str | None]
"""Kind, type, id and property of a conflict."""


@dataclass
class Expected:
    """The expected result of a merge.

    Attributes:
        rows: The target afterwards if there are no conflicts; unresolved ones keep ours.
    """

    rows: Rows
    conflicts: set[ConflictKey] = field(default_factory=set)


def merge(
    base: Base, ours: Rows, theirs: Rows, *, resolve: str | None = None, strict: bool = False
) -> Expected:
    """The three-way merge, type by type, id by id, value by value; then the ends of edges."""
    expected = Expected({})
    for name in base:
        merged = expected.rows[name] = {}
        for id_ in sorted({*base[name], *ours[name], *theirs[name]}):
            sides = (ours[name].get(id_), theirs[name].get(id_))
            row, keys = _row(base[name].get(id_), *sides, resolve=resolve, strict=strict)
            expected.conflicts |= {(kind, name, id_, where) for kind, where in keys}
            if row is not None:
                merged[id_] = row
    _mend_edges(expected, ours, theirs, resolve)
    for one, other in ((ours, theirs), (theirs, ours)):
        _keep_edges(expected.rows, base, deleting=one, having=other)
    return expected


def _keep_edges(rows: Rows, base: Base, *, deleting: Rows, having: Rows) -> None:
    """A node that one side deleted and the merge kept has all edges that side deleted with it."""
    nodes = {
        (name, id_)
        for name in set(ENDS["K"].values())
        for id_ in rows[name]
        if id_ in base[name] and id_ not in deleting[name]
    }
    for name, ends in ENDS.items():
        for id_ in base[name].keys() - deleting[name].keys() & having[name].keys():
            row = having[name][id_]
            touched = {(type_, row[end]) for end, type_ in ends.items()}
            if touched & nodes and all(node in rows[type_] for type_, node in touched):
                rows[name].setdefault(id_, row)


def _row(
    base: Row | Gap | None,
    ours: Row | None,
    theirs: Row | None,
    *,
    resolve: str | None,
    strict: bool,
) -> tuple[Row | None, set[tuple[str, str | None]]]:
    if theirs == base or ours == theirs:
        return ours, set()
    if ours == base:
        return theirs, set()
    if ours is None or theirs is None:
        if resolve is None:
            return ours, {("delete_vs_update", None)}
        return (ours if resolve == "ours" else theirs), set()
    kind = "divergent_update" if isinstance(base, dict) else "divergent_insert"
    row = dict(ours)
    keys: set[tuple[str, str | None]] = set()
    for name in ours:
        before = base[name] if isinstance(base, dict) and not strict else Gap.UNKNOWN
        mine, other = ours[name], theirs[name]
        if other in (mine, before):
            continue
        if mine == before or resolve == "theirs":
            row[name] = other
        elif resolve is None:
            keys.add((kind, name))
    return row, keys


def _mend_edges(expected: Expected, ours: Rows, theirs: Rows, resolve: str | None) -> None:
    rows = expected.rows
    for name, ends in ENDS.items():
        for id_ in list(rows[name]):
            loose = [end for end, type_ in ends.items() if rows[name][id_][end] not in rows[type_]]
            if resolve is None:
                # A row that is in conflict already is not reported twice.
                known = {(type_, row) for _, type_, row, _ in expected.conflicts}
                if (name, id_) not in known:
                    expected.conflicts |= {("orphan_edge", name, id_, end) for end in loose[:1]}
            elif loose:
                side = ours if resolve == "ours" else theirs
                _decide_edge(rows, name, id_, side, is_ours=resolve == "ours")


def _decide_edge(rows: Rows, name: str, id_: str, side: Rows, *, is_ours: bool) -> None:
    """Keep an edge that leads to a deleted node if the chosen side has it, with its node.

    Ours keeps its own row. Theirs keeps the merged row, unless neither the result nor theirs has
    one of its nodes; then its own.
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


def virtual_merge(base: Base, left: Base, right: Base) -> Base:
    """Merge two of several bases: disagreements become gaps, and no rule is checked."""
    return {
        name: {
            id_: row
            for id_ in left[name].keys() | right[name]
            if (row := _virtual_row(*(rows[name].get(id_) for rows in (base, left, right))))
            is not None
        }
        for name in left
    }


def _virtual_row(
    base: Row | Gap | None, left: Row | Gap | None, right: Row | Gap | None
) -> Row | Gap | None:
    if isinstance(left, Gap) or isinstance(right, Gap):
        return Gap.CONTESTED
    if left is not None and right is not None:
        before = base if isinstance(base, dict) else dict.fromkeys(left, Gap.UNKNOWN)
        return {name: _virtual_value(before[name], left[name], right[name]) for name in left}
    there = right if left is None else left
    if there is None or base is None:
        return there
    return None if _is_same_row(there, base) else Gap.CONTESTED


def _virtual_value(before: Any, left: Any, right: Any) -> Any:
    if _is_same(left, right) or _is_same(right, before):
        return left
    return right if _is_same(left, before) else Gap.UNKNOWN


def _is_same_row(row: Row, base: Row | Gap) -> bool:
    return isinstance(base, dict) and all(_is_same(row[name], base[name]) for name in row)


def _is_same(one: Any, other: Any) -> bool:
    return one is not Gap.UNKNOWN and bool(one == other)


def difference(before: Rows, after: Rows) -> set[tuple[str, str, str]]:
    """Operation, type and id of every change."""
    changes = set()
    for name in before:
        for id_ in before[name] | after[name]:
            old, new = before[name].get(id_), after[name].get(id_)
            if old != new:
                op = "insert" if old is None else "delete" if new is None else "update"
                changes.add((op, name, id_))
    return changes


def apply_changes(rows: Rows, changes: Mapping[str, Mapping[str, Row | None]]) -> Rows:
    """The rows after some were upserted and others, None, deleted."""
    after = deepcopy(rows)
    for name, some in changes.items():
        for id_, row in some.items():
            if row is None:
                after[name].pop(id_, None)
            else:
                after[name][id_] = row
    return after
