"""The best of a type, from what a search has found: such a result needs no SQL."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from omnigraph.relational.plans import Plan, SearchRows
from omnigraph.relational.searches import READ, SCORE, Nearness


def pick_best(plan: Plan, found: Mapping[str, pa.Table]) -> pa.Table | None:
    """The result of a plan that is the best of a type; None if it takes more than what was found.

    Args:
        found: The rows of each search, with properties where these were read.
    """
    best = plan.best
    if best is None or len(best.searches) != 1:
        return None
    (name,) = best.searches
    rows, relation = found[name], plan.relations[name]
    assert isinstance(relation, SearchRows), "it is a search"
    columns = [SCORE if column is None else f"{READ}{column}" for column in best.columns]
    if rows.num_rows < best.end or not set(columns) <= set(rows.column_names):
        return None
    order = rank(rows["id"], rows[SCORE], descending=not isinstance(relation.search, Nearness))
    chosen = pa.array(order[best.skip : best.end])
    return pa.Table.from_arrays(
        [rows[column].take(chosen) for column in columns],
        names=[*map(str, range(len(columns)))],
    )


def rank(ids: pa.ChunkedArray, scores: pa.ChunkedArray, *, descending: bool) -> np.ndarray:
    """The places of rows by their scores, those of equal scores by their ids."""
    numbers = scores.to_numpy()
    texts = np.array(ids.to_pylist(), dtype=object)
    return np.lexsort((texts, -numbers if descending else numbers))
