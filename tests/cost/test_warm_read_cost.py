"""What a handle that has read before asks of S3 after others wrote: only what they wrote."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import omnigraph
from omnigraph.clock import SystemClock
from omnigraph.graph import Graph
from omnigraph.manifest.drafts import CommitDraft, PinTable
from omnigraph.manifest.publisher import publish
from omnigraph.manifest.reader import Manifest
from omnigraph.model.commits import OperationKind
from omnigraph.model.ids import CommitId, OperationId
from omnigraph.model.names import BranchName
from omnigraph.storage import heads, staging
from omnigraph.storage.store import Store
from tests.support.counting import Counted, Upload

SCHEMA = """
node Person { name: String @key  age: I32?  tags: [String]? }
edge Knows: Person -> Person { since: Date? }
"""
MANY = 100
QUERIES = {
    "full": "query q() { match { $p: Person } return { $p.name, $p.age } }",
    "filtered": "query q() { match { $p: Person {age: 7} } return { $p.name, $p.tags } }",
    "hop": "query q() { match { $p: Person  $p knows $q } return { $p.name, $q.age } }",
    "hop from one": """query q() {
        match { $p: Person {name: "n1"}  $p knows $q } return { $q.name, $q.age }
    }""",
    "point": 'query q() { match { $p: Person {name: "n2"} } return { $p.age, $p.tags } }',
}

_clock = SystemClock()


def people(first: int, count: int) -> list[dict[str, Any]]:
    return [
        {"id": f"n{number}", "name": f"n{number}", "age": number % 9, "tags": ["x"]}
        for number in range(first, first + count)
    ]


def edges(first: int, count: int) -> list[dict[str, Any]]:
    return [
        {"id": f"e{number}", "src": f"n{number}", "dst": f"n{number // 2}"}
        for number in range(first, first + count)
    ]


def write(uri: str, rows: Mapping[str, Sequence[dict[str, Any]]], branch: str = "main") -> None:
    """Write each row as a fragment of its own, as one commit each would, by another process."""
    store = Store.open(uri)
    manifest = Manifest(store)
    now = manifest.current(BranchName(branch))
    author = heads.Authorship(OperationId(_clock.ulid()), OperationKind.LOAD)
    pins = []
    for key, pin in now.pins.items():
        table = store.tables.open_pin(pin)
        files = [
            file
            for row in rows.get(key.type_name, ())
            for file in staging.write_files(table, pa.Table.from_pylist([row], table.schema))
        ]
        if files:
            staged = staging.stage_change(table, files=files)
            version = heads.apply(staged, author).version
            pins.append(replace(pin, version=version, row_count=staged.row_count))
    commit_id = CommitId(_clock.ulid())
    publish(
        manifest,
        _clock,
        CommitDraft(
            BranchName(branch), commit_id, OperationKind.LOAD, changes=tuple(map(PinTable, pins))
        ),
    )


def files_read(asked: Counted) -> int:
    """How many requests were made for files of the tables of types, versions aside."""
    folders = ("/data/", "/_deletions/", "/_indices/")
    paths = [each for each in asked.requests if "/__manifest/" not in each]
    return sum(any(folder in path for folder in folders) for path in paths)


def rows_read(graph: Graph, asked: Counted, query: str) -> tuple[int, int]:
    """How many requests for rows a query makes, and how many rows it has."""
    asked.take()
    count = len(graph.query(QUERIES[query]))
    return files_read(asked), count


@pytest.fixture(scope="module")
def fragmented(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph of many people and edges, each in a fragment of its own."""
    place = tmp_path_factory.mktemp("fragmented")
    omnigraph.init(place, SCHEMA).settings.set("maintenance.optimize", "off")
    write(str(place), {"Person": people(0, MANY), "Knows": edges(0, MANY)})
    return place


@pytest.fixture
def uri(fragmented: Path, upload: Upload) -> str:
    return upload(fragmented).uri


@pytest.mark.parametrize("query", QUERIES)
def test_the_first_query_asks_once_for_each_fragment_and_the_next_for_none(
    uri: str, asked: Counted, query: str
) -> None:
    graph = omnigraph.open(uri, read_only=True)
    tables = 2 if "hop" in query else 1
    requests, count = rows_read(graph, asked, query)
    assert requests <= tables * MANY
    assert count > 0
    assert rows_read(graph, asked, query) == (0, count)


def warmed(uri: str, asked: Counted) -> Graph:
    graph = omnigraph.open(uri, read_only=True)
    first = [rows_read(graph, asked, query)[0] for query in QUERIES]
    # Each fragment of each type was asked for once, by whichever query came first.
    assert sum(first) <= 2 * MANY
    return graph


def test_a_warm_handle_asks_once_for_what_others_wrote(uri: str, asked: Counted) -> None:
    graph = warmed(uri, asked)
    new = 5
    for turn, query in enumerate(QUERIES):
        first = MANY + turn * new
        write(uri, {"Person": people(first, new), "Knows": edges(first, new)})
        assert rows_read(graph, asked, query)[0] <= 2 * new
        # Whatever is asked next, nothing is left to be read but the edges.
        assert sum(rows_read(graph, asked, other)[0] for other in QUERIES) <= new
        assert sum(rows_read(graph, asked, other)[0] for other in QUERIES) == 0


def test_updates_and_deletions_by_others_cost_what_they_wrote(uri: str, asked: Counted) -> None:
    graph = warmed(uri, asked)
    other = omnigraph.open(uri)
    other.mutate('query q() { update Person set { age: 8 } where name = "n2" }')
    other.mutate('query q() { delete Knows where from = "n7" }')
    # One new fragment; the fragment of the old row is gone, and so is that of the edge.
    assert rows_read(graph, asked, "full") == (1, MANY)
    assert rows_read(graph, asked, "hop") == (0, MANY - 1)
    assert graph.query(QUERIES["point"]).rows() == [{"p.age": 8, "p.tags": ["x"]}]
    assert sum(rows_read(graph, asked, query)[0] for query in QUERIES) == 0


def test_deletions_in_a_large_fragment_do_not_read_it_again(root: str, asked: Counted) -> None:
    other = omnigraph.init(root, SCHEMA)
    names = [f"n{number}" for number in range(20_000)]
    ages = pa.array([number % 9 for number in range(20_000)], pa.int32())
    other.load({"Person": pa.table({"name": names, "age": ages})}, index=False)
    graph = omnigraph.open(root, read_only=True)
    pairs = """query q() {
        match { $p: Person {age: 3}  $q: Person {age: 3}  $p.name = $q.name }
        return { count($p) as n }
    }"""
    before = graph.query(pairs).rows()[0]["n"]
    other.mutate('query q() { update Person set { age: 5 } where name = "n3" }')
    asked.take()
    assert graph.query(pairs).rows()[0]["n"] == before - 1
    # Which rows are left of the large one, and the new one.
    assert files_read(asked) == 2


def test_a_branch_asks_for_what_was_written_there(uri: str, asked: Counted) -> None:
    graph = warmed(uri, asked)
    omnigraph.open(uri).branches.create("draft")
    draft = graph.at(branch="draft")
    for query in QUERIES:
        assert rows_read(draft, asked, query)[0] == 0
    other = omnigraph.open(uri)
    other.mutate('query q() { insert Person { name: "new", age: 7 } }', branch="draft")
    assert rows_read(draft, asked, "full") == (1, MANY + 1)
    assert rows_read(draft, asked, "filtered")[0] == 0
    assert rows_read(graph, asked, "full") == (0, MANY)


def test_a_new_column_is_read_and_the_others_are_not(uri: str, asked: Counted) -> None:
    graph = warmed(uri, asked)
    changed = SCHEMA.replace("age: I32?", "age: I32?  kind: String? ")
    omnigraph.open(uri).schema.apply(changed)
    assert rows_read(graph, asked, "full") == (0, MANY)
    filled = changed.replace("kind: String?", "kind: String?  title: String?")
    omnigraph.open(uri).schema.apply(filled, fill="Person.title=name")
    assert rows_read(graph, asked, "full") == (0, MANY)
    asked.take()
    titles = graph.query("query q() { match { $p: Person } return { $p.title } }").rows()
    assert {row["p.title"] for row in titles} == {f"n{number}" for number in range(MANY)}
    assert files_read(asked) <= MANY


def test_a_compaction_costs_the_files_that_it_wrote(uri: str, asked: Counted) -> None:
    graph = warmed(uri, asked)
    omnigraph.open(uri).optimize()
    asked.take()
    assert len(graph.query(QUERIES["full"])) == MANY
    assert files_read(asked) <= 2
    assert rows_read(graph, asked, "full") == (0, MANY)


@pytest.mark.soak
def test_three_hundred_commits_of_one_row_cost_a_warm_handle_no_more(
    root: str, asked: Counted
) -> None:
    other = omnigraph.init(root, SCHEMA)
    other.settings.set("maintenance.optimize", "off")
    graph = omnigraph.open(root, read_only=True)
    add = "query q($n: String) { insert Person { name: $n, age: 7 } }"
    for number in range(300):
        other.mutate(add, {"n": f"n{number}"})
        if number % 20 == 0:
            assert rows_read(graph, asked, "full")[0] <= 20
    assert rows_read(graph, asked, "full")[0] <= 20
    assert rows_read(graph, asked, "point")[0] == 0
