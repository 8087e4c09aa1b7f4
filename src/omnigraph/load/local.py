"""A load in this process: its input read and shaped once, its rows checked, its tables staged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from operator import attrgetter
from typing import assert_never

import pyarrow as pa

from omnigraph.choices import Mode
from omnigraph.embedding.counts import EmbeddingCounts
from omnigraph.engine.protocol import Engine
from omnigraph.integrity.evaluate import evaluate
from omnigraph.integrity.proofs.by_columns import by_columns
from omnigraph.integrity.rules import RuleSet
from omnigraph.integrity.violations import IntegrityReport, Tally, require_clean
from omnigraph.load.duplicates import keep_one
from omnigraph.load.planning import plan_local
from omnigraph.load.plans import LoadReport, LoadSetup
from omnigraph.load.quarantine import Rows, SiftResult, sift
from omnigraph.load.reading import read_split
from omnigraph.load.shaping.batches import BatchCollector
from omnigraph.load.sources import FileInput
from omnigraph.load.splits import FileSplit
from omnigraph.model.tables import TableKey
from omnigraph.schema.arrow import table_schema, to_table
from omnigraph.schema.catalog import SchemaType
from omnigraph.schema.embeds import embedded_vectors
from omnigraph.storage import lookups
from omnigraph.storage.staging import StagedWrite, stage_append, stage_overwrite, stage_upsert
from omnigraph.storage.tables import Table
from omnigraph.transaction.view import View
from omnigraph.transaction.writes import Stage, WritePlan


@dataclass(frozen=True, slots=True)
class _InputRows:
    """The whole input, read and shaped."""

    rows: Mapping[TableKey, pa.Table]
    collector: BatchCollector
    types: tuple[SchemaType, ...]


@dataclass(slots=True)
class LocalLoad:
    """One load in this process."""

    setup: LoadSetup
    engine: Engine
    embedding: EmbeddingCounts = field(default_factory=EmbeddingCounts)
    _input: _InputRows | None = None

    def plan(self, view: View) -> WritePlan[LoadReport]:
        """See `EngineLoad.plan`."""
        setup = self.setup
        setup.require_schema(view)
        if self._input is None:
            with setup.stages.measure("read"):
                self._input = self._read()
        with setup.stages.measure("check"):
            setup.stages.report("check", 0, 1)
            result = self._check(self._input, view)
            setup.stages.report("check", 1, 1)
        if setup.rejects is not None:
            setup.rejects.write(result.rejects)
        result, self.embedding = self._embed(result, view)
        return self._work(self._input.types, result)

    def close(self) -> None:
        """Do nothing: there are no temporary files."""

    def _read(self) -> _InputRows:
        inputs, stages = self.setup.inputs, self.setup.stages
        collector = BatchCollector()
        sizes = [source.byte_count for source in inputs.items if isinstance(source, FileInput)]
        total = sum(sizes) if len(sizes) == len(inputs.items) else None
        before = 0
        for number, split in enumerate(plan_local(inputs)):
            stages.report("read", before, total)
            for batch in read_split(self.setup.shaping, number, split):
                collector.add(batch.shaped)
                stages.report("read", before + batch.bytes_read, total)
            before += split.file.byte_count if isinstance(split, FileSplit) else 0
        rows = collector.rows()
        return _InputRows(rows, collector, self.setup.types(rows))

    def _check(self, read: _InputRows, view: View) -> SiftResult:
        """The rows that will be written, which keep every rule, and those that are left out."""
        setup, rule_set = self.setup, self.setup.rule_set
        kept = self._keep_one(read.rows)
        is_superseded = any(len(kept[key]) < len(rows) for key, rows in read.rows.items())
        if setup.rejects is not None:
            rejects = list(read.collector.rejects)
            if is_superseded:
                # Invalid rows supersede none.
                sifted = self._sift(rule_set.of_rows(), read.rows, read, view)
                rejects += sifted.rejects
                kept = self._keep_one(sifted.rows)
            sifted = self._sift(rule_set, kept, read, view)
            rejects += sifted.rejects
            return SiftResult(sifted.rows, tuple(sorted(rejects, key=attrgetter("position"))))
        tally = Tally()
        tally.add_report(read.collector.report())
        if is_superseded:
            # Superseded rows have to be valid by themselves, too.
            tally.add_report(self._evaluate(rule_set.of_rows(), read.rows, read, view))
            rule_set = rule_set.of_sets()
        tally.add_report(self._evaluate(rule_set, kept, read, view))
        require_clean(tally.report())
        return SiftResult(kept)

    def _keep_one(self, rows: Rows) -> Rows:
        return {key: keep_one(table, self.setup.on_duplicate) for key, table in rows.items()}

    def _sift(self, rule_set: RuleSet, rows: Rows, read: _InputRows, view: View) -> SiftResult:
        to_delta, to_origin = partial(self.setup.delta, read.types), self.setup.shaping.to_origin
        return sift(rule_set, rows, to_delta, view.data, self.engine, to_origin)

    def _evaluate(
        self, rule_set: RuleSet, rows: Rows, read: _InputRows, view: View
    ) -> IntegrityReport:
        delta = self.setup.delta(read.types, rows)
        return evaluate(
            rule_set,
            delta,
            view.data,
            self.engine,
            is_proven=by_columns(delta, view.snapshot.row_count),
            to_origin=self.setup.shaping.to_origin,
        )

    def _embed(self, result: SiftResult, view: View) -> tuple[SiftResult, EmbeddingCounts]:
        """The rows with their vectors; those that were left out have cost no request."""
        setup, catalog = self.setup, view.catalog
        if not any(embedded_vectors(catalog.type_of(key)) for key in result.rows):
            return result, EmbeddingCounts()

        def find(key: TableKey, ids: pa.Array, columns: list[str]) -> pa.Table:
            return lookups.find(view.data.table(key), "id", ids, columns=columns)

        with setup.stages.measure("embed"):
            completed, counts = setup.embedding.complete(
                catalog, result.rows, find if setup.mode is Mode.MERGE else None
            )
        return SiftResult(completed, result.rejects), counts

    def _work(self, types: tuple[SchemaType, ...], result: SiftResult) -> WritePlan[LoadReport]:
        mode = self.setup.mode
        changes: dict[TableKey, Stage] = {}
        for type_ in types:
            rows = result.rows.get(type_.table_key)
            if mode is Mode.OVERWRITE or (rows is not None and len(rows)):
                changes[type_.table_key] = _stage(type_, rows, mode)
        written = {key: len(result.rows.get(key, ())) for key in changes}
        assert self._input is not None, "it was read"
        loaded = sum(map(len, result.rows.values()))
        shaped = sum(map(len, self._input.rows.values()))
        unshaped = len(self._input.collector.rejects) if self.setup.rejects is not None else 0
        sifted = len(result.rejects) - unshaped
        report = LoadReport(written, len(result.rejects), shaped - sifted - loaded)
        return self.setup.work(self.setup.delta(types, result.rows), changes, report)


def _stage(type_: SchemaType, rows: pa.Table | None, mode: Mode) -> Stage:
    table = table_schema(type_).empty_table() if rows is None else to_table(rows, type_)
    match mode:
        case Mode.APPEND:
            return partial(_append, table)
        case Mode.MERGE:
            return partial(_upsert, table)
        case Mode.OVERWRITE:
            return partial(_overwrite, table)
        case _:
            assert_never(mode)


def _append(rows: pa.Table, table: Table) -> StagedWrite:
    return stage_append(table, rows)


def _upsert(rows: pa.Table, table: Table) -> StagedWrite | None:
    return stage_upsert(table, rows) if table.count_rows() else _append(rows, table)


def _overwrite(rows: pa.Table, table: Table) -> StagedWrite:
    return stage_overwrite(table, rows)
