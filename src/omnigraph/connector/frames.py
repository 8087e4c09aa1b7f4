"""Frames: the types of a graph as Spark DataFrames, one alone, or all nodes or edges together.

Together they have the columns that GraphFrames requires, `id`, or `src` and `dst`, then `type`, and
then a column for each name of a property, null in rows whose type lacks it. Where two types
disagree about the type of a property, each has its own column, called `Person.name`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from typing import Final, TypeAlias

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.types import DataType, StringType

from omnigraph.connector.selections import select_columns, select_rows
from omnigraph.engine.spark.execute import SparkEngine
from omnigraph.engine.spark.relations import table_frame
from omnigraph.engine.spark.types import spark_type
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.catalog import ENDPOINTS, EdgeType, NodeType, SchemaType
from omnigraph.storage import filters
from omnigraph.transaction.view import View

_TYPE: Final = "type"

_Places: TypeAlias = Mapping[str, tuple[DataType, Mapping[str, str]]]
"""Each column of properties: its type, and the property it holds by the name of the row's type."""


def type_frame(
    view: View,
    name: str,
    session: SparkSession | None = None,
    *,
    columns: Sequence[str] | None = None,
    where: str | None = None,
) -> DataFrame:
    """The rows of a type; executors read them when the frame is used.

    Args:
        session: When None, the active one, or else a new one.
        columns: Those to read; all when None. Without any, rows are counted from metadata.
        where: A filter that Lance applies (`selections.select_rows`).
    """
    type_ = view.catalog.type_named(name)
    every = table_schema(type_).names
    names = every if columns is None else select_columns(type_, tuple(columns))
    filter_text = None if where is None else filters.conjoin(list(select_rows(type_, where)))
    table = view.data.table(type_.table_key)
    # A filter is applied to rows, and so there must be some to read.
    read = names or (every[:1] if filter_text else [])
    frame = table_frame(SparkEngine(session).session, table, read, filter_text=filter_text)
    return frame.select(*names)


def vertices(
    view: View,
    session: SparkSession | None = None,
    *,
    types: Iterable[str] | None = None,
    qualified: bool = False,
) -> DataFrame:
    """All nodes: `id`, `type` and their properties.

    Args:
        qualified: Whether ids are written `Person/ada`. An id is unique within its type; where
            types share ids, GraphFrames needs distinct ones.
    """
    nodes = [type_ for type_ in view.catalog.types_named(types) if isinstance(type_, NodeType)]
    ids = {node.name: {"id": _id_column("id", node.name, qualified=qualified)} for node in nodes}
    return _unite(view, nodes, ["id"], ids, SparkEngine(session).session)


def edges(
    view: View,
    session: SparkSession | None = None,
    *,
    types: Iterable[str] | None = None,
    qualified: bool = False,
) -> DataFrame:
    """All edges: `src`, `dst`, `id`, `type` and their properties.

    Args:
        qualified: Whether all ids are written as in `vertices`.
    """
    edge_types = [type_ for type_ in view.catalog.types_named(types) if isinstance(type_, EdgeType)]
    ids = {
        edge.name: {
            name: _id_column(name, owner, qualified=qualified)
            for name, owner in zip(
                ("src", "dst", "id"), (edge.source, edge.target, edge.name), strict=True
            )
        }
        for edge in edge_types
    }
    return _unite(view, edge_types, [*ENDPOINTS, "id"], ids, SparkEngine(session).session)


def _id_column(column: str, type_name: str, *, qualified: bool) -> Column:
    id_ = sql.col(column)
    return sql.concat(sql.lit(f"{type_name}/"), id_) if qualified else id_


def _unite(
    view: View,
    types: Iterable[NodeType] | Iterable[EdgeType],
    id_names: list[str],
    ids: Mapping[str, Mapping[str, Column]],
    session: SparkSession,
) -> DataFrame:
    places = property_places(types)
    frames = [
        _rows(view, type_, session).select(
            *(ids[type_.name][name].alias(name) for name in id_names),
            sql.lit(type_.name).alias(_TYPE),
            *(
                _property(properties.get(type_.name)).cast(kind).alias(name)
                for name, (kind, properties) in places.items()
            ),
        )
        for type_ in types
    ]
    if not frames:
        return session.createDataFrame([], _empty_schema(id_names))
    return reduce(DataFrame.unionAll, frames)


def property_places(types: Iterable[SchemaType]) -> _Places:
    """Which columns hold the properties of rows of several types, in the order of their names."""
    kinds: dict[str, dict[str, DataType]] = defaultdict(dict)
    for type_ in types:
        for property_ in type_.properties:
            kinds[property_.name][type_.name] = spark_type(property_.type)
    places: dict[str, tuple[DataType, Mapping[str, str]]] = {}
    for name, by_type in sorted(kinds.items()):
        first = next(iter(by_type.values()))
        if name != _TYPE and all(kind == first for kind in by_type.values()):
            places[name] = first, dict.fromkeys(by_type, name)
        else:
            for type_name, kind in by_type.items():
                places[f"{type_name}.{name}"] = kind, {type_name: name}
    return places


def _property(name: str | None) -> Column:
    return sql.lit(None) if name is None else sql.col(f"`{name}`")


def _rows(view: View, type_: SchemaType, session: SparkSession) -> DataFrame:
    table = view.data.table(type_.table_key)
    return table_frame(session, table, table_schema(type_).names)


def _empty_schema(id_names: list[str]) -> str:
    text = StringType().simpleString()
    return ", ".join(f"{name} {text}" for name in [*id_names, _TYPE])
