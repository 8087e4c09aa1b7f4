"""The row ids of a version, from metadata, and what differs between two versions."""

from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import omnigraph
from omnigraph.choices import TableKind
from omnigraph.engine.snapshots import data_at
from omnigraph.graph import Graph
from omnigraph.model.names import TypeName
from omnigraph.model.tables import TableKey
from omnigraph.storage import row_ids
from omnigraph.storage.row_ids import RowIds, read_row_ids
from omnigraph.storage.tables import ROW_ID, Table

SCHEMA = "node Person { name: String @key  age: I32? }\n"
PERSON = TableKey(TableKind.NODE, TypeName("Person"))
NAMES = [f"p{number}" for number in range(20)]


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    made = omnigraph.init(tmp_path / "graph.omni", SCHEMA)
    made.settings.set("maintenance.optimize", "off")
    for first in (0, 10):
        made.load({"Person": [{"name": name} for name in NAMES[first : first + 10]]}, index=False)
    return made


def person(graph: Graph) -> Table:
    return data_at(graph._store, graph.snapshot()).table(PERSON)


def by_name(graph: Graph) -> dict[str, int]:
    rows = person(graph).read(["id", ROW_ID])
    return dict(zip(rows["id"].to_pylist(), rows[ROW_ID].to_pylist(), strict=True))


def test_they_are_in_the_order_of_a_scan_and_read_from_no_data_file(graph: Graph) -> None:
    known = None
    for text in (
        "update Person set { age: 3 } where name = 'p4'".replace("'", '"'),
        'delete Person where name = "p2"',
        'delete Person where name = "p9"',
        'insert Person { name: "new" }',
    ):
        graph.mutate(f"query q() {{ {text} }}")
        table = person(graph)
        known = read_row_ids(table, known)
        scanned = table.read([ROW_ID])[ROW_ID].to_pylist()
        assert known.to_array().tolist() == scanned
        assert read_row_ids(table).to_array().tolist() == scanned
        assert known.end == max(scanned) + 1
        assert known.row_count == len(scanned)


def test_what_is_gone_is_found_by_the_fragments_that_differ(graph: Graph) -> None:
    before = read_row_ids(person(graph))
    ids = by_name(graph)
    graph.mutate('query q() { delete Person where name = "p2" }')
    graph.mutate('query q() { update Person set { age: 1 } where name = "p5" }')
    after = read_row_ids(person(graph), before)
    assert before.without(after).tolist() == [ids["p2"]]
    assert after.without(before).tolist() == []


runs = st.lists(st.tuples(st.integers(0, 3), st.integers(1, 5)), max_size=6)


@settings(deadline=None)
@given(lengths=runs, deleted=st.sets(st.integers(0, 29)))
def test_runs_without_deleted_rows(lengths: list[tuple[int, int]], deleted: set[int]) -> None:
    starts, every, first = [], [], 0
    for gap, length in lengths:
        first += gap
        starts.append(first)
        every += [*range(first, first + length)]
        first += length
    left = [row for offset, row in enumerate(every) if offset not in deleted]
    gone = np.array(sorted(offset for offset in deleted if offset < len(every)), np.uint32)
    counts = np.array([length for _, length in lengths], np.uint64)
    found = row_ids._without(np.array(starts, np.uint64), counts, gone)
    assert RowIds(*found, {}).to_array().tolist() == left
