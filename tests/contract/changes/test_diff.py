"""Diffs: exactly what came, changed and went between two points of history."""

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from omnigraph.changes import rows as change_rows
from omnigraph.choices import Op
from omnigraph.errors import (
    BranchNotFoundError,
    CommitNotFoundError,
    ErrorCode,
    InvalidNameError,
    InvalidParameterError,
    NotFoundError,
)
from omnigraph.graph import Graph
from omnigraph.manifest.layout import MANIFEST
from omnigraph.model.names import MAIN
from omnigraph.model.tables import TableKey
from omnigraph.storage.tables import Table
from tests.contract.merge import oracle
from tests.contract.merge.oracle import Rows
from tests.contract.merge.worlds import change, edge, node, rows_of, world

BASE: Rows = {
    "P": {name: node(name) for name in ("x", "y", "z")},
    "K": {"e": edge("e", "x", "y"), "f": edge("f", "y", "z")},
}


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return world(tmp_path / "graph", BASE)


def applied(graph: Graph, before: str, after: str) -> Rows:
    """What a diff makes of the rows it was taken from; its images must be those of both sides."""
    start = rows_of(graph, **_point(before))
    end = rows_of(graph, **_point(after))
    rows = {name: dict(some) for name, some in start.items()}
    told = set()
    for each in graph.diff(before, after).rows():
        assert each.before == start[each.type_name].get(each.id)
        assert each.after == end[each.type_name].get(each.id)
        told.add((str(each.op), each.type_name, each.id))
        if each.after is None:
            del rows[each.type_name][each.id]
        else:
            rows[each.type_name][each.id] = dict(each.after)
    assert told == oracle.difference(start, end)
    return rows


def _point(name: str) -> dict[str, str]:
    return {"commit": name} if len(name) == 26 else {"branch": name}


def test_a_diff_tells_what_came_changed_and_went_with_images(graph):
    graph.branches.create("draft")
    change(
        graph,
        {
            "P": {"n": node("n"), "x": node("x", a=2, b=None), "z": None},
            "K": {"f": None, "g": edge("g", "n", "x"), "e": edge("e", "x", "y", w=9)},
        },
        branch="draft",
    )
    found = {(str(c.op), c.type_name, c.id): c for c in graph.diff("main", "draft").rows()}
    assert found.keys() == {
        ("insert", "P", "n"),
        ("update", "P", "x"),
        ("delete", "P", "z"),
        ("insert", "K", "g"),
        ("update", "K", "e"),
        ("delete", "K", "f"),
    }
    update = found["update", "P", "x"]
    assert (update.before, update.after) == (node("x"), node("x", a=2, b=None))
    assert found["insert", "K", "g"].after == edge("g", "n", "x")
    assert found["delete", "K", "f"].before == edge("f", "y", "z")
    counts = graph.diff("main", "draft").counts
    assert {name: (c.inserted, c.updated, c.deleted) for name, c in counts.items()} == {
        "P": (1, 1, 1),
        "K": (1, 1, 1),
    }
    backwards = {(str(c.op), c.type_name, c.id) for c in graph.diff("draft", "main").rows()}
    flipped = {"insert": "delete", "delete": "insert", "update": "update"}
    assert backwards == {(flipped[op], *rest) for op, *rest in found}


def test_a_change_of_a_row_is_a_value(graph):
    start = graph.snapshot().head.commit_id
    change(graph, {"P": {"n": node("n"), "x": node("x", a=2)}})
    came, changed = graph.diff(start, "main").rows()
    assert [came, changed] == list(graph.diff(start, "main").rows())
    assert came != changed
    assert came != "n"
    with pytest.raises(AttributeError):
        changed.after = None
    image = changed.after
    image["a"] = 3
    assert changed.after["a"] == 2
    assert repr(came) == (
        f"RowChange(type_name='P', op={Op.INSERT!r}, id='n', before=None, after={node('n')!r})"
    )


def test_changes_of_more_rows_than_are_held_at_once_come_all_in_order(graph, monkeypatch):
    monkeypatch.setattr(change_rows, "ROWS_PER_BATCH_MAX", 3)
    start = graph.snapshot().head.commit_id
    names = [f"n{number}" for number in range(7)]
    change(graph, {"P": {name: node(name, a=int(name[1:])) for name in names}})
    change(graph, {"P": {name: node(name, a=9) for name in names}})
    came = list(graph.diff(start, "main").rows())
    assert [(each.id, each.after["name"]) for each in came] == [(name, name) for name in names]
    changed = list(graph.commits.changes(graph.commits.list()[0].commit_id).rows())
    assert [(each.before["a"], each.after["a"]) for each in changed] == [(n, 9) for n in range(7)]


def test_changes_of_main_after_the_fork_are_in_the_diff_too(graph):
    graph.branches.create("draft")
    change(graph, {"P": {"m": node("m"), "x": node("x", a=5)}})
    change(graph, {"P": {"d": node("d"), "x": node("x", b=5)}}, branch="draft")
    assert applied(graph, "main", "draft") == rows_of(graph, "draft")
    assert applied(graph, "draft", "main") == rows_of(graph)


def test_writes_that_change_no_row_are_in_no_diff(graph):
    start = graph.snapshot().head.commit_id
    graph.ensure_indices()
    change(graph, {"P": {"x": node("x", a=7), "n": node("n")}})
    change(graph, {"P": {"x": node("x"), "n": None}})
    assert list(graph.diff(start, "main").rows()) == []
    assert graph.diff(start, "main").tables == ()
    assert list(graph.diff("main", "main").rows()) == []


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({"kinds": ["node"]}, {("insert", "n"), ("delete", "z")}),
        ({"kinds": ["edge"]}, {("insert", "g"), ("delete", "f")}),
        ({"types": ["K"]}, {("insert", "g"), ("delete", "f")}),
        ({"ops": ["delete"]}, {("delete", "z"), ("delete", "f")}),
        ({"ops": ["insert"], "types": ["P"]}, {("insert", "n")}),
        ({"kinds": ["node"], "types": ["K"]}, set()),
        ({"ops": []}, set()),
        ({"ops": ["update"]}, set()),
    ],
)
def test_filters_leave_out_the_rest(graph, filters, expected):
    start = graph.snapshot().head.commit_id
    change(
        graph,
        {"P": {"n": node("n"), "z": None}, "K": {"g": edge("g", "n", "x"), "f": None}},
    )
    diff = graph.diff(start, "main", **filters)
    assert {(str(each.op), each.id) for each in diff.rows()} == expected
    counted = sum(c.inserted + c.updated + c.deleted for c in diff.counts.values())
    assert counted == len(expected)


@pytest.mark.parametrize(
    ("filters", "error"),
    [
        ({"kinds": ["nodes"]}, InvalidParameterError),
        ({"ops": ["upsert"]}, InvalidParameterError),
        ({"types": ["Q"]}, NotFoundError),
    ],
)
def test_filters_that_name_nothing_are_refused(graph, filters, error):
    with pytest.raises(error):
        graph.diff("main", "main", **filters)
    with pytest.raises(error):
        graph.changes(**filters)


def test_points_that_are_not_there_are_refused(graph, tmp_path):
    other = world(tmp_path / "other", BASE).snapshot().head.commit_id
    for point, error in (
        ("nope", BranchNotFoundError),
        ("0" * 26, CommitNotFoundError),
        (other, CommitNotFoundError),
        ("a b", InvalidNameError),
    ):
        with pytest.raises(error):
            graph.diff("main", point)
        with pytest.raises(error):
            graph.diff(point, "main")


def test_a_diff_reads_no_fragment_that_both_have(graph, monkeypatch):
    change(graph, {"P": {f"n{number}": node(f"n{number}") for number in range(50)}})
    start = graph.snapshot().head.commit_id
    change(graph, {"P": {"late": node("late")}})
    change(graph, {"P": {"x": node("x", a=3)}})
    read: list[int] = []
    scan = Table.scan

    def counted(table: Table, columns=None, **options):
        reader = scan(table, columns, **options)
        if columns is None or "id" in columns:
            rows = reader.read_all()
            read.append(rows.num_rows)
            return rows.to_reader()
        return reader

    monkeypatch.setattr(Table, "scan", counted)
    assert len(list(graph.diff(start, "main").rows())) == 2
    # The new row, and one row as it was and as it is.
    assert sum(read) == 3


IDS = ("x", "y", "z", "n", "m")
STEPS = st.lists(
    st.tuples(
        st.sampled_from(IDS),
        st.none() | st.tuples(st.integers(0, 2), st.none() | st.integers(0, 1)),
    ),
    min_size=1,
    max_size=4,
)


@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(mine=st.lists(STEPS, max_size=3), others=st.lists(STEPS, max_size=3))
def test_a_diff_applied_to_one_point_gives_the_other(tmp_path_factory, mine, others):
    graph = world(tmp_path_factory.mktemp("any") / "graph", BASE)
    graph.branches.create("draft")
    points = []
    for branch, steps in ((MAIN, mine), ("draft", others)):
        for step in steps:
            rows = {name: None if to is None else node(name, *to) for name, to in step}
            have = rows_of(graph, branch)["P"]
            sensible = {n: row for n, row in rows.items() if row is not None or n in have}
            change(graph, {"P": sensible}, branch=branch)
            points.append(str(graph.snapshot(branch=branch).head.commit_id))
    for before, after in pairwise([*points, "main", "draft", *points[:1]]):
        assert applied(graph, before, after) == rows_of(graph, **_point(after))


def test_a_commit_tells_what_it_changed(graph):
    change(graph, {"P": {"n": node("n")}})
    inserted = graph.snapshot().head.commit_id
    change(graph, {"P": {"n": None}})
    deleted = graph.snapshot().head.commit_id
    for commit_id, op in ((inserted, Op.INSERT), (deleted, Op.DELETE)):
        assert [(c.op, c.id) for c in graph.commits.changes(commit_id).rows()] == [(op, "n")]
    first = graph.commits.list()[-1].commit_id
    assert list(graph.commits.changes(first).rows()) == []
    with pytest.raises(CommitNotFoundError):
        graph.commits.changes("0" * 26)


def test_a_merge_tells_what_it_brought_to_its_branch(graph):
    graph.branches.create("draft")
    change(graph, {"P": {"d": node("d")}}, branch="draft")
    change(graph, {"P": {"m": node("m")}})
    merged = graph.merge("draft").commit_id
    assert merged is not None
    assert [(c.op, c.id) for c in graph.commits.changes(merged).rows()] == [(Op.INSERT, "d")]


def test_an_entity_is_found_at_any_point(graph):
    start = graph.snapshot().head.commit_id
    graph.branches.create("draft")
    change(graph, {"P": {"x": node("x", a=2)}}, branch="draft")
    change(graph, {"P": {"x": None}, "K": {"e": None}})
    assert graph.entity("P", "x") is None
    assert graph.entity("P", "x", at="draft") == node("x", a=2)
    assert graph.entity("P", "x", at=start) == node("x")
    assert graph.entity("K", "e", at=start) == edge("e", "x", "y")
    assert graph.at(commit=start).entity("P", "x") == node("x")
    assert graph.entity("P", "it's") is None
    for arguments in ({"type_name": "Q", "id": "x"}, {"type_name": "P", "id": "x", "at": "nope"}):
        with pytest.raises(NotFoundError):
            graph.entity(**arguments)


def test_only_the_asked_table_is_opened_for_an_entity(graph, monkeypatch):
    opened = []
    find = type(graph._store.tables).open

    def noted(tables, location, **place):
        opened.append(location)
        return find(tables, location, **place)

    monkeypatch.setattr(type(graph._store.tables), "open", noted)
    graph.entity("P", "x")
    of_types = {location for location in opened if location != MANIFEST}
    assert of_types == {graph.snapshot().pin(TableKey.parse("node:P")).location}


def test_error_codes_of_a_diff_are_stable(graph):
    with pytest.raises(NotFoundError) as refused:
        graph.diff("main", "nope")
    assert refused.value.code is ErrorCode.BRANCH_NOT_FOUND
