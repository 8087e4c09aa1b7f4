"""Intake: the one pass over a load's input, by executors that read, shape, check and write.

A task reads some splits and writes their rows as files: the final ones of a table where nothing
has to be found out first, else scratch. Beside them it leaves the columns that rules about several
rows look at. To the driver it reports names, counts and first offenders, in one message.
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

from omnigraph.engine.local.execute import LocalEngine
from omnigraph.engine.protocol import Data
from omnigraph.engine.spark.failures import report_errors
from omnigraph.engine.spark.messages import MESSAGE, to_message
from omnigraph.errors import InternalError
from omnigraph.integrity.deltas import POSITION, Delta, Shape, TableDelta
from omnigraph.integrity.drafts import Question
from omnigraph.integrity.rows import RowRule, RowRules
from omnigraph.integrity.violations import IntegrityReport, Tally, Violation
from omnigraph.limits import LOAD_HELD_BYTES_MAX, OFFENDERS_SHOWN_MAX, ROWS_PER_FILE_MAX
from omnigraph.load.positions import Origins
from omnigraph.load.readers.batches import SplitBatch
from omnigraph.load.reading import read_frame, read_split
from omnigraph.load.shaping.batches import Shaping
from omnigraph.load.sources import Inputs
from omnigraph.load.spark.scratch import Scratch
from omnigraph.load.splits import SharedSplit, find_origins
from omnigraph.model.tables import TableKey
from omnigraph.schema.arrow import to_table
from omnigraph.schema.catalog import SchemaType
from omnigraph.storage.scans import open_address
from omnigraph.storage.staging import write_files, write_whole
from omnigraph.storage.tables import Fragment, Table, TableAddress

FRAME_NUMBERS: Final = 1 << 21
"""Splits with numbers from here on are partitions of DataFrames, which nobody can count before."""

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
        columns: What of the rows rules about several of them look at.
        tables: Tables whose final files are written at once; rows of others go to scratch whole.
        replaces: Whether those files will be all that their tables hold.
    """

    shaping: Shaping
    splits: tuple[SharedSplit, ...]
    groups: tuple[tuple[int, ...], ...]
    rules: Mapping[TableKey, RowRules]
    columns: Mapping[TableKey, tuple[str, ...]]
    tables: Mapping[TableKey, TableAddress]
    scratch: Scratch
    replaces: bool


RuleKey = tuple[str, int]
"""A row rule: the name of its type, and its place among the type's."""


@dataclass(frozen=True, slots=True)
class ScratchFile:
    """Rows that a task left; `task` is its number."""

    path: str
    task: int
    row_count: int


@dataclass(frozen=True, slots=True)
class TypeOutput:
    """What was written of one type; `minted_count` of the rows got an id that nobody else has."""

    row_count: int = 0
    minted_count: int = 0
    fragments: tuple[Fragment, ...] = ()
    scratch: tuple[ScratchFile, ...] = ()


@dataclass(frozen=True, slots=True)
class TaskReport:
    """What a task reports: bounded by what it was given to read, and free of rows.

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


@dataclass(frozen=True, slots=True)
class IntakeResult:
    """What all tasks reported, together; `tasks` has the task that read each split."""

    reports: Mapping[int, IntegrityReport]
    counts: Mapping[RuleKey, int]
    first: Mapping[RuleKey, tuple[Violation, ...]]
    written: Mapping[TableKey, TypeOutput]
    tasks: Mapping[int, int]
    origins: Origins
    bytes_read: int
    rejects: tuple[ScratchFile, ...] = ()
    faults: tuple[ScratchFile, ...] = ()


def intake_frame(
    session: SparkSession, task: IntakeTask, frames: Mapping[int, tuple[str, DataFrame]]
) -> DataFrame | None:
    """The messages of all tasks, as one DataFrame, so that there is one job; None without input.

    Args:
        frames: By the number of their input, the type and the rows of DataFrames.
    """
    parts: list[DataFrame] = []
    if task.groups:
        count = len(task.groups)
        numbers = session.range(0, count, 1, numPartitions=count)
        parts.append(numbers.mapInArrow(partial(take_splits, task), MESSAGE))
    for number, (type_name, frame) in frames.items():
        parts.append(frame.mapInArrow(partial(take_frame, task, number, type_name), MESSAGE))
    found = None
    for each in parts:
        found = each if found is None else found.union(each)
    return found


def take_splits(task: IntakeTask, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Take in the groups with these numbers. Runs in an executor; safe to run twice."""
    with report_errors():
        for group in (each for batch in numbers for each in batch.column(0).to_pylist()):
            worker = IntakeWorker(task, group)
            for number in task.groups[group]:
                batches = read_split(
                    task.shaping, number, task.splits[number], access_hint=ACCESS_HINT
                )
                worker.take(number, batches)
            yield worker.message()


def take_frame(
    task: IntakeTask, source: int, type_name: str, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Take in a partition of a DataFrame. Runs in an executor; safe to run twice."""
    with report_errors():
        context = TaskContext.get()
        assert context is not None, "it runs in an executor"
        number = FRAME_NUMBERS + context.partitionId()
        worker = IntakeWorker(task, number)
        worker.frames[number] = source
        worker.take(number, read_frame(task.shaping, number, type_name, batches))
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
    """One task at work."""

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
                {POSITION: each.position, PAYLOAD: pickle.dumps(each)}
                for each in batch.shaped.rejects
            )
            for key, rows in batch.shaped.rows.items():
                type_ = self._task.shaping.catalog.type_of(key)
                self._check(type_, rows, number)
                self._hold(type_, rows, batch.shaped.minted_counts[key])
        self._bytes_read += bytes_read

    def message(self) -> pa.RecordBatch:
        """Write what still waits, and report everything."""
        for held in self._held.values():
            self._write(held)
        reports = {number: tally.report() for number, tally in self._tallies.items()}
        report = TaskReport(
            order=self._order,
            reports={number: each for number, each in reports.items() if not each.is_clean},
            counts=self._counts_by_rule,
            first=_by_rule(self._first),
            written={
                key: TypeOutput(
                    each.written_rows,
                    each.minted_rows,
                    tuple(each.fragments),
                    tuple(each.scratch),
                )
                for key, each in self._held.items()
            },
            lines=self._lines,
            frames=self.frames,
            bytes_read=self._bytes_read,
            rejects=self._leave("rejects", self._rejects, REJECTS),
            faults=self._leave("faults", self._faults, FAULTS),
        )
        return to_message(report)

    def _leave(
        self, name: str, rows: list[dict[str, object]], schema: pa.Schema
    ) -> tuple[ScratchFile, ...]:
        if not rows:
            return ()
        table = pa.Table.from_pylist(rows, schema)
        path = self._task.scratch.write(f"{name}-{self._order}", table)
        return (ScratchFile(path, self._order, len(rows)),)

    @property
    def _is_refused(self) -> bool:
        """Whether a row of this task breaks a rule, so that nothing will ever be committed."""
        return bool(self._counts_by_rule) or any(
            not each.report().is_clean for each in self._tallies.values()
        )

    def _check(self, type_: SchemaType, rows: pa.Table, number: int) -> None:
        rules = self._task.rules[type_.table_key]
        if not rules.rules:
            return
        question, shape = self._counts(rules)
        delta = Delta({type_.table_key: TableDelta(upserts=rows)})
        [counts] = _answer(question, delta).to_pylist()
        for place, (rule, count) in enumerate(zip(rules.rules, counts.values(), strict=True)):
            if count:
                key = (type_.name, place)
                offenders = rules.offenders(rule, shape)
                found = _answer(offenders.first(), delta).to_pylist()
                self._counts_by_rule[key] = self._counts_by_rule.get(key, 0) + count
                # The batches of a split are in order; what is first of several is not known yet.
                first = self._first.setdefault((key, number), [])
                first.extend(rule.describe(row, to_unresolved_origin) for row in found)
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
        while sum(each.byte_count for each in self._held.values()) > LOAD_HELD_BYTES_MAX:
            self._write(max(self._held.values(), key=lambda each: each.byte_count))

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
    """The violation with the origin that a person knows."""
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
    found: Mapping[tuple[RuleKey, int], list[Violation]],
) -> dict[RuleKey, tuple[Violation, ...]]:
    first: dict[RuleKey, tuple[Violation, ...]] = {}
    for (rule, _), violations in found.items():
        first[rule] = (*first.get(rule, ()), *violations)
    return first


def gather_reports(
    messages: Iterable[TaskReport], task: IntakeTask, inputs: Inputs
) -> IntakeResult:
    """What all tasks reported, in the order of the input."""
    task_reports = sorted(messages, key=attrgetter("order"))
    lines: dict[int, int] = {}
    frames: dict[int, int] = {}
    tasks: dict[int, int] = {}
    reports: dict[int, IntegrityReport] = {}
    counts: dict[RuleKey, int] = {}
    written: dict[TableKey, TypeOutput] = {}
    for each in task_reports:
        lines.update(each.lines)
        frames.update(each.frames)
        tasks.update(dict.fromkeys(each.lines, each.order))
        reports.update(each.reports)
        for rule, count in each.counts.items():
            counts[rule] = counts.get(rule, 0) + count
        for key, more in each.written.items():
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
    bytes_read = sum(each.bytes_read for each in task_reports)
    return IntakeResult(
        reports,
        counts,
        first,
        written,
        tasks,
        origins,
        bytes_read,
        rejects=tuple(file for each in task_reports for file in each.rejects),
        faults=tuple(file for each in task_reports for file in each.faults),
    )


def report_of_lines(taken: IntakeResult) -> IntegrityReport:
    """What rows break that could not be shaped, as if one process had read them."""
    tally = Tally()
    for number in sorted(taken.reports):
        found = taken.reports[number]
        for breach, count in found.counts.items():
            first = [each for each in found.violations if each.breach == breach]
            tally.add_offenders(breach, count, map(partial(resolve_origin, taken.origins), first))
    return tally.report()


def report_of_rows(taken: IntakeResult, rules: Iterable[RowRules]) -> IntegrityReport:
    """What single rows break, as if one process had read them."""
    tally = Tally()
    for rules_of_type in rules:
        for place, rule in enumerate(rules_of_type.rules):
            key = (rules_of_type.type.name, place)
            tally.add_offenders(rule.breach, taken.counts.get(key, 0), taken.first.get(key, ()))
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
