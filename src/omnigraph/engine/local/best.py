"""The best of a type, from what searches have found: such a result needs no SQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate

import numpy as np
import pyarrow as pa

from omnigraph.relational.plans import Best, Fusion, Plan, SearchRows
from omnigraph.relational.searches import READ, SCORE, Nearness


def pick_best(plan: Plan, found: Mapping[str, pa.Table]) -> pa.Table | None:
    """The result of a plan that is the best of a type; None if it takes more than what was found.

    Args:
        found: The rows of each search, with properties where these were read.
    """
    best = plan.best
    if best is None or not best.searches:
        return None
    tables = [found[name] for name in best.searches]
    read = [f"{READ}{column}" for column in best.columns if column is not None]
    if not all(set(read) <= set(rows.column_names) for rows in tables):
        return None
    orders = [
        rank(rows, descending=_is_descending(plan, name))
        for name, rows in zip(best.searches, tables, strict=True)
    ]
    if best.fusion is not None:
        return _fuse(best, best.fusion, tables, orders)
    ([rows], [order]) = tables, orders
    return _choose(best, rows, order, rows[SCORE].to_numpy()[order])


def rank(rows: pa.Table, *, descending: bool) -> np.ndarray:
    """The places of rows by their scores, those of equal scores by their ids."""
    scores = rows[SCORE].to_numpy()
    numbers = -scores if descending else scores
    order = np.argsort(numbers)
    if np.all(np.diff(numbers[order]) > 0):
        return order
    ids = np.array(rows["id"].to_pylist(), dtype=object)
    return np.lexsort((ids, numbers))


def _fuse(
    best: Best, fusion: Fusion, tables: Sequence[pa.Table], orders: Sequence[np.ndarray]
) -> pa.Table | None:
    """The best by the ranks of rows in several rankings."""
    firsts = accumulate((rows.num_rows for rows in tables), initial=0)
    scores: dict[str, float] = {}
    places: dict[str, int] = {}
    for first, rows, order in zip(firsts, tables, orders, strict=False):
        counted = order[: fusion.window]
        ids = rows["id"].take(pa.array(counted)).to_pylist()
        for number, (id_, place) in enumerate(zip(ids, counted.tolist(), strict=True), 1):
            scores[id_] = scores.get(id_, 0.0) + 1 / (fusion.k + number)
            places[id_] = first + place
    ids = sorted(scores, key=lambda id_: (-scores[id_], id_))
    every = pa.concat_tables(_values(best, rows) for rows in tables)
    order = np.array([places[id_] for id_ in ids], np.int64)
    return _choose(best, every, order, np.array([scores[id_] for id_ in ids]))


def _choose(best: Best, rows: pa.Table, order: np.ndarray, scores: np.ndarray) -> pa.Table | None:
    """The result, from rows in an order; None if there are too few.

    Args:
        scores: In the same order.
    """
    if len(order) < best.end:
        return None
    chosen = pa.array(order[best.skip : best.end])
    shown = pa.array(scores[best.skip : best.end], pa.float64())
    columns = [
        shown if name is None else rows[f"{READ}{name}"].take(chosen) for name in best.columns
    ]
    return pa.Table.from_arrays(columns, names=[*map(str, range(len(columns)))])


def _values(best: Best, rows: pa.Table) -> pa.Table:
    """The ids of the rows of one search, and the properties that were read of them."""
    names = dict.fromkeys(f"{READ}{name}" for name in best.columns if name is not None)
    return rows.select(["id", *names])


def _is_descending(plan: Plan, name: str) -> bool:
    relation = plan.relations[name]
    assert isinstance(relation, SearchRows), "it is a search"
    return not isinstance(relation.search, Nearness)
