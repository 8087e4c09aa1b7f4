"""Identities: the ids of many rows at once, spelt from their keys, given, or minted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import InvalidInputError
from omnigraph.model.identity import KeyType, identity_of
from omnigraph.model.types import EnumType, Scalar
from omnigraph.pipeline.columns import Doubt
from omnigraph.pipeline.positions import minted_ids
from omnigraph.schema.catalog import ENDPOINTS, EdgeType, SchemaType

_ESCAPED: Final = r'[\x00-\x1f"\\]'
_SPELT_BY_ARROW: Final = frozenset(
    {Scalar.BOOL, Scalar.I32, Scalar.I64, Scalar.U32, Scalar.U64, Scalar.DATE}
)


def identities(
    type_: SchemaType,
    columns: Mapping[str, pa.Array],
    given: pa.Array | None,
    seed: str,
    positions: pa.Array,
) -> pa.Array:
    """What the exact converter gives as ids.

    Raises:
        Doubt: a member of a key is null or not finite, or an id is not what its key says.
    """
    if type_.key:
        return _spelt(type_, columns, given)
    if given is None or given.null_count == len(given):
        return minted_ids(seed, positions)
    return pc.coalesce(given, minted_ids(seed, positions)) if given.null_count else given


def _spelt(type_: SchemaType, columns: Mapping[str, pa.Array], given: pa.Array | None) -> pa.Array:
    members = [columns[name] for name in type_.key]
    if any(each.null_count for each in members):
        raise Doubt
    kinds = [_key_type(type_, name) for name in type_.key]
    found = _quickly(kinds, members)
    if found is None:
        found = _one_by_one(kinds, members)
    if given is not None and not pc.all(pc.equal(given, found), min_count=0).as_py():
        raise Doubt
    return found


def _quickly(kinds: list[KeyType], members: list[pa.Array]) -> pa.Array | None:
    """The ids, if Arrow can spell them."""
    spelt: list[pa.Array] = []
    for kind, values in zip(kinds, members, strict=True):
        if kind is Scalar.STRING or isinstance(kind, EnumType):
            spelt.append(values)
        elif kind in _SPELT_BY_ARROW:
            spelt.append(values.cast(pa.utf8()))
        else:
            return None
    if len(spelt) == 1:
        return spelt[0]
    if any(pc.any(pc.match_substring_regex(each, _ESCAPED)).as_py() for each in spelt):
        return None
    parts: list[Any] = ['["']
    for each in spelt:
        parts += [each, '","']
    parts[-1] = '"]'
    return pc.binary_join_element_wise(*parts, "")


def _one_by_one(kinds: list[KeyType], members: list[pa.Array]) -> pa.Array:
    rows = zip(*(each.to_pylist() for each in members), strict=True)
    try:
        return pa.array([identity_of(kinds, row) for row in rows], pa.utf8())
    except InvalidInputError as cause:
        raise Doubt from cause


def _key_type(type_: SchemaType, name: str) -> KeyType:
    if isinstance(type_, EdgeType) and name in ENDPOINTS:
        return Scalar.STRING
    return cast("KeyType", type_.property_named(name).type)
