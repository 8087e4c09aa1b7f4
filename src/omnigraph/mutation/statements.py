"""Statements, run in order on committed rows and the pending changes of earlier ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import assert_never, cast

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.embedding.rows import mark_unknown
from omnigraph.integrity.deltas import POSITION
from omnigraph.model.identity import KeyValue, identity_of
from omnigraph.model.tables import TableKey
from omnigraph.mutation.derived import DerivedRows
from omnigraph.mutation.matched import RowFinder
from omnigraph.mutation.matching import Matcher, Predicate
from omnigraph.mutation.pending import PendingChanges, PendingTable
from omnigraph.mutation.values import assign, one_row, to_delta
from omnigraph.query import ir
from omnigraph.query.lowering.keys import key_types
from omnigraph.query.lowering.operands import Given
from omnigraph.schema.catalog import NodeType, SchemaType
from omnigraph.schema.embeds import embedded_vectors
from omnigraph.storage import lookups
from omnigraph.transaction.view import View


def origin_of(number: int) -> str:
    """How reports name the rows of a statement, whose number is their position."""
    return f"statement {number}"


@dataclass(frozen=True, slots=True)
class Statements:
    """Runs the statements of one mutation on one view, in memory.

    Attributes:
        mint: Makes an id for a row that has none.
    """

    view: View
    given: Given
    matcher: Matcher
    mint: Callable[[], str]
    pending: PendingChanges

    def run(self, statements: Iterable[ir.Statement]) -> None:
        """Add the changes of the statements to `pending`; each reads those before it."""
        for number, statement in enumerate(statements, start=1):
            match statement:
                case ir.InsertNode() | ir.InsertEdge():
                    self._insert(statement, number)
                case ir.InsertMatched():
                    self._insert_matched(statement, number)
                case ir.Update():
                    self._update(statement, number)
                case ir.UpdateMatched():
                    self._update_matched(statement, number)
                case ir.Delete():
                    self._delete(statement)
                case ir.DeleteMatched():
                    self._delete_matched(statement)
                case _:
                    assert_never(statement)

    def _insert(self, statement: ir.InsertNode | ir.InsertEdge, number: int) -> None:
        type_ = self.view.catalog.type_named(statement.type_name)
        row: dict[str, ir.Value] = {POSITION: number}
        for assignment in statement.values:
            row[assignment.property] = self._value(assignment.value)
        if isinstance(statement, ir.InsertEdge):
            row["src"], row["dst"] = self._value(statement.source), self._value(statement.target)
        is_minted = not type_.key and statement.id is None
        if type_.key:
            row["id"] = _identity(type_, row)
        else:
            row["id"] = self.mint() if statement.id is None else self._value(statement.id)
        table = self.pending.table(type_.table_key)
        table.put(one_row(table.schema, row), fresh=is_minted)

    def _insert_matched(self, statement: ir.InsertMatched, number: int) -> None:
        type_ = self.view.catalog.type_named(statement.type_name)
        table = self.pending.table(type_.table_key)
        rows = DerivedRows(self._matched(), self.mint).rows(statement, table.schema, number)
        table.put(rows, fresh=statement.is_minted and not type_.key)

    def _update(self, statement: ir.Update, number: int) -> None:
        type_ = self.view.catalog.type_of(statement.table)
        table = self.pending.table(statement.table)
        matches = self._match(Predicate.of(type_, statement.where, self.given))
        rows = self._rows(table, matches.committed, matches.pending, number)
        given = [each for each in statement.assignments if isinstance(each, ir.Assignment)]
        self._put(table, self._compute(type_, statement, rows), given, number)

    def _update_matched(self, statement: ir.UpdateMatched, number: int) -> None:
        type_ = self.view.catalog.type_of(statement.table)
        table = self.pending.table(statement.table)
        found = self._matched().find(statement.match, type_)
        ids = found["id"].combine_chunks()
        pending = ids.filter(pc.is_in(ids, value_set=table.rows()["id"].combine_chunks()))
        rows = self._rows(table, table.uncovered_ids(ids), pending, number)
        places = pc.index_in(rows["id"], value_set=ids)
        computed = {name: found[name] for name in found.column_names if name != "id"}
        values = {name: column.take(places) for name, column in computed.items()}
        self._put(table, _with_values(rows, values), statement.values, number)

    def _rows(
        self, table: PendingTable, committed: pa.Array, pending: pa.Array, number: int
    ) -> pa.Table:
        """The rows of these ids as they are before a statement, in the schema of a delta."""
        columns = [name for name in table.schema.names if name != POSITION]
        found = self._read_committed(table.type.table_key, "id", committed, columns)
        changed = table.rows().filter(pc.is_in(table.rows()["id"], value_set=pending))
        return pa.concat_tables([to_delta(found, table.schema, number), changed])

    def _put(
        self, table: PendingTable, rows: pa.Table, given: Iterable[ir.Assignment], number: int
    ) -> None:
        """Write rows of a statement, with the values that it gives to all of them."""
        values = {each.property: self._value(each.value) for each in given}
        for vector in embedded_vectors(table.type):
            rows = mark_unknown(vector, rows)
            if vector.name in values:
                # Given for the text that the row has after the statement.
                values.setdefault(vector.companion, None)
        table.put(assign(rows, {POSITION: number, **values}))

    def _compute(self, type_: SchemaType, statement: ir.Update, rows: pa.Table) -> pa.Table:
        """The rows with what is computed from them."""
        assignments = [
            each for each in statement.assignments if isinstance(each, ir.ComputedAssignment)
        ]
        if not assignments or not len(rows):
            return rows
        view, matcher = self.view, self.matcher
        return _with_values(rows, matcher.compute(type_, assignments, rows, self.given, view.data))

    def _delete(self, statement: ir.Delete) -> None:
        type_ = self.view.catalog.type_of(statement.table)
        matches = self._match(Predicate.of(type_, statement.where, self.given))
        assert not len(matches.pending), "a mutation that deletes writes nothing"
        ids = matches.committed
        if not matches.exist:
            ids = self._read_committed(statement.table, "id", ids, ["id"])["id"].combine_chunks()
        self._delete_rows(type_, ids)

    def _delete_matched(self, statement: ir.DeleteMatched) -> None:
        type_ = self.view.catalog.type_of(statement.table)
        found = self._matched().find(statement.match, type_)
        self._delete_rows(type_, found["id"].combine_chunks())

    def _delete_rows(self, type_: SchemaType, ids: pa.Array) -> None:
        """Delete rows, and with a node every edge that touches it."""
        if not len(ids):
            return
        self.pending.table(type_.table_key).delete(ids)
        if isinstance(type_, NodeType):
            for edge, end in self.view.catalog.incident_edges(type_):
                touching = self._read_committed(edge.table_key, end, ids, ["id"])
                self.pending.table(edge.table_key).delete(touching["id"].combine_chunks())

    def _matched(self) -> RowFinder:
        view = self.view
        return RowFinder(view.catalog, self.matcher.engine, self.given, view.data, self.pending)

    def _read_committed(
        self, key: TableKey, by: str, values: pa.Array, columns: Sequence[str]
    ) -> pa.Table:
        return lookups.find(self.view.data.table(key), by, values, columns=columns)

    def _match(self, predicate: Predicate) -> _MatchingIds:
        table = self.pending.table(predicate.type.table_key)
        rows = table.rows()
        only = predicate.only_id()
        if only is not None:
            ids = pa.array([only], pa.utf8())
            pending = ids.filter(pc.is_in(ids, value_set=rows["id"].combine_chunks()))
            return _MatchingIds(table.uncovered_ids(ids), pending, exist=False)
        committed = self.matcher.match_committed(predicate, self.view.data)
        pending = rows["id"].combine_chunks()
        if len(rows):
            pending = self.matcher.match_pending(predicate, rows, self.view.data)
        return _MatchingIds(table.uncovered_ids(committed), pending, exist=True)

    def _value(self, value: ir.GivenValue) -> ir.Value:
        return cast("ir.Value", self.given.known(value).value)


@dataclass(frozen=True, slots=True)
class _MatchingIds:
    """The ids that match: of committed rows without pending changes, and of pending rows.

    Attributes:
        exist: Whether the committed ones are known to exist; else only those that exist match.
    """

    committed: pa.Array
    pending: pa.Array
    exist: bool


def _with_values(rows: pa.Table, columns: Mapping[str, pa.ChunkedArray]) -> pa.Table:
    """The rows with other values in these columns, in the order of the rows."""
    for name, values in columns.items():
        place = rows.schema.get_field_index(name)
        field = rows.schema.field(place)
        rows = rows.set_column(place, field, values.cast(field.type))
    return rows


def _identity(type_: SchemaType, row: dict[str, ir.Value]) -> str:
    members = [cast("KeyValue", row[name]) for name in type_.key]
    return identity_of(key_types(type_), members)
