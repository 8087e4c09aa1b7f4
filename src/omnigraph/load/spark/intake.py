"""Intake: the one pass over a load's input, by executors that read, shape, check and write.

A task reads some splits and writes their rows as files: the final ones of a table where nothing
has to be looked up first, else scratch. Beside them it writes the columns that rules about several
rows read. It reports names, counts and first offenders to the driver, in one message.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache, partial
from heapq import nsmallest
from operator import attrgetter
from typing import Final, NoReturn

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession

from omnigraph.clock import SystemClock
from omnigraph.embedding.counts import EmbeddingCounts
from omnigraph.embedding.writes import RowEmbedding, TaskEmbedder
from omnigraph.engine.local.execute import LocalEngine
from omnigraph.engine.protocol import Data
from omnigraph.engine.spark.failures import report_errors
from omnigraph.engine.spark.messages import MESSAGE, to_message
from omnigraph.engine.spark.pieces import task_numbers
from omnigraph.errors import InternalError
from omnigraph.integrity.deltas import POSITION, Delta, Shape, TableDelta
from omnigraph.integrity.drafts import Question
from omnigraph.integrity.rows import RowRule, RowRules
from omnigraph.integrity.violations import IntegrityReport, Tally, Violation
from omnigraph.limits import LOAD_HELD_BYTES_MAX, OFFENDERS_SHOWN_MAX, ROWS_PER_FILE_MAX
from omnigraph.load.positions import Origins
from omnigraph.load.readers.batches import SplitBatch
from omnigraph.load.reading import read_frame, read_split
from omnigraph.load.routes import Route
from omnigraph.load.shaping.batches import Shaping
from omnigraph.load.sources import Inputs
from omnigraph.load.spark.file_systems import files_frame, numbers_of_files, read_contents
from omnigraph.load.spark.scratch import Scratch
from omnigraph.load.splits import SharedSplit, find_origins
from omnigraph.model.tables import TableKey
from omnigraph.schema.arrow import to_table
from omnigraph.schema.catalog import SchemaType
from omnigraph.schema.embeds import embedded_vectors
from omnigraph.storage.scans import open_address
from omnigraph.storage.staging import write_files, write_whole
from omnigraph.storage.tables import Fragment, Table, TableAddress

FRAME_NUMBERS: Final = 1 << 21
"""Tasks, and splits, numbered from here on are partitions that Spark makes by itself."""

ACCESS_HINT: Final = "check the file and its permissions; on a cluster, every worker must see it"

TYPE: Final = "@type"
RANK: Final = "@rank"
PAYLOAD: Final = "@payload"

REJECTS: Final = pa.schema([(POSITION, pa.int64()), (PAYLOAD, pa.binary())])
"""Rows that could not be shaped: their positions, and a `Reject`, pickled."""

FAULTS: Final = pa.schema(
    [(TYPE, pa.utf8()), (POSITION, pa.int64()), (RANK, pa.int32()), (PAYLOAD, pa.binary())]
)
"""What rows break: a `Violation`, pickled, in the order of their ranks."""


@dataclass(frozen=True, slots=True)
class IntakeTask:
    """All an executor needs: no session, no graph, no handle.

    Attributes:
        shaping: Names rows by their positions: where one is from is known when all lines are
            counted.
        groups: The splits that each task reads.
        rules: What every row of a table must keep by itself.
        columns: The columns that rules about several rows read.
        tables: Tables whose final files are written at once; whole rows of others are written to
            scratch.
        replaces: Whether those files will be the whole contents of their tables.
        embedding: How texts of rows that are written at once get their vectors; others get them
            when they leave scratch, where it is known which rows they replace.
    """

    shaping: Shaping
    splits: tuple[SharedSplit, ...]
    groups: tuple[tuple[int, ...], ...]
    rules: Mapping[TableKey, RowRules]
    columns: Mapping[TableKey, tuple[str, ...]]
    tables: Mapping[TableKey, TableAddress]
    scratch: Scratch
    replaces: bool
    embedding: RowEmbedding


RuleKey = tuple[str, int]
"""A row rule: the name of its type, and its place among the type's."""


@dataclass(frozen=True, slots=True)
class ScratchFile:
    """Rows that a task wrote; `task` is its number."""

    path: str
    task: int
    row_count: int


@dataclass(frozen=True, slots=True)
class TypeOutput:
    """What was written of one type; the ids of `minted_count` rows were minted."""

    row_count: int = 0
    minted_count: int = 0
    fragments: tuple[Fragment, ...] = ()
    scratch: tuple[ScratchFile, ...] = ()


@dataclass(frozen=True, slots=True)
class TaskReport:
    """The report of a task: bounded by what it was given to read, and without rows.

    Attributes:
        order: The place of its splits among all.
        reports: What rows that could not be shaped break, by split.
        counts: How many rows break a row rule, and `first` the first of them.
        lines: How many lines were read of a split.
        frames: The input that a partition of a DataFrame is of.
        rejects: Rows that could not be shaped, and `faults` what rows break by themselves: for a
            load that continues without them.
    """

    order: int
    reports: Mapping[int, IntegrityReport]
    counts: Mapping[RuleKey, int]
    first: Mapping[RuleKey, tuple[Violation, ...]]
    written: Mapping[TableKey, TypeOutput]
    lines: Mapping[int, int]
    frames: Mapping[int, int]
    bytes_read: int
    rejects: tuple[ScratchFile, ...] = ()
    faults: tuple[ScratchFile, ...] = ()
    embedding: EmbeddingCounts = field(default_factory=EmbeddingCounts)


@dataclass(frozen=True, slots=True)
class IntakeResult:
    """The reports of all tasks, combined; `tasks` has the task that read each split."""

    reports: Mapping[int, IntegrityReport]
    counts: Mapping[RuleKey, int]
    first: Mapping[RuleKey, tuple[Violation, ...]]
    written: Mapping[TableKey, TypeOutput]
    tasks: Mapping[int, int]
    origins: Origins
    bytes_read: int
    rejects: tuple[ScratchFile, ...] = ()
    faults: tuple[ScratchFile, ...] = ()
    embedding: EmbeddingCounts = field(default_factory=EmbeddingCounts)


def intake_frame(
    session: SparkSession, task: IntakeTask, frames: Mapping[int, tuple[str | Route, DataFrame]]
) -> DataFrame | None:
    """The messages of all tasks, as one DataFrame, so that there is one job; None without input.

    Args:
        frames: By the number of their input, the rows of DataFrames, and of which types they are.
    """
    parts: list[DataFrame] = []
    if task.groups:
        count = len(task.groups)
        numbers = session.range(0, count, 1, numPartitions=count)
        parts.append(numbers.mapInArrow(partial(take_splits, task), MESSAGE))
    if urls := numbers_of_files(task.splits):
        files = files_frame(session, urls)
        parts.append(files.mapInArrow(partial(take_files, task, urls), MESSAGE))
    for number, (of, frame) in frames.items():
        parts.append(frame.mapInArrow(partial(take_frame, task, number, of), MESSAGE))
    messages = None
    for part in parts:
        messages = part if messages is None else messages.union(part)
    return messages


def take_splits(task: IntakeTask, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Take in the groups with these numbers. Runs in an executor; safe to run twice."""
    with report_errors():
        for group in task_numbers(numbers):
            worker = IntakeWorker(task, group)
            for number in task.groups[group]:
                batches = read_split(
                    task.shaping, number, task.splits[number], access_hint=ACCESS_HINT
                )
                worker.take(number, batches)
            yield worker.message()


def take_files(
    task: IntakeTask, numbers: Mapping[str, int], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Take in files that Spark has read. Runs in an executor; safe to run twice."""
    with report_errors():
        worker = IntakeWorker(task, _partition_number())
        for number, split in read_contents(task.splits, numbers, batches):
            worker.take(number, read_split(task.shaping, number, split))
        yield worker.message()


def _partition_number() -> int:
    context = TaskContext.get()
    assert context is not None, "it runs in an executor"
    return FRAME_NUMBERS + context.partitionId()


def take_frame(
    task: IntakeTask, source: int, of: str | Route, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Take in a partition of a DataFrame. Runs in an executor; safe to run twice."""
    with report_errors():
        number = _partition_number()
        worker = IntakeWorker(task, number)
        worker.frames[number] = source
        worker.take(number, read_frame(task.shaping, number, of, batches))
        yield worker.message()


@dataclass(slots=True)
class _HeldRows:
    """Rows of one type that wait to be written, and what was written of it."""

    type: SchemaType
    waiting: list[pa.Table] = field(default_factory=list)
    byte_count: int = 0
    row_count: int = 0
    written_rows: int = 0
    minted_rows: int = 0
    fragments: list[Fragment] = field(default_factory=list)
    scratch: list[ScratchFile] = field(default_factory=list)


class IntakeWorker:
    """Reads, checks and writes the splits of one task."""

    def __init__(self, task: IntakeTask, order: int) -> None:
        self._task = task
        self._order = order
        self._held: dict[TableKey, _HeldRows] = {}
        self._tallies: dict[int, Tally] = {}
        self._counts_by_rule: dict[RuleKey, int] = {}
        self._questions: dict[TableKey, tuple[Question, Shape]] = {}
        self._first: dict[tuple[RuleKey, int], list[Violation]] = {}
        self._lines: dict[int, int] = {}
        self._bytes_read = 0
        self._rejects: list[dict[str, object]] = []
        self._faults: list[dict[str, object]] = []
        self._embedder = TaskEmbedder(task.embedding, SystemClock())
        self.frames: dict[int, int] = {}

    def take(self, number: int, batches: Iterable[SplitBatch]) -> None:
        """Check and write the rows of a split."""
        tally = self._tallies.setdefault(number, Tally())
        self._lines[number] = 0
        bytes_read = 0
        for batch in batches:
            self._lines[number] += batch.line_count
            bytes_read = batch.bytes_read
            tally.add_report(batch.shaped.report)
            self._rejects += (
                {POSITION: reject.position, PAYLOAD: pickle.dumps(reject)}
                for reject in batch.shaped.rejects
            )
            for key, rows in batch.shaped.rows.items():
                type_ = self._task.shaping.catalog.type_of(key)
                self._check(type_, rows, number)
                if key in self._task.tables:
                    rows = self._embedder.complete(embedded_vectors(type_), rows)
                self._hold(type_, rows, batch.shaped.minted_counts[key])
        self._bytes_read += bytes_read

    def message(self) -> pa.RecordBatch:
        """Write the rows that still wait, and report everything."""
        for held in self._held.values():
            self._write(held)
        reports = {number: tally.report() for number, tally in self._tallies.items()}
        task_report = TaskReport(
            order=self._order,
            reports={number: report for number, report in reports.items() if not report.is_clean},
            counts=self._counts_by_rule,
            first=_by_rule(self._first),
            written={
                key: TypeOutput(
                    held.written_rows,
                    held.minted_rows,
                    tuple(held.fragments),
                    tuple(held.scratch),
                )
                for key, held in self._held.items()
            },
            lines=self._lines,
            frames=self.frames,
            bytes_read=self._bytes_read,
            rejects=self._write_scratch("rejects", self._rejects, REJECTS),
            faults=self._write_scratch("faults", self._faults, FAULTS),
            embedding=self._embedder.counts,
        )
        return to_message(task_report)

    def _write_scratch(
        self, name: str, rows: list[dict[str, object]], schema: pa.Schema
    ) -> tuple[ScratchFile, ...]:
        if not rows:
            return ()
        table = pa.Table.from_pylist(rows, schema)
        path = self._task.scratch.write(f"{name}-{self._order}", table)
        return (ScratchFile(path, self._order, len(rows)),)

    @property
    def _is_refused(self) -> bool:
        """Whether a row of this task breaks a rule, so that nothing will be committed."""
        return bool(self._counts_by_rule) or any(
            not tally.report().is_clean for tally in self._tallies.values()
        )

    def _check(self, type_: SchemaType, rows: pa.Table, number: int) -> None:
        rules = self._task.rules[type_.table_key]
        # Most rows keep all rules, which costs less to prove than to count.
        if rules.hold(rows):
            return
        question, shape = self._counts(rules)
        delta = Delta({type_.table_key: TableDelta(upserts=rows)})
        [counts] = _answer(question, delta).to_pylist()
        for place, (rule, count) in enumerate(zip(rules.rules, counts.values(), strict=True)):
            if count:
                key = (type_.name, place)
                offenders = rules.offenders(rule, shape)
                self._counts_by_rule[key] = self._counts_by_rule.get(key, 0) + count
                # The batches of a split are in order; the order of splits is not known yet.
                first = self._first.setdefault((key, number), [])
                first_rows = _answer(offenders.first(), delta).to_pylist()
                first.extend(rule.describe(row, to_unresolved_origin) for row in first_rows)
                del first[OFFENDERS_SHOWN_MAX:]
                if self._task.shaping.keeps_rejects:
                    every = _answer(offenders.list_all(), delta).to_pylist()
                    self._faults += (_fault(type_, rule, place, row) for row in every)

    def _counts(self, rules: RowRules) -> tuple[Question, Shape]:
        """How to count the rows that break each rule, planned once for each type."""
        key = rules.type.table_key
        if key not in self._questions:
            shape = Shape(upserted=frozenset([key]))
            self._questions[key] = rules.counts(shape), shape
        return self._questions[key]

    def _hold(self, type_: SchemaType, rows: pa.Table, minted_count: int) -> None:
        held = self._held.setdefault(type_.table_key, _HeldRows(type_))
        held.waiting.append(rows)
        held.minted_rows += minted_count
        held.byte_count += rows.nbytes
        held.row_count += rows.num_rows
        if held.row_count >= ROWS_PER_FILE_MAX:
            self._write(held)
        while sum(held_rows.byte_count for held_rows in self._held.values()) > LOAD_HELD_BYTES_MAX:
            self._write(max(self._held.values(), key=lambda held_rows: held_rows.byte_count))

    def _write(self, held: _HeldRows) -> None:
        if not held.waiting:
            return
        key, task = held.type.table_key, self._task
        rows = pa.concat_tables(held.waiting)
        scratch = rows
        if key in task.tables:
            scratch = rows.select([*task.columns[key], POSITION])
            if not self._is_refused:
                write = write_whole if task.replaces else write_files
                held.fragments += write(_open_table(task.tables[key]), to_table(rows, held.type))
        name = f"{key.type_name}-{self._order}-{len(held.scratch)}"
        path = task.scratch.write(name, scratch)
        held.scratch.append(ScratchFile(path, self._order, rows.num_rows))
        held.written_rows += rows.num_rows
        held.waiting, held.byte_count, held.row_count = [], 0, 0


def to_unresolved_origin(position: int) -> str:
    """The origin of an offender until lines are counted; `resolve_origin` replaces it."""
    return str(position)


def resolve_origin(origins: Origins, violation: Violation) -> Violation:
    """The violation with its origin as reports show it."""
    return replace(violation, origin=origins.origin_of(int(violation.origin)))


def _fault(
    type_: SchemaType, rule: RowRule, rank: int, offender: dict[str, object]
) -> dict[str, object]:
    """A row of `FAULTS`."""
    return {
        TYPE: str(type_.table_key),
        POSITION: offender["position"],
        RANK: rank,
        PAYLOAD: pickle.dumps(rule.describe(offender, to_unresolved_origin)),
    }


def _by_rule(
    first_by_split: Mapping[tuple[RuleKey, int], list[Violation]],
) -> dict[RuleKey, tuple[Violation, ...]]:
    first: dict[RuleKey, tuple[Violation, ...]] = {}
    for (rule, _), violations in first_by_split.items():
        first[rule] = (*first.get(rule, ()), *violations)
    return first


def gather_reports(
    messages: Iterable[TaskReport], task: IntakeTask, inputs: Inputs
) -> IntakeResult:
    """Combine the reports of all tasks, in the order of the input."""
    task_reports = sorted(messages, key=attrgetter("order"))
    lines: dict[int, int] = {}
    frames: dict[int, int] = {}
    tasks: dict[int, int] = {}
    reports: dict[int, IntegrityReport] = {}
    counts: dict[RuleKey, int] = {}
    written: dict[TableKey, TypeOutput] = {}
    for task_report in task_reports:
        lines.update(task_report.lines)
        frames.update(task_report.frames)
        tasks.update(dict.fromkeys(task_report.lines, task_report.order))
        reports.update(task_report.reports)
        for rule, count in task_report.counts.items():
            counts[rule] = counts.get(rule, 0) + count
        for key, more in task_report.written.items():
            so_far = written.get(key, TypeOutput())
            written[key] = TypeOutput(
                so_far.row_count + more.row_count,
                so_far.minted_count + more.minted_count,
                so_far.fragments + more.fragments,
                so_far.scratch + more.scratch,
            )
    origins = find_origins(inputs, task.splits, lines, frames)
    first = {
        rule: tuple(
            resolve_origin(origins, violation)
            for violation in nsmallest(
                OFFENDERS_SHOWN_MAX,
                (violation for report in task_reports for violation in report.first.get(rule, ())),
                key=lambda violation: int(violation.origin),
            )
        )
        for rule in counts
    }
    bytes_read = sum(task_report.bytes_read for task_report in task_reports)
    return IntakeResult(
        reports,
        counts,
        first,
        written,
        tasks,
        origins,
        bytes_read,
        rejects=tuple(file for task_report in task_reports for file in task_report.rejects),
        faults=tuple(file for task_report in task_reports for file in task_report.faults),
        embedding=sum((each.embedding for each in task_reports), EmbeddingCounts()),
    )


def report_of_lines(intake: IntakeResult) -> IntegrityReport:
    """Violations of rows that could not be shaped, as if one process had read them."""
    tally = Tally()
    for number in sorted(intake.reports):
        report = intake.reports[number]
        for breach, count in report.counts.items():
            first = [violation for violation in report.violations if violation.breach == breach]
            tally.add_offenders(breach, count, map(partial(resolve_origin, intake.origins), first))
    return tally.report()


def report_of_rows(intake: IntakeResult, rules: Iterable[RowRules]) -> IntegrityReport:
    """Violations of row rules, as if one process had read the rows."""
    tally = Tally()
    for rules_of_type in rules:
        for place, rule in enumerate(rules_of_type.rules):
            key = (rules_of_type.type.name, place)
            tally.add_offenders(rule.breach, intake.counts.get(key, 0), intake.first.get(key, ()))
    return tally.report()


def _answer(question: Question, delta: Delta) -> pa.Table:
    given = {name: rows.of(delta) for name, rows in question.given.items()}
    return _engine().run(question.plan, Data(_no_table, given))


@cache
def _engine() -> LocalEngine:
    return LocalEngine()


@lru_cache(maxsize=64)
def _open_table(address: TableAddress) -> Table:
    return open_address(address)


def _no_table(key: TableKey) -> NoReturn:
    message = f"a row rule reads the table {key}"
    raise InternalError(message)
