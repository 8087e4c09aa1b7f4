"""Kinds of vector indexes: which one a table gets where the schema leaves that to its size."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from omnigraph.choices import IndexKind, VectorKind
from omnigraph.schema.catalog import VectorOptions
from omnigraph.storage.indexes import IndexSpec, read_indexes
from omnigraph.storage.tables import Table

VECTOR_INDEX_ROWS_MIN: Final = 10_000
"""Rows of a table below which its vectors get no index, unless the schema says which: a scan of
them is exact, and about as fast."""

VECTOR_FLAT_ROWS_MAX: Final = 1 << 20
"""Rows of a table above which an index of vectors has codes in their place, unless the schema says
which: codes take a thirtieth of the space, and half a minute to learn."""


def choose_kind(table: Table, spec: IndexSpec) -> IndexSpec | None:
    """The index that a table gets; None if it has so few rows that a scan is as fast.

    An index that is there stays what it is: its table may get smaller and larger.
    """
    options = spec.options
    if not isinstance(options, VectorOptions):
        return spec
    if options.kind is not None:
        kind = _buildable_kind(spec.column, options.kind)
        return replace(spec, options=replace(options, kind=kind))
    rows = table.count_rows()
    kind = VectorKind.IVF_FLAT if rows <= VECTOR_FLAT_ROWS_MAX else VectorKind.IVF_PQ
    kind = _buildable_kind(spec.column, kind)
    chosen = replace(spec, options=replace(options, kind=kind))
    for index in read_indexes(table):
        if index.spec is not None and _differ_in_kind_alone(index.spec, chosen):
            return index.spec
    return chosen if rows >= VECTOR_INDEX_ROWS_MIN else None


def _buildable_kind(column: str, kind: VectorKind) -> VectorKind:
    # Lance has a column of this name in such an index, and panics (docs/substrate.md).
    is_refused = column == "flat" and kind is VectorKind.IVF_FLAT
    return VectorKind.IVF_PQ if is_refused else kind


def _differ_in_kind_alone(left: IndexSpec, right: IndexSpec) -> bool:
    ours, theirs = left.options, right.options
    return (
        left.kind is IndexKind.VECTOR
        and left.column == right.column
        and isinstance(ours, VectorOptions)
        and isinstance(theirs, VectorOptions)
        and ours.metric is theirs.metric
    )
