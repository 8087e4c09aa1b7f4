"""A check compares what indexes for search have with the rows that they cover."""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

import omnigraph
from omnigraph.graph import Graph
from omnigraph.maintenance.checking.indexes import check_indexes
from omnigraph.maintenance.checking.report import Invariant, Notebook
from omnigraph.storage.indexes import TableIndex, read_indexes, stage_segments
from omnigraph.storage.tables import Table
from tests.contract.maintenance.test_search_indexes import table_of
from tests.support.tables import applied

SCHEMA: Final = """
node Doc {
  name: String @key
  body: String? @index
  title: String @index(analyzer="simple")
  v: Vector(4)? @index(kind="ivf_flat")
}
"""
ROWS: Final = 300
VECTORS: Final = np.random.default_rng(3).standard_normal((ROWS + 60, 4)).round(3)
WORDS: Final = ("graph", "lake", "soup", "table", "branch")


def doc(number: int) -> dict[str, Any]:
    chosen = [WORDS[number % 5], WORDS[number % 3]] * (1 + number % 4)
    return {
        "name": f"d{number}",
        "body": None if number % 7 == 0 else " ".join(chosen),
        "title": " ".join(chosen[::-1]),
        "v": None
        if number % 11 == 0
        else [0.0] * 4
        if number % 13 == 0
        else VECTORS[number].tolist(),
    }


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    graph = omnigraph.init(tmp_path / "graph", SCHEMA)
    graph.load({"Doc": [doc(number) for number in range(ROWS)]}, engine="local")
    return graph


def problems(graph: Graph, table: Table) -> dict[str, str]:
    notebook = Notebook()
    check_indexes(table, graph.schema.show().catalog.node_type("Doc"), notebook, reads_rows=True)
    report = notebook.report(graph.uri, ("main",), [Invariant.INDEX])
    return {each.subject: each.problem for each in report.findings}


def index_on(table: Table, column: str) -> TableIndex:
    [index] = [each for each in read_indexes(table) if each.spec and each.spec.column == column]
    return index


def test_indexes_are_sound_whatever_happened_to_the_rows(graph):
    graph.mutate('query q() { delete Doc where name = "d3" }')
    graph.mutate('query q() { update Doc set { body: "lake" } where name = "d5" }')
    graph.mutate('query q() { update Doc set { v: [1, 2, 3, 4] } where name = "d8" }')
    graph.mutate('query q() { update Doc set { body: null } where name = "d9" }')
    assert graph.check().findings == ()
    later = [doc(number) for number in range(ROWS - 20, ROWS + 40)]
    graph.load({"Doc": later}, mode="merge", engine="local")
    assert graph.check().findings == ()
    graph.optimize(engine="local")
    assert graph.check().findings == ()


@pytest.mark.parametrize(
    ("column", "problem"),
    [
        ("body", "it misses 8 rows by words that they have"),
        ("v", "it finds 251 rows, and the files that it covers have 260 vectors"),
    ],
)
def test_an_index_that_lacks_rows_that_it_covers_is_found(graph, column, problem):
    later = [doc(number) for number in range(ROWS + 1, ROWS + 11)]
    graph.load({"Doc": later}, mode="append", engine="local", index=False)
    table = table_of(graph)
    index = index_on(table, column)
    both: Any = {0, 1}
    wide = [dataclasses.replace(part, fragment_ids=both) for part in index.segments]
    lying = applied(stage_segments(table, wide, removed=index.segments))

    assert problems(graph, lying) == {f"index on {column}": problem}
    assert problems(graph, table) == {}


def test_an_index_of_texts_that_are_others_is_found(graph):
    """The files of an index of texts with as many words, of which some have other lengths."""
    replace_part(graph, "title", lambda number: doc(number + 1)["title"], "part_0_*.lance")

    found = problems(graph, table_of(omnigraph.open(graph.uri)))

    assert found == {"index on title": f"it misses {ROWS} rows by words that they have"}


def test_postings_of_other_rows_are_found(graph):
    """A file of postings that is not the index's own, beside words and lengths that are."""
    replace_part(graph, "title", lambda number: doc(number * 7 % ROWS)["title"], "*_invert.lance")

    found = problems(graph, table_of(omnigraph.open(graph.uri)))

    assert found.keys() == {"index on title"}
    assert found["index on title"].startswith("it misses ")


def replace_part(graph: Graph, column: str, text: Callable[[int], str], files: str) -> None:
    """Damage an index: some of its files become those of an index of other texts."""
    other = omnigraph.init(Path(graph.uri).parent / "other", SCHEMA)
    rows = [doc(number) | {column: text(number)} for number in range(ROWS)]
    other.load({"Doc": rows}, engine="local")
    folders = []
    for each in (graph, other):
        table = table_of(each)
        [segment] = index_on(table, column).segments
        folders.append(Path(each.uri) / table.address.folder / "_indices" / segment.uuid)
    damaged, source = folders
    paths = list(source.glob(files))
    assert paths
    for path in paths:
        shutil.copy(path, damaged / path.name)
