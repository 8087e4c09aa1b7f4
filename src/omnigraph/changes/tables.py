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

from omnigraph.changes.digests import is_wide, slim
from omnigraph.changes.lifts import ConvertedColumn, Lift, LiftPair, unlike_columns
from omnigraph.changes.records import TableChanges, ids_of, take_rows
from omnigraph.changes.wide import WideSources, WideValues, read_columns, reference_schema
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
    before: Table | None,
    after: Table | None,
    engine: Engine,
    data: Data,
    wide: WideValues | None = None,
    lifts: LiftPair | None = None,
) -> TableChanges:
    """How the rows of a type differ between two versions of its table.

    Rows at the same address in both versions are not read, except for columns that are stored
    elsewhere. A row that was rewritten with equal values did not change. Null is not the empty
    text; NaN equals itself.

    Args:
        before: The earlier version, or None; so with `after`.
        wide: Finds the vectors and blobs of all rows that will be combined, in these tables and in
            others.
        lifts: How rows of either version become rows of the type; when None, they are such rows.
    """
    lifts = LiftPair.identity(type_) if lifts is None else lifts
    differences = difference(before, after, comparison=lifts)
    sides = ((before, lifts.before, differences.before), (after, lifts.after, differences.after))
    if wide is None:
        tables = [(table, lift) for table, lift, _ in sides if table is not None]
        sources = {table.address: wide_sources(lift) for table, lift in tables}
        wide = WideValues(*(table for table, _ in tables), sources=sources)
    old, new = (_read(lift, table, parts, wide) for table, lift, parts in sides)
    return replace(compare_rows(type_, old, new, engine, data), wide=wide)


def wide_sources(lift: Lift) -> WideSources:
    """The columns of a lifted table that hold vectors and blobs, for `WideValues`."""
    schema = table_schema(lift.type)
    return {field.name: lift.source_of(field.name) for field in schema if is_wide(field.type)}


def compare_rows(
    type_: SchemaType, old: pa.Table, new: pa.Table, engine: Engine, data: Data
) -> TableChanges:
    """How two sets of rows of a type differ, each with every id at most once.

    Rows may have columns of `lifts.unlike_columns`, which are compared and left out of the result.
    """
    unlike = sorted({*unlike_columns(old), *unlike_columns(new)})
    compared = tuple(_with_nulls(rows, unlike) for rows in (old, new))
    old, new = (rows.drop_columns(unlike_columns(rows)) for rows in (old, new))
    if not old.num_rows or not new.num_rows:
        # No row can have been updated: the rows of one side were all inserted or all deleted.
        nothing = new.slice(0, 0)
        return TableChanges(type_, _sort_by_id(new), _sort_by_id(old), nothing, nothing)
    question = _difference_plan(tuple(compared[1].column_names))
    was_given, now_given = map(_add_places, compared)
    given = Data(data.table, given={"before": was_given, "after": now_given})
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


def _with_nulls(rows: pa.Table, unlike: Sequence[str]) -> pa.Table:
    """The rows with all of these columns, in their order; absent ones are null."""
    own = unlike_columns(rows)
    for name in unlike:
        if name not in own:
            rows = rows.append_column(name, pa.nulls(rows.num_rows, pa.utf8()))
    typed = [name for name in rows.column_names if name not in unlike]
    return rows.select([*typed, *unlike])


def _read(
    lift: Lift, source: Table | None, parts: Sequence[FragmentPart], wide: WideValues
) -> pa.Table:
    """Rows of a table, with references to their wide values."""
    schema = table_schema(lift.type)
    # A wide column that does not convert is read to compare it, and has no references.
    converted = [
        column.name
        for column in lift.columns
        if isinstance(column, ConvertedColumn) and is_wide(schema.field(column.name).type)
    ]
    names = [*read_columns(schema), *converted]
    batches = [] if source is None else list(read_parts(source, parts, lift.sources(names)))
    if source is None or not batches:
        return reference_schema(schema).empty_table()
    lifted = lift.apply(pa.Table.from_batches(batches), names)
    rows = wide.refer(schema, source, lifted)
    for name in unlike_columns(lifted):
        rows = rows.append_column(name, lifted[name])
    return rows


def rows_of(
    type_: SchemaType,
    batches: Iterable[pa.RecordBatch],
    also: Sequence[pa.Field] = (),
    lift: Lift | None = None,
) -> pa.Table:
    """Batches read from a type's table, with the type's own columns and those of `also`.

    Args:
        lift: How rows that were read become rows of the type; when None, they are such rows.
    """
    schema = pa.schema([*table_schema(type_), *also])
    batches = tuple(batches)
    if not batches:
        return schema.empty_table()
    lift = Lift.identity(type_) if lift is None else lift
    rows = lift.apply(pa.Table.from_batches(batches), schema.names)
    unlike = [rows.schema.field(name) for name in unlike_columns(rows)]
    schema = pa.schema([*schema, *unlike])
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
