"""Plans of a load: what each engine makes them from, and what all of them have in common."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

from omnigraph.choices import Mode, OnDuplicate
from omnigraph.clock import Clock
from omnigraph.embedding.counts import EmbeddingCounts
from omnigraph.embedding.writes import WriteEmbedding
from omnigraph.engine.choose import Choice
from omnigraph.errors import ConflictError, ErrorCode
from omnigraph.integrity import footprint
from omnigraph.integrity.deltas import Delta, TableDelta
from omnigraph.integrity.rules import RuleSet
from omnigraph.load.quarantine import RejectsFile
from omnigraph.load.results import Progress
from omnigraph.load.shaping.batches import Shaping
from omnigraph.load.sources import Inputs, SparkFile
from omnigraph.model.tables import TableKey
from omnigraph.schema.catalog import SchemaType
from omnigraph.storage.staging import StagedWrite
from omnigraph.storage.tables import Table
from omnigraph.transaction.view import View
from omnigraph.transaction.writes import Prepare, Stage, WritePlan


@dataclass(frozen=True, slots=True)
class LoadReport:
    """What a plan will do: rows to write by table, and how many it rejects or replaces itself."""

    written: Mapping[TableKey, int] = field(default_factory=dict)
    rejected: int = 0
    superseded: int = 0


class EngineLoad(Protocol):
    """One load on one engine. Its input is read once, however often it is planned."""

    @property
    def setup(self) -> LoadSetup:
        """The settings of the load."""
        ...

    @property
    def embedding(self) -> EmbeddingCounts:
        """What was done about vectors, once the last plan has been staged."""
        ...

    def plan(self, view: View) -> WritePlan[LoadReport]:
        """What the input changes in this view; writes nothing but the rows that it rejects."""
        ...

    def close(self) -> None:
        """Delete temporary files; what was staged stays."""
        ...


class Loader(Protocol):
    """Begins loads on one engine."""

    def begin_load(self, setup: LoadSetup) -> EngineLoad:
        """A load of which nothing has been read."""
        ...

    def find_files(self, url: str) -> Sequence[SparkFile]:
        """The files that the URL of a file system of the engine's names; see `FindFiles`."""
        ...


@dataclass(frozen=True, slots=True)
class Stages:
    """Reports how far a load is, and measures how many seconds each stage takes."""

    clock: Clock
    progress: Progress | None
    seconds: dict[str, float] = field(default_factory=dict)

    def report(self, stage: str, done: int, total: int | None) -> None:
        """Report how far a stage is."""
        if self.progress is not None:
            self.progress(stage, done, total)

    @contextmanager
    def measure(self, stage: str) -> Iterator[None]:
        """Count the time of a block as the stage's."""
        started = self.clock.now()
        try:
            yield
        finally:
            took = (self.clock.now() - started).total_seconds()
            self.seconds[stage] = self.seconds.get(stage, 0.0) + took

    def follow_staging(self, changes: Mapping[TableKey, Stage]) -> dict[TableKey, Stage]:
        """The same changes, each measured and reported when it is staged."""
        done = 0

        def run(stage: Stage, table: Table) -> StagedWrite | None:
            nonlocal done
            with self.measure("stage"):
                staged = stage(table)
            done += 1
            self.report("stage", done, len(changes))
            return staged

        return {key: partial(run, stage) for key, stage in changes.items()}


@dataclass(frozen=True, slots=True)
class LoadSetup:
    """One load, of which nothing has been read.

    Attributes:
        choice: The engine that carries it out, and why.
        shaping: Its seed belongs to this load alone.
        schema_digest: The schema that its rows are shaped for.
        rejects: Where rows that break rules are written; None where they fail the load.
        embedding: Makes the vectors of rows whose texts are new or changed.
        on_duplicate: Which of several rows of one id is loaded.
    """

    inputs: Inputs
    choice: Choice
    mode: Mode
    shaping: Shaping
    rule_set: RuleSet
    schema_digest: str
    rejects: RejectsFile | None
    stages: Stages
    embedding: WriteEmbedding
    on_duplicate: OnDuplicate = OnDuplicate.REJECT

    def require_schema(self, view: View) -> None:
        """Refuse a view whose schema is not the one that rows are shaped for."""
        if view.snapshot.schema_digest != self.schema_digest:
            message = "the schema changed while the input was read"
            raise ConflictError(message, hint="load again", code=ErrorCode.SCHEMA_CHANGED)

    def types(self, keys: Iterable[TableKey]) -> tuple[SchemaType, ...]:
        """The types that the input names, by itself or by rows of these tables, in order."""
        catalog = self.shaping.catalog
        named = {catalog.type_named(name).table_key for name in self.inputs.named_types}
        return tuple(catalog.type_of(key) for key in sorted({*keys, *named}))

    def delta(self, types: Iterable[SchemaType], rows: Mapping[TableKey, Any]) -> Delta:
        """The delta of these rows in the mode of the load."""
        return Delta(
            {
                type_.table_key: TableDelta(
                    upserts=rows.get(type_.table_key),
                    overwrites=self.mode is Mode.OVERWRITE,
                    only_new=self.mode is Mode.APPEND,
                )
                for type_ in types
            }
        )

    def work(
        self,
        delta: Delta,
        changes: Mapping[TableKey, Stage],
        report: LoadReport,
        prepare: Prepare | None = None,
    ) -> WritePlan[LoadReport]:
        """The finished plan; the note of its commit has the number of rejected rows."""
        footprints = footprint.footprints(self.rule_set, delta.shape())
        return WritePlan(
            report,
            changes=self.stages.follow_staging(changes),
            prepare=None if prepare is None else partial(self._prepare, prepare),
            reads=footprint.reads(footprints),
            locks=footprint.guards(footprints),
            can_replan=self.mode is Mode.APPEND,
            note="" if self.rejects is None else self.rejects.note(report.rejected),
            is_bulk=self.choice.is_bulk,
        )

    def _prepare(self, prepare: Prepare, tables: Mapping[TableKey, Table]) -> None:
        with self.stages.measure("stage"):
            prepare(tables)
