"""Runs of `embed`: commits of bounded size, each planned on the newest rows of the branch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Protocol, TypeAlias

import pyarrow as pa

from omnigraph.choices import EmbedScope, EngineName
from omnigraph.clock import Clock
from omnigraph.embedding.counts import EmbeddingStatus
from omnigraph.embedding.embedder import Embedder
from omnigraph.engine.choose import Choice, Measure, by_size
from omnigraph.limits import EMBEDDED_HELD_BYTES_MAX
from omnigraph.maintenance.embedding.fragments import (
    EmbeddedRows,
    FragmentRange,
    FragmentTask,
    embed_fragments,
    parts_of,
)
from omnigraph.maintenance.embedding.status import find_status
from omnigraph.maintenance.results import EmbedResult
from omnigraph.model.settings import EmbeddingSettings
from omnigraph.model.tables import TableKey
from omnigraph.schema.embeds import embedded_vectors
from omnigraph.storage.staging import StagedWrite, delete_rows, stage_change
from omnigraph.storage.tables import Table
from omnigraph.transaction.commit import Transactions
from omnigraph.transaction.view import View
from omnigraph.transaction.writes import WritePlan, WriteRequest

EMBEDDED_ROWS_PER_COMMIT: Final = 10_000
"""Rows that `embed` embeds before it commits them: what a kill can cost at most."""

EMBED_LOCAL_ROWS_MAX: Final = 500_000
"""Rows that `embed` embeds in this process; above, `auto` chooses Spark."""


Follow: TypeAlias = "Callable[[int, int], None]"
"""Called with how many rows have been embedded, and of how many."""


class BatchEmbedder(Protocol):
    """Embeds the next rows of a table, where an engine does that."""

    def embed(
        self, task: FragmentTask, table: Table, parts: tuple[FragmentRange, ...]
    ) -> EmbeddedRows:
        """Embed as many rows of these parts as one commit may have."""
        ...

    def forget(self) -> None:
        """Release vectors that have been committed."""
        ...


class EmbeddingEngine(Protocol):
    """What an engine does for `embed`."""

    def begin_embedding(self, settings: EmbeddingSettings, clock: Clock) -> BatchEmbedder:
        """A run that has embedded nothing."""
        ...


@dataclass(frozen=True, slots=True)
class LocalBatches:
    """Embeds rows in this process. Vectors stay in memory until their commit has landed.

    Some stay for longer: rows of several commits may have the same text.
    """

    embedder: Embedder

    def embed(
        self, task: FragmentTask, table: Table, parts: tuple[FragmentRange, ...]
    ) -> EmbeddedRows:
        """Embed the next rows."""
        rows_max = EMBEDDED_ROWS_PER_COMMIT
        return embed_fragments(task, table, parts, self.embedder, rows_max=rows_max)

    def forget(self) -> None:
        """Release the vectors, but for those that were made last."""
        self.embedder.forget(bytes_kept=EMBEDDED_HELD_BYTES_MAX)


@dataclass(slots=True)
class _Batch:
    """The rows of one commit, once they have been staged."""

    rows: EmbeddedRows = field(default_factory=EmbeddedRows)


@dataclass(slots=True)
class EmbeddingRun:
    """One run on a branch. A kill costs the rows of one commit at most; a new run continues.

    Attributes:
        types: The names of types, or None for all.
        begin: Begins the run of an engine.
        view: Returns the newest view of the branch.
    """

    transactions: Transactions
    request: WriteRequest
    scope: EmbedScope
    types: tuple[str, ...] | None
    engine: str | None
    begin: Callable[[EngineName], BatchEmbedder]
    view: Callable[[], View]
    follow: Follow | None = None
    _finished: dict[TableKey, set[FragmentRange]] = field(default_factory=dict)
    _at_start: dict[TableKey, frozenset[int]] = field(default_factory=dict)

    def run(self) -> EmbedResult:
        """Embed all rows of the scope."""
        view = self.view()
        before = find_status(view, self.types)
        total = self._count(before)
        measure = Measure.of_count(total, EMBED_LOCAL_ROWS_MAX, "row to embed")
        choice = by_size(self.engine, [measure])
        names = dict.fromkeys(status.type_name for status in before)
        keys = [view.catalog.type_named(name).table_key for name in names]
        self._at_start = {key: frozenset(_fragment_ids(view.data.table(key))) for key in keys}
        embedded: dict[str, int] = {}
        commits: list[str] = []
        if total:
            batches = self.begin(choice.engine)
            for key in keys:
                self._embed_table(key, choice, batches, embedded, commits, total)
        after = find_status(self.view(), self.types)
        branch = str(self.request.branch)
        return EmbedResult(branch, choice.engine, choice.why, embedded, tuple(commits), after)

    def _count(self, statuses: tuple[EmbeddingStatus, ...]) -> int:
        match self.scope:
            case EmbedScope.WAITING:
                return sum(status.waiting for status in statuses)
            case EmbedScope.PENDING:
                return sum(status.pending for status in statuses)
            case EmbedScope.STALE:
                return sum(status.stale for status in statuses)
            case EmbedScope.ALL:
                return sum(status.waiting + status.current for status in statuses)

    def _embed_table(
        self,
        key: TableKey,
        choice: Choice,
        batches: BatchEmbedder,
        embedded: dict[str, int],
        commits: list[str],
        total: int,
    ) -> None:
        while True:
            plan = partial(self._plan, key, batches, is_bulk=choice.is_bulk)
            landed = self.transactions.run(self.request, plan)
            if landed.commit is None:
                return
            rows = landed.report.rows
            self._finished.setdefault(key, set()).update(rows.finished)
            batches.forget()
            commits.append(str(landed.commit.commit_id))
            name = str(key.type_name)
            embedded[name] = embedded.get(name, 0) + rows.count
            if self.follow is not None:
                done = sum(embedded.values())
                self.follow(done, max(done, total))

    def _plan(
        self, key: TableKey, batches: BatchEmbedder, view: View, *, is_bulk: bool
    ) -> WritePlan[_Batch]:
        """Embed the next rows of a table, as they are now, once the branch has a ref of it."""
        batch = _Batch()
        if key not in view.snapshot.pins:
            return WritePlan(batch)
        task = FragmentTask(view.catalog.type_of(key), self.scope)
        if not embedded_vectors(task.type):
            return WritePlan(batch)
        is_owned = view.snapshot.owns(view.snapshot.pin(key))
        if not is_owned and not view.data.table(key).count_rows(task.filter_text):
            return WritePlan(batch)
        stage = partial(self._stage, key, task, batches, batch)
        return WritePlan(batch, {key: stage}, can_replan=True, is_bulk=is_bulk)

    def _stage(
        self, key: TableKey, task: FragmentTask, batches: BatchEmbedder, batch: _Batch, table: Table
    ) -> StagedWrite | None:
        # Files belong to the ref that they are written for, which a plan need not have yet.
        batch.rows = batches.embed(task, table, self._left(key, table))
        if not batch.rows.count:
            return None
        # Here, and not by each task: a fragment has one file of deletions.
        deletions = delete_rows(table, pa.chunked_array([batch.rows.replaced]))
        return stage_change(table, files=batch.rows.files, deletions=deletions)

    def _left(self, key: TableKey, table: Table) -> tuple[FragmentRange, ...]:
        """The parts of fragments with rows that may have to be embedded.

        Rows of a fragment never change: a part that is finished stays so. If all rows are embedded
        again, those in new fragments have been, or were written by others with their vectors.
        """
        finished = self._finished.get(key, set())
        parts = [part for part in parts_of(table) if part not in finished]
        if self.scope is EmbedScope.ALL:
            parts = [part for part in parts if part.fragment_id in self._at_start[key]]
        return tuple(parts)


def _fragment_ids(table: Table) -> list[int]:
    return [fragment.id for fragment in table.fragments()]
