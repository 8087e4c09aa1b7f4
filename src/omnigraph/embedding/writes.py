"""Embedding within writes: the rows of a mutation or a load, with notes and with vectors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa

from omnigraph.choices import EmbedWhen
from omnigraph.clock import Clock
from omnigraph.embedding.counts import EmbeddingCounts
from omnigraph.embedding.notes import note_of
from omnigraph.embedding.rows import NotedRows, note_rows
from omnigraph.errors import EmbeddingError, OmnigraphError
from omnigraph.model.settings import EmbeddingSettings
from omnigraph.model.tables import TableKey
from omnigraph.schema.catalog import Catalog
from omnigraph.schema.embeds import EmbeddedVector, embedded_vectors

# A write that embeds nothing need not import providers.
if TYPE_CHECKING:
    from omnigraph.embedding.embedder import Embedder

FindRows: TypeAlias = "Callable[[pa.Array, list[str]], pa.Table]"
"""Reads some columns of the committed rows of some ids."""

FindCommitted: TypeAlias = "Callable[[TableKey, pa.Array, list[str]], pa.Table]"
"""The same, for any table."""


@dataclass(slots=True)
class WriteEmbedding:
    """Embeds the rows of one write, however often it is planned: each text is asked for once.

    Attributes:
        settings: Reads the settings of the graph; not called where nothing is embedded.
    """

    when: EmbedWhen
    settings: Callable[[], EmbeddingSettings]
    clock: Clock
    _embedder: Embedder | None = None

    def complete(
        self,
        catalog: Catalog,
        tables: Mapping[TableKey, pa.Table],
        find_committed: FindCommitted | None = None,
    ) -> tuple[dict[TableKey, pa.Table], EmbeddingCounts]:
        """The rows with right notes, and with vectors unless they are to wait.

        Args:
            tables: Whole rows by table, with the columns of a delta.
            find_committed: Finds the rows that these replace, where vectors may be reused.
        """
        completed = dict(tables)
        noted: list[tuple[TableKey, NotedRows]] = []
        reused = 0
        for key, rows in tables.items():
            for vector in embedded_vectors(catalog.type_of(key)):
                own = note_rows(vector, completed[key])
                if find_committed is not None and own.missing:
                    before = len(own.missing)
                    own = _reuse(own, partial(find_committed, key))
                    reused += before - len(own.missing)
                completed[key] = own.rows
                noted.append((key, own))
            assert len(rows) == len(completed[key]), "no row is added or lost"
        missing = sum(len(own.missing) for _, own in noted)
        if not missing or not self._is_due(missing):
            return completed, EmbeddingCounts(0, reused, missing)
        for key, own in noted:
            completed[key] = self._fill(replace(own, rows=completed[key]))
        return completed, EmbeddingCounts(missing, reused, 0)

    def for_tasks(self) -> RowEmbedding:
        """How tasks complete rows: without a word they leave them, since there are many."""
        return RowEmbedding(self.settings() if self.when is EmbedWhen.NOW else None)

    def _is_due(self, count: int) -> bool:
        match self.when:
            case EmbedWhen.NOW:
                return True
            case EmbedWhen.LATER:
                return False
            case EmbedWhen.AUTO:
                return count <= self.settings().now_rows

    def _fill(self, own: NotedRows) -> pa.Table:
        if self._embedder is None:
            from omnigraph.embedding.embedder import Embedder

            self._embedder = Embedder(self.settings(), self.clock)
        vector = own.vector
        try:
            made = self._embedder.embed(vector.model, vector.dimension, own.missing_texts())
        except OmnigraphError as failure:
            failure.add_note(f"while {vector.label} was embedded; nothing was written")
            if isinstance(failure, EmbeddingError) and "embed later" not in failure.hint:
                failure.hint = f"{failure.hint}; or write with --embed later".lstrip("; ")
            raise
        return own.fill(made).rows


@dataclass(frozen=True, slots=True)
class RowEmbedding:
    """How tasks in other processes complete their rows: small, and goes to executors.

    Attributes:
        settings: None where rows wait.
    """

    settings: EmbeddingSettings | None = None


@dataclass(slots=True)
class TaskEmbedder:
    """Completes the rows of one task, batch by batch."""

    task: RowEmbedding
    clock: Clock
    counts: EmbeddingCounts = field(default_factory=EmbeddingCounts)
    _embedder: Embedder | None = None

    def complete(
        self, vectors: Iterable[EmbeddedVector], rows: pa.Table, find: FindRows | None = None
    ) -> pa.Table:
        """The rows with right notes, and with vectors unless they are to wait.

        Args:
            find: Finds the rows that these replace, where vectors may be reused.
        """
        for vector in vectors:
            own = note_rows(vector, rows)
            if find is not None and own.missing:
                before = len(own.missing)
                own = _reuse(own, find)
                self.counts += EmbeddingCounts(reused=before - len(own.missing))
            if self.task.settings is not None and own.missing:
                self.counts += EmbeddingCounts(embedded=len(own.missing))
                own = self._fill(own, self.task.settings)
            self.counts += EmbeddingCounts(waiting=len(own.missing))
            rows = own.rows
        return rows

    def _fill(self, own: NotedRows, settings: EmbeddingSettings) -> NotedRows:
        if self._embedder is None:
            from omnigraph.embedding.embedder import Embedder

            self._embedder = Embedder(settings, self.clock)
        vector = own.vector
        made = self._embedder.embed(vector.model, vector.dimension, own.missing_texts())
        # A task reads more texts than it can hold vectors of.
        self._embedder.forget()
        return own.fill(made)


def _reuse(own: NotedRows, find: FindRows) -> NotedRows:
    """The rows with the vectors that committed rows of their ids have of the same texts."""
    vector = own.vector
    ids = own.rows["id"].combine_chunks().take(pa.array(own.missing, pa.int64()))
    committed = find(ids, ["id", vector.name, vector.companion])
    wanted = {note_of(vector.model, own.digests[place]) for place in own.missing}
    notes: list[Any] = committed[vector.companion].to_pylist()
    places = [place for place, note in enumerate(notes) if note in wanted]
    if not places:
        return own
    values = committed[vector.name].take(pa.array(places, pa.int64())).to_pylist()
    found = {
        notes[place].rpartition(" ")[2]: np.array(value, np.float32)
        for place, value in zip(places, values, strict=True)
        if value is not None
    }
    return own.fill(found)
