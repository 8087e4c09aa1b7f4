"""Loads of every mode into one small graph, and its expected rows before and after."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

import omnigraph
from omnigraph.manifest.layout import RECOVERY
from omnigraph.storage.store import Store

SCHEMA: Final = """
node Person { name: String @key  n: I64  mail: String? @unique }
node City { name: String @key }
edge Knows: Person -> Person { since: I64? }
edge LivesIn: Person -> City @card(0..1)
"""
SCRATCH: Final = "__staging"

Contents: TypeAlias = "Mapping[str, Mapping[str, Mapping[str, Any]]]"
"""Rows by type and id."""


def _people(first: int, end: int, n: int) -> dict[str, dict[str, Any]]:
    return {f"p{i}": {"name": f"p{i}", "n": n, "mail": f"p{i}@x"} for i in range(first, end)}


def _knows(first: int, end: int, since: int) -> dict[str, dict[str, Any]]:
    return {
        f"k{i}": {"src": f"p{i}", "dst": f"p{i - i % 10}", "since": since}
        for i in range(first, end)
    }


def _lives_in(first: int, end: int) -> dict[str, dict[str, Any]]:
    return {f"l{i}": {"src": f"p{i}", "dst": f"c{i % 10}"} for i in range(first, end)}


BEFORE: Final[Contents] = {
    "Person": _people(0, 300, 0),
    "City": {f"c{i}": {"name": f"c{i}"} for i in range(10)},
    "Knows": _knows(0, 300, 0),
    "LivesIn": _lives_in(0, 100),
}
INPUTS: Final[Mapping[str, Contents]] = {
    "append": {"Person": _people(300, 600, 1), "Knows": _knows(300, 600, 1)},
    # Half of the rows replace others.
    "merge": {"Person": _people(150, 450, 2), "Knows": _knows(150, 450, 2)},
    "overwrite": {"Person": _people(50, 350, 3), "Knows": _knows(50, 350, 3),
                  "LivesIn": _lives_in(50, 300)},
}  # fmt: skip


def after(mode: str) -> Contents:
    """The expected rows after the load of this mode."""
    if mode == "overwrite":
        return {**BEFORE, **INPUTS[mode]}
    return {name: {**rows, **INPUTS[mode].get(name, {})} for name, rows in BEFORE.items()}


def source(folder: Path, contents: Contents) -> str:
    """A graph file of these rows, mixed so that no task has all rows of a type."""
    lines = [
        json.dumps(_envelope(type_name, id_, row))
        for type_name, rows in contents.items()
        for id_, row in rows.items()
    ]
    mixed = [lines[n * 7919 % len(lines)] for n in range(len(lines))]
    assert len(set(mixed)) == len(lines)
    path = folder / f"{len(list(folder.iterdir()))}.jsonl"
    path.write_text("".join(f"{each}\n" for each in mixed))
    return str(path)


def _envelope(type_name: str, id_: str, row: Mapping[str, Any]) -> dict[str, Any]:
    if "src" not in row:
        return {"type": type_name, "data": row}
    data = {name: value for name, value in row.items() if name not in ("src", "dst")}
    return {"edge": type_name, "id": id_, "from": row["src"], "to": row["dst"], "data": data}


def furnished(uri: str, folder: Path) -> str:
    """A graph with the rows of `BEFORE`."""
    graph = omnigraph.init(uri, SCHEMA)
    graph.load(source(folder, BEFORE), engine="local", index=False)
    return graph.uri


def load(uri: str, path: str, mode: str) -> dict[str, tuple[int, int, int]]:
    """Load on Spark; return the counts of changes by type."""
    result = omnigraph.open(uri).load(path, mode=mode, engine="spark", index=False)
    assert result.engine == "spark"
    return {
        name: (counts.inserted, counts.updated, counts.deleted)
        for name, counts in result.changes.items()
    }


def contents(uri: str) -> Contents:
    """The rows that a new reader sees; ids must be unique."""
    graph = omnigraph.open(uri, read_only=True)
    rows_by_type: dict[str, dict[str, dict[str, Any]]] = {}
    for key, pin in graph.snapshot().pins.items():
        table = graph._store.tables.open(pin.location, ref=pin.ref, version=pin.version)
        rows = table.read().to_pylist()
        rows_by_type[key.type_name] = {row.pop("id"): row for row in rows}
        assert len(rows_by_type[key.type_name]) == len(rows) == pin.row_count
    return rows_by_type


def assert_settled(uri: str) -> None:
    """Assert that no recovery is pending, and every head is pinned."""
    store = Store.open(uri)
    assert store.objects.list(RECOVERY) == ()
    for pin in omnigraph.open(uri, read_only=True).snapshot().pins.values():
        assert store.tables.open_latest(pin.location, ref=pin.ref).version == pin.version


def scratch(uri: str) -> tuple[str, ...]:
    """The scratch files that loads have left."""
    return tuple(str(each) for each in Store.open(uri).objects.list(SCRATCH))
