"""The list of indexes and the check of them: what is there, how much it covers, what is damaged."""

from __future__ import annotations

import dataclasses
import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pytest

import omnigraph
from omnigraph.choices import IndexKind, IndexSource, IndexState
from omnigraph.errors import BranchNotFoundError
from omnigraph.graph import Graph
from omnigraph.maintenance.checking import indexes as checking
from omnigraph.maintenance.checking.indexes import check_indexes
from omnigraph.maintenance.checking.report import Invariant, Notebook
from omnigraph.maintenance.results import IndexStatus
from omnigraph.schema.catalog import TextOptions
from omnigraph.storage.indexes import read_indexes, stage_segments
from omnigraph.storage.tables import Table
from tests.support.tables import applied

SCHEMA: Final = """
node Person {
  name: String @key  mail: String? @unique  age: I32? @index  on: Bool? @index
  mood: enum(good, bad)? @index  bio: String? @index  score: F32? @index  born: DateTime? @index
}
edge Knows: Person -> Person { since: Date? @index }
"""
ALL: Final = ["id", "name", "mail", "age", "on", "mood", "bio", "score", "born"]


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    graph = omnigraph.init(tmp_path / "graph", SCHEMA)
    graph.load({"Person": [person(number) for number in range(3)]}, engine="local")
    return graph


def person(number: int) -> dict[str, object]:
    return {"name": f"p{number}", "age": number, "mood": ["good", "bad", None][number % 3]}


def listed(graph: Graph, **point: str) -> dict[str, IndexStatus]:
    found = graph.indexes.list(**point)  # type: ignore[arg-type]
    return {f"{each.type_name}.{each.column} {each.kind}": each for each in found}


def table_of(graph: Graph, type_name: str = "Person") -> Table:
    [pin] = [pin for key, pin in graph.snapshot().pins.items() if key.type_name == type_name]
    return graph._store.tables.open_pin(pin)


def folder_of(graph: Graph, column: str) -> Path:
    """Where the only segment of an index has its files."""
    table = table_of(graph)
    [index] = [each for each in table.handle.describe_indices() if each.field_names == [column]]
    [segment] = index.segments
    return Path(graph.uri, table.address.location, "_indices", segment.uuid)


def test_the_list_has_what_the_schema_asks_for_and_how_much_of_it_is_there(graph):
    graph.mutate('query q() { insert Person { name: "late" } }')

    indexes = listed(graph)

    age = indexes["Person.age BTREE"]
    assert (age.sources, age.state) == ((IndexSource.INDEX,), IndexState.PARTIAL)
    assert (age.rows, age.rows_covered, age.segments) == (4, 3, 1)
    assert age.options is None
    assert age.bytes == sum(path.stat().st_size for path in folder_of(graph, "age").iterdir())
    assert age.built_at is not None
    assert age.age is not None
    assert timedelta(0) <= age.age < timedelta(minutes=5)
    assert indexes["Person.mood BTREE"].kind is IndexKind.BTREE
    assert indexes["Person.mail BTREE"].sources == (IndexSource.UNIQUE,)
    assert indexes["Person.bio INVERTED"].state == "partial"
    assert indexes["Person.bio INVERTED"].options == TextOptions()
    assert indexes["Knows.since BTREE"].state == "complete"
    assert indexes["Knows.since BTREE"].segments == 0
    assert [each.split()[0] for each in indexes] == [
        *(f"Person.{column}" for column in ["id", "name", "mail", "age", "on", "mood", "bio"]),
        "Person.score",
        "Person.born",
        *(f"Knows.{column}" for column in ["id", "src", "dst", "since"]),
    ]


def test_the_list_is_of_any_branch_and_any_commit(graph):
    before = graph.snapshot().head
    graph.branches.create("draft")
    graph.load({"Person": [person(7)]}, mode="append", branch="draft", engine="local")

    assert listed(graph, branch="draft")["Person.age BTREE"].rows_covered == 4
    assert listed(graph.at(branch="draft"))["Person.age BTREE"].segments == 2
    assert listed(graph)["Person.age BTREE"].rows_covered == 3
    assert listed(graph, commit=before.parent)["Person.age BTREE"].state == "missing"
    with pytest.raises(BranchNotFoundError):
        listed(graph, branch="nope")


def test_an_index_that_the_schema_gave_up_is_not_needed(graph):
    graph.schema.apply(SCHEMA.replace("age: I32? @index", "age: I32?"))

    age = listed(graph)["Person.age BTREE"]
    assert (age.sources, age.state, age.rows_covered) == ((), IndexState.NOT_NEEDED, 3)
    graph.ensure_indices(engine="local")
    assert "Person.age BTREE" not in listed(graph)


def test_the_list_reads_no_files_but_those_of_metadata(graph):
    handle = omnigraph.open(graph.uri)
    handle.indexes.list()
    handle._store.meter.take()

    assert handle.indexes.list()
    assert handle._store.meter.take().bytes_read == 0


def test_indexes_that_are_as_they_should_be_are_sound(graph):
    graph.mutate('query q() { delete Person where name = "p1" }')
    graph.mutate("query q() { update Person set { age: 70 } where age = 0 }")

    report = graph.check()

    assert report.findings == ()
    assert report.checked[Invariant.INDEX] == len(ALL)


@pytest.mark.parametrize("column", ["id", "mood", "bio"])
def test_an_index_whose_files_are_gone_is_found_and_built_anew(graph, column):
    shutil.rmtree(folder_of(graph, column))

    for reads_rows in (True, False):
        report = omnigraph.open(graph.uri).check(rows=reads_rows)
        findings = [each for each in report.findings if each.invariant is Invariant.INDEX]
        assert [each.subject for each in findings] == [f"index on {column}"]
        assert "cannot be read" in findings[0].problem
        assert "omnigraph index --rebuild" in findings[0].next_step
    repaired = omnigraph.open(graph.uri)
    assert repaired.ensure_indices(engine="local").commit_id is None
    result = repaired.ensure_indices(engine="local", rebuild=True)
    assert result.built["Person"] == tuple(ALL)
    assert omnigraph.open(graph.uri).check().findings == ()


@pytest.mark.parametrize("column", ["id", "age", "mood", "on", "score", "born"])
def test_an_index_that_covers_what_it_was_not_built_over_is_found(graph, column):
    """As a compaction would leave it that gives a fragment a number which another one had."""
    graph.load({"Person": [person(7)]}, mode="append", engine="local", index=False)
    table = table_of(graph)
    [index] = [each for each in read_indexes(table) if each.spec and each.spec.column == column]
    both: Any = {0, 1}
    wide = [dataclasses.replace(part, fragment_ids=both) for part in index.segments]
    lying = applied(stage_segments(table, wide, removed=index.segments))

    problems = checked(graph, lying)

    assert problems == [
        (f"index on {column}", "it finds 3 rows, and the files that it covers have 4")
    ]
    assert checked(graph, table) == []


def checked(graph: Graph, table: Table) -> list[tuple[str, str]]:
    notebook = Notebook()
    check_indexes(table, graph.schema.show().catalog.node_type("Person"), notebook, reads_rows=True)
    report = notebook.report(graph.uri, ("main",), [Invariant.INDEX])
    return [(each.subject, each.problem) for each in report.findings]


def test_a_check_notes_indexes_that_many_rows_lack(graph, monkeypatch):
    monkeypatch.setattr(checking, "UNINDEXED_ROWS_NOTED_MIN", 2)
    assert graph.check().notes == ()
    late = [person(number) for number in (7, 8)]
    graph.load({"Person": late}, mode="append", engine="local", index=False)

    report = graph.check(rows=False)

    assert report.findings == ()
    assert len(report.notes) == len(ALL)
    assert report.notes[0].problem == "its index on id lacks 2 rows, which are scanned"
