"""Statements, run in order on committed rows and the pending changes of earlier ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import assert_never, cast

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.embedding.rows import mark_unknown
from omnigraph.integrity.deltas import POSITION
from omnigraph.model.identity import KeyValue, identity_of
from omnigraph.model.tables import TableKey
from omnigraph.mutation.derived import DerivedRows
from omnigraph.mutation.matching import Matcher, Predicate
from omnigraph.mutation.pending import PendingChanges
from omnigraph.mutation.values import assign, one_row, to_delta
from omnigraph.query import ir
from omnigraph.query.lowering.keys import key_types
from omnigraph.query.lowering.operands import Given
from omnigraph.schema.catalog import Catalog, EdgeType, NodeType, SchemaType
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
        """Add the changes of the statements to `pending`; each reads those of the ones before it.

        Raises:
            InvalidInputError: a key has a number that is not finite, or what was computed does
                not fit its property.
            StorageError: a table could not be read.
        """
        for number, statement in enumerate(statements, start=1):
            match statement:
                case ir.InsertNode() | ir.InsertEdge():
                    self._insert(statement, number)
                case ir.InsertMatched():
                    self._insert_matched(statement, number)
                case ir.Update():
                    self._update(statement, number)
                case ir.Delete():
                    self._delete(statement)
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
        derived = DerivedRows(self.view.catalog, self.matcher.engine, self.given, self.mint)
        rows = derived.rows(statement, table.schema, self.view.data, number)
        table.put(rows, fresh=statement.is_minted and not type_.key)

    def _update(self, statement: ir.Update, number: int) -> None:
        type_ = self.view.catalog.type_of(statement.table)
        table = self.pending.table(statement.table)
        matches = self._match(Predicate.of(type_, statement.where, self.given))
        columns = [name for name in table.schema.names if name != POSITION]
        committed = self._read_committed(statement.table, "id", matches.committed, columns)
        pending = table.rows().filter(pc.is_in(table.rows()["id"], value_set=matches.pending))
        given = [each for each in statement.assignments if isinstance(each, ir.Assignment)]
        values = {assignment.property: self._value(assignment.value) for assignment in given}
        rows = pa.concat_tables([to_delta(committed, table.schema, number), pending])
        rows = self._compute(type_, statement, rows)
        for vector in embedded_vectors(type_):
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
        found = matcher.compute(type_, assignments, rows, self.given, view.data)
        for name, values in found.items():
            place = rows.schema.get_field_index(name)
            field = rows.schema.field(place)
            rows = rows.set_column(place, field, values.cast(field.type))
        return rows

    def _delete(self, statement: ir.Delete) -> None:
        type_ = self.view.catalog.type_of(statement.table)
        matches = self._match(Predicate.of(type_, statement.where, self.given))
        assert not len(matches.pending), "a mutation that deletes writes nothing"
        ids = matches.committed
        if not matches.exist:
            ids = self._read_committed(statement.table, "id", ids, ["id"])["id"].combine_chunks()
        if not len(ids):
            return
        self.pending.table(statement.table).delete(ids)
        if isinstance(type_, NodeType):
            for edge, end in incident_edges(self.view.catalog, type_):
                touching = self._read_committed(edge.table_key, end, ids, ["id"])
                self.pending.table(edge.table_key).delete(touching["id"].combine_chunks())

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


def incident_edges(catalog: Catalog, node: NodeType) -> Iterator[tuple[EdgeType, str]]:
    """The edge types that can touch nodes of a type, with the column of each end that can."""
    for edge in catalog.edge_types:
        for end, type_name in (("src", edge.source), ("dst", edge.target)):
            if type_name == node.name:
                yield edge, end


def _identity(type_: SchemaType, row: dict[str, ir.Value]) -> str:
    members = [cast("KeyValue", row[name]) for name in type_.key]
    return identity_of(key_types(type_), members)
