"""The Spark backend: executors read, compare and write; the driver plans and publishes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from omnigraph.algorithms.requests import Algorithm
from omnigraph.algorithms.results import Rounds
from omnigraph.algorithms.selection import EdgeSelection
from omnigraph.algorithms.spark.run import SparkAlgorithms
from omnigraph.changes.lifts import LiftPair
from omnigraph.changes.rows import Changes
from omnigraph.changes.spark.tables import compare_on_spark
from omnigraph.choices import EngineName, ExportFormat
from omnigraph.clock import Clock
from omnigraph.engine.protocol import Data
from omnigraph.engine.spark.execute import Frame, SparkEngine
from omnigraph.evolution.backfill import FilledTable, TableFill
from omnigraph.evolution.spark.backfill import fill_on_spark
from omnigraph.export.folders import ExportFolder
from omnigraph.export.plans import ExportFiles, ExportPlan
from omnigraph.export.spark.parts import export_parts
from omnigraph.load.plans import EngineLoad, LoadSetup
from omnigraph.load.sources import SparkFile
from omnigraph.load.spark.file_systems import find_files
from omnigraph.load.spark.load import SparkLoad
from omnigraph.maintenance.embedding.run import BatchEmbedder
from omnigraph.maintenance.indexes import Follow, IndexRun
from omnigraph.maintenance.optimize import Compaction
from omnigraph.maintenance.spark.compaction import SparkCompaction
from omnigraph.maintenance.spark.embedding import SparkBatches
from omnigraph.maintenance.spark.indexes import SparkIndexing
from omnigraph.merge.resolutions import Resolutions
from omnigraph.merge.rows import MergeRows
from omnigraph.merge.spark.tables import SparkRows
from omnigraph.model.ids import CommitId
from omnigraph.model.settings import EmbeddingSettings
from omnigraph.relational.plans import Plan
from omnigraph.schema.catalog import SchemaType
from omnigraph.storage.tables import Table


class SparkBackend:
    """Implements `omnigraph.backends.protocol` on Spark."""

    def __init__(self, engine: SparkEngine | None = None) -> None:
        self._engine = engine or SparkEngine()

    @property
    def name(self) -> EngineName:
        """Which engine this is."""
        return self._engine.name

    @property
    def dialect(self) -> str:
        """The SQL that this engine runs, as sqlglot names it."""
        return self._engine.dialect

    def means(self, plan: Plan, data: Data) -> str:
        """By what the engine would answer the plan, and why. Reads no rows."""
        return self._engine.means(plan, data)

    def searches(self, plan: Plan, data: Data) -> Mapping[str, str]:
        """How the engine would answer each search of a plan. Reads no rows."""
        return self._engine.searches(plan, data)

    def run(self, plan: Plan, data: Data) -> pa.Table:
        """The plan's rows, in its order, with exactly the columns it declares."""
        return self._engine.run(plan, data)

    def compare(
        self,
        type_: SchemaType,
        before: Table | None,
        after: Table | None,
        data: Data,  # noqa: ARG002  # executors open what they compare
        lifts: LiftPair | None = None,
    ) -> Changes:
        """How the rows of a type differ between two versions of its table."""
        return compare_on_spark(type_, before, after, self._engine, lifts)

    def begin_merge(
        self,
        commit_id: CommitId,
        data: Data,  # noqa: ARG002  # executors open what they merge
        resolutions: Resolutions,
        *,
        strict_rows: bool,
    ) -> MergeRows:
        """A merge that has decided nothing."""
        return SparkRows.begin(self._engine, commit_id, resolutions, strict_rows=strict_rows)

    def begin_load(self, setup: LoadSetup) -> EngineLoad:
        """A load that has read nothing; starts Spark if it is not running yet."""
        return SparkLoad.begin(self._engine, setup)

    def find_files(self, url: str) -> Sequence[SparkFile]:
        """The files that the URL of a file system of Spark's names."""
        return find_files(self._engine.session, url)

    def begin_indexing(self, clock: Clock, follow: Follow | None) -> IndexRun:
        """A run that has built nothing."""
        return SparkIndexing(self._engine.session, clock.ulid(), follow)

    def begin_compaction(self, clock: Clock, follow: Follow | None) -> Compaction:
        """A run that has rewritten nothing."""
        return SparkCompaction(self._engine.session, clock.ulid(), follow)

    def fill_columns(
        self, fills: Sequence[TableFill], clock: Clock, follow: Follow | None = None
    ) -> list[FilledTable]:
        """Write the columns of all fragments of these tables; the results in their order."""
        return fill_on_spark(self._engine.session, fills, clock.ulid(), follow)

    def begin_embedding(self, settings: EmbeddingSettings, clock: Clock) -> BatchEmbedder:
        """A run that has embedded nothing."""
        return SparkBatches(self._engine.session, clock.ulid(), settings)

    def run_algorithm(
        self, algorithm: Algorithm, selection: EdgeSelection
    ) -> tuple[Frame, Rounds | None]:
        """The rows of a result, as a DataFrame, whose rows executors hold."""
        return SparkAlgorithms.begin(self._engine.session, selection).run(algorithm)

    def exports_one_file(self, format_: ExportFormat) -> bool:  # noqa: ARG002
        """Whether an export of this format is one file: none is, since executors write parts."""
        return False

    def export_files(self, plan: ExportPlan, folder: ExportFolder) -> ExportFiles:
        """Write the rows into a folder, one file for each part of a type."""
        return export_parts(self._engine.session, plan, folder)
