"""What counts as another value: as Arrow has it, on every engine, in merges and in diffs."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from omnigraph.backends.protocol import Backend
from omnigraph.changes.graphs import Side, compare_graphs
from omnigraph.engine.snapshots import data_at
from omnigraph.graph import Graph
from tests.contract.merge.worlds import change, conflict_keys, rows_of, use, world

SCHEMA = """
node T { name: String @key  s: String?  f: F64?  g: F32?  i: I64?  u: U64?  l: [String]?  m: [F64]?
         v: Vector(2)?  blob: Blob?  t: DateTime?  b: Bool?  other: I32? }
"""
NAN = float("nan")
TOP, BOTTOM = 2**63 - 1, -(2**63)
EARLY, LATE = (datetime(2020, 1, 1, microsecond=each, tzinfo=UTC) for each in (0, 1))

DIFFERENT: list[tuple[str, Any, Any]] = [
    ("s", None, ""),
    ("s", "é", "e\u0301"),
    ("s", "a", "A"),
    ("s", "a", "a "),
    ("s", "", "\x00"),
    ("f", None, 0.0),
    ("f", NAN, None),
    ("f", NAN, 0.0),
    ("f", 1.0, 1.0000000000000002),
    ("f", float("inf"), -float("inf")),
    ("g", 1.0, 1.0000001192092896),
    ("i", TOP, TOP - 1),
    ("i", BOTTOM, BOTTOM + 1),
    ("i", TOP, BOTTOM),
    ("u", 2**64 - 1, 2**64 - 2),
    ("l", None, []),
    ("l", [], [""]),
    ("l", ["a", "b"], ["b", "a"]),
    ("l", ["a", "b"], ["a,b"]),
    ("m", [1.0], [1.0, NAN]),
    ("v", [1.0, 2.0], [2.0, 1.0]),
    ("v", None, [0.0, 0.0]),
    ("blob", None, b""),
    ("blob", b"a", b"a\x00"),
    ("t", EARLY, LATE),
    ("b", None, False),
]
SAME: list[tuple[str, Any, Any]] = [
    ("f", NAN, NAN),
    ("f", 0.0, -0.0),
    ("m", [NAN, 1.0], [NAN, 1.0]),
    ("m", [0.0], [-0.0]),
    ("v", [0.0, 1.0], [-0.0, 1.0]),
    ("s", "e\u0301", "e\u0301"),
    ("blob", b"", b""),
    ("l", [], []),
    ("i", BOTTOM, BOTTOM),
]


def row(name: str, **values: Any) -> dict[str, Any]:
    columns = ("s", "f", "g", "i", "u", "l", "m", "v", "blob", "t", "b", "other")
    return {"id": name, "name": name, **dict.fromkeys(columns), **values}


def rows(cases: list[tuple[str, Any, Any]], place: int, **more: Any) -> dict[str, Any]:
    made = {}
    for number, case in enumerate(cases):
        name = f"r{number:02}"
        made[name] = row(name, **{case[0]: case[place]}, **more)
    return made


CASES = DIFFERENT + SAME
NAMES = [f"r{number:02}" for number in range(len(CASES))]
UNEQUAL = set(NAMES[: len(DIFFERENT)])


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    """Main has the second value of each case; branch `first` the first, as the base has."""
    made = world(tmp_path_factory.mktemp("values") / "graph", {"T": rows(CASES, 1)}, SCHEMA)
    made.branches.create("first")
    change(made, {"T": rows(CASES, 2)})
    made.branches.create("second")
    # Every row is written anew on the first branch, in another place, with another property changed
    # back and forth: it must not count for more than its values.
    change(made, {"T": rows(CASES, 1, other=1)}, branch="first")
    change(made, {"T": rows(CASES, 1)}, branch="first")
    return made


def changed(graph: Graph, engine: Backend, before: str, after: str) -> set[str]:
    old, new = (graph.snapshot(branch=branch) for branch in (before, after))
    sides = (Side(each, data_at(graph._store, each)) for each in (old, new))
    found = compare_graphs(graph._catalogs.of, next(sides), next(sides), engine)
    return {each.id for each in found.rows()}


def test_values_are_told_apart_as_arrow_does(base: Graph, engine: Backend) -> None:
    assert changed(base, engine, "first", "second") == UNEQUAL
    assert changed(base, engine, "second", "first") == UNEQUAL


def test_rows_written_anew_with_the_values_they_had_did_not_change(
    base: Graph, engine: Backend
) -> None:
    start = base.commits.list()[-2].commit_id
    base.branches.create(f"start_{engine.name}", commit=start)
    assert changed(base, engine, f"start_{engine.name}", "first") == set()


def test_both_sides_with_unequal_values_conflict_and_with_equal_ones_do_not(
    tmp_path: Path, engine: Backend
) -> None:
    other = {"T": rows([(name, None, None) for name, *_ in CASES], 1, other=5)}
    graph = use(world(tmp_path / "graph", other, SCHEMA), engine)
    graph.branches.create("draft")
    change(graph, {"T": rows(CASES, 1, other=5)}, branch="draft")
    change(graph, {"T": rows(CASES, 2, other=5)})

    # One side may have left the null of the base; then there is nothing to conflict about.
    expected = {
        ("divergent_update", "T", name, case[0])
        for name, case in zip(NAMES, DIFFERENT, strict=False)
        if None not in case
    }
    assert conflict_keys(graph.merge("draft", dry_run=True).conflicts) == expected
    graph.merge("draft", resolve="theirs")
    after = rows_of(graph)["T"]
    for name, case in zip(NAMES, CASES, strict=True):
        wanted = case[1] if case[1] is not None else case[2]
        assert str(after[name][case[0]]) in (str(wanted), str(case[2]))
        if name in UNEQUAL:
            assert str(after[name][case[0]]) == str(wanted)
