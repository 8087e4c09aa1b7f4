"""Identities: the ids of many rows at once, formatted from their keys, given, or minted."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.conversion.typed_columns import Doubt
from omnigraph.errors import InvalidInputError
from omnigraph.integrity.deltas import POSITION
from omnigraph.integrity.key_texts import format_keys, key_types
from omnigraph.load.positions import minted_ids
from omnigraph.schema.catalog import SchemaType


def identities(type_: SchemaType, rows: pa.RecordBatch, seed: str) -> pa.Array:
    """The ids that the exact converter would assign; null if a given id differs from its key.

    Args:
        rows: Their ids as given, or null. No member of a key is null.
    """
    given = rows["id"]
    if not type_.key:
        if not given.null_count:
            return given
        minted = minted_ids(seed, rows[POSITION])
        return minted if given.null_count == len(rows) else pc.coalesce(given, minted)
    try:
        ids = format_keys(key_types(type_), [rows[name] for name in type_.key])
    except InvalidInputError as cause:
        raise Doubt from cause
    is_same = pc.fill_null(pc.equal(given, ids), True)  # noqa: FBT003
    return ids if pc.all(is_same, min_count=0).as_py() else pc.if_else(is_same, ids, None)
