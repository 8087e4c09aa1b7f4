"""Embedding of fragments: rows of a table with new vectors, as files that nothing refers to yet.

A large fragment has several parts, so that several tasks embed it, and several commits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from omnigraph.choices import EmbedScope
from omnigraph.embedding.embedder import Embedder
from omnigraph.embedding.rows import mark_unknown, note_rows, select_rows
from omnigraph.limits import EMBEDDED_PART_ROWS, LOAD_HELD_BYTES_MAX
from omnigraph.schema.arrow import table_schema, to_table
from omnigraph.schema.catalog import SchemaType
from omnigraph.schema.embeds import EmbeddedVector, embedded_vectors
from omnigraph.storage.embedding_filters import is_stale, may_be_pending, may_have_text
from omnigraph.storage.places import to_addresses
from omnigraph.storage.staging import write_files
from omnigraph.storage.tables import ROW_ADDRESS, ROW_ID, Fragment, Table


@dataclass(frozen=True, slots=True)
class FragmentRange:
    """Some rows of a fragment, by their offsets, deleted ones included: always the same rows."""

    fragment_id: int
    start: int
    end: int

    @property
    def row_count(self) -> int:
        """How many rows it has at most."""
        return self.end - self.start

    @property
    def filter_text(self) -> str:
        """Its rows, as a filter."""
        bounds = np.array([self.start, self.end], np.uint64)
        first, end = to_addresses(self.fragment_id, offsets=bounds).tolist()
        return f"{ROW_ADDRESS} >= {first} AND {ROW_ADDRESS} < {end}"


def parts_of(table: Table) -> Iterator[FragmentRange]:
    """The parts of all fragments of a table, in the order of a scan. Reads nothing."""
    for fragment in table.fragments():
        for start in range(0, fragment.physical_rows, EMBEDDED_PART_ROWS):
            end = min(start + EMBEDDED_PART_ROWS, fragment.physical_rows)
            yield FragmentRange(fragment.id, start, end)


@dataclass(frozen=True, slots=True)
class EmbeddedRows:
    """What embedding rows of one table has made, in files that nothing refers to.

    Attributes:
        replaced: The addresses of the rows that the files have in their place.
        count: Rows that got a vector, or lost one with their text.
        finished: The parts in which nothing is left to do.
    """

    files: tuple[Fragment, ...] = ()
    replaced: np.ndarray = field(default_factory=lambda: np.zeros(0, np.uint64))
    count: int = 0
    finished: frozenset[FragmentRange] = frozenset()


def combine(parts: Sequence[EmbeddedRows]) -> EmbeddedRows:
    """What several pieces of work have made."""
    return EmbeddedRows(
        tuple(file for part in parts for file in part.files),
        np.concatenate([np.zeros(0, np.uint64), *(part.replaced for part in parts)]),
        sum(part.count for part in parts),
        frozenset().union(*(part.finished for part in parts)),
    )


@dataclass(frozen=True, slots=True)
class FragmentTask:
    """Which rows of a type are embedded; small, and goes to executors."""

    type: SchemaType
    scope: EmbedScope

    @property
    def vectors(self) -> tuple[EmbeddedVector, ...]:
        """The vectors that are made."""
        return embedded_vectors(self.type)

    @property
    def filter_text(self) -> str:
        """The rows that may have to be read, as a filter."""
        parts = [f"({_filter(vector, self.scope)})" for vector in self.vectors]
        return " OR ".join(parts)


def _filter(vector: EmbeddedVector, scope: EmbedScope) -> str:
    match scope:
        case EmbedScope.PENDING:
            return may_be_pending(vector)
        case EmbedScope.STALE:
            return is_stale(vector)
        case EmbedScope.WAITING:
            return f"({may_be_pending(vector)}) OR ({is_stale(vector)})"
        case EmbedScope.ALL:
            return may_have_text(vector)


def embed_fragments(
    task: FragmentTask,
    table: Table,
    parts: Iterable[FragmentRange],
    embedder: Embedder,
    *,
    rows_max: int | None = None,
) -> EmbeddedRows:
    """Embed rows of these parts, in order, and write them again. No head moves.

    Safe to run in any process and to run twice.

    Args:
        rows_max: At most so many rows; the part where it ends is not finished.
    """
    writer = _RowWriter(task.type, table)
    finished: set[FragmentRange] = set()
    for part in parts:
        for batch in _read_batches(task, table, part):
            rows = batch
            while len(rows):
                room = len(rows) if rows_max is None else rows_max - writer.count
                if room <= 0:
                    return writer.finish(finished)
                # Cut before it is embedded: a text is not asked for by two commits.
                writer.take(_embed_rows(task, rows.slice(0, room), embedder))
                rows = rows.slice(room)
        finished.add(part)
    return writer.finish(finished)


def _read_batches(task: FragmentTask, table: Table, part: FragmentRange) -> Iterator[pa.Table]:
    columns = [*table_schema(task.type).names, ROW_ID, ROW_ADDRESS]
    filter_text = f"({task.filter_text}) AND {part.filter_text}"
    batches = table.scan(columns, filter_text=filter_text, fragment_ids=[part.fragment_id])
    for batch in batches:
        yield pa.Table.from_batches([batch])


def _embed_rows(task: FragmentTask, rows: pa.Table, embedder: Embedder) -> pa.Table:
    """The rows that change, with their new vectors."""
    changed: set[int] = set()
    for vector in task.vectors:
        noted = note_rows(vector, mark_unknown(vector, rows))
        wanted = select_rows(noted, task.scope)
        made = embedder.embed(vector.model, vector.dimension, wanted.missing_texts())
        changed.update(wanted.missing, noted.cleared)
        rows = wanted.fill(made).rows
    return rows.take(pa.array(sorted(changed), pa.int64()))


@dataclass(slots=True)
class _RowWriter:
    """Writes rows again, under the row ids that they have, and notes their former places."""

    type: SchemaType
    table: Table
    count: int = 0
    files: list[Fragment] = field(default_factory=list)
    held: list[pa.Table] = field(default_factory=list)
    replaced: list[np.ndarray] = field(default_factory=list)

    def take(self, rows: pa.Table) -> None:
        """Write these rows, perhaps later."""
        self.count += len(rows)
        self.held.append(rows)
        if sum(part.nbytes for part in self.held) > LOAD_HELD_BYTES_MAX:
            self._write()

    def finish(self, finished: Iterable[FragmentRange]) -> EmbeddedRows:
        """All that was written."""
        self._write()
        replaced = np.concatenate([np.zeros(0, np.uint64), *self.replaced])
        return EmbeddedRows(tuple(self.files), replaced, self.count, frozenset(finished))

    def _write(self) -> None:
        held, self.held = [rows for rows in self.held if len(rows)], []
        if held:
            # Sorted row ids are small in the metadata of a file.
            rows = pa.concat_tables(held).sort_by(ROW_ID)
            self.replaced.append(rows[ROW_ADDRESS].to_numpy())
            row_ids = rows[ROW_ID].to_pylist()
            self.files += write_files(self.table, to_table(rows, self.type), row_ids=row_ids)
