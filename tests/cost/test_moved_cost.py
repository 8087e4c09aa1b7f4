"""What a graph costs that was moved: nothing before it is moved, and no history afterwards."""

from pathlib import Path

import pytest

import omnigraph
from tests.support.counting import Counted, put_files

SCHEMA = "node Person { name: String @key }"
ADD = "query q($n: String) { insert Person { name: $n } }"
COUNT = "query q() { match { $p: Person } return { count($p) as n } }"
MOVED_REQUESTS_MAX = 2
"""For the manifest and for each table of a branch: where its version is, is looked up once more."""


def opened(asked: Counted, uri: str) -> int:
    """How many requests a new reader of the branch takes."""
    asked.take()
    reader = omnigraph.open(uri, read_only=True).at(branch="draft")
    assert reader.query(COUNT).rows()[0]["n"]
    return asked.take()


@pytest.mark.parametrize("commits", [1, 40])
def test_moved_branch_costs_a_request_per_table(
    root: str, asked: Counted, tmp_path: Path, commits: int
) -> None:
    made = omnigraph.init(tmp_path / "graph", SCHEMA)
    other = omnigraph.init(root, SCHEMA)
    for graph in (made, other):
        graph.settings.set("maintenance.optimize", "off")
        graph.branches.create("draft")
        for number in range(commits):
            graph.mutate(ADD, {"n": f"p{number}"}, branch="draft")
    put_files(Path(made.uri), f"{root}-moved")

    costs = opened(asked, f"{root}-moved"), opened(asked, root)

    assert 0 < costs[0] - costs[1] <= MOVED_REQUESTS_MAX
