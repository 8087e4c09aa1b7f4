"""Upserts of rows that are stored already, value for value, on both engines: no commit."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any, Final

import pytest

from omnigraph.storage import replacements
from tests.contract.load.loading import Loaded, changed, edge, loaded, node

SCHEMA: Final = """
node Item {
  key: String @key
  text: String?  flag: Bool?  small: I32?  big: U64?  single: F32?  double: F64?
  day: Date?  at: DateTime?  kind: enum(a, b)?
  tags: [String]?  numbers: [F64]?  vector: Vector(2)?  data: Blob?
}
node City { name: String @key  n: I32? }
edge Road: City -> City { km: I32?  @key(src, dst) }
"""
ENGINES: Final = ("local", "spark")

FULL: Final[dict[str, Any]] = {
    "text": "", "flag": False, "small": 0, "big": 2**64 - 1, "single": 0.1, "double": "NaN",
    "day": "2024-02-29", "at": "2024-02-29T12:00:00.000001Z", "kind": "a", "tags": ["x", ""],
    "numbers": [1.5, "NaN"], "vector": [0.0, 1.0],
    "data": f"base64:{base64.b64encode(b'one').decode()}",
}  # fmt: skip
CHANGES: Final[dict[str, Any]] = {
    "text": None, "flag": None, "small": 1, "big": 2**64 - 2, "single": 0.2, "double": "Infinity",
    "day": "2024-03-01", "at": "2024-02-29T12:00:00.000002Z", "kind": "b", "tags": [],
    "numbers": [1.5], "vector": [0.0, 2.0],
    "data": f"base64:{base64.b64encode(b'two').decode()}",
}  # fmt: skip


@pytest.fixture(params=ENGINES)
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Loaded:
    if request.param == "spark":
        request.getfixturevalue("spark")
    return loaded(tmp_path, SCHEMA)


@pytest.fixture
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.node.callspec.params["world"])


def items() -> dict[str, dict[str, Any]]:
    """Rows that have all values, none, and all but one."""
    every = {"full": dict(FULL), "empty": {}}
    return every | {f"no {name}": {**FULL, name: None} for name in FULL}


def lines(rows: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    return [node("Item", key=key, **values) for key, values in rows.items()]


def test_rows_with_equal_values_of_every_type_make_no_commit(world, engine, monkeypatch):
    world.put(*lines(items()), engine="local")
    head, rows = world.head(), world.rows("Item")
    for rows_max in (None, 1):
        if rows_max is not None:
            # As for many rows: columns are read one after another.
            monkeypatch.setattr(replacements, "KEYS_PER_LOOKUP_MAX", rows_max)
        result = world.put(*lines(items()), mode="merge", engine=engine)
        assert result.commit_id is None
        assert result.unchanged == {"Item": len(items())}
        assert changed(result) == {"Item": (0, 0, 0)}
    assert (world.head(), world.rows("Item").keys()) == (head, rows.keys())


def test_a_change_of_one_value_of_any_type_is_written(world, engine, monkeypatch):
    for rows_max in (None, 1):
        world.put(*lines(items()), mode="overwrite", engine="local")
        if rows_max is not None:
            monkeypatch.setattr(replacements, "KEYS_PER_LOOKUP_MAX", rows_max)
        rows = items()
        for name, value in CHANGES.items():
            rows[f"no {name}"][name] = value
        filled = {f"no {name}" for name, value in CHANGES.items() if value is not None}
        before = world.rows("Item")
        result = world.put(*lines(rows), mode="merge", engine=engine)

        assert changed(result) == {"Item": (0, len(filled), 0)}
        assert result.unchanged == {"Item": len(rows) - len(filled)}
        after = world.rows("Item")
        assert {key for key in after if repr(after[key]) != repr(before[key])} == filled


def test_only_rows_that_differ_are_written(world, engine):
    roads = [edge("Road", "a", "b", km=1), edge("Road", "b", "a", km=2)]
    cities = [node("City", name=name, n=n) for n, name in enumerate("abcd")]
    world.put(*cities, *roads, engine="local")
    versions = row_versions(world)

    later = [node("City", name="b", n=9), cities[2], node("City", name="e"), *roads]
    result = world.put(*later, mode="merge", engine=engine)

    assert changed(result) == {"City": (1, 1, 0), "Road": (0, 0, 0)}
    assert result.unchanged == {"City": 1, "Road": 2}
    assert {name: row["n"] for name, row in world.rows("City").items()} == {
        "a": 0, "b": 9, "c": 2, "d": 3, "e": None,
    }  # fmt: skip
    now = row_versions(world)
    assert {name for name in now if now[name] != versions.get(name)} == {"b", "e"}
    # The type whose rows were all there has no new version.
    assert result.commit_id is not None
    difference = world.graph.commits.changes(result.commit_id)
    assert {name: (each.inserted, each.updated) for name, each in difference.counts.items()} == {
        "City": (1, 1)
    }


def row_versions(world: Loaded) -> dict[str, int]:
    """By city, the version of the table in which its row was written last."""
    pin = next(pin for key, pin in world.graph.snapshot().pins.items() if key.type_name == "City")
    table = world.graph._store.tables.open(pin.location, ref=pin.ref, version=pin.version)
    rows = table.read(["id", "_row_last_updated_at_version"]).to_pylist()
    return {row["id"]: row["_row_last_updated_at_version"] for row in rows}


def test_values_that_a_diff_considers_equal_are_unchanged(world, engine):
    world.put(
        node("Item", key="zero", double=-0.0, single=-0.0, vector=[-0.0, 1.0]), engine="local"
    )
    row = node("Item", key="zero", double=0.0, single=0.0, vector=[0.0, 1.0])
    assert world.put(row, mode="merge", engine=engine).unchanged == {"Item": 1}


def test_a_branch_that_has_not_written_keeps_its_head(world, engine):
    world.put(node("City", name="a", n=1), engine="local")
    world.graph.branches.create("draft")
    result = world.put(node("City", name="a", n=1), mode="merge", engine=engine, branch="draft")
    assert result.commit_id is None
    snapshot = world.graph.snapshot(branch="draft")
    assert {pin.ref for pin in snapshot.pins.values()} == {None}
    world.put(node("City", name="a", n=2), mode="merge", engine=engine, branch="draft")
    assert world.rows("City", "draft") == {"a": {"name": "a", "n": 2}}
    assert world.rows("City") == {"a": {"name": "a", "n": 1}}
