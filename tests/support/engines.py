"""Runs engines on graphs in real tables, for the engine suites."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow as pa

from omnigraph.engine.protocol import Data, Engine
from omnigraph.maintenance.indexes import index_specs
from omnigraph.model.commits import OperationKind
from omnigraph.model.ids import OperationId
from omnigraph.model.tables import TableKey
from omnigraph.query import ir
from omnigraph.query.ir import Value
from omnigraph.query.lowering.operands import Given, unconverted_parameters
from omnigraph.query.lowering.plan import lower
from omnigraph.schema.catalog import Catalog, Index, SchemaType
from omnigraph.schema.indexes import index_kind
from omnigraph.schema.resolve import catalog_of
from omnigraph.storage import heads, staging
from omnigraph.storage.indexes import stage_indexes
from omnigraph.storage.store import Store
from omnigraph.storage.tables import Table
from tests.oracle.reference import ReferenceGraph
from tests.oracle.tables import to_rows, to_tables
from tests.support.query_cases import NOW

EARLIER = datetime(2001, 2, 3, tzinfo=UTC)
AUTHOR = heads.Authorship(OperationId("test"), OperationKind.LOAD)


def store_tables(
    root: Path, graph: ReferenceGraph, catalog: Catalog, *, indexed: bool
) -> dict[TableKey, Table]:
    """Each type's rows in a Lance table of two fragments, with the catalog's indexes or none."""
    store = Store.open(root)
    tables = {}
    for key, rows in to_tables(graph, catalog).items():
        location = f"{key.kind.folder}/{key.type_name}"
        table = heads.apply(
            staging.stage_create(store.tables, location, rows.slice(0, rows.num_rows // 2)), AUTHOR
        )
        if indexed:
            table = _with_indexes(catalog, key, table)
        rest = rows.slice(rows.num_rows // 2)
        if rest.num_rows:
            # After the index, so that its coverage is partial, as after every write.
            table = heads.apply(staging.stage_append(table, rest), AUTHOR)
        tables[key] = table
    return tables


def _with_indexes(catalog: Catalog, key: TableKey, table: Table) -> Table:
    (type_,) = (each for each in catalog.types if each.table_key == key)
    staged = stage_indexes(table, index_specs(type_, table))
    return table if staged is None else heads.apply(staged, AUTHOR)


def index_everything(catalog: Catalog) -> Catalog:
    """The same catalog with an index on every property that can have one."""

    def indexed(type_: SchemaType) -> SchemaType:
        indexable = (each for each in type_.properties if index_kind(each.type) is not None)
        return replace(type_, indexes=tuple(Index(each.name) for each in indexable))

    return catalog_of(*catalog.interfaces, *map(indexed, catalog.types))


def answer(
    engine: Engine,
    tables: Mapping[TableKey, Table],
    query: ir.ReadQuery,
    catalog: Catalog,
    values: Mapping[str, Value],
) -> list[dict[str, Value]]:
    """The rows that an engine returns for a query over these tables.

    The query is lowered for other values of the same shape, as a cached template would be.
    """
    numbers = unconverted_parameters(query)
    given = Given(values, NOW, numbers)
    others = {
        name: _another(value, is_unconverted=name in numbers) for name, value in values.items()
    }
    before = Given(others, EARLIER, numbers)
    assert before.shape == given.shape
    plan = lower(query, catalog, before).plan(given)
    rows = engine.run(plan, Data(tables.__getitem__))
    assert isinstance(rows, pa.Table)
    return to_rows(rows)


def _another(value: Value, *, is_unconverted: bool) -> Value:
    """Another value for which the same lowered query is valid; the same if there is none."""
    match value:
        case bool():
            return not value
        case str():
            return f"{value}~"
        case bytes():
            return value + b"~"
        case datetime():
            return EARLIER
        case date():
            return EARLIER.date()
        case int() if is_unconverted:
            # Between the value and zero, or beside zero, any type of number has it.
            return value + (1 if value <= 0 else -1)
        case _:
            return value
