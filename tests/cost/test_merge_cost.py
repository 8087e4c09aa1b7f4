"""What branches, merges and diffs ask of S3: by the delta, not by the tables."""

from collections.abc import Iterable

import pyarrow as pa
import pytest

import omnigraph
from omnigraph.graph import Graph
from omnigraph.merge.graphs import Outcome
from tests.support.counting import Counted
from tests.support.graphs import add_rows
from tests.support.publishing import PERSON
from tests.support.writers import deletes, person, upserts, write

SCHEMA = """
node Person { name: String @key  age: I32? }
node City { name: String @key }
edge Knows: Person -> Person { since: Date? }
"""
CREATE_REQUESTS_MAX = 12


def people(first: int, count: int) -> pa.Table:
    names = pa.array([f"p{number:08}" for number in range(first, first + count)])
    ages = pa.array(range(count), pa.int32())
    fields = [
        pa.field("id", pa.utf8(), nullable=False),
        pa.field("name", pa.utf8(), nullable=False),
        pa.field("age", pa.int32()),
    ]
    return pa.Table.from_arrays([names, names, ages], schema=pa.schema(fields))


def of_size(root: str, size: int) -> Graph:
    graph = omnigraph.init(root, SCHEMA)
    add_rows(graph, {"Person": people(0, size)})
    return graph


def test_a_branch_costs_the_same_at_any_size(root: str, asked: Counted) -> None:
    costs = []
    for size in (5_000, 200_000):
        graph = of_size(f"{root}/{size}", size)
        graph.branches.list()
        graph.snapshot()
        asked.take()
        graph.branches.create("draft")
        costs.append(asked.take())
        graph.branches.create("on_draft", branch="draft")
        costs.append(asked.take())

    main, branch = costs[:2]
    assert costs == [main, branch, main, branch]
    assert main <= CREATE_REQUESTS_MAX
    # Lance reads a ref's own names before it makes another from it.
    assert branch <= CREATE_REQUESTS_MAX + 6
