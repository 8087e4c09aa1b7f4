"""Statements, one after the other, over what is committed and what earlier ones left pending."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import assert_never, cast

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.integrity.deltas import POSITION
from omnigraph.model.identity import KeyValue, identity_of
from omnigraph.model.tables import TableKey
from omnigraph.mutation.matching import Matcher, Predicate
from omnigraph.mutation.pending import Pending
from omnigraph.mutation.values import assigned, one_row, to_delta
from omnigraph.query import ir
from omnigraph.query.lowering.keys import key_types
from omnigraph.query.lowering.operands import Given
from omnigraph.schema.catalog import Catalog, EdgeType, NodeType, SchemaType
from omnigraph.storage import lookups
from omnigraph.transaction.view import View


def origin_of(number: int) -> str:
    """How reports name the rows of a statement, whose number is their position."""
    return f"statement {number}"


@dataclass(frozen=True, slots=True)
class Statements:
    """Carries out the statements of one mutation on one view, in memory.

    Attributes:
        mint: Makes an id for a row that has none.
    """

    view: View
    given: Given
    matcher: Matcher
    mint: Callable[[], str]
    pending: Pending

    def run(self, statements: Iterable[ir.Statement]) -> None:
        """Leave pending what the statements change, each seeing what those before it did.

        Raises:
            InvalidInputError: a key has a number that is not finite.
            StorageError: a table could not be read.
        """
        for number, statement in enumerate(statements, start=1):
            match statement:
                case ir.InsertNode() | ir.InsertEdge():
                    self._insert(statement, number)
                case ir.Update():
                    self._update(statement, number)
                case ir.Delete():
                    self._delete(statement)
                case _:
                    assert_never(statement)

    def _insert(self, statement: ir.InsertNode | ir.InsertEdge, number: int) -> None:
        type_ = self.view.catalog.type_named(statement.type_name)
        row: dict[str, ir.Value] = {POSITION: number}
        for each in statement.values:
            row[each.property] = self._value(each.value)
        if isinstance(statement, ir.InsertEdge):
            row["src"], row["dst"] = self._value(statement.source), self._value(statement.target)
        is_minted = not type_.key and statement.id is None
        if type_.key:
            row["id"] = _identity(type_, row)
        else:
            row["id"] = self.mint() if statement.id is None else self._value(statement.id)
        table = self.pending.table(type_.table_key)
        table.put(one_row(table.schema, row), fresh=is_minted)

    def _update(self, statement: ir.Update, number: int) -> None:
        type_ = self.view.catalog.type_of(statement.table)
        table = self.pending.table(statement.table)
        found = self._matching(Predicate.of(type_, statement.where, self.given))
        columns = [name for name in table.schema.names if name != POSITION]
        committed = self._committed(statement.table, "id", found.committed, columns)
        again = table.rows().filter(pc.is_in(table.rows()["id"], value_set=found.pending))
        values = {each.property: self._value(each.value) for each in statement.assignments}
        rows = pa.concat_tables([to_delta(committed, table.schema, number), again])
        table.put(assigned(rows, {POSITION: number, **values}))

    def _delete(self, statement: ir.Delete) -> None:
        type_ = self.view.catalog.type_of(statement.table)
        found = self._matching(Predicate.of(type_, statement.where, self.given))
        assert not len(found.pending), "a mutation that deletes writes nothing"
        ids = found.committed
        if not found.exist:
            ids = self._committed(statement.table, "id", ids, ["id"])["id"].combine_chunks()
        if not len(ids):
            return
        self.pending.table(statement.table).delete(ids)
        if isinstance(type_, NodeType):
            for edge, end in incident(self.view.catalog, type_):
                touching = self._committed(edge.table_key, end, ids, ["id"])
                self.pending.table(edge.table_key).delete(touching["id"].combine_chunks())

    def _committed(
        self, key: TableKey, by: str, values: pa.Array, columns: Sequence[str]
    ) -> pa.Table:
        return lookups.find(self.view.data.table(key), by, values, columns=columns)

    def _matching(self, predicate: Predicate) -> _Found:
        table = self.pending.table(predicate.type.table_key)
        rows = table.rows()
        only = predicate.only_id()
        if only is not None:
            ids = pa.array([only], pa.utf8())
            pending = ids.filter(pc.is_in(ids, value_set=rows["id"].combine_chunks()))
            return _Found(table.uncovered(ids), pending, exist=False)
        committed = self.matcher.committed(predicate, self.view.data)
        pending = rows["id"].combine_chunks()
        if len(rows):
            pending = self.matcher.pending(predicate, rows, self.view.data)
        return _Found(table.uncovered(committed), pending, exist=True)

    def _value(self, value: ir.GivenValue) -> ir.Value:
        return cast("ir.Value", self.given.known(value).value)


@dataclass(frozen=True, slots=True)
class _Found:
    """The ids that match: of committed rows that nothing pending covers, and of pending rows.

    Attributes:
        exist: Whether the committed ones are known to exist; else they match if they do.
    """

    committed: pa.Array
    pending: pa.Array
    exist: bool


def incident(catalog: Catalog, node: NodeType) -> Iterator[tuple[EdgeType, str]]:
    """The edge types that can touch nodes of a type, with the column of each end that can."""
    for edge in catalog.edge_types:
        for end, type_name in (("src", edge.source), ("dst", edge.target)):
            if type_name == node.name:
                yield edge, end


def _identity(type_: SchemaType, row: dict[str, ir.Value]) -> str:
    members = [cast("KeyValue", row[name]) for name in type_.key]
    return identity_of(key_types(type_), members)
