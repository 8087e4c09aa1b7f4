"""Mutations that write rows with the values that they have: no change and no commit."""

from __future__ import annotations

from pathlib import Path

import pytest

import omnigraph
from omnigraph.graph import Graph
from omnigraph.model.counts import Counts

SCHEMA = """
node City { name: String @key  people: I64?  at: DateTime? }
edge Road: City -> City { km: I32?  @key(src, dst) }
"""


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    graph = omnigraph.init(tmp_path / "graph", SCHEMA)
    graph.mutate("""query q() {
      insert City { name: "Oslo"  people: 700 }
      insert City { name: "Rome"  people: 3000 }
      insert Road { from: "Oslo"  to: "Rome"  km: 2500 }
    }""")
    return graph


@pytest.mark.parametrize(
    ("statement", "unchanged"),
    [
        ('insert City { name: "Oslo"  people: 700 }', {"City": 1}),
        ('insert Road { from: "Oslo"  to: "Rome"  km: 2500 }', {"Road": 1}),
        ('update City set { people: 700 } where name = "Oslo"', {"City": 1}),
        ("update City set { people: people * 1 } where people > 0", {"City": 2}),
        ("insert City { name: $c.name  people: $c.people } from match { $c: City }", {"City": 2}),
        ("update $c: City set { people: $c.people } where exists { $c road $_ }", {"City": 1}),
        # The last of several statements about a row decides.
        (
            'update City set { people: 1 } where name = "Oslo"\n'
            'update City set { people: 700 } where name = "Oslo"',
            {"City": 1},
        ),
    ],
)
def test_equal_values_make_no_commit(
    graph: Graph, statement: str, unchanged: dict[str, int]
) -> None:
    head = graph.snapshot().head
    result = graph.mutate(f"query q() {{ {statement} }}")
    assert (result.commit_id, result.changes, result.unchanged) == (None, {}, unchanged)
    assert graph.snapshot().head == head


def test_a_mutation_writes_only_the_rows_that_differ(graph: Graph) -> None:
    result = graph.mutate("query q() { update City set { people: 3000 } where people > 0 }")
    assert result.changes == {"City": Counts(0, 1, 0)}
    assert result.unchanged == {"City": 1}
    assert result.commit_id is not None
    assert graph.commits.changes(result.commit_id).counts == {"City": Counts(0, 1, 0)}


def test_an_absent_property_of_an_insert_is_a_change(graph: Graph) -> None:
    result = graph.mutate('query q() { insert City { name: "Oslo" } }')
    assert result.changes == {"City": Counts(0, 1, 0)}
    assert not result.unchanged


def test_a_concurrent_write_of_the_same_row_is_no_conflict(graph: Graph) -> None:
    """Both writers said the same: the second one has nothing to add, and erases nothing."""
    other = omnigraph.open(graph.uri)
    other.mutate('query q() { insert City { name: "Bergen"  people: 290 } }')
    graph.mutate('query q() { insert City { name: "Bergen"  people: 290 } }')
    rows = other.query("query q() { match { $c: City } return { $c.name, $c.people } }").rows()
    assert {"c.name": "Bergen", "c.people": 290} in rows
