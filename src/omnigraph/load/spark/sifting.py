"""Sifting: a load continues without the rows that break rules; each is kept with its reasons.

It does what `quarantine.sift` does, round by round. The faults of a round are written to scratch;
the driver only knows how many rows break rules.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial, reduce
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from omnigraph.choices import OnDuplicate
from omnigraph.engine.spark.cores import core_count
from omnigraph.engine.spark.execute import SparkEngine
from omnigraph.engine.spark.failures import report_errors
from omnigraph.engine.spark.messages import MESSAGE, collect_messages, to_message
from omnigraph.engine.spark.routing import route
from omnigraph.formats.lines import envelope_lines
from omnigraph.integrity.deltas import POSITION, Delta
from omnigraph.integrity.proofs.proof import Proof
from omnigraph.integrity.rules import RuleSet, SetRule
from omnigraph.integrity.violations import ToOrigin
from omnigraph.load.positions import Origins
from omnigraph.load.quarantine import Blame, blame_of
from omnigraph.load.shaping.batches import Reject
from omnigraph.load.spark.intake import (
    FAULTS,
    PAYLOAD,
    RANK,
    REJECTS,
    TYPE,
    IntakeResult,
    ScratchFile,
)
from omnigraph.load.spark.keys import KeyRows, faults_frame
from omnigraph.load.spark.scratch import Scratch
from omnigraph.load.spark.stage import UNIT, pack_files, paths_of, unit_frame
from omnigraph.model.tables import TableKey
from omnigraph.relational.plans import Plan
from omnigraph.schema.catalog import SchemaType
from omnigraph.transaction.view import View

_FAULTS_OF_ROW: Final = "@faults"
_SUPERSEDED: Final = "superseded"
_SETS_FROM: Final = 1 << 20
"""Ranks of rules about several rows are after those of row rules."""


def find_faults(
    engine: SparkEngine,
    rule_set: RuleSet,
    delta: Delta,
    view: View,
    is_proven: Proof,
    scratch: Scratch,
    to_origin: ToOrigin,
    *,
    turn: int,
) -> tuple[ScratchFile, ...]:
    """Write to scratch which rows break rules about several rows; one job."""
    shape = delta.shape()
    parts: list[DataFrame] = []
    for place, rule in enumerate(rule_set.set_rules_for(shape)):
        blame = blame_of(rule)
        if blame is None or is_proven(rule) or blame.table not in delta.tables:
            continue
        rows = delta.tables[blame.table].upserts
        if rows is not None and len(rows):
            assert isinstance(rows, KeyRows), "the delta of a load on Spark"
            rank = _SETS_FROM + place
            parts.append(_faults(engine, rule, rank, delta, view, blame, rows, to_origin))
    if not parts:
        return ()
    faults = parts[0]
    for part in parts[1:]:
        faults = faults.union(part)
    messages = faults.mapInArrow(partial(write_faults, scratch, turn), MESSAGE)
    # Messages of tasks: names of files.
    return tuple(collect_messages(messages))


def find_superseded(
    rows: Iterable[KeyRows], choice: OnDuplicate, scratch: Scratch
) -> tuple[ScratchFile, ...]:
    """Write to scratch which rows another row of their id supersedes; one job."""
    parts = [
        _superseded(rows_of_type, choice) for rows_of_type in rows if rows_of_type.has_given_ids
    ]
    if not parts:
        return ()
    every = reduce(DataFrame.union, parts)
    messages = every.mapInArrow(partial(write_faults, scratch, _SUPERSEDED), MESSAGE)
    # Messages of tasks: names of files.
    return tuple(collect_messages(messages))


def _superseded(rows: KeyRows, choice: OnDuplicate) -> DataFrame:
    """The rows of a type that another one supersedes, with the columns of `FAULTS`."""
    kept = (sql.min if choice is OnDuplicate.FIRST else sql.max)(POSITION)
    by_id = rows.select(["id", POSITION]).groupBy("id")
    places = by_id.agg(kept.alias("kept"), sql.collect_list(POSITION).alias("places"))
    others = sql.array_except("places", sql.array("kept"))
    return (
        places.where(sql.size("places") > 1)
        .select(sql.explode(others).alias(POSITION))
        .select(
            sql.lit(str(rows.type.table_key)).alias(TYPE),
            POSITION,
            sql.lit(0).cast("int").alias(RANK),
            sql.lit(b"").alias(PAYLOAD),
        )
    )


def _faults(
    engine: SparkEngine,
    rule: SetRule,
    rank: int,
    delta: Delta,
    view: View,
    blame: Blame,
    rows: KeyRows,
    to_origin: ToOrigin,
) -> DataFrame:
    """The rows behind the offenders of a rule, with the columns of `FAULTS`."""
    question = rule.offenders(delta.shape()).list_all()
    given = {name: rows_of.of(delta) for name, rows_of in question.given.items()}
    offenders = engine.frame(_without_order(question.plan), replace(view.data, given=given))
    described = offenders.mapInArrow(
        partial(describe, rule, to_origin, blame.values),
        _described_schema(offenders, blame),
    )
    behind = rows.select(list(dict.fromkeys([*blame.columns, POSITION])))
    on = [behind[column] == described[f"v{place}"] for place, column in enumerate(blame.columns)]
    return behind.join(described, on).select(
        sql.lit(str(blame.table)).alias(TYPE),
        behind[POSITION],
        sql.lit(rank).alias(RANK),
        described[PAYLOAD],
    )


def _without_order(plan: Plan) -> Plan:
    """The plan without its order, for which Spark would compute every offender twice."""
    tree = plan.tree.copy()
    tree.set("order", None)
    return replace(plan, tree=tree)


def _described_schema(offenders: DataFrame, blame: Blame) -> str:
    kinds = {column.name: column.dataType.simpleString() for column in offenders.schema}
    values = [f"v{place} {kinds[name]}" for place, name in enumerate(blame.values)]
    return ", ".join([*values, f"`{PAYLOAD}` binary"])


def describe(
    rule: SetRule,
    to_origin: ToOrigin,
    values: tuple[str, ...],
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """Each offender's values and its violation. Runs in an executor; safe to run twice."""
    for batch in batches:
        violations = [rule.describe(_plain(row), to_origin) for row in batch.to_pylist()]
        columns = {f"v{place}": batch[name] for place, name in enumerate(values)}
        yield pa.record_batch(
            {**columns, PAYLOAD: pa.array(map(pickle.dumps, violations), pa.binary())}
        )


def _plain(row: dict[str, object]) -> dict[str, object]:
    """The values as the local engine has them: Spark has no unsigned integers."""
    return {
        name: int(value) if isinstance(value, Decimal) else value for name, value in row.items()
    }


def write_faults(
    scratch: Scratch, turn: int | str, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Write faults to scratch. Runs in an executor; safe to run twice."""
    with report_errors():
        context = TaskContext.get()
        assert context is not None, "it runs in an executor"
        parts = [pa.RecordBatch.from_arrays(batch.columns, schema=FAULTS) for batch in batches]
        faults = pa.Table.from_batches(parts, FAULTS)
        if len(faults):
            path = scratch.write(f"faults-{turn}-{context.partitionId()}", faults)
            file = ScratchFile(path, context.partitionId(), len(faults))
            yield to_message(file)


def count_faulty(
    engine: SparkEngine, scratch: Scratch, files: tuple[ScratchFile, ...]
) -> dict[str, int]:
    """How many rows of each type have faults."""
    if not files:
        return {}
    faults = faults_frame(engine.session, scratch, files)
    counts = faults.groupBy(TYPE).agg(sql.countDistinct(POSITION).alias("rows"))
    # One row for each type.
    return {row[TYPE]: row["rows"] for row in counts.collect()}


@dataclass(frozen=True, slots=True)
class RejectTask:
    """All an executor needs to format the rows that were left out."""

    type: SchemaType
    scratch: Scratch
    units: tuple[tuple[str, ...], ...]


def rejects_in_order(
    engine: SparkEngine, scratch: Scratch, intake: IntakeResult, rows: Mapping[TableKey, KeyRows]
) -> Iterator[Reject]:
    """Every row that was left out, in the order of the input, a partition at a time."""
    session = engine.session
    paths = [file.path for file in intake.rejects]
    every = scratch.frame(session, paths, REJECTS)
    for rows_of_type in rows.values():
        if rows_of_type.fault_count:
            every = every.union(_left_out_rows(rows_of_type, intake))
    for row in every.orderBy(POSITION).toLocalIterator():
        yield _with_origin(pickle.loads(row[PAYLOAD]), intake.origins)


def _left_out_rows(rows: KeyRows, intake: IntakeResult) -> DataFrame:
    files = pack_files(rows.written.scratch, core_count(rows.session))
    task = RejectTask(rows.type, rows.scratch, paths_of(files))
    faults = faults_frame(rows.session, rows.scratch, rows.faults)
    own = faults.where(sql.col(TYPE) == str(rows.type.table_key))
    # By rank: a row's reasons are in the order of the rules.
    ordered = sql.sort_array(sql.collect_list(sql.struct(RANK, PAYLOAD)))
    by_row = own.groupBy(POSITION).agg(ordered[PAYLOAD].alias(_FAULTS_OF_ROW))
    routed = unit_frame(rows.session, by_row, files, intake.tasks)
    routed = route(routed, len(files), UNIT).select(UNIT, POSITION, _FAULTS_OF_ROW)
    schema = f"`{POSITION}` bigint, `{PAYLOAD}` binary"
    return routed.mapInArrow(partial(format_rejects, task), schema)


def format_rejects(task: RejectTask, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows with faults, as lines. Runs in an executor; safe to run twice."""
    with report_errors():
        faults: dict[int, dict[int, list[bytes]]] = {}
        for batch in batches:
            columns = (column.to_pylist() for column in batch.columns)
            for unit, at, payloads in zip(*columns, strict=True):
                faults.setdefault(unit, {})[at] = payloads
        for unit, by_position in faults.items():
            wanted = pa.array(list(by_position), pa.int64())
            for path in task.units[unit]:
                rows = task.scratch.read(path)
                rejected = rows.filter(pc.is_in(rows[POSITION], value_set=wanted))
                if len(rejected):
                    yield _to_payloads(task.type, rejected, by_position)


def _to_payloads(
    type_: SchemaType, rejected: pa.Table, faults: Mapping[int, Iterable[bytes]]
) -> pa.RecordBatch:
    places = rejected[POSITION].to_pylist()
    payloads = []
    lines: list[bytes] = []
    for batch in rejected.to_batches():
        lines += envelope_lines(type_, batch).to_pybytes().splitlines()
    for at, line in zip(places, lines, strict=True):
        violations = tuple(pickle.loads(payload) for payload in faults[at])
        payloads.append(pickle.dumps(Reject(at, line.decode(), violations)))
    return pa.record_batch(
        {POSITION: pa.array(places, pa.int64()), PAYLOAD: pa.array(payloads, pa.binary())}
    )


def _with_origin(reject: Reject, origins: Origins) -> Reject:
    """The row with its origin, as reports show it, in each of its violations."""
    origin = origins.origin_of(reject.position)
    violations = tuple(replace(violation, origin=origin) for violation in reject.violations)
    return replace(reject, violations=violations)
