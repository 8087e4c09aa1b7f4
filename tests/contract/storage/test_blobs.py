"""Blobs keep their bytes through every staged write, with columns on both sides of them."""

import pyarrow as pa
import pytest

from omnigraph.model.commits import OperationKind
from omnigraph.model.ids import OperationId
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.parser import parse_schema
from omnigraph.storage import heads, staging
from omnigraph.storage.store import Store
from omnigraph.storage.tables import Table

TYPE = parse_schema(
    "node Doc { name: String @key  body: Blob?  pages: I32  parts: [Blob]? }"
).node_type("Doc")
SCHEMA = table_schema(TYPE)
AUTHOR = heads.Authorship(OperationId("test"), OperationKind.LOAD)


def docs(**bodies: bytes | None) -> pa.Table:
    rows = [
        {"id": name, "name": name, "body": body, "pages": number, "parts": [b"", b"x"]}
        for number, (name, body) in enumerate(bodies.items())
    ]
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def held(table: Table) -> list[dict[str, object]]:
    return sorted(table.read().to_pylist(), key=lambda row: str(row["id"]))


def created(store: Store, rows: pa.Table) -> Table:
    return heads.apply(staging.stage_create(store.tables, "nodes/doc", rows), AUTHOR)


LARGE = bytes(range(256)) * 4096


@pytest.mark.parametrize("rows", [docs(), docs(a=b"one", b=None, c=b"", d=LARGE)])
def test_a_table_is_created_with_blobs(store: Store, rows: pa.Table) -> None:
    assert held(created(store, rows)) == rows.to_pylist()


def test_blobs_are_appended_replaced_and_deleted(store: Store) -> None:
    table = created(store, docs())
    table = heads.apply(staging.stage_append(table, docs(a=b"one", b=None)), AUTHOR)
    replaced = staging.stage_upsert(table, docs(a=LARGE, c=b"three"))
    assert replaced is not None
    table = heads.apply(replaced, AUTHOR)
    table = heads.apply(staging.stage_delete(table, ids=["b"]), AUTHOR)
    assert [(row["id"], row["body"]) for row in held(table)] == [("a", LARGE), ("c", b"three")]


@pytest.mark.parametrize("rows", [docs(), docs(x=b"new", y=LARGE, z=None)])
def test_an_overwrite_keeps_blobs_readable(store: Store, rows: pa.Table) -> None:
    table = created(store, docs(a=b"old"))
    table = heads.apply(staging.stage_overwrite(table, rows), AUTHOR)
    assert held(table) == rows.to_pylist()
    grown = heads.apply(staging.stage_append(table, docs(more=b"more")), AUTHOR)
    assert len(held(grown)) == rows.num_rows + 1
