"""A load on Spark: its input read once, its rules checked on its keys, its tables staged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Self

from omnigraph.choices import Mode, OnDuplicate
from omnigraph.embedding.counts import EmbeddingCounts
from omnigraph.engine.spark.cores import core_count
from omnigraph.engine.spark.execute import SparkEngine
from omnigraph.engine.spark.jobs import Follow, Jobs
from omnigraph.engine.spark.messages import collect_messages
from omnigraph.integrity import footprint
from omnigraph.integrity.deltas import Delta, Shape
from omnigraph.integrity.evaluate import evaluate
from omnigraph.integrity.keys import DistinctIds
from omnigraph.integrity.proofs.by_key_counts import by_key_counts
from omnigraph.integrity.proofs.proof import Proof, any_of, by_checked_rows
from omnigraph.integrity.violations import IntegrityError, IntegrityReport, Tally, require_clean
from omnigraph.limits import QUARANTINE_ROUNDS_MAX
from omnigraph.load.planning import pack_splits, plan_shared
from omnigraph.load.plans import LoadReport, LoadSetup
from omnigraph.load.shaping.batches import Reject
from omnigraph.load.sources import FileInput, FrameInput, Inputs
from omnigraph.load.spark.intake import (
    ACCESS_HINT,
    IntakeResult,
    IntakeTask,
    ScratchFile,
    TaskReport,
    TypeOutput,
    gather_reports,
    intake_frame,
    report_of_lines,
    report_of_rows,
    to_unresolved_origin,
)
from omnigraph.load.spark.keys import KeyRows
from omnigraph.load.spark.scratch import Scratch
from omnigraph.load.spark.sifting import (
    count_faulty,
    find_faults,
    find_superseded,
    rejects_in_order,
)
from omnigraph.load.spark.stage import WaitingRows, stage_waiting
from omnigraph.load.splits import PickledSplit, SharedSplit, SpooledSplit
from omnigraph.model.tables import TableKey
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.catalog import SchemaType
from omnigraph.storage.staging import StagedWrite, stage_change, stage_whole
from omnigraph.storage.tables import Table, TableAddress
from omnigraph.transaction.view import View
from omnigraph.transaction.writes import Stage, WritePlan


@dataclass(frozen=True, slots=True)
class LeftOutRows:
    """The rows that a load leaves out: their faults, and how many there are of each table."""

    faults: tuple[ScratchFile, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)

    def joined(self, other: LeftOutRows) -> LeftOutRows:
        """These rows and others, which are different ones."""
        counts = Counter(self.counts)
        counts.update(other.counts)
        return LeftOutRows((*self.faults, *other.faults), counts)


@dataclass(frozen=True, slots=True)
class KeyCheck:
    """The rows of a load, and the rules that counts of their keys prove."""

    delta: Delta
    is_proven: Proof
    has_distinct_ids: bool


@dataclass(slots=True)
class SparkLoad:
    """One load on Spark. The seed of its shaping also names its scratch."""

    engine: SparkEngine
    setup: LoadSetup
    intake: IntakeResult | None = None
    left_out: LeftOutRows = field(default_factory=LeftOutRows)
    superseded: LeftOutRows = field(default_factory=LeftOutRows)
    _resources: ExitStack = field(default_factory=ExitStack)
    _task: IntakeTask | None = None
    _staged: dict[TableKey, tuple[StagedWrite | None, EmbeddingCounts]] = field(
        default_factory=dict
    )

    @property
    def embedding(self) -> EmbeddingCounts:
        """See `EngineLoad.embedding`."""
        counts = (counts for _, counts in self._staged.values())
        return sum(counts, self._require_intake().embedding)

    @classmethod
    def begin(cls, engine: SparkEngine, setup: LoadSetup) -> Self:
        """A load of which nothing has been read; Spark starts where it does not run yet."""
        # Opened here: the start of Spark does not count as reading.
        return cls(SparkEngine(engine.session), setup)

    def plan(self, view: View) -> WritePlan[LoadReport]:
        """See `EngineLoad.plan`."""
        setup, stages = self.setup, self.setup.stages
        setup.require_schema(view)
        with stages.measure("read"):
            self.read(view, partial(stages.report, "read"))
        with stages.measure("check"):
            stages.report("check", 0, 1)
            rejected = self.check(view)
            if setup.rejects is not None:
                setup.rejects.write(self._rejects(view))
            stages.report("check", 1, 1)
        changes = self.changes()
        written = {key: self.row_count(key) for key in changes}
        report = LoadReport(written, rejected, sum(self.superseded.counts.values()))
        prepare = partial(self.stage_waiting, view)
        return setup.work(self._delta(view), changes, report, prepare)

    def read(self, view: View, follow: Follow | None = None) -> None:
        """Read the input: its rows become files that nothing refers to, its keys scratch."""
        if self.intake is not None:
            return
        session = self.engine.session
        cores = core_count(session)
        scratch = self._scratch(view)
        self._resources.enter_context(scratch.hold())
        splits = plan_shared(self.setup.inputs, cores, scratch, access_hint=ACCESS_HINT)
        tables = {key: self._address(view, key) for key in view.snapshot.pins}
        self._task = IntakeTask(
            shaping=replace(self.setup.shaping, to_origin=to_unresolved_origin),
            splits=splits,
            groups=pack_splits(splits, cores),
            rules={rules.type.table_key: rules for rules in self.setup.rule_set.row_rules},
            columns=self._columns(),
            tables={key: address for key, address in tables.items() if address is not None},
            scratch=scratch,
            replaces=self.setup.mode is Mode.OVERWRITE,
            embedding=self.setup.embedding.for_tasks(),
        )
        frames = {
            number: (source.of, source.frame)
            for number, source in enumerate(self.setup.inputs.items)
            if isinstance(source, FrameInput)
        }
        messages = intake_frame(session, self._task, frames)
        reports: list[TaskReport] = []
        if messages is not None:
            # Messages of tasks: names, counts and first offenders, no rows.
            collect = partial(collect_messages, messages)
            reports = self._jobs().run(collect, _in_bytes(follow, self.setup.inputs, splits))
        self.intake = gather_reports(reports, self._task, self.setup.inputs)

    def _columns(self) -> dict[TableKey, tuple[str, ...]]:
        """The columns that rules about several rows read, for every table of the schema."""
        keys = frozenset(type_.table_key for type_ in self.setup.rule_set.catalog.types)
        shape = Shape(
            upserted=keys,
            overwritten=keys if self.setup.mode is Mode.OVERWRITE else frozenset(),
            only_new=keys if self.setup.mode is Mode.APPEND else frozenset(),
        )
        columns = footprint.columns(footprint.footprints(self.setup.rule_set, shape))
        return {key: tuple(sorted(columns[key])) for key in keys}

    def _types(self) -> tuple[SchemaType, ...]:
        return self.setup.types(self._require_intake().written)

    def _delta(self, view: View) -> Delta:
        return self.setup.delta(self._types(), self.rows(view))

    def rows(self, view: View) -> Mapping[TableKey, KeyRows]:
        """The rows of the load, with the columns that rules about several rows read."""
        return self._rows_without(self.left_out.joined(self.superseded), view)

    def _rows_without(self, left_out: LeftOutRows, view: View) -> Mapping[TableKey, KeyRows]:
        keys = self._require_intake().written
        return {key: self._rows_of(view.catalog.type_of(key), view, left_out) for key in keys}

    def _rows_of(self, type_: SchemaType, view: View, left_out: LeftOutRows) -> KeyRows:
        key = type_.table_key
        rows = KeyRows(
            self.engine.session,
            self._scratch(view),
            type_,
            self._output_of(key),
            self._columns_of(type_),
        )
        if str(key) not in left_out.counts:
            return rows
        return rows.without(left_out.faults, left_out.counts[str(key)])

    def _columns_of(self, type_: SchemaType) -> frozenset[str]:
        """The columns that the intake wrote to scratch."""
        assert self._task is not None, "the input was read"
        key = type_.table_key
        whole = table_schema(type_).names
        return frozenset(self._task.columns[key] if self._is_direct(key) else whole)

    def row_count(self, key: TableKey) -> int:
        """How many rows of a type will be written."""
        left_out = self.left_out.joined(self.superseded)
        return self._output_of(key).row_count - left_out.counts.get(str(key), 0)

    def check(self, view: View) -> int:
        """Refuse rows that break rules, or leave them out; how many were left out."""
        if self.setup.shaping.keeps_rejects:
            return self._jobs().run(partial(self._sift, view))
        self.superseded = LeftOutRows()
        check = self._jobs().run(partial(self._check_keys, view))
        if not check.has_distinct_ids and self.setup.on_duplicate is not OnDuplicate.REJECT:
            self.superseded = self._jobs().run(partial(self._supersede, view))
            check = self._jobs().run(partial(self._check_keys, view))
        require_clean(self.report(check, view))
        return 0

    def _supersede(self, view: View) -> LeftOutRows:
        """The rows that another row of their id supersedes, as the caller has chosen."""
        choice, scratch = self.setup.on_duplicate, self._scratch(view)
        rows = self._rows_without(self.left_out, view)
        files = find_superseded(rows.values(), choice, scratch)
        return LeftOutRows(files, count_faulty(self.engine, scratch, files))

    def _rejects(self, view: View) -> Iterator[Reject]:
        """The rows that were left out; the driver streams them."""
        rows = self._rows_without(self.left_out, view)
        return rejects_in_order(self.engine, self._scratch(view), self._require_intake(), rows)

    def _sift(self, view: View) -> int:
        """Leave out rows until no rule is broken any more, as `quarantine.sift` does."""
        intake = self._require_intake()
        unshaped = sum(file.row_count for file in intake.rejects)
        self.left_out, self.superseded = LeftOutRows(), LeftOutRows()
        scratch = self._scratch(view)
        new = intake.faults
        check: KeyCheck | None = None
        if self.setup.on_duplicate is not OnDuplicate.REJECT:
            # Invalid rows supersede none.
            self.left_out = LeftOutRows(new, count_faulty(self.engine, scratch, new))
            new, check = (), self._check_keys(view)
            if not check.has_distinct_ids:
                self.superseded, check = self._supersede(view), None
        for turn in range(QUARANTINE_ROUNDS_MAX):
            check = check or self._check_keys(view)
            set_faults = find_faults(
                self.engine,
                self.setup.rule_set,
                check.delta,
                view,
                check.is_proven,
                scratch,
                intake.origins.origin_of,
                turn=turn,
            )
            new = (*new, *set_faults)
            if not new:
                # No row of the load is at fault for what is broken now.
                require_clean(self._evaluate(check, view))
                return unshaped + sum(self.left_out.counts.values())
            faults = (*self.left_out.faults, *new)
            self.left_out = LeftOutRows(faults, count_faulty(self.engine, scratch, faults))
            new, check = (), None
        raise IntegrityError(self._evaluate(self._check_keys(view), view))

    def report(self, check: KeyCheck, view: View) -> IntegrityReport:
        """The rules that the graph would break with the rows, as `evaluate` reports them."""
        tally = Tally()
        tally.add_report(report_of_lines(self._require_intake()))
        tally.add_report(report_of_rows(self._require_intake(), self.setup.rule_set.row_rules))
        tally.add_report(self._jobs().run(partial(self._evaluate, check, view)))
        return tally.report()

    def _evaluate(self, check: KeyCheck, view: View) -> IntegrityReport:
        return evaluate(
            self.setup.rule_set,
            check.delta,
            view.data,
            self.engine,
            is_proven=check.is_proven,
            to_origin=self._require_intake().origins.origin_of,
        )

    def _check_keys(self, view: View) -> KeyCheck:
        """Prove rules by counting the keys of the load, by one job."""
        rows = self.rows(view)
        delta = self.setup.delta(self._types(), rows)
        shape = delta.shape()
        rules = tuple(self.setup.rule_set.set_rules_for(shape))
        counts = by_key_counts(self.engine, rules, shape, rows, view.data)
        distinct = (rule for rule in rules if isinstance(rule, DistinctIds))
        # Executors checked the row rules when they read the rows.
        return KeyCheck(delta, any_of(by_checked_rows, counts), all(map(counts, distinct)))

    def changes(self) -> dict[TableKey, Stage]:
        """How to stage each table."""
        self._staged = {}
        return {
            type_.table_key: partial(self._stage, type_)
            for type_ in self._types()
            if self.row_count(type_.table_key) or self.setup.mode is Mode.OVERWRITE
        }

    def stage_waiting(self, view: View, tables: Mapping[TableKey, Table]) -> None:
        """Stage the tables whose rows wait in scratch, by one job."""
        left_out = self.left_out.joined(self.superseded)
        waiting = [
            WaitingRows(self._rows_of(view.catalog.type_of(key), view, left_out), table)
            for key, table in tables.items()
            if not self._is_direct(key)
        ]
        if waiting:
            stage = partial(
                stage_waiting,
                self.engine.session,
                waiting,
                self._require_intake().tasks,
                self.setup.embedding.for_tasks(),
                upserts=self.setup.mode is Mode.MERGE,
                replaces=self.setup.mode is Mode.OVERWRITE,
            )
            self._staged = self._jobs().run(stage)

    def close(self) -> None:
        """Delete the scratch."""
        self._resources.close()

    def _stage(self, type_: SchemaType, table: Table) -> StagedWrite | None:
        key = type_.table_key
        if not self._is_direct(key):
            staged, _ = self._staged[key]
            return staged
        assert self._task is not None, "the input was read"
        written_to = self._task.tables[key]
        assert table.address.ref == written_to.ref, "files belong to the ref they were written for"
        files = self._output_of(key).fragments
        if self.setup.mode is Mode.OVERWRITE:
            return stage_whole(table, files, schema=table_schema(type_))
        return stage_change(table, files=files)

    def _address(self, view: View, key: TableKey) -> TableAddress | None:
        """The table whose final files executors may write at once, if they may."""
        table = view.data.table(key)
        # The row that a row replaces may have to be found first, or rows to be left out; and a
        # branch that has no ref of the table yet gets one only when it is staged.
        is_known = self.setup.mode is not Mode.MERGE or not table.count_rows()
        is_owned = view.snapshot.owns(view.snapshot.pin(key))
        keeps_all = self.setup.on_duplicate is OnDuplicate.REJECT
        is_direct = is_known and is_owned and keeps_all and not self.setup.shaping.keeps_rejects
        return table.address if is_direct else None

    def _is_direct(self, key: TableKey) -> bool:
        assert self._task is not None, "the input was read"
        return key in self._task.tables

    def _output_of(self, key: TableKey) -> TypeOutput:
        return self._require_intake().written.get(key, TypeOutput())

    def _require_intake(self) -> IntakeResult:
        assert self.intake is not None, "the input was read"
        return self.intake

    def _scratch(self, view: View) -> Scratch:
        first = next(iter(view.snapshot.pins))
        return Scratch(view.data.table(first).address.root, self.setup.shaping.seed)

    def _jobs(self) -> Jobs:
        return Jobs(self.engine.session, f"omnigraph-{self.setup.shaping.seed}")


def _in_bytes(
    follow: Follow | None, inputs: Inputs, splits: Sequence[SharedSplit]
) -> Follow | None:
    """Report bytes instead of tasks, unless a DataFrame hides how many there are."""
    if follow is None or any(isinstance(source, FrameInput) for source in inputs.items):
        return follow
    files = sum(source.byte_count for source in inputs.items if isinstance(source, FileInput))
    others = sum(
        split.byte_count for split in splits if isinstance(split, PickledSplit | SpooledSplit)
    )
    size = files + others

    def follow_bytes(done: int, total: int) -> None:
        follow(size * done // max(1, total), size)

    return follow_bytes
