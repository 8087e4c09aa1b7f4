"""Identities: the ids of many rows at once, formatted from their keys, given, or minted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import InvalidInputError
from omnigraph.load.positions import minted_ids
from omnigraph.load.shaping.typed_columns import Doubt
from omnigraph.model.identity import KeyType, identity_of
from omnigraph.model.types import EnumType, Scalar
from omnigraph.schema.catalog import ENDPOINTS, EdgeType, SchemaType

_ESCAPED: Final = r'[\x00-\x1f"\\]'
_FORMATTED_BY_ARROW: Final = frozenset(
    {Scalar.BOOL, Scalar.I32, Scalar.I64, Scalar.U32, Scalar.U64, Scalar.DATE}
)


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
    kinds = [_key_type(type_, name) for name in type_.key]
    ids = _format_columns(kinds, members)
    if ids is None:
        ids = _format_rows(kinds, members)
    if given is not None and not pc.all(pc.equal(given, ids), min_count=0).as_py():
        raise Doubt
    return ids


def _format_columns(kinds: list[KeyType], members: list[pa.Array]) -> pa.Array | None:
    """The ids, if Arrow can format them."""
    texts: list[pa.Array] = []
    for kind, values in zip(kinds, members, strict=True):
        if kind is Scalar.STRING or isinstance(kind, EnumType):
            texts.append(values)
        elif kind in _FORMATTED_BY_ARROW:
            texts.append(values.cast(pa.utf8()))
        else:
            return None
    if len(texts) == 1:
        return texts[0]
    if any(pc.any(pc.match_substring_regex(text, _ESCAPED)).as_py() for text in texts):
        return None
    parts: list[Any] = ['["']
    for text in texts:
        parts += [text, '","']
    parts[-1] = '"]'
    return pc.binary_join_element_wise(*parts, "")


def _format_rows(kinds: list[KeyType], members: list[pa.Array]) -> pa.Array:
    rows = zip(*(member.to_pylist() for member in members), strict=True)
    try:
        return pa.array([identity_of(kinds, row) for row in rows], pa.utf8())
    except InvalidInputError as cause:
        raise Doubt from cause


def _key_type(type_: SchemaType, name: str) -> KeyType:
    if isinstance(type_, EdgeType) and name in ENDPOINTS:
        return Scalar.STRING
    return cast("KeyType", type_.property_named(name).type)
