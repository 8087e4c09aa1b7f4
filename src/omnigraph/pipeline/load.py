"""Load: everything an input has, checked and written in one transaction, or nothing of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from operator import attrgetter
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, assert_never

import pyarrow as pa

from omnigraph.choices import EngineName, Mode, OnError
from omnigraph.clock import Clock
from omnigraph.engine.choose import Choice
from omnigraph.engine.protocol import Engine
from omnigraph.errors import (
    ConflictError,
    ErrorCode,
    InvalidParameterError,
    OmnigraphError,
    OutcomeUnknownError,
)
from omnigraph.integrity import footprint
from omnigraph.integrity.deltas import Delta, TableDelta
from omnigraph.integrity.evaluate import evaluate
from omnigraph.integrity.proofs.by_columns import by_columns
from omnigraph.integrity.rules import RuleSet
from omnigraph.integrity.violations import IntegrityError, Rule, Tally, ToOrigin, require_clean
from omnigraph.limits import REPLANS_MAX
from omnigraph.model.counts import Counts
from omnigraph.model.tables import TableKey
from omnigraph.pipeline.choice import choose_engine
from omnigraph.pipeline.planning import plan_local
from omnigraph.pipeline.positions import Origins
from omnigraph.pipeline.quarantine import Rows, SiftResult, require_new, sift, write_rejects
from omnigraph.pipeline.reading import read_split
from omnigraph.pipeline.results import LoadResult, Progress, frozen
from omnigraph.pipeline.shape import BatchCollector, Reject, Shaping
from omnigraph.pipeline.sources import FileInput, Inputs, Source, resolve
from omnigraph.pipeline.splits import FileSplit
from omnigraph.schema.arrow import table_schema, to_table
from omnigraph.schema.catalog import Catalog, SchemaType
from omnigraph.storage import staging
from omnigraph.storage.tables import Table
from omnigraph.transaction.protocol import Order, Transactions
from omnigraph.transaction.view import View
from omnigraph.transaction.work import Stage, TransactionResult, Work

if TYPE_CHECKING:
    from omnigraph.pipeline.spark.load import SparkLoad


@dataclass(frozen=True, slots=True)
class LoadRequest:
    """What to load, and how.

    Attributes:
        mode: `append`, `merge` or `overwrite`.
        on_error: `fail`, or `quarantine`, which needs `rejects`.
        rejects: Where rows that break rules are written, with their reasons; a new file.
        ignore_unknown: Whether values that no property takes are dropped instead of refused.
        engine: `local`, `spark` or `auto`.
    """

    source: Source
    mode: str = "append"
    on_error: str = "fail"
    rejects: str | Path | None = None
    ignore_unknown: bool = False
    engine: str | None = None
    progress: Progress | None = None


@dataclass(frozen=True, slots=True)
class LoadReport:
    """What a plan will do: rows to write by table, and how many it left out."""

    written: Mapping[TableKey, int] = field(default_factory=dict)
    rejected: int = 0


class Loads:
    """Carries out the loads of one graph handle."""

    def __init__(self, transactions: Transactions, engine: Engine, clock: Clock) -> None:
        self._transactions = transactions
        self._engine = engine
        self._clock = clock
        self._rule_set = lru_cache(maxsize=8)(RuleSet.compile)

    def run(self, order: Order, request: LoadRequest) -> LoadResult:
        """Load everything in one commit, or leave the graph as it is.

        Raises:
            InvalidInputError: the request cannot be carried out. Nothing was read.
            NotFoundError: there is no such file or type. Nothing was read.
            AlreadyExistsError: the file for rejects exists. Nothing was read.
            IntegrityError: rows break rules of the schema. Nothing became visible.
            ConflictError: others changed the same tables meanwhile. Nothing became visible.
            StorageError: an input could not be read, or a table not be written.
            OutcomeUnknownError: whether the commit landed could not be found out. The file for
                rejects stays; any other error deletes it.
        """
        load = _Load(checked(request), self._engine, self._clock, self._rule_set)
        with closing(load):
            try:
                return self._landed(order, load)
            except OutcomeUnknownError:
                # The commit may be there, and its message names the rejected rows.
                raise
            except OmnigraphError:
                load.delete_rejects()
                raise

    def require_possible(self, request: LoadRequest, catalog: Catalog) -> None:
        """Refuse what `run` would refuse before it reads, for a graph of this schema.

        Raises:
            InvalidInputError: the request cannot be carried out.
            NotFoundError: there is no such file or type.
            AlreadyExistsError: the file for rejects exists.
        """
        choose_engine(resolve(checked(request).source, catalog), request.engine)

    def _landed(self, order: Order, load: _Load) -> LoadResult:
        noted = 0
        for _ in range(REPLANS_MAX):
            load.noted = noted
            told = replace(order, message=_noting(order.message, noted, load.request))
            try:
                landed = self._transactions.run(told, load.plan)
            except _RejectedError as found:
                # The commit says how many rows it goes without, so it is ordered anew.
                noted = found.count
            except IntegrityError as refusal:
                if load.request.mode == Mode.APPEND and Rule.EXISTS in refusal.counts:
                    refusal.hint = _REPLACING
                raise
            else:
                return load.result(landed)
        message = f"branch {order.branch} kept moving while rows were checked"
        raise ConflictError(message, hint="try again")


_REPLACING: Final = (
    'to replace rows that exist, load with --mode merge, or mode="merge" in Python; '
    "nothing was changed"
)


def checked(request: LoadRequest) -> LoadRequest:
    """The request, if its words are some that we know and its rejects have a place of their own.

    Raises:
        InvalidParameterError: one of them is not.
        AlreadyExistsError: there is something where the rejects are to be written.
    """
    for name, value, known in (
        ("mode", request.mode, Mode),
        ("on_error", request.on_error, OnError),
    ):
        if value not in set(known):
            message = f"there is no {name} {value!r}"
            hint = f"use one of {', '.join(known)}"
            raise InvalidParameterError(message, hint=hint, name=name)
    if (request.on_error == OnError.QUARANTINE) != (request.rejects is not None):
        message = "rows that break rules are written to rejects when on_error is quarantine"
        raise InvalidParameterError(message, hint="give both, or neither", name="rejects")
    if request.rejects is not None:
        require_new(Path(request.rejects))
    return request


class _RejectedError(Exception):
    """So many rows were left out, and the order does not say so yet."""

    def __init__(self, count: int) -> None:
        super().__init__(count)
        self.count = count


def _noting(message: str | None, count: int, request: LoadRequest) -> str | None:
    if not count:
        return message
    rows = "1 row" if count == 1 else f"{count:,} rows"
    assert request.rejects is not None, "rows are rejected only where there is a place for them"
    note = f"{rows} rejected, see {Path(request.rejects).name}"
    return note if message is None else f"{message}\n\n{note}"


@dataclass(slots=True)
class _Read:
    """The whole input, read and shaped for one schema."""

    schema_digest: str
    choice: Choice
    to_origin: ToOrigin
    rows: Rows
    collector: BatchCollector
    types: tuple[SchemaType, ...]

    def in_order(self, rejects: Iterable[Reject]) -> tuple[Reject, ...]:
        """Rows that were rejected, and those that were never shaped, as the input has them."""
        every = [*self.collector.rejects, *rejects]
        return tuple(sorted(every, key=attrgetter("position")))


@dataclass(slots=True)
class _Load:
    """One load. Its input is read once, however often it is planned."""

    request: LoadRequest
    engine: Engine
    clock: Clock
    rule_set: Callable[[Catalog], RuleSet]
    noted: int = 0
    chosen: tuple[Inputs, Choice] | None = None
    read: _Read | None = None
    spark: SparkLoad | None = None
    sifted: tuple[str, SiftResult] | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    staged: int = 0
    has_written_rejects: bool = False

    def plan(self, view: View) -> Work[LoadReport]:
        """What the input changes in this view; writes nothing but the rows that it rejects."""
        inputs, choice = self._chosen(view)
        if choice.engine is EngineName.SPARK:
            return self._planned_on_spark(inputs, view)
        read = self._read(view)
        with self._timed("check"):
            sifted = self._sifted(read, view)
        rejected = len(sifted.rejects)
        if rejected != self.noted:
            raise _RejectedError(rejected)
        if self.request.rejects is not None:
            write_rejects(Path(self.request.rejects), sifted.rejects)
            self.has_written_rejects = True
        return self._work(read, sifted, view.catalog)

    def result(self, landed: TransactionResult[LoadReport]) -> LoadResult:
        """What it did, once its transaction has ended."""
        assert self.chosen is not None, "it was planned"
        _, choice = self.chosen
        self._tell("commit", 1, 1)
        changes: dict[str, Counts] = {}
        told = landed.report.written
        for key, pin in landed.view.snapshot.pins.items():
            if key not in told:
                continue
            written, before = told[key], pin.row_count
            if self.request.mode == Mode.OVERWRITE:
                changes[key.type_name] = Counts(inserted=written, deleted=before)
            else:
                inserted = landed.row_counts.get(key, before) - before
                changes[key.type_name] = Counts(inserted, written - inserted)
        return LoadResult(
            commit_id=None if landed.commit is None else str(landed.commit.commit_id),
            branch=str(landed.view.snapshot.branch),
            mode=Mode(self.request.mode),
            engine=choice.engine,
            why=choice.why,
            changes=frozen(changes),
            rejected=landed.report.rejected,
            seconds=MappingProxyType(dict(self.seconds)),
        )

    def delete_rejects(self) -> None:
        """Delete the file of rejected rows, if this load wrote it: the name is free again."""
        if self.has_written_rejects:
            assert self.request.rejects is not None, "they were written there"
            with suppress(OSError):
                Path(self.request.rejects).unlink()

    def close(self) -> None:
        """Leave nothing behind but what was written."""
        if self.spark is not None:
            self.spark.close()

    def _chosen(self, view: View) -> tuple[Inputs, Choice]:
        """What is read, found once, and the engine for it."""
        if self.chosen is None:
            inputs = resolve(self.request.source, view.catalog)
            self.chosen = inputs, choose_engine(inputs, self.request.engine)
        return self.chosen

    def _planned_on_spark(self, inputs: Inputs, view: View) -> Work[LoadReport]:
        # Imported here: a load in this process must not pay for Spark.
        from omnigraph.pipeline.spark.load import SparkLoad

        mode = Mode(self.request.mode)
        if self.spark is None:
            self.spark = SparkLoad.begin(
                inputs, self._shaping(inputs, view), mode, self.rule_set(view.catalog), view
            )
        load = self.spark
        _require_schema(load.schema_digest, view)
        with self._timed("read"):
            load.read(view, partial(self._tell, "read"))
        types = load.types(view)
        with self._timed("check"):
            self._tell("check", 0, 1)
            to_delta = partial(_delta, types, mode)
            rejected = load.check(to_delta, view)
            if rejected != self.noted:
                raise _RejectedError(rejected)
            if self.request.rejects is not None:
                load.write_rejects(Path(self.request.rejects), view)
                self.has_written_rejects = True
            self._tell("check", 1, 1)
        with self._timed("stage"):
            changes = load.changes(view)
        self.staged = 0
        shape = to_delta(load.rows(view)).shape()
        rules = tuple(self.rule_set(view.catalog).set_rules_for(shape))
        return Work(
            LoadReport({key: load.row_count(key) for key in changes}, rejected),
            changes=self._told(changes),
            reads=footprint.reads(rules, shape),
            guards=footprint.guards(rules, shape),
            replans=mode is Mode.APPEND,
        )

    def _read(self, view: View) -> _Read:
        if self.read is None:
            inputs, choice = self._chosen(view)
            with self._timed("read"):
                self.read = self._collect(inputs, choice, view)
        _require_schema(self.read.schema_digest, view)
        return self.read

    def _shaping(self, inputs: Inputs, view: View) -> Shaping:
        return Shaping(
            view.catalog,
            Origins.of_inputs(inputs.names).origin_of,
            self.clock.ulid(),
            ignores_unknown=self.request.ignore_unknown,
            keeps_rejects=self.request.on_error == OnError.QUARANTINE,
        )

    def _collect(self, inputs: Inputs, choice: Choice, view: View) -> _Read:
        shaping = self._shaping(inputs, view)
        collector = BatchCollector()
        sizes = [each.byte_count for each in inputs.each if isinstance(each, FileInput)]
        total = sum(sizes) if len(sizes) == len(inputs.each) else None
        before = 0
        for number, split in enumerate(plan_local(inputs)):
            self._tell("read", before, total)
            for batch in read_split(shaping, number, split):
                collector.add(batch.shaped)
                self._tell("read", before + batch.bytes_read, total)
            before += split.file.byte_count if isinstance(split, FileSplit) else 0
        rows = collector.rows()
        named = {view.catalog.type_named(name).table_key for name in inputs.named_types}
        types = tuple(view.catalog.type_of(key) for key in sorted({*rows, *named}))
        digest = view.snapshot.schema_digest
        return _Read(digest, choice, shaping.to_origin, rows, collector, types)

    def _sifted(self, read: _Read, view: View) -> SiftResult:
        """The rows that will be written, which keep every rule."""
        rule_set = self.rule_set(view.catalog)
        to_delta = partial(_delta, read.types, Mode(self.request.mode))
        self._tell("check", 0, 1)
        if self.request.on_error == OnError.FAIL:
            tally = Tally()
            tally.add_report(read.collector.report())
            delta = to_delta(read.rows)
            is_proven = by_columns(delta, view.snapshot.row_count)
            tally.add_report(
                evaluate(
                    rule_set,
                    delta,
                    view.data,
                    self.engine,
                    is_proven=is_proven,
                    to_origin=read.to_origin,
                )
            )
            require_clean(tally.report())
            self._tell("check", 1, 1)
            return SiftResult(read.rows)
        head = str(view.snapshot.head.commit_id)
        if self.sifted is None or self.sifted[0] != head:
            found = sift(rule_set, read.rows, to_delta, view.data, self.engine, read.to_origin)
            self.sifted = head, SiftResult(found.rows, read.in_order(found.rejects))
        self._tell("check", 1, 1)
        return self.sifted[1]

    def _work(self, read: _Read, sifted: SiftResult, catalog: Catalog) -> Work[LoadReport]:
        mode = Mode(self.request.mode)
        changes: dict[TableKey, Stage] = {}
        for type_ in read.types:
            rows = sifted.rows.get(type_.table_key)
            if mode is Mode.OVERWRITE or (rows is not None and len(rows)):
                changes[type_.table_key] = self._stage(type_, rows, mode)
        self.staged = 0
        written = {key: len(sifted.rows.get(key, ())) for key in changes}
        shape = _delta(read.types, mode, sifted.rows).shape()
        rules = tuple(self.rule_set(catalog).set_rules_for(shape))
        return Work(
            LoadReport(written, len(sifted.rejects)),
            changes=self._told(changes),
            reads=footprint.reads(rules, shape),
            guards=footprint.guards(rules, shape),
            replans=mode is Mode.APPEND,
        )

    def _stage(self, type_: SchemaType, rows: pa.Table | None, mode: Mode) -> Stage:
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

    def _told(self, changes: Mapping[TableKey, Stage]) -> dict[TableKey, Stage]:
        def told(stage: Stage, table: Table) -> staging.Staged | None:
            with self._timed("stage"):
                found = stage(table)
            self.staged += 1
            self._tell("stage", self.staged, len(changes))
            return found

        return {key: partial(told, stage) for key, stage in changes.items()}

    def _tell(self, stage: str, done: int, total: int | None) -> None:
        if self.request.progress is not None:
            self.request.progress(stage, done, total)

    @contextmanager
    def _timed(self, stage: str) -> Iterator[None]:
        started = self.clock.now()
        try:
            yield
        finally:
            took = (self.clock.now() - started).total_seconds()
            self.seconds[stage] = self.seconds.get(stage, 0.0) + took


def _require_schema(digest: str, view: View) -> None:
    if view.snapshot.schema_digest != digest:
        message = "the schema changed while the input was read"
        raise ConflictError(message, hint="load again", code=ErrorCode.SCHEMA_CHANGED)


def _delta(types: tuple[SchemaType, ...], mode: Mode, rows: Rows) -> Delta:
    return Delta(
        {
            each.table_key: TableDelta(
                upserts=rows.get(each.table_key),
                overwrites=mode is Mode.OVERWRITE,
                only_new=mode is Mode.APPEND,
            )
            for each in types
        }
    )


def _append(rows: pa.Table, table: Table) -> staging.Staged:
    return staging.stage_append(table, rows)


def _upsert(rows: pa.Table, table: Table) -> staging.Staged:
    return staging.stage_upsert(table, rows) if table.count_rows() else _append(rows, table)


def _overwrite(rows: pa.Table, table: Table) -> staging.Staged:
    return staging.stage_overwrite(table, rows)
