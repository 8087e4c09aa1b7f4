"""Edges that one side deleted along with a node that the merge keeps: they are kept with it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.changes.records import exclude_ids, ids_of
from omnigraph.merge.conflicts import Conflict, ConflictKind
from omnigraph.merge.decisions import Merged, Survivors
from omnigraph.merge.resolutions import Choice, Resolutions
from omnigraph.merge.rows import MergeRows, TouchedRows
from omnigraph.merge.source import MergeSource
from omnigraph.merge.versions import TableVersions
from omnigraph.model.tables import TableKey
from omnigraph.schema.catalog import EdgeType
from omnigraph.storage import lookups
from omnigraph.storage.tables import Table

Nodes: TypeAlias = Mapping[TableKey, Survivors]
"""By type, nodes that one side deleted."""

EdgeCounts: TypeAlias = Mapping[tuple[TableKey, str], Mapping[str, int]]
"""By node, how many edges of each type were deleted along with it."""

_Ids: TypeAlias = Mapping[TableKey, pa.Array]

_EDGE: Final = ("id", "src", "dst")
_NO_EDGES: Final = pa.schema([(name, pa.utf8()) for name in _EDGE]).empty_table()
_NO_IDS: Final = pa.array([], pa.utf8())


@dataclass(frozen=True, slots=True)
class DeletedNode:
    """A node that one side deleted, and that a decision may keep.

    Attributes:
        by_ours: Whether ours deleted it; otherwise theirs did.
    """

    key: TableKey
    id: str
    by_ours: bool


@dataclass(slots=True)
class Cascades:
    """Decides about the edges of nodes that one side deleted.

    To delete a node is to delete its edges, so a decision that keeps the node keeps those edges,
    except edges that a resolution names, and edges whose other node is deleted.

    Attributes:
        rows: The rows of the merge, which may be in other processes, too.
    """

    versions: TableVersions
    source: MergeSource
    resolutions: Resolutions
    rows: MergeRows
    _kept: dict[TableKey, Survivors] = field(init=False, default_factory=dict)

    def keep_all(self, tables: dict[TableKey, Merged]) -> dict[TableKey, Merged]:
        """The merge with the edges of all nodes that were kept when their rows were decided."""
        nodes = self.versions.schema.catalog.node_types
        keys = {node.table_key for node in nodes} & tables.keys()
        return self.keep(tables, {key: self.rows.survivors(tables[key]) for key in keys})

    def keep(self, tables: dict[TableKey, Merged], nodes: Nodes) -> dict[TableKey, Merged]:
        """The merge with the edges of these nodes, which it keeps from now on."""
        for key, survivors in nodes.items():
            self._kept[key] = self._kept.get(key, Survivors()) + survivors
        retained, restored = _retained(nodes), _restored(nodes)
        for edge in self.versions.schema.catalog.edge_types:
            if self._touches(edge, retained):
                tables = self._retain(tables, edge, retained)
            if self._touches(edge, restored):
                tables = self._restore(tables, edge, restored)
        return tables

    def count(self, nodes: Nodes) -> EdgeCounts:
        """How many edges were deleted along with each of these nodes."""
        counts: defaultdict[tuple[TableKey, str], Counter[str]] = defaultdict(Counter)
        for edge in self.versions.schema.catalog.edge_types:
            for row in self._deleted_edges(edge, nodes):
                for place in {(key, row[end]) for end, key in self._ends(edge)}:
                    counts[place][edge.name] += 1
        return {place: dict(by_type) for place, by_type in counts.items()}

    def tell(self, conflicts: Iterable[Conflict]) -> list[Conflict]:
        """The conflicts of rows; those that decide about a deleted node say which edges go with it.

        Besides conflicts about such a node itself, these are conflicts about an edge that needs it.
        """
        listed = list(conflicts)
        deleted = self._deleted(node for each in listed for node in self._nodes_of(each))
        nodes = (next((n for n in self._nodes_of(each) if n in deleted), None) for each in listed)
        return self.tell_nodes(zip(listed, nodes, strict=True))

    def _nodes_of(self, conflict: Conflict) -> tuple[DeletedNode, ...]:
        """The node, or the ends of the edge, of a conflict about a row that one side deleted."""
        if conflict.kind is not ConflictKind.DELETE_VS_UPDATE:
            return ()
        assert conflict.id is not None, "it is about a row"
        by_ours = conflict.ours is None
        type_ = self.versions.schema.catalog.type_named(conflict.type_name)
        if not isinstance(type_, EdgeType):
            return (DeletedNode(type_.table_key, conflict.id, by_ours=by_ours),)
        row = conflict.theirs if by_ours else conflict.ours
        assert isinstance(row, dict), "the other side has the row"
        return tuple(DeletedNode(key, row[end], by_ours) for end, key in self._ends(type_))

    def _deleted(self, nodes: Iterable[DeletedNode]) -> set[DeletedNode]:
        """Those of the nodes that the side deleted."""
        found = set(nodes)
        for key, by_ours in {(node.key, node.by_ours) for node in found}:
            table = (self.versions.our_table if by_ours else self.versions.their_table)(key)
            ids = [node.id for node in found if (node.key, node.by_ours) == (key, by_ours)]
            there = _present(table, _strings(ids)).to_pylist()
            found -= {DeletedNode(key, id_, by_ours) for id_ in there}
        return found

    def tell_nodes(self, found: Iterable[tuple[Conflict, DeletedNode | None]]) -> list[Conflict]:
        """The conflicts; each says how many edges go with the deleted node that it is about."""
        listed = list(found)
        ids: defaultdict[TableKey, tuple[set[str], set[str]]] = defaultdict(lambda: (set(), set()))
        for _, node in listed:
            if node is not None:
                restored, retained = ids[node.key]
                (restored if node.by_ours else retained).add(node.id)
        counts = self.count({key: Survivors(*map(_strings, some)) for key, some in ids.items()})
        return [
            each if node is None else each.with_edges(counts.get((node.key, node.id), {}))
            for each, node in listed
        ]

    def _deleted_edges(self, edge: EdgeType, nodes: Nodes) -> Iterator[dict[str, str]]:
        """The edges of nodes that one side deleted with them, and the other one still has."""
        key = edge.table_key
        ours, theirs = self.versions.our_table, self.versions.their_table
        sides = ((_retained(nodes), ours, theirs), (_restored(nodes), theirs, ours))
        for ids, having, lacking in sides:
            if self._touches(edge, ids):
                rows = self._incident(having(key), edge, ids)
                rows = exclude_ids(rows, _present(lacking(key), ids_of(rows)))
                there = _present(self.versions.base_table(key), ids_of(rows))
                yield from _select(rows, "id", there).to_pylist()

    def _retain(
        self, tables: dict[TableKey, Merged], edge: EdgeType, nodes: _Ids
    ) -> dict[TableKey, Merged]:
        """Keep edges of the target that theirs deleted along with nodes that the target keeps."""
        key = edge.table_key
        rows = self._incident(self.versions.our_table(key), edge, nodes)
        rows = self._connected(rows, edge, self.versions.their_table, _retained(self._kept))
        ids = self._following(edge, ids_of(rows), Choice.THEIRS)
        if key not in tables or not len(ids):
            return tables
        tables = self.rows.bring(tables, lambda: TouchedRows({key: set(ids.to_pylist())}))
        deleted = tables[key].deleted
        kept = deleted.filter(pc.invert(pc.is_in(deleted, value_set=ids)))
        return tables | {key: replace(tables[key], deleted=kept)}

    def _restore(
        self, tables: dict[TableKey, Merged], edge: EdgeType, nodes: _Ids
    ) -> dict[TableKey, Merged]:
        """Take edges of the source that ours deleted along with nodes that the merge takes."""
        key = edge.table_key
        rows = self._incident(self.versions.their_table(key), edge, nodes)
        rows = exclude_ids(rows, _present(self.versions.our_table(key), ids_of(rows)))
        rows = self._connected(rows, edge, self.versions.our_table, _restored(self._kept))
        ids = self._following(edge, ids_of(rows), Choice.OURS)
        if not len(ids):
            return tables
        tables = self.rows.bring(tables, lambda: TouchedRows({key: set(ids.to_pylist())}))
        merged = tables.get(key) or Merged.nothing(edge)
        lacking = ids.filter(pc.invert(pc.is_in(ids, value_set=ids_of(merged.added))))
        added = pa.concat_tables([merged.added, self.source.find(merged, lacking)])
        return tables | {key: replace(merged, added=added)}

    def _incident(self, table: Table | None, edge: EdgeType, nodes: _Ids) -> pa.Table:
        """The edges that touch these nodes, by their ids and ends."""
        parts = [
            lookups.find(table, end, ids, columns=_EDGE)
            for end, key in self._ends(edge)
            if table is not None and len(ids := nodes.get(key, _NO_IDS))
        ]
        rows = pa.concat_tables(parts) if parts else _NO_EDGES
        ids = ids_of(rows)
        return rows.take(pc.index_in(pc.unique(ids), value_set=ids))

    def _connected(
        self,
        rows: pa.Table,
        edge: EdgeType,
        table_of: Callable[[TableKey], Table | None],
        kept: _Ids,
    ) -> pa.Table:
        """The edges whose two nodes both exist in a table or are kept."""
        for end, key in self._ends(edge):
            wanted = pc.unique(rows[end])
            there = _present(table_of(key), wanted)
            rows = _select(rows, end, pa.concat_arrays([there, kept.get(key, _NO_IDS)]))
        return rows

    def _following(self, edge: EdgeType, ids: pa.Array, deleting: Choice) -> pa.Array:
        """The edges that follow their nodes: no resolution lets the other side delete them."""
        names, decide = self.resolutions.names, self.resolutions.decide_place
        return _strings(
            id_
            for id_ in ids.to_pylist()
            if not names(edge.name, id_, ()) or decide(edge.name, id_, ()) is not deleting
        )

    def _touches(self, edge: EdgeType, nodes: _Ids) -> bool:
        """Whether an edge type leads from or to a type that has some of these nodes."""
        return any(len(nodes.get(key, _NO_IDS)) for _, key in self._ends(edge))

    def _ends(self, edge: EdgeType) -> tuple[tuple[str, TableKey], ...]:
        node_type = self.versions.schema.catalog.node_type
        source, target = node_type(edge.source), node_type(edge.target)
        return ("src", source.table_key), ("dst", target.table_key)


def _retained(nodes: Nodes) -> _Ids:
    return {key: survivors.retained for key, survivors in nodes.items()}


def _restored(nodes: Nodes) -> _Ids:
    return {key: survivors.restored for key, survivors in nodes.items()}


def _present(table: Table | None, ids: pa.Array) -> pa.Array:
    """Those of the ids that a table has."""
    if table is None or not len(ids):
        return _NO_IDS
    return ids_of(lookups.find(table, "id", ids, columns=["id"]))


def _select(rows: pa.Table, column: str, values: pa.Array) -> pa.Table:
    return rows.filter(pc.is_in(rows[column], value_set=values))


def _strings(values: Iterable[str]) -> pa.Array:
    return pa.array(values, pa.utf8())
