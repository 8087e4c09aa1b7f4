"""Query cases: a graph, a query, and the rows that it must return, determined by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from typing import Any

from omnigraph.model.identity import identity_of
from omnigraph.query import ir
from omnigraph.query.compile import compile_queries
from omnigraph.query.ir import Value
from omnigraph.query.parameters import bind
from omnigraph.schema.catalog import Catalog, SchemaType
from omnigraph.schema.parser import parse_schema
from tests.oracle.reference import ReferenceGraph, Row, evaluate

NOW = datetime(2024, 2, 29, 12, 0, 0, 1, tzinfo=UTC)
"""The instant at which every case runs."""


@dataclass(frozen=True, eq=False)
class CaseGraph:
    """A schema and rows of it; properties that a row omits are null.

    A row may omit its id too: that of a keyed type is computed from the key.
    """

    schema: str
    rows: Mapping[str, Sequence[Mapping[str, Value]]]

    @property
    def catalog(self) -> Catalog:
        return _catalog(self.schema)

    @property
    def graph(self) -> ReferenceGraph:
        types = {each.name: each for each in self.catalog.types}
        assert set(self.rows) <= set(types)
        return ReferenceGraph(
            {name: [_whole(types[name], row) for row in rows] for name, rows in self.rows.items()}
        )


@cache
def _catalog(schema: str) -> Catalog:
    return parse_schema(schema)


def _whole(type_: SchemaType, row: Mapping[str, Value]) -> Row:
    absent: dict[str, Value] = {each.name: None for each in type_.properties}
    whole = absent | dict(row)
    if "id" not in whole:
        types: list[Any] = [type_.property_named(name).type for name in type_.key]
        key: list[Any] = [whole[name] for name in type_.key]
        whole["id"] = identity_of(types, key)
    return whole


@dataclass(frozen=True, slots=True)
class Answer:
    """The rows that a query returns, in their order, under the names of its columns."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]

    def by_name(self) -> list[dict[str, Value]]:
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]


@dataclass(frozen=True, slots=True)
class TooLarge:
    """The query is refused while it runs: a sum does not fit its type."""


@dataclass(frozen=True)
class QueryCase:
    """One query over one graph, and its expected result.

    Attributes:
        body: The query without its head.
        takes: The parameters of the head.
        given: Their values, as a caller passes them.
    """

    title: str
    on: CaseGraph
    body: str
    expected: Answer | TooLarge
    takes: str = ""
    given: Mapping[str, object] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.title

    def compile(self) -> ir.ReadQuery:
        text = f"query asked({self.takes}) {{ {self.body} }}"
        (query,) = compile_queries(text, self.on.catalog)
        assert isinstance(query, ir.ReadQuery)
        return query

    def values(self) -> Mapping[str, Value]:
        return bind(self.compile(), self.given)

    def reference(self) -> list[dict[str, Value]]:
        """The reference's rows: the expected ones, with the slack that sums of floats need.

        Raises:
            SumTooLargeError: `expected` is `TooLarge`.
        """
        return evaluate(self.compile(), self.on.graph, self.values(), NOW)


def answer(columns: str | tuple[str, ...], *rows: Any) -> Answer:
    """Rows under these names, one text or several; of a single column, a row is its value.

    A row is a value or a tuple of them, and a value may be an object.
    """
    names = tuple(columns.split()) if isinstance(columns, str) else columns
    whole = [row if isinstance(row, tuple) else (row,) for row in rows]
    assert all(len(row) == len(names) for row in whole)
    return Answer(names, tuple(whole))


def ask(
    title: str,
    on: CaseGraph,
    body: str,
    expected: Answer | TooLarge,
    takes: str = "",
    **given: object,
) -> QueryCase:
    return QueryCase(title, on, body, expected, takes, given)
