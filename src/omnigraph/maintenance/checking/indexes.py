"""Checks of indexes: each can be read, and finds the rows that it covers, no more and no fewer."""

from __future__ import annotations

from typing import Final

from omnigraph.errors import OmnigraphError
from omnigraph.maintenance.checking.report import Finding, Invariant, Notebook
from omnigraph.maintenance.checking.search_indexes import find_fault
from omnigraph.maintenance.checking.tables import format_place
from omnigraph.maintenance.indexes import index_specs
from omnigraph.schema.catalog import SchemaType
from omnigraph.storage.array_files import list_arrays, read_arrays
from omnigraph.storage.indexes import (
    TableIndex,
    count_found,
    covered_fragments,
    read_indexes,
    require_readable,
)
from omnigraph.storage.tables import Table

UNINDEXED_ROWS_NOTED_MIN: Final = 100_000
"""Rows that an index lacks from which on a check notes it."""


_REBUILD = "build it anew: 'omnigraph index --rebuild'"


def check_indexes(table: Table, type_: SchemaType, notebook: Notebook, *, reads_rows: bool) -> None:
    """Check the indexes of a pinned version; note those that many rows lack.

    Args:
        reads_rows: Whether indexes are read whole; else only that their files are there.
    """
    row_counts = {fragment.id: fragment.num_rows for fragment in table.fragments()}
    for index in read_indexes(table):
        if index.spec is not None:
            notebook.count(Invariant.INDEX)
            _check_index(table, index, row_counts, notebook, reads_rows=reads_rows)
    for spec in index_specs(type_, table):
        covered = covered_fragments(table, spec)
        lacking = sum(rows for id_, rows in row_counts.items() if id_ not in covered)
        if lacking >= UNINDEXED_ROWS_NOTED_MIN:
            problem = f"its index on {spec.column} lacks {lacking:,} rows, which are scanned"
            step = "nothing: 'omnigraph index' extends it"
            place = format_place(table.address)
            subject = str(type_.table_key)
            notebook.note(Finding(Invariant.INDEX, subject, place, problem, step))


def check_arrays(table: Table, type_: SchemaType, notebook: Notebook) -> None:
    """Note damaged arrays of a table, which readers ignore."""
    for file in list_arrays(table.owner.objects, table.address.folder):
        if read_arrays(table, file.path) is None:
            problem = "it is damaged, and is ignored"
            step = "nothing: 'omnigraph index' writes it again"
            subject = f"arrays of {type_.table_key}"
            notebook.note(Finding(Invariant.INDEX, subject, file.path, problem, step))


def _check_index(
    table: Table,
    index: TableIndex,
    row_counts: dict[int, int],
    notebook: Notebook,
    *,
    reads_rows: bool,
) -> None:
    assert index.spec is not None, "it is of a kind of ours"
    subject = f"index on {index.spec.column}"
    place = format_place(table.address)
    covered = sum(row_counts.get(fragment_id, 0) for fragment_id in index.fragments)
    is_counted = reads_rows and not index.spec.kind.is_for_search
    try:
        require_readable(table, index)
        # Lance scans the table for an index of which no fragment is left.
        found = count_found(table, index) if is_counted and covered else covered
        is_searched = reads_rows and index.spec.kind.is_for_search
        fault = find_fault(table, index) if is_searched and covered else None
    except OmnigraphError as failure:
        what = "it cannot be read"
        notebook.fail(Invariant.INDEX, subject, place, failure, what=what, step=_REBUILD)
        return
    if fault is not None:
        notebook.find(Finding(Invariant.INDEX, subject, place, fault, _REBUILD))
    if found != covered:
        problem = f"it finds {found:,} rows, and the files that it covers have {covered:,}"
        notebook.find(Finding(Invariant.INDEX, subject, place, problem, _REBUILD))
