"""Duplicates: which of several rows of one id a load writes."""

from __future__ import annotations

from typing import assert_never

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.choices import Mode, OnDuplicate
from omnigraph.errors import InvalidParameterError
from omnigraph.integrity.deltas import POSITION
from omnigraph.model.arguments import require_choice


def choose_on_duplicate(wanted: str | None, mode: Mode, *, is_ordered: bool) -> OnDuplicate:
    """The caller's choice, or that of the mode: a merge keeps the last row of an id.

    Args:
        is_ordered: Whether the rows have an order. If not, all rows of one id are rejected.
    """
    if wanted is None:
        return OnDuplicate.LAST if mode is Mode.MERGE and is_ordered else OnDuplicate.REJECT
    choice = require_choice(wanted, OnDuplicate, "on_duplicate")
    if choice is not OnDuplicate.REJECT and not is_ordered:
        message = f"on_duplicate is {choice}, but the rows of a DataFrame of Spark have no order"
        hint = "name the column that orders them: order_by="
        raise InvalidParameterError(message, hint=hint, name="on_duplicate")
    return choice


def keep_one(rows: pa.Table, choice: OnDuplicate) -> pa.Table:
    """The rows without those that another row of their id supersedes, in the order of the input."""
    if choice is OnDuplicate.REJECT:
        return rows
    if pc.count_distinct(rows["id"], mode="all").as_py() == len(rows):
        return rows
    rows = rows.sort_by(POSITION)
    ids = pc.dictionary_encode(rows["id"].combine_chunks(), null_encoding="encode")
    codes = ids.indices.to_numpy()
    match choice:
        case OnDuplicate.FIRST:
            _, kept = np.unique(codes, return_index=True)
        case OnDuplicate.LAST:
            _, from_end = np.unique(codes[::-1], return_index=True)
            kept = len(codes) - 1 - from_end
        case _:
            assert_never(choice)
    return rows.take(pa.array(np.sort(kept)))
