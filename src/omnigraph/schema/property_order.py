"""The order of merged properties."""

from __future__ import annotations

Order = tuple[str, ...]


def merge_orders(base: Order, ours: Order, theirs: Order) -> Order:
    """Merge two orders of the same things, of which each side may have some that the other has not.

    A side that moved things wins over one that did not; if both did, the lesser order in the sense
    of tuples wins, so that it does not matter which side is ours. What only one side has stays
    behind what it follows there.

    >>> merge_orders(("a", "b"), ("a", "x", "b"), ("b", "a"))
    ('b', 'a', 'x')
    """
    common = set(ours) & set(theirs)
    shared = _shared_order(
        tuple(name for name in base if name in common),
        tuple(name for name in ours if name in common),
        tuple(name for name in theirs if name in common),
    )
    our_runs, their_runs = _runs(ours, common), _runs(theirs, common)
    merged: list[str] = []
    for anchor in (None, *shared):
        if anchor is not None:
            merged.append(anchor)
        for run in sorted((our_runs.get(anchor, ()), their_runs.get(anchor, ()))):
            merged += run
    return tuple(merged)


def _shared_order(base: Order, ours: Order, theirs: Order) -> Order:
    our_base = tuple(name for name in ours if name in base)
    their_base = tuple(name for name in theirs if name in base)
    if our_base == base and their_base != base:
        return theirs
    if their_base == base and our_base != base:
        return ours
    return min(ours, theirs)


def _runs(order: Order, common: set[str]) -> dict[str | None, Order]:
    """What only this side has, by the common thing that it follows."""
    runs: dict[str | None, Order] = {}
    anchor = None
    for name in order:
        if name in common:
            anchor = name
        else:
            runs[anchor] = (*runs.get(anchor, ()), name)
    return runs
