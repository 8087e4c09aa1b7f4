"""The list of indexes: what the schema asks for, what each table has, and how much it covers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from omnigraph.choices import IndexState
from omnigraph.limits import VECTOR_SEGMENT_ROWS_MIN
from omnigraph.maintenance.results import IndexStatus
from omnigraph.schema.catalog import SchemaType, VectorOptions
from omnigraph.schema.indexes import WantedIndex, wanted_indexes
from omnigraph.storage.indexes import IndexSpec, TableIndex, read_indexes
from omnigraph.storage.tables import Table
from omnigraph.storage.vector_kinds import choose_kind
from omnigraph.transaction.view import View


def list_indexes(
    view: View, now: datetime, sees: Callable[[str], bool] = lambda _: True
) -> tuple[IndexStatus, ...]:
    """The indexes of every type, in the order of the schema. Reads nothing but metadata.

    Args:
        sees: Whether a type is listed.
    """
    return tuple(
        status
        for type_ in view.catalog.types
        if sees(type_.name)
        for status in _of_type(type_, view.data.table(type_.table_key), now)
    )


def _of_type(type_: SchemaType, table: Table, now: datetime) -> Iterator[IndexStatus]:
    row_counts = {fragment.id: fragment.num_rows for fragment in table.fragments()}
    indexes = {index.spec: index for index in read_indexes(table) if index.spec is not None}
    for wanted in wanted_indexes(type_):
        spec = choose_kind(table, IndexSpec(wanted.column, wanted.kind, wanted.options))
        index = None if spec is None else indexes.pop(spec, None)
        chosen = wanted if spec is None else replace(wanted, options=spec.options)
        yield _status(type_, chosen, index, row_counts, now)
    for spec, index in indexes.items():
        unasked = WantedIndex(spec.column, spec.kind, (), spec.options)
        yield _status(type_, unasked, index, row_counts, now)


def _status(
    type_: SchemaType,
    wanted: WantedIndex,
    index: TableIndex | None,
    row_counts: Mapping[int, int],
    now: datetime,
) -> IndexStatus:
    rows = sum(row_counts.values())
    if index is None:
        state = _missing_state(wanted, rows)
        return IndexStatus(
            *(type_.name, wanted.column, wanted.kind, wanted.sources, state, rows),
            options=wanted.options,
        )
    covered = sum(row_counts.get(fragment_id, 0) for fragment_id in index.fragments)
    state = IndexState.COMPLETE if covered == rows else IndexState.PARTIAL
    if not wanted.sources:
        state = IndexState.NOT_NEEDED
    return IndexStatus(
        type_.name,
        wanted.column,
        wanted.kind,
        wanted.sources,
        state,
        rows,
        rows_covered=covered,
        segments=len(index.segments),
        bytes=index.byte_count,
        built_at=index.built_at,
        age=None if index.built_at is None else max(timedelta(0), now - index.built_at),
        options=wanted.options,
    )


def _missing_state(wanted: WantedIndex, rows: int) -> IndexState:
    if isinstance(wanted.options, VectorOptions):
        too_few = wanted.options.kind is None or rows < VECTOR_SEGMENT_ROWS_MIN
        return IndexState.SCANNED if too_few else IndexState.MISSING
    # A table without rows needs none yet.
    return IndexState.MISSING if rows else IndexState.COMPLETE
