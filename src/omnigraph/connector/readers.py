"""Readers: the rows of a type in parallel, or the result of a query in one task.

Planning runs in a process beside the driver, reading in executors.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from omnigraph.connector.failures import hide_frames
from omnigraph.connector.options import Pinned, PinnedQuery, PinnedType
from omnigraph.connector.pushdown import Condition, filter_text
from omnigraph.engine.choose import measure_plan, why_not_local
from omnigraph.engine.local.execute import LocalEngine
from omnigraph.engine.queries import choose_query
from omnigraph.engine.results import output_schema
from omnigraph.engine.spark.relations import pack
from omnigraph.engine.spark.types import arrow_schema, spark_schema, to_crossing
from omnigraph.errors import InvalidInputError, InvalidParameterError, LimitExceededError
from omnigraph.limits import SPARK_BATCH_BYTES_MAX
from omnigraph.manifest.reader import Manifest
from omnigraph.manifest.schemas import Catalogs
from omnigraph.model.former_names import FormerNames
from omnigraph.query import ir
from omnigraph.query.compile import compile_queries
from omnigraph.query.lowering.operands import Given
from omnigraph.query.lowering.plan import lower
from omnigraph.query.parameters import bind
from omnigraph.relational.plans import Plan
from omnigraph.storage import filters
from omnigraph.storage.scans import open_address, scan_batches, scan_schema
from omnigraph.storage.store import Store
from omnigraph.transaction.view import View, view_at

# Spark 4.0 has none, and pushes none down.
if TYPE_CHECKING:
    from pyspark.sql.datasource import Filter


def declared_schema(pinned: Pinned) -> StructType:
    """The columns that can be read, in Spark's types. Runs in a process of the driver's machine."""
    match pinned:
        case PinnedType():
            pinned.place.require_readable([pinned.type.name])
            table = open_address(pinned.address)
            return spark_schema(scan_schema(table, pinned.columns))
        case PinnedQuery():
            query, view = compile_query(pinned)
            pinned.place.require_readable({key.type_name for key in query.reads})
            return spark_schema(output_schema(_plan(pinned, query, view).columns))


def open_reader(pinned: Pinned, schema: StructType) -> DataSourceReader:
    """A reader of the columns of the schema, in its order."""
    declared = {column.name: column.dataType for column in declared_schema(pinned)}
    for column in schema:
        type_ = declared.get(column.name)
        if type_ != column.dataType:
            fact = "does not exist" if type_ is None else f"is {type_.simpleString()}"
            wanted = column.dataType.simpleString()
            message = f"column {column.name}, expected as {wanted}, {fact}"
            names = ", ".join(f"{name} {kind.simpleString()}" for name, kind in declared.items())
            raise InvalidInputError(message, hint=f"the columns are {names}")
    match pinned:
        case PinnedType():
            reader = FilteringReader if pinned.pushes_filters else TypeReader
            return reader(pinned, schema)
        case PinnedQuery():
            return QueryReader(pinned, schema)


class FragmentGroup(InputPartition):
    """The fragments that one task reads, by their places in the table."""

    def __init__(self, fragments: tuple[int, ...]) -> None:
        super().__init__(fragments)


class TypeReader(DataSourceReader):
    """Reads the rows of a type, a group of fragments in each task."""

    def __init__(self, pinned: PinnedType, schema: StructType) -> None:
        self._pinned = pinned
        self._schema = schema
        self._filters = [*pinned.filters]

    @hide_frames()
    def partitions(self) -> list[InputPartition]:
        """Groups of fragments that are neither tiny nor huge."""
        table = open_address(self._pinned.address)
        sizes = [fragment.num_rows for fragment in table.fragments()]
        groups = pack(sizes, self._pinned.parallelism)
        # Without any group, Spark would make one partition of its own, without a value.
        return [FragmentGroup(group) for group in groups or ((),)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Stream the rows of a group. Runs in an executor; safe to run twice."""
        table = open_address(self._pinned.address)
        expected = arrow_schema(self._schema)
        if not partition.value:
            return
        for batch in scan_batches(
            table,
            self._schema.names,
            fragments=partition.value,
            filter_text=filters.conjoin(self._filters),
            batch_bytes=SPARK_BATCH_BYTES_MAX,
        ):
            yield to_crossing(batch).cast(expected)


class FilteringReader(TypeReader):
    """A reader that Spark pushes filters to.

    Spark applies the filters that one use of a frame pushed down to its other uses too, even those
    without a filter (tests/contract/spark/facts/test_data_sources.py). So this is for frames that
    are used once, and only on request.
    """

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Apply the filters that Lance evaluates as Spark does; return the others."""
        types = {property_.name: property_.type for property_ in self._pinned.type.properties}
        for pushed in filters:
            text = filter_text(Condition.of(pushed), types)
            if text is None:
                yield pushed
            else:
                self._filters.append(text)


class QueryReader(DataSourceReader):
    """Runs a query in one task, on the local engine."""

    def __init__(self, pinned: PinnedQuery, schema: StructType) -> None:
        self._pinned = pinned
        self._schema = schema

    @hide_frames()
    def partitions(self) -> list[InputPartition]:
        """One partition, if the query is small enough for one task."""
        plan, view = plan_query(self._pinned)
        why = why_not_local(measure_plan(plan, view.data))
        if why is not None:
            message = f"this query is too large for one task: {why}"
            hint = 'use graph.query(text, engine="spark").frame()'
            raise LimitExceededError(message, hint=hint)
        return [InputPartition(None)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:  # noqa: ARG002
        """Compute the result. Runs in an executor; safe to run twice."""
        plan, view = plan_query(self._pinned)
        rows = LocalEngine().run(plan, view.data).select(self._schema.names)
        expected = arrow_schema(self._schema)
        for batch in rows.to_batches(max_chunksize=_rows_max(rows)):
            yield to_crossing(batch).cast(expected)


def _rows_max(rows: pa.Table) -> int:
    return max(1, int(SPARK_BATCH_BYTES_MAX * rows.num_rows / max(1, rows.nbytes)))


def plan_query(pinned: PinnedQuery) -> tuple[Plan, View]:
    """The plan of a query, and the view that it runs on."""
    query, view = compile_query(pinned)
    return _plan(pinned, query, view), view


def _plan(pinned: PinnedQuery, query: ir.ReadQuery, view: View) -> Plan:
    given = Given(bind(query, _read_parameters(pinned.parameters)), pinned.now)
    return lower(query, view.catalog, given).plan(given)


def compile_query(pinned: PinnedQuery) -> tuple[ir.ReadQuery, View]:
    """A query, and the view that it is of."""
    store = Store.open(pinned.place.graph)
    snapshot = Manifest(store).at_commit(pinned.place.commit_id)
    view = view_at(store, Catalogs(store.objects), snapshot)
    former = FormerNames.of(snapshot.pins.values(), snapshot.tombstones)
    queries = compile_queries(pinned.text, view.catalog, former=former)
    query = choose_query(queries, pinned.name)
    if not isinstance(query, ir.ReadQuery):
        message = f"the query {query.name} changes the graph"
        raise InvalidInputError(message, hint="run it with graph.mutate")
    return query, view


def _read_parameters(text: str) -> dict[str, object]:
    try:
        parameters = json.loads(text)
    except ValueError as cause:
        message = f"the option params is not JSON: {cause}"
        raise InvalidParameterError(message, name="params") from cause
    if not isinstance(parameters, dict):
        message = "the option params must be an object by parameter"
        raise InvalidParameterError(message, hint='such as {"name": "Ada"}', name="params")
    return parameters
