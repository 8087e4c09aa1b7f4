"""Comparison of two versions of one table: by files first, then by the values of the rest."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from omnigraph.changes.digests import slim
from omnigraph.changes.records import TableChanges, ids_of, take_rows
from omnigraph.changes.wide import WideValues, read_columns, reference_schema
from omnigraph.engine.protocol import Data, Engine
from omnigraph.limits import COMPILED_QUERIES_MAX
from omnigraph.model.types import Scalar
from omnigraph.relational.plans import GivenRows, OutputColumn, Plan
from omnigraph.relational.trees import column, table
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.catalog import SchemaType
from omnigraph.storage.differences import FragmentPart, difference, read_parts
from omnigraph.storage.tables import Table

_PLACE: Final = "@place"
"""Not a valid name of a property."""


def compare_tables(
    type_: SchemaType,
    before: Table,
    after: Table,
    engine: Engine,
    data: Data,
    wide: WideValues | None = None,
) -> TableChanges:
    """How the rows of a type differ between two versions of its table.

    Rows at the same address in both versions are not read. A row that was rewritten with equal
    values did not change. Null is not the empty text; NaN equals itself.

    Args:
        wide: Finds the vectors and blobs of all rows that will be combined, in these tables and in
            others.
    """
    differences = difference(before, after)
    wide = WideValues(before, after) if wide is None else wide
    old, new = (
        _read(type_, source, parts, wide)
        for source, parts in ((before, differences.before), (after, differences.after))
    )
    return replace(compare_rows(type_, old, new, engine, data), wide=wide)


def compare_rows(
    type_: SchemaType, old: pa.Table, new: pa.Table, engine: Engine, data: Data
) -> TableChanges:
    """How two sets of rows of a type differ, each with every id at most once."""
    if not old.num_rows or not new.num_rows:
        # No row can have been updated: the rows of one side were all inserted or all deleted.
        nothing = new.slice(0, 0)
        return TableChanges(type_, _sort_by_id(new), _sort_by_id(old), nothing, nothing)
    question = _difference_plan(tuple(new.column_names))
    given = Data(data.table, given={"before": _add_places(old), "after": _add_places(new)})
    answer = engine.run(question, given)
    was, now = answer["was"].combine_chunks(), answer["now"].combine_chunks()
    is_updated = pc.and_(was.is_valid(), now.is_valid())
    return TableChanges(
        type_,
        inserted=take_rows(new, now.filter(was.is_null())),
        deleted=take_rows(old, was.filter(now.is_null())),
        before=take_rows(old, was.filter(is_updated)),
        after=take_rows(new, now.filter(is_updated)),
    )


def _add_places(rows: pa.Table) -> pa.Table:
    """The columns that an engine compares, with each row's position, to find it again."""
    return slim(rows).append_column(_PLACE, pa.array(np.arange(rows.num_rows)))


def _read(
    type_: SchemaType, source: Table, parts: Sequence[FragmentPart], wide: WideValues
) -> pa.Table:
    """Rows of a table, with references to their wide values."""
    schema = table_schema(type_)
    batches = list(read_parts(source, parts, read_columns(schema)))
    if not batches:
        return reference_schema(schema).empty_table()
    return wide.refer(schema, source, pa.Table.from_batches(batches))


def rows_of(
    type_: SchemaType, batches: Iterable[pa.RecordBatch], also: Sequence[pa.Field] = ()
) -> pa.Table:
    """Batches read from a type's table, with the type's own columns and those of `also`."""
    schema = pa.schema([*table_schema(type_), *also])
    batches = tuple(batches)
    if not batches:
        return schema.empty_table()
    rows = pa.Table.from_batches(batches)
    return pa.Table.from_arrays(
        [rows[field.name].cast(field.type) for field in schema], schema=schema
    )


def _sort_by_id(rows: pa.Table) -> pa.Table:
    return take_rows(rows, pc.sort_indices(ids_of(rows)))


@lru_cache(maxsize=COMPILED_QUERIES_MAX)
def _difference_plan(columns: tuple[str, ...]) -> Plan:
    """A plan that returns the positions of rows that are unequal or in only one relation."""
    differs = [
        exp.NullSafeNEQ(this=column(name, "b"), expression=column(name, "a"))
        for name in columns
        if name != "id"
    ]
    alone = [
        exp.Is(this=column("id", "b"), expression=exp.Null()),
        exp.Is(this=column("id", "a"), expression=exp.Null()),
    ]
    same_id = exp.EQ(this=column("id", "b"), expression=column("id", "a"))
    tree = (
        exp.select(column(_PLACE, "b"), column(_PLACE, "a"))
        .from_(table("before", "b"))
        .join(table("after", "a"), on=same_id, join_type="full outer")
        .where(exp.or_(*alone, *differs))
        .order_by(exp.Coalesce(this=column("id", "a"), expressions=[column("id", "b")]))
    )
    outputs = (
        OutputColumn("was", Scalar.I64, nullable=True),
        OutputColumn("now", Scalar.I64, nullable=True),
    )
    return Plan(tree, {"before": GivenRows(), "after": GivenRows()}, outputs)
