"""Key texts: the ids of many rows at once, formatted from the columns of their keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, cast

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.model.identity import KeyType, identity_of
from omnigraph.model.types import EnumType, Scalar
from omnigraph.schema.catalog import ENDPOINTS, EdgeType, SchemaType

_ESCAPED: Final = r'[\x00-\x1f"\\]'
_FORMATTED_BY_ARROW: Final = frozenset(
    {Scalar.BOOL, Scalar.I32, Scalar.I64, Scalar.U32, Scalar.U64, Scalar.DATE}
)


def key_types(type_: SchemaType) -> list[KeyType]:
    """The types of the members of a type's key, in order."""
    return [_key_type(type_, name) for name in type_.key]


def format_keys(types: Sequence[KeyType], members: Sequence[pa.Array]) -> pa.Array:
    """The id of each row, as `identity_of` formats it. No member is null."""
    ids = _format_columns(types, members)
    return _format_rows(types, members) if ids is None else ids


def _format_columns(types: Sequence[KeyType], members: Sequence[pa.Array]) -> pa.Array | None:
    """The ids, if Arrow can format them."""
    texts: list[pa.Array] = []
    for type_, values in zip(types, members, strict=True):
        if type_ is Scalar.STRING or isinstance(type_, EnumType):
            texts.append(values)
        elif type_ in _FORMATTED_BY_ARROW:
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


def _format_rows(types: Sequence[KeyType], members: Sequence[pa.Array]) -> pa.Array:
    rows = zip(*(member.to_pylist() for member in members), strict=True)
    return pa.array([identity_of(types, row) for row in rows], pa.utf8())


def _key_type(type_: SchemaType, name: str) -> KeyType:
    if isinstance(type_, EdgeType) and name in ENDPOINTS:
        return Scalar.STRING
    return cast("KeyType", type_.property_named(name).type)
