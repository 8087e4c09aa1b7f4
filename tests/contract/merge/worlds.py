"""Small graphs with branches, written without queries, and read back as dictionaries."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from omnigraph.backends.protocol import Backend
from omnigraph.graph import Graph
from omnigraph.merge.conflicts import Conflict
from omnigraph.merge.run import Merges
from omnigraph.model.names import MAIN
from omnigraph.schema.arrow import table_schema
from omnigraph.storage import staging
from omnigraph.transaction.writes import Stage
from tests.contract.merge.oracle import ConflictKey, Row, Rows
from tests.support.graphs import graph_with
from tests.support.writers import deletes, write

SCHEMA: Final = """
node P { name: String @key  a: I32?  b: I32? }
edge K: P -> P { w: I32? }
"""

Changes = Mapping[str, Mapping[str, Row | None]]
"""By type and id, the new row; None to delete it."""


def node(name: str, a: int | None = 1, b: int | None = 1) -> Row:
    return {"id": name, "name": name, "a": a, "b": b}


def edge(name: str, source: str, target: str, w: int | None = 1) -> Row:
    return {"id": name, "src": source, "dst": target, "w": w}


def world(uri: str | Path, rows: Rows, schema: str = SCHEMA) -> Graph:
    return graph_with(uri, schema, {name: list(some.values()) for name, some in rows.items()})


def change(graph: Graph, changes: Changes, *, branch: str = MAIN) -> None:
    """Upsert and delete rows, one commit per kind of change; no rule is checked."""
    catalog = graph.schema.show(branch=branch).catalog
    upserts: dict[Any, Stage] = {}
    deletions: dict[Any, Stage] = {}
    for name, some in changes.items():
        key = catalog.type_named(name).table_key
        if rows := [row for row in some.values() if row is not None]:
            upserts[key] = _upsert(pa.Table.from_pylist(rows, table_schema(catalog.type_of(key))))
        if ids := [id_ for id_, row in some.items() if row is None]:
            deletions[key] = deletes(*ids)
    for stages in (deletions, upserts):
        if stages:
            write(graph, stages, branch=branch)


def _upsert(rows: pa.Table) -> Stage:
    # With the type's own columns, because Lance represents blobs differently.
    return lambda table: staging.stage_upsert(table, rows)


def rows_of(graph: Graph, branch: str = MAIN, *, commit: str | None = None) -> Rows:
    """Every row of every type."""
    snapshot = graph.snapshot(commit=commit) if commit else graph.snapshot(branch=branch)
    rows_by_type: Rows = {}
    catalog = graph._catalogs.of(snapshot.schema_digest)
    for key, pin in snapshot.pins.items():
        table = graph._store.tables.open(pin.location, ref=pin.ref, version=pin.version)
        names = table_schema(catalog.type_of(key)).names
        rows = table.read(names).to_pylist()
        assert len(rows) == pin.row_count
        rows_by_type[key.type_name] = {row["id"]: row for row in rows}
        assert len(rows_by_type[key.type_name]) == len(rows), f"{key} has an id twice"
    return rows_by_type


def conflict_keys(conflicts: tuple[Conflict, ...]) -> set[ConflictKey]:
    facts = {(str(each.kind), each.type_name, str(each.id), each.property) for each in conflicts}
    assert len(facts) == len(conflicts), "a conflict was reported twice"
    return facts


def use(graph: Graph, backend: Backend) -> Graph:
    """Merge on this engine from now on, whatever engine is requested."""
    graph._merges = Merges(
        graph._manifest,
        graph._clock,
        graph._transactions,
        graph._catalogs,
        lambda _name: backend,
    )
    return graph
