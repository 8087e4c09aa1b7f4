"""Identities: the ids of many rows at once, formatted from their keys, given, or minted."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.conversion.typed_columns import Doubt
from omnigraph.errors import InvalidInputError
from omnigraph.integrity.key_texts import format_keys, key_types
from omnigraph.load.positions import minted_ids
from omnigraph.schema.catalog import SchemaType


def identities(
    type_: SchemaType,
    columns: Mapping[str, pa.Array],
    given: pa.Array | None,
    seed: str,
    positions: pa.Array,
) -> tuple[pa.Array, int]:
    """The ids that the exact converter would assign, and how many of them were minted.

    Raises:
        Doubt: a member of a key is null or not finite, or an id differs from its key.
    """
    if type_.key:
        return _format_keys(type_, columns, given), 0
    if given is None or given.null_count == len(given):
        return minted_ids(seed, positions), len(positions)
    if not given.null_count:
        return given, 0
    return pc.coalesce(given, minted_ids(seed, positions)), given.null_count


def _format_keys(
    type_: SchemaType, columns: Mapping[str, pa.Array], given: pa.Array | None
) -> pa.Array:
    members = [columns[name] for name in type_.key]
    if any(member.null_count for member in members):
        raise Doubt
    try:
        ids = format_keys(key_types(type_), members)
    except InvalidInputError as cause:
        raise Doubt from cause
    if given is not None and not pc.all(pc.equal(given, ids), min_count=0).as_py():
        raise Doubt
    return ids
