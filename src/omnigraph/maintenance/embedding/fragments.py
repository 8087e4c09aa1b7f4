"""Embedding of fragments: rows of a table with new vectors, as files that nothing refers to yet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from omnigraph.choices import EmbedScope
from omnigraph.embedding.embedder import Embedder
from omnigraph.embedding.rows import mark_unknown, note_rows, select_rows
from omnigraph.limits import LOAD_HELD_BYTES_MAX
from omnigraph.schema.arrow import table_schema, to_table
from omnigraph.schema.catalog import SchemaType
from omnigraph.schema.embeds import EmbeddedVector, embedded_vectors
from omnigraph.storage.embedding_filters import is_stale, may_be_pending, may_have_text
from omnigraph.storage.staging import Deletions, combine_deletions, delete_rows, write_files
from omnigraph.storage.tables import ROW_ADDRESS, ROW_ID, Fragment, Table


@dataclass(frozen=True, slots=True)
class EmbeddedRows:
    """What embedding rows of one table has made, in files that nothing refers to.

    Attributes:
        count: Rows that got a vector, or lost one with their text.
        finished: The ids of fragments in which nothing is left to do.
    """

    files: tuple[Fragment, ...] = ()
    deletions: Deletions = field(default_factory=Deletions)
    count: int = 0
    finished: frozenset[int] = frozenset()


def combine(parts: Sequence[EmbeddedRows]) -> EmbeddedRows:
    """What several pieces of work have made."""
    return EmbeddedRows(
        tuple(file for part in parts for file in part.files),
        combine_deletions(part.deletions for part in parts),
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
    fragment_ids: Iterable[int],
    embedder: Embedder,
    *,
    rows_max: int | None = None,
) -> EmbeddedRows:
    """Embed rows of these fragments, in order, and write them again. No head moves.

    Safe to run in any process and to run twice.

    Args:
        rows_max: At most so many rows; the fragment where it ends is not finished.

    Raises:
        EmbeddingError: a provider failed.
        StorageError: a file could not be read or written.
    """
    writer = _RowWriter(task.type, table)
    finished: set[int] = set()
    for fragment_id in fragment_ids:
        for batch in _read_batches(task, table, fragment_id):
            rows = batch
            while len(rows):
                room = len(rows) if rows_max is None else rows_max - writer.count
                if room <= 0:
                    return writer.finish(finished)
                # Cut before it is embedded: a text is not asked for by two commits.
                writer.take(_embed_rows(task, rows.slice(0, room), embedder))
                rows = rows.slice(room)
        finished.add(fragment_id)
    return writer.finish(finished)


def _read_batches(task: FragmentTask, table: Table, fragment_id: int) -> Iterator[pa.Table]:
    columns = [*table_schema(task.type).names, ROW_ID, ROW_ADDRESS]
    batches = table.scan(columns, filter_text=task.filter_text, fragment_ids=[fragment_id])
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
    """Writes rows again, under the row ids that they have, and deletes their former places."""

    type: SchemaType
    table: Table
    count: int = 0
    files: list[Fragment] = field(default_factory=list)
    held: list[pa.Table] = field(default_factory=list)
    addresses: list[pa.ChunkedArray] = field(default_factory=list)

    def take(self, rows: pa.Table) -> None:
        """Write these rows, perhaps later."""
        self.count += len(rows)
        self.held.append(rows)
        if sum(part.nbytes for part in self.held) > LOAD_HELD_BYTES_MAX:
            self._write()

    def finish(self, finished: Iterable[int]) -> EmbeddedRows:
        """All that was written."""
        self._write()
        deletions = Deletions()
        if self.addresses:
            chunks = [chunk for column in self.addresses for chunk in column.chunks]
            # Once for all: a fragment has one file of deletions.
            deletions = delete_rows(self.table, pa.chunked_array(chunks))
        return EmbeddedRows(tuple(self.files), deletions, self.count, frozenset(finished))

    def _write(self) -> None:
        held, self.held = [rows for rows in self.held if len(rows)], []
        if held:
            # Sorted row ids are small in the metadata of a file.
            rows = pa.concat_tables(held).sort_by(ROW_ID)
            self.addresses.append(rows[ROW_ADDRESS])
            row_ids = rows[ROW_ID].to_pylist()
            self.files += write_files(self.table, to_table(rows, self.type), row_ids=row_ids)
