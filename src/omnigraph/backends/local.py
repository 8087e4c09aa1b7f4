"""The local backend: DuckDB and Arrow, in this process."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING

import pyarrow as pa

from omnigraph.choices import EngineName
from omnigraph.engine.protocol import Data

# Each method imports the package that it needs, and the engine is imported when it is first used.
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from omnigraph.algorithms.requests import Algorithm
    from omnigraph.algorithms.results import Rounds
    from omnigraph.algorithms.selection import EdgeSelection
    from omnigraph.changes.lifts import LiftPair
    from omnigraph.changes.rows import Changes
    from omnigraph.choices import ExportFormat
    from omnigraph.clock import Clock
    from omnigraph.engine.local.execute import LocalEngine
    from omnigraph.evolution.backfill import FilledTable, TableFill
    from omnigraph.export.folders import ExportFolder
    from omnigraph.export.plans import ExportFiles, ExportPlan
    from omnigraph.load.plans import EngineLoad, LoadSetup
    from omnigraph.load.sources import SparkFile
    from omnigraph.maintenance.embedding.run import BatchEmbedder
    from omnigraph.maintenance.indexes import Follow, IndexRun
    from omnigraph.maintenance.optimize import Compaction
    from omnigraph.merge.resolutions import Resolutions
    from omnigraph.merge.rows import MergeRows
    from omnigraph.model.ids import CommitId
    from omnigraph.model.settings import EmbeddingSettings
    from omnigraph.relational.plans import Plan
    from omnigraph.schema.catalog import SchemaType
    from omnigraph.storage.tables import Table


class LocalBackend:
    """Implements `omnigraph.backends.protocol` on the local engine."""

    def __init__(self, engine: LocalEngine | None = None) -> None:
        self._made_engine = engine
        self._making = Lock()

    @property
    def _engine(self) -> LocalEngine:
        # Threads share one, with what it keeps.
        with self._making:
            if self._made_engine is None:
                from omnigraph.engine.local.execute import LocalEngine

                self._made_engine = LocalEngine()
            return self._made_engine

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
        data: Data,
        lifts: LiftPair | None = None,
    ) -> Changes:
        """How the rows of a type differ between two versions of its table."""
        from omnigraph.changes.tables import compare_tables

        return compare_tables(type_, before, after, self._engine, data, lifts=lifts)

    def begin_merge(
        self,
        commit_id: CommitId,  # noqa: ARG002  # only jobs on Spark need a name
        data: Data,
        resolutions: Resolutions,
        *,
        strict_rows: bool,
    ) -> MergeRows:
        """A merge that has decided nothing."""
        from omnigraph.merge.rows import LocalRows

        return LocalRows(self._engine, data, resolutions, strict_rows)

    def begin_load(self, setup: LoadSetup) -> EngineLoad:
        """A load that has read nothing."""
        from omnigraph.load.local import LocalLoad

        return LocalLoad(setup, self._engine)

    def find_files(self, url: str) -> Sequence[SparkFile]:
        """See `Loader.find_files`: this engine has no file systems beside those of all."""
        from omnigraph.load.sources import unknown_store_error

        raise unknown_store_error(url)

    def begin_indexing(
        self,
        clock: Clock,  # noqa: ARG002  # the run needs no name
        follow: Follow | None,
    ) -> IndexRun:
        """A run that has built nothing."""
        from omnigraph.maintenance.indexes import LocalIndexing

        return LocalIndexing(follow)

    def begin_compaction(
        self,
        clock: Clock,  # noqa: ARG002  # the run needs no name
        follow: Follow | None,
    ) -> Compaction:
        """A run that has rewritten nothing."""
        from omnigraph.maintenance.optimize import LocalCompaction

        return LocalCompaction(follow)

    def fill_columns(
        self,
        fills: Sequence[TableFill],
        clock: Clock,  # noqa: ARG002  # only jobs on Spark need a name
        follow: Follow | None = None,
    ) -> list[FilledTable]:
        """Write the columns of all fragments of these tables; the results in their order."""
        from omnigraph.evolution.backfill import fill_locally

        return fill_locally(fills, follow)

    def begin_embedding(self, settings: EmbeddingSettings, clock: Clock) -> BatchEmbedder:
        """A run that has embedded nothing."""
        from omnigraph.embedding.embedder import Embedder
        from omnigraph.maintenance.embedding.run import LocalBatches

        return LocalBatches(Embedder(settings, clock))

    def run_algorithm(
        self, algorithm: Algorithm, selection: EdgeSelection
    ) -> tuple[pa.Table, Rounds | None]:
        """The rows of a result, as an Arrow table."""
        from omnigraph.algorithms.local import LocalAlgorithms

        return LocalAlgorithms(selection, self._engine.topologies).run(algorithm)

    def exports_one_file(self, format_: ExportFormat) -> bool:
        """Whether an export of this format is one file and not a directory."""
        from omnigraph.choices import ExportFormat

        return format_ is ExportFormat.NDJSON

    def export_files(self, plan: ExportPlan, folder: ExportFolder) -> ExportFiles:
        """Write the rows into a folder, one file for each type."""
        from omnigraph.export.local import export_files

        return export_files(plan, folder)
