"""Diffs and feeds across schema changes: rows change by their values, not by their schema."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pytest

from omnigraph.backends.protocol import Backend
from omnigraph.changes.diffs import GraphDiff
from omnigraph.changes.graphs import Side, compare_graphs, moved_types
from omnigraph.choices import Op
from omnigraph.engine.snapshots import data_at
from omnigraph.errors import NotFoundError
from omnigraph.graph import Graph
from omnigraph.storage import differences, scans
from omnigraph.storage.tables import ROW_ADDRESS, Table
from tests.contract.merge.worlds import Changes, change, world
from tests.support.schema_changes import add, cast, change_schema, drop, rename, require

Shown: TypeAlias = dict[tuple[str, str, str], Any]
"""By operation, type and id: the row, or the values of an update that differ."""

P = "node P { name: String @key  a: I32?  b: String? }"


def row(name: str, **values: Any) -> dict[str, Any]:
    return {"id": name, "name": name, **values}


ROWS = {"P": {name: row(name, a=number, b="b") for number, name in enumerate("xyz", 1)}}


def shown(diff: GraphDiff) -> Shown:
    changes: Shown = {}
    for each in diff.rows():
        place = (str(each.op), each.type_name, each.id)
        assert place not in changes
        before, after = each.before, each.after
        if before is not None and after is not None:
            assert before.keys() == after.keys()
            differing = [name for name in after if before[name] != after[name]]
            changes[place] = {name: (before[name], after[name]) for name in differing}
        else:
            changes[place] = after if before is None else before
    return changes


def head(graph: Graph, branch: str = "main") -> str:
    return str(graph.snapshot(branch=branch).head.commit_id)


@dataclass(frozen=True)
class Line:
    """A branch of a graph, to be changed."""

    graph: Graph
    branch: str = "main"

    def rows(self, changes: Changes) -> None:
        change(self.graph, changes, branch=self.branch)

    def schema(self, text: str, reshapes: Any = None, **names: Any) -> None:
        change_schema(self.graph, text, reshapes, **names, branch=self.branch)


@dataclass(frozen=True)
class Case:
    """What is done to a graph of `P`, and what differs afterwards, and backwards."""

    run: Callable[[Line], Any]
    forth: Mapping[tuple[str, str, str], Any]
    back: Mapping[tuple[str, str, str], Any]


def rename_all(line: Line) -> None:
    line.schema(
        "node Q { name: String @key  b: I32?  a: String? }",
        {"Q": (rename(a="c"), rename(b="a"), rename(c="b"))},
        types={"Q": "P"},
        properties={"Q": {"b": "a", "a": "b"}},
    )


def rename_and_change(line: Line) -> None:
    rename_all(line)
    line.rows({"Q": {"x": row("x", b=9, a="b"), "n": row("n", b=4, a=None), "z": None}})


def add_nullable(line: Line) -> None:
    line.schema(P.replace("}", " c: I64? }"), {"P": (add("c", pa.int64()),)})
    line.rows({"P": {"y": row("y", a=2, b="b", c=7)}})


def add_default(line: Line) -> None:
    new = P.replace("}", " c: I64 @default(5) }")
    line.schema(new, {"P": (add("c", pa.int64(), "cast(5 as bigint)"),)})
    line.rows({"P": {name: row(name, a=1, b="b", c=c) for name, c in (("x", 6), ("y", 5))}})


def leave_default_out(line: Line) -> None:
    """As where rows of a branch that did not know the default were written before."""
    line.schema(P.replace("}", " c: I64? @default(5) }"), {"P": (add("c", pa.int64()),)})


def drop_property(line: Line) -> None:
    line.schema("node P { name: String @key  a: I32? }", {"P": (drop("b"),)})
    line.rows({"P": {"x": row("x", a=9)}})


def replace_property(line: Line) -> None:
    reshapes = (drop("b"), add("b", pa.string()))
    line.schema(P, {"P": reshapes}, properties={"P": {"b": None}})
    line.rows({"P": {"x": row("x", a=1, b="new")}})


def widen(line: Line) -> None:
    line.schema(P.replace("I32", "I64"), {"P": (cast("a", pa.int64()),)})
    line.rows({"P": {"x": row("x", a=2**40, b="b")}})


def to_text(line: Line) -> None:
    converted = (rename(a="old"), add("a", pa.string(), "cast(old as string)"), drop("old"))
    line.schema(P.replace("I32", "String"), {"P": converted})
    line.rows({"P": {"x": row("x", a="one", b="b"), "y": row("y", a="3", b="b")}})


def require_value(line: Line) -> None:
    line.rows({"P": {"y": row("y", a=None, b="b")}})
    line.rows({"P": {"y": row("y", a=2, b="b")}})
    line.schema(P.replace("I32?", "I32"), {"P": (require("a"),)})


def delete_first(line: Line) -> None:
    line.rows({"P": {"y": None}})
    widen(line)
    line.rows({"P": {"z": None}})


def replace_type(line: Line) -> None:
    line.schema("node Q { name: String @key }")
    line.schema("node Q { name: String @key }\nnode P { name: String @key  c: Bool? }")
    line.rows({"P": {"x": row("x", c=True)}})


def whole(op: str) -> Shown:
    return {(op, "P", name): values for name, values in ROWS["P"].items()}


CASES = {
    "renames": Case(rename_all, {}, {}),
    "renames and changes": Case(
        rename_and_change,
        {
            ("insert", "Q", "n"): row("n", b=4, a=None),
            ("update", "Q", "x"): {"b": (1, 9)},
            ("delete", "Q", "z"): row("z", b=3, a="b"),
        },
        {
            ("insert", "P", "z"): row("z", a=3, b="b"),
            ("update", "P", "x"): {"a": (9, 1)},
            ("delete", "P", "n"): row("n", a=4, b=None),
        },
    ),
    "a nullable property": Case(add_nullable, {("update", "P", "y"): {"c": (None, 7)}}, {}),
    "a property with a default": Case(
        add_default,
        {("update", "P", "x"): {"c": (5, 6)}, ("update", "P", "y"): {"a": (2, 1)}},
        {("update", "P", "y"): {"a": (1, 2)}},
    ),
    "a default that no row has": Case(
        leave_default_out, {("update", "P", name): {"c": (5, None)} for name in "xyz"}, {}
    ),
    "a dropped property": Case(
        drop_property,
        {("update", "P", "x"): {"a": (1, 9)}},
        {
            ("update", "P", "x"): {"a": (9, 1), "b": (None, "b")},
            ("update", "P", "y"): {"b": (None, "b")},
            ("update", "P", "z"): {"b": (None, "b")},
        },
    ),
    "another property of the same name": Case(
        replace_property,
        {("update", "P", "x"): {"b": (None, "new")}},
        {("update", "P", name): {"b": (None, "b")} for name in "xyz"},
    ),
    "a wider type": Case(
        widen,
        {("update", "P", "x"): {"a": (1, 2**40)}},
        # An I32 does not have 2**40.
        {("update", "P", "x"): {"a": (None, 1)}},
    ),
    "texts of numbers": Case(
        to_text,
        {("update", "P", "x"): {"a": ("1", "one")}, ("update", "P", "y"): {"a": ("2", "3")}},
        {("update", "P", "x"): {"a": (None, 1)}, ("update", "P", "y"): {"a": (3, 2)}},
    ),
    "a required value": Case(require_value, {}, {}),
    "deletions before and after": Case(
        delete_first,
        {
            ("update", "P", "x"): {"a": (1, 2**40)},
            ("delete", "P", "y"): row("y", a=2, b="b"),
            ("delete", "P", "z"): row("z", a=3, b="b"),
        },
        {
            ("update", "P", "x"): {"a": (None, 1)},
            ("insert", "P", "y"): row("y", a=2, b="b"),
            ("insert", "P", "z"): row("z", a=3, b="b"),
        },
    ),
    "another type of the same name": Case(
        replace_type,
        {("insert", "P", "x"): row("x", c=True), **whole("delete")}
        | {("delete", "P", "x"): row("x", a=1, b="b")},
        {("delete", "P", "x"): row("x", c=True), **whole("insert")},
    ),
}


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return world(tmp_path / "graph", ROWS, P)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
@pytest.mark.parametrize("branch", ["main", "draft"])
def test_rows_are_compared_as_rows_of_the_later_schema(
    graph: Graph, case: Case, branch: str
) -> None:
    start = head(graph)
    if branch == "draft":
        graph.branches.create("draft")
        # Afterwards the branch has a table of its own.
        change(graph, {"P": {"x": row("x", a=1, b="b")}}, branch="draft")
    case.run(Line(graph, branch))
    assert shown(graph.diff(start, branch)) == case.forth
    assert shown(graph.diff(branch, start)) == case.back


WIDE = (
    "node T { name: String @key  n: I32?  v: Vector(2)?  b: Blob? }\nnode Old { name: String @key }"
)
LATER = """
node U {
    name: String @key
    b: Vector(2)?
    v: Blob?
    n: I64?
    m: String @default("m")
    e: Vector(2)?
}
node New { name: String @key  ok: Bool? }
"""


def wide_row(number: int) -> dict[str, Any]:
    n = None if number == 6 else number
    return row(f"t{number}", n=n, v=[number, 0.5], b=b"%d" % number if number % 3 else None)


def evolve_wide(graph: Graph) -> None:
    """Everything at once: other names, types, columns and rows, and other tables."""
    change(graph, {"T": {"t1": None}})
    reshapes = (
        rename(v="x", b="v"),
        rename(x="b"),
        cast("n", pa.int64()),
        add("m", pa.string(), "'m'"),
        add("e", pa.list_(pa.float32(), 2)),
    )
    names = {"b": "v", "v": "b"}
    change_schema(graph, LATER, {"U": reshapes}, types={"U": "T"}, properties={"U": names})
    changes = {
        "t2": row("t2", b=[2, 0.5], v=b"2", n=2**40, m="m", e=[1, 1]),
        "t3": row("t3", b=[0, 0], v=b"other", n=3, m="m", e=None),
        "t4": row("t4", b=[4, 0.5], v=b"4", n=4, m="m", e=None),
        "t5": None,
        "t6": row("t6", b=[6, 0.5], v=None, n=2**41, m="m", e=None),
    }
    change(graph, {"U": changes, "New": {"n": row("n", ok=True)}})


WIDE_CHANGES = {
    ("update", "U", "t2"): {"n": (2, 2**40), "e": (None, [1, 1])},
    ("update", "U", "t3"): {"b": ([3, 0.5], [0, 0]), "v": (None, b"other")},
    ("update", "U", "t6"): {"n": (None, 2**41)},
    ("delete", "U", "t1"): row("t1", b=[1, 0.5], v=b"1", n=1, m="m", e=None),
    ("delete", "U", "t5"): row("t5", b=[5, 0.5], v=b"5", n=5, m="m", e=None),
    ("insert", "New", "n"): row("n", ok=True),
    ("delete", "Old", "o"): row("o"),
}


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> tuple[Graph, str]:
    rows = {f"t{number}": wide_row(number) for number in range(1, 7)}
    graph = world(
        tmp_path_factory.mktemp("wide") / "graph", {"T": rows, "Old": {"o": row("o")}}, WIDE
    )
    start = head(graph)
    evolve_wide(graph)
    return graph, start


def test_vectors_blobs_and_whole_types_are_compared_on_every_engine(
    wide: tuple[Graph, str], engine: Backend
) -> None:
    graph, start = wide
    snapshots = graph.snapshot(commit=start), graph.snapshot()
    before, after = (Side(each, data_at(graph._store, each)) for each in snapshots)
    diff = compare_graphs(graph._catalogs.of, before, after, engine)
    assert shown(diff) == WIDE_CHANGES
    assert [table.type.name for table in diff.tables] == ["New", "U", "Old"]
    back = compare_graphs(graph._catalogs.of, after, before, engine)
    assert shown(back) == {
        ("insert", "T", "t1"): wide_row(1),
        ("insert", "T", "t5"): wide_row(5),
        # An I32 has neither of 2**40 and 2**41, and null equals none of them.
        ("update", "T", "t2"): {"n": (None, 2)},
        ("update", "T", "t6"): {},
        ("update", "T", "t3"): {"v": ([0, 0], [3, 0.5]), "b": (b"other", None)},
        ("delete", "New", "n"): row("n", ok=True),
        ("insert", "Old", "o"): row("o"),
    }


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """The columns that are read from now on, with the number of their rows."""
    read: list[tuple[str, int]] = []
    scan, scan_batches = Table.scan, scans.scan_batches

    def note(table: Table, columns, rows: pa.Table) -> pa.Table:
        # The manifest is a table, too.
        if table.address.location.startswith("nodes/"):
            names = table.schema.names if columns is None else columns
            read.extend((name, rows.num_rows) for name in names if name != ROW_ADDRESS)
        return rows

    def scanned(table: Table, columns=None, **options):
        return note(table, columns, scan(table, columns, **options).read_all()).to_reader()

    def batched(table: Table, columns, **options):
        rows = pa.Table.from_batches(list(scan_batches(table, columns, **options)))
        return iter(note(table, columns, rows).to_batches())

    monkeypatch.setattr(Table, "scan", scanned)
    monkeypatch.setattr(differences, "scan_batches", batched)
    return read


def test_a_change_of_names_reads_nothing(graph: Graph, reads: list[tuple[str, int]]) -> None:
    start = head(graph)
    rename_all(Line(graph))
    assert shown(graph.diff(start, "main")) == {}
    assert reads == []


def test_a_new_column_is_all_that_is_read(graph: Graph, reads: list[tuple[str, int]]) -> None:
    change(graph, {"P": {"y": None}})
    start = head(graph)
    new = P.replace("}", " c: I64 @default(5) }")
    change_schema(graph, new, {"P": (add("c", pa.int64(), "cast(5 as bigint)"),)})
    reads.clear()
    diff = graph.diff(start, "main")
    assert shown(diff) == {}
    assert reads == [("c", 2)]
    assert diff.why.startswith("about 2 changed rows")


def test_only_rows_with_other_values_are_read_whole(
    graph: Graph, reads: list[tuple[str, int]]
) -> None:
    start = head(graph)
    new = P.replace("}", " c: I64 @default(2) }")
    change_schema(graph, new, {"P": (add("c", pa.int64(), "cast(a as bigint)"),)})
    reads.clear()
    assert shown(graph.diff(start, "main")) == {
        ("update", "P", "x"): {"c": (2, 1)},
        ("update", "P", "z"): {"c": (2, 3)},
    }
    assert {count for name, count in reads if name == "id"} == {2}
    assert [count for name, count in reads if name == "c"] == [3, 2]


def test_rows_to_read_are_those_that_a_version_has(graph: Graph) -> None:
    change(graph, {"P": {"x": None}})
    before = graph.snapshot()
    drop_property(Line(graph))
    change(graph, {"P": {"y": None}})
    after = graph.snapshot()
    later, earlier = (Side(each, data_at(graph._store, each)) for each in (after, before))
    (moved,) = moved_types(graph._catalogs.of, later, earlier)
    found = differences.difference(moved.before, moved.after, comparison=moved.lifts)
    for table, parts, ids in (
        (moved.before, found.before, ["x", "z"]),
        (moved.after, found.after, ["y", "z"]),
    ):
        assert table is not None
        rows = pa.Table.from_batches(list(differences.read_parts(table, parts, ["id"])))
        assert sorted(rows["id"].to_pylist()) == ids
        assert differences.count_rows(parts) == len(ids)


def test_a_copy_follows_a_branch_across_schema_changes(graph: Graph) -> None:
    cursor = graph.baseline()
    rename_and_change(Line(graph))
    change_schema(graph, "node R { name: String @key }")
    commits = graph.changes(after=cursor).commits
    assert [str(each.commit.operation) for each in commits] == [
        "schema_apply",
        "mutation",
        "mutation",
        "schema_apply",
    ]
    assert [sorted(shown(each.diff)) for each in commits] == [
        [],
        [("delete", "Q", "z")],
        [("insert", "Q", "n"), ("update", "Q", "x")],
        [("delete", "Q", "n"), ("delete", "Q", "x"), ("delete", "Q", "y")],
    ]
    last = graph.commits.list()[0].commit_id
    assert shown(graph.commits.changes(last)) == shown(commits[-1].diff)


@pytest.mark.parametrize(
    ("types", "expected"),
    [
        ("Q", {("insert", "Q", "n"), ("update", "Q", "x"), ("delete", "Q", "z")}),
        (["P"], {("insert", "Q", "n"), ("update", "Q", "x"), ("delete", "Q", "z")}),
        ("R", set()),
    ],
)
def test_a_type_is_wanted_under_all_its_names(graph: Graph, types, expected) -> None:
    start = head(graph)
    rename_and_change(Line(graph))
    now = head(graph)
    change_schema(graph, "node Q { name: String @key  b: I32?  a: String? }\nnode R { n: I32? }")
    assert shown(graph.diff(start, "main", types=types)).keys() == expected
    if types == ["P"]:
        # The newest schema has no such type, and nothing of that name was dropped.
        with pytest.raises(NotFoundError):
            graph.changes(types=types)
    else:
        batch = graph.changes(after=start, types=types)
        told = [place for each in batch.commits for place in shown(each.diff)]
        assert set(told) == expected
    assert shown(graph.diff(now, "main")) == {}


def test_a_dropped_type_is_wanted_by_its_last_name(graph: Graph) -> None:
    start = head(graph)
    change_schema(graph, "node R { name: String @key }")
    deleted = {("delete", "P", name) for name in "xyz"}
    assert shown(graph.diff(start, "main", types="P")).keys() == deleted
    (batch,) = graph.changes(after=start, types="P").commits
    assert shown(batch.diff).keys() == deleted


def test_steps_of_the_schema_come_with_the_commit_that_made_them(graph: Graph) -> None:
    cursor = graph.baseline()
    change(graph, {"P": {"x": row("x", a=7, b="b")}})
    replace_property(Line(graph))
    batch = graph.changes(after=cursor)
    assert [[step.describe() for step in commit.diff.schema] for commit in batch.commits] == [
        [],
        ["add property P.b: String?", "drop property P.b: String?"],
        [],
    ]
    assert [commit.diff.counts["P"].updated for commit in batch.commits[::2]] == [1, 1]


def test_counts_of_two_types_of_one_name_are_added(graph: Graph) -> None:
    start = head(graph)
    replace_type(Line(graph))
    counts = graph.diff(start, "main").counts
    assert {name: (c.inserted, c.updated, c.deleted) for name, c in counts.items()} == {
        "P": (1, 0, 3)
    }
    assert graph.diff(start, "main", ops=[Op.INSERT]).counts["P"].deleted == 0
