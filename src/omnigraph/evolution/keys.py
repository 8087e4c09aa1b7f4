"""Keys of types that had none: whether rows can keep their ids, which edges refer to them by."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import InvalidInputError
from omnigraph.integrity.key_texts import format_keys, key_types
from omnigraph.integrity.violations import Breach, IntegrityReport, Rule, Tally, Violation, shorten
from omnigraph.limits import OFFENDERS_SHOWN_MAX
from omnigraph.model.identity import KeyType, KeyValue, identity_of
from omnigraph.schema.catalog import SchemaType


def check_kept_ids(type_: SchemaType, batch: pa.RecordBatch) -> IntegrityReport:
    """The rows whose id is not what their key says.

    A row with a null in its key is not among them: the rule that the key is not null finds it.

    Args:
        type_: The type as the new schema has it.
        batch: Rows with the columns `id` and those of the key.
    """
    members = [batch.column(name) for name in type_.key]
    is_whole = np.ones(batch.num_rows, np.bool_)
    for member in members:
        is_whole &= member.is_valid().to_numpy(zero_copy_only=False)
    ids = batch.column("id")
    if not is_whole.all():
        mask = pa.array(is_whole)
        ids, members = ids.filter(mask), [member.filter(mask) for member in members]
    tally = Tally()
    breach = Breach(Rule.TYPE, type_.name, ("id",))
    key_ids = _format_ids(type_, members)
    differing = np.flatnonzero(pc.not_equal(ids, key_ids).fill_null(True))  # noqa: FBT003
    first = (
        _describe(breach, ids[row].as_py(), key_ids[row].as_py())
        for row in differing[:OFFENDERS_SHOWN_MAX].tolist()
    )
    tally.add_offenders(breach, len(differing), first)
    return tally.report()


def _format_ids(type_: SchemaType, members: list[pa.Array]) -> pa.Array:
    """The ids that the keys say; null where a number is not finite and a key says none."""
    types = key_types(type_)
    try:
        return format_keys(types, members)
    except InvalidInputError:
        rows = zip(*(member.to_pylist() for member in members), strict=True)
        return pa.array([_format_id(types, row) for row in rows], pa.utf8())


def _format_id(types: list[KeyType], members: tuple[KeyValue, ...]) -> str | None:
    try:
        return identity_of(types, members)
    except InvalidInputError:
        return None


def _describe(breach: Breach, row_id: str, key_id: str | None) -> Violation:
    key = "a key with a number that is not finite" if key_id is None else shorten(key_id)
    reason = f"the id {shorten(row_id)} does not match the key, which gives {key}"
    return Violation(breach, row_id, row_id, "", f"{breach.type_name} {shorten(row_id)}: {reason}")
