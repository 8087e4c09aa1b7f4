"""What the Spark connector does, in the processes in which Spark asks it to.

Planning runs beside the driver, reading in executors. Both get small values that pickle: the
address of a table, or a commit and a query; never a graph, a session or a handle.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import datasource as spark
from pyspark.sql.datasource import DataSourceReader, DataSourceWriter, Filter, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from omnigraph.clock import SystemClock
from omnigraph.connector.writer import LoadWriter, SaveTask
from omnigraph.engine.choose import choose
from omnigraph.engine.local.execute import LocalEngine
from omnigraph.engine.protocol import EngineName
from omnigraph.engine.queries import chosen
from omnigraph.engine.results import output_schema
from omnigraph.engine.spark.relations import pack
from omnigraph.engine.spark.types import spark_schema, to_crossing
from omnigraph.errors import (
    ErrorCode,
    InvalidInputError,
    InvalidParameterError,
    LimitExceededError,
    NotAllowedError,
)
from omnigraph.limits import (
    CONNECTOR_PARALLELISM,
    KEYS_PER_LOOKUP_MAX,
    SPARK_BATCH_BYTES_MAX,
)
from omnigraph.manifest.reader import Manifest
from omnigraph.manifest.schemas import Catalogs
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.model.commits import checked_actor, checked_message
from omnigraph.model.ids import CommitId
from omnigraph.model.names import MAIN, BranchName
from omnigraph.model.types import INTEGER_BOUNDS, EnumType, PropertyType, Scalar
from omnigraph.pipeline.spark.scratch import Scratch
from omnigraph.query import ir
from omnigraph.query.compile import compile_queries
from omnigraph.query.lowering.operands import Given
from omnigraph.query.lowering.plan import lower
from omnigraph.query.parameters import bind
from omnigraph.relational.plans import Plan
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.catalog import SchemaType
from omnigraph.storage import filters
from omnigraph.storage.scans import open_address, scan_batches, scan_schema
from omnigraph.storage.store import Store
from omnigraph.storage.tables import TableAddress
from omnigraph.transaction.view import view_at
from omnigraph.transaction.work import View

_OPTIONS: Final = (
    "graph", "path", "branch", "commit", "version", "query", "params", "name", "parallelism",
    "pushdown", "mode", "actor", "message",
)  # fmt: skip


_NEW_CALENDAR_YEAR: Final = 1600
"""Days from 1582-10-15 on are the same in both calendars; none before comes near this year."""


@dataclass(frozen=True, slots=True)
class PinnedType:
    """A type's rows at one commit."""

    graph: str
    type: SchemaType
    address: TableAddress
    parallelism: int
    pushes_filters: bool


@dataclass(frozen=True, slots=True)
class PinnedQuery:
    """A query's answer at one commit, asked at one instant."""

    graph: str
    commit_id: CommitId
    text: str
    name: str | None
    parameters: str
    now: datetime


Pinned = PinnedType | PinnedQuery


def pinned(options: Mapping[str, str]) -> Pinned:
    """What the options of a read or a write name, at the commit that they name now.

    Raises:
        InvalidParameterError: an option is unknown, missing or ill-formed.
        NotFoundError: there is no such graph, branch, commit, version or type.
    """
    given = {name.lower(): value for name, value in options.items()}
    unknown = sorted(given.keys() - set(_OPTIONS))
    if unknown:
        message = f"there is no option {unknown[0]!r}"
        raise InvalidParameterError(message, hint=f"options are {', '.join(_OPTIONS)}")
    if "graph" not in given:
        message = "the option graph is missing"
        raise InvalidParameterError(message, hint='.option("graph", "graph.omni")')
    store = Store.open(given["graph"])
    snapshot = _snapshot(Manifest(store), given)
    if ("query" in given) == ("path" in given):
        message = "either a type or a query is read"
        raise InvalidParameterError(
            message, hint='.load("Person"), or .option("query", ...).load()'
        )
    if "query" in given:
        return PinnedQuery(
            store.root.uri,
            snapshot.head.commit_id,
            given["query"],
            given.get("name"),
            given.get("params", "{}"),
            SystemClock().now(),
        )
    view = view_at(store, Catalogs(store.objects), snapshot)
    type_ = view.catalog.type_named(given["path"])
    parallelism = _number(given, "parallelism") or CONNECTOR_PARALLELISM
    address = view.data.table(type_.table_key).address
    pushes_filters = _truth(given, "pushdown")
    return PinnedType(store.root.uri, type_, address, parallelism, pushes_filters)


def _snapshot(manifest: Manifest, given: Mapping[str, str]) -> Snapshot:
    branch, commit, version = given.get("branch"), given.get("commit"), _number(given, "version")
    if commit is not None:
        if branch is not None or version is not None:
            message = "a commit says it all: give a commit, or a branch and a version"
            raise InvalidParameterError(message, name="commit")
        return manifest.at_commit(CommitId.parse(commit))
    name = MAIN if branch is None else BranchName.parse(branch)
    return manifest.current(name) if version is None else manifest.at_version(name, version)


def _number(given: Mapping[str, str], name: str) -> int | None:
    text = given.get(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        message = f"the option {name} is {text!r}, and must be a positive whole number"
        raise InvalidParameterError(message, name=name)
    return int(text)


def _truth(given: Mapping[str, str], name: str) -> bool:
    text = given.get(name, "false").lower()
    if text not in ("true", "false"):
        message = f"the option {name} is {text!r}, and must be true or false"
        raise InvalidParameterError(message, name=name)
    return text == "true"


def declared_schema(of: Pinned) -> StructType:
    """The columns that can be read, in Spark's types."""
    match of:
        case PinnedType():
            table = open_address(of.address)
            return spark_schema(scan_schema(table, table_schema(of.type).names))
        case PinnedQuery():
            return spark_schema(output_schema(_planned(of)[0].columns))


def reader_of(of: Pinned, schema: StructType) -> DataSourceReader:
    """Reads the columns of the schema, in its order.

    Raises:
        InvalidInputError: the schema has a column that is not there, or of another type.
    """
    declared = {each.name: each.dataType for each in declared_schema(of)}
    for each in schema:
        if declared.get(each.name) != each.dataType:
            have = declared.get(each.name)
            said = "is not there" if have is None else f"is {have.simpleString()}"
            message = f"{each.name} {each.dataType.simpleString()} was asked for, and {said}"
            names = ", ".join(f"{name} {kind.simpleString()}" for name, kind in declared.items())
            raise InvalidInputError(message, hint=f"the columns are {names}")
    match of:
        case PinnedType():
            return FilteringReader(of, schema) if of.pushes_filters else TypeReader(of, schema)
        case PinnedQuery():
            return QueryReader(of, schema)


def writer_of(
    options: Mapping[str, str], columns: StructType, *, overwrites: bool
) -> DataSourceWriter:
    """Writes rows of a type through a load.

    Raises:
        InvalidParameterError: the options do not say where to, or contradict each other.
        NotAllowedError: they name the past.
    """
    given = {name.lower(): value for name, value in options.items()}
    if given.keys() & {"commit", "version"}:
        message = "the past cannot be written"
        raise NotAllowedError(message, hint="name a branch", code=ErrorCode.READ_ONLY)
    of = pinned(given)
    if not isinstance(of, PinnedType):
        message = "rows are written to a type"
        raise InvalidParameterError(message, hint='.save("Person")', name="query")
    mode = given.get("mode", "overwrite" if overwrites else "append")
    if overwrites and mode != "overwrite":
        message = f"the option mode is {mode}, and Spark's mode is overwrite"
        raise InvalidParameterError(message, hint='use .mode("append") with it', name="mode")
    task = SaveTask(
        of.type.name,
        columns,
        BranchName.parse(given.get("branch", MAIN)),
        mode,
        Scratch(of.address.root, SystemClock().ulid()),
        actor=checked_actor(given.get("actor")),
        message=checked_message(given.get("message")),
    )
    return LoadWriter(task)


class FragmentGroup(InputPartition):
    """The fragments that one task reads, by their places in the table."""

    def __init__(self, fragments: tuple[int, ...]) -> None:
        super().__init__(fragments)


class TypeReader(DataSourceReader):
    """Reads the rows of a type, a group of fragments in each task."""

    def __init__(self, of: PinnedType, schema: StructType) -> None:
        self._of = of
        self._schema = schema
        self._filters: list[str] = []

    def partitions(self) -> list[InputPartition]:
        """Groups of fragments that are neither tiny nor huge."""
        table = open_address(self._of.address)
        groups = pack([each.num_rows for each in table.fragments()], self._of.parallelism)
        # Without any, Spark would make one partition that says nothing.
        return [FragmentGroup(each) for each in groups or ((),)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Stream the rows of a group. Runs in an executor; safe to run twice."""
        table = open_address(self._of.address)
        expected = to_arrow_schema(self._schema, timezone="UTC")
        if not partition.value:
            return
        for batch in scan_batches(
            table,
            self._schema.names,
            fragments=partition.value,
            filter_text=filters.conjoined(self._filters),
            batch_bytes=SPARK_BATCH_BYTES_MAX,
        ):
            yield to_crossing(batch).cast(expected)


class FilteringReader(TypeReader):
    """A reader that takes filters from Spark.

    Spark keeps what one use of a frame pushed down, and reads so for its other uses too, even those
    without a filter (tests/contract/spark/facts/test_data_sources.py). So this is for frames that
    are used once, and only on request.
    """

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Take the filters that Lance answers as Spark would; give back the others."""
        types = {each.name: each.type for each in self._of.type.properties}
        for each in filters:
            text = filter_text(each, types)
            if text is None:
                yield each
            else:
                self._filters.append(text)


class QueryReader(DataSourceReader):
    """Answers a query in one task, on the local engine."""

    def __init__(self, of: PinnedQuery, schema: StructType) -> None:
        self._of = of
        self._schema = schema

    def partitions(self) -> list[InputPartition]:
        """One, once it is known that the query is not too large for one.

        Raises:
            LimitExceededError: its tables are too large for the local engine.
        """
        plan, view = _planned(self._of)
        fits = choose(plan, view.data, None)
        if fits.engine is not EngineName.LOCAL:
            message = f"this query is too large for one task: {fits.why}"
            hint = 'use graph.query(text, engine="spark").frame()'
            raise LimitExceededError(message, hint=hint)
        return [InputPartition(None)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:  # noqa: ARG002
        """Compute the answer. Runs in an executor; safe to run twice."""
        plan, view = _planned(self._of)
        answer = LocalEngine().run(plan, view.data).select(self._schema.names)
        expected = to_arrow_schema(self._schema, timezone="UTC")
        for batch in answer.to_batches(max_chunksize=_rows_max(answer)):
            yield to_crossing(batch).cast(expected)


def _rows_max(answer: pa.Table) -> int:
    return max(1, int(SPARK_BATCH_BYTES_MAX * answer.num_rows / max(1, answer.nbytes)))


def _planned(of: PinnedQuery) -> tuple[Plan, View]:
    store = Store.open(of.graph)
    snapshot = Manifest(store).at_commit(of.commit_id)
    view = view_at(store, Catalogs(store.objects), snapshot)
    query = chosen(compile_queries(of.text, view.catalog), of.name)
    if not isinstance(query, ir.ReadQuery):
        message = f"the query {query.name} changes the graph"
        raise InvalidInputError(message, hint="run it with graph.mutate")
    given = Given(bind(query, _parameters(of.parameters)), of.now)
    return lower(query, view.catalog, given).plan(given), view


def _parameters(text: str) -> dict[str, object]:
    try:
        read = json.loads(text)
    except ValueError as cause:
        message = f"the option params is no JSON: {cause}"
        raise InvalidParameterError(message, name="params") from cause
    if not isinstance(read, dict):
        message = "the option params must be an object by parameter"
        raise InvalidParameterError(message, hint='such as {"name": "Ada"}', name="params")
    return read


_OPERATORS: Final[Mapping[type[Filter], str]] = {
    spark.EqualTo: "=",
    spark.LessThan: "<",
    spark.LessThanOrEqual: "<=",
    spark.GreaterThan: ">",
    spark.GreaterThanOrEqual: ">=",
}


def filter_text(given: Filter, types: Mapping[str, PropertyType]) -> str | None:
    """The filter as Lance reads it; None where Lance would not answer exactly as Spark does.

    Args:
        types: Properties by name; other columns are ids.
    """
    if isinstance(given, spark.Not):
        # Null-safe comparison is never null, so its negation lets nulls pass.
        if isinstance(given.child, spark.EqualNullSafe):
            return None
        text = filter_text(given.child, types)
        return None if text is None else filters.negated(text)
    path: tuple[str, ...] = getattr(given, "attribute", ())
    if len(path) != 1:
        return None
    type_ = types.get(path[0], Scalar.STRING)
    return _column_filter(given, path[0], type_) if _is_exact(type_) else None


def _column_filter(given: Filter, name: str, type_: PropertyType) -> str | None:
    match given:
        case spark.IsNull():
            return filters.is_null(name)
        case spark.IsNotNull():
            return filters.negated(filters.is_null(name))
        case spark.EqualNullSafe(value=None):
            return filters.is_null(name)
        case spark.In(value=values):
            # A null among them makes no row pass.
            wanted = [each for each in values if each is not None]
            if len(wanted) > KEYS_PER_LOOKUP_MAX or not all(_fits(each, type_) for each in wanted):
                return None
            return filters.is_one_of(name, wanted)
        case spark.StringStartsWith(value=text):
            return filters.starts_with(name, text) if _fits(text, type_) else None
        case spark.EqualNullSafe(value=value):
            return filters.compared(name, "=", value) if _fits(value, type_) else None
        case _ if (operator := _OPERATORS.get(type(given))) is not None:
            compared: Any = getattr(given, "value", None)
            return filters.compared(name, operator, compared) if _fits(compared, type_) else None
        case _:
            return None


def _is_exact(type_: PropertyType) -> bool:
    match type_:
        case Scalar.STRING | Scalar.BOOL | Scalar.I32 | Scalar.I64 | Scalar.DATE | Scalar.DATETIME:
            return True
        case EnumType():
            return True
        case _:
            return False


def _fits(value: Any, type_: PropertyType) -> bool:
    """Whether a value is of the column's own type, so that nobody need convert it."""
    match type_:
        case Scalar.STRING | EnumType():
            return isinstance(value, str)
        case Scalar.BOOL:
            return isinstance(value, bool)
        case Scalar.I32 | Scalar.I64:
            low, high = INTEGER_BOUNDS[type_]
            is_whole = isinstance(value, int) and not isinstance(value, bool)
            return is_whole and low <= value <= high
        case Scalar.DATE:
            return isinstance(value, date) and not isinstance(value, datetime) and _is_late(value)
        case Scalar.DATETIME:
            return isinstance(value, datetime) and _is_late(value)
        case _:
            return False


def _is_late(value: date) -> bool:
    """Whether Spark passed on the day that was written: it shifts those of the old calendar."""
    return value.year >= _NEW_CALENDAR_YEAR
