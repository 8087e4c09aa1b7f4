"""How many requests the operations of a day make on S3: a bound for each, at any depth."""

from collections.abc import Callable
from itertools import count

import pytest

import omnigraph
from omnigraph.graph import Graph
from omnigraph.limits import RECENT_COMMITS_MAX
from tests.support.counting import Counted

SCHEMA = """
node Person { name: String @key  age: I32? }
node City { name: String @key }
node Company { name: String @key  city: String? }
edge Knows: Person -> Person { since: Date? }
edge LivesIn: Person -> City
"""
PERSON = "query q($n: String) { insert Person { name: $n, age: 1 } }"
AGE = "query q($n: String) { update Person set { age: 2 } where name = $n }"
COMPANY = "query q($n: String) { insert Company { name: $n } }"

INSERT_REQUESTS_MAX = 12
FOLD_REQUESTS = 2
"""What a commit needs more that folds the lineage: one in every `RECENT_COMMITS_MAX`."""
BRANCH_INSERT_REQUESTS_MAX = 14
CREATE_REQUESTS_MAX = 10
FIRST_WRITE_REQUESTS_MAX = 24
MERGE_REQUESTS_MAX = 25

_names = (f"n{number}" for number in count())


def requests_of(asked: Counted, operation: Callable[[], object]) -> int:
    asked.take()
    operation()
    return asked.take()


def insert(graph: Graph, branch: str = "main") -> None:
    graph.mutate(PERSON, {"n": next(_names)}, branch=branch)


def deepened(graph: Graph, depth: int) -> Graph:
    """The handle, after as many commits of several types."""
    while (missing := depth - len(graph.commits.list(limit=depth))) > 0:
        for number in range(missing):
            if number % 10:
                insert(graph)
            else:
                graph.mutate(COMPANY, {"n": next(_names)})
    return graph


def assert_within(requests_max: int, counts: list[int], folds: int = 1) -> None:
    """At most so many of the commits fold the lineage."""
    assert max(counts) <= requests_max + FOLD_REQUESTS
    assert sorted(counts)[-1 - folds] <= requests_max


@pytest.fixture
def graph(root: str) -> Graph:
    return omnigraph.init(root, SCHEMA)


DEPTHS = [10, 120, pytest.param(1_000, marks=pytest.mark.soak)]
at_depths = pytest.mark.parametrize("depth", DEPTHS)


@at_depths
def test_a_warm_insert_and_update(graph: Graph, asked: Counted, depth: int) -> None:
    deepened(graph, depth)
    insert(graph)
    counts = [requests_of(asked, lambda: insert(graph)) for _ in range(5)]
    name = next(_names)
    graph.mutate(PERSON, {"n": name})
    update = requests_of(asked, lambda: graph.mutate(AGE, {"n": name}))

    assert_within(INSERT_REQUESTS_MAX, counts)
    # It also reads the row, and writes which one it replaces.
    assert update <= INSERT_REQUESTS_MAX + 2


def test_only_a_commit_that_folds_the_lineage_needs_more(graph: Graph, asked: Counted) -> None:
    # A writer that folds small fragments, too, makes another commit for that.
    graph.settings.set("maintenance.optimize", "off")
    insert(graph)
    insert(graph)
    commits = 2 * RECENT_COMMITS_MAX
    counts = [requests_of(asked, lambda: insert(graph)) for _ in range(commits)]

    assert_within(INSERT_REQUESTS_MAX, counts, folds=2)


@at_depths
def test_a_branch_its_first_write_and_a_warm_insert(
    graph: Graph, asked: Counted, depth: int
) -> None:
    deepened(graph, depth)
    graph.branches.create("before")
    assert requests_of(asked, lambda: graph.branches.create("draft")) <= CREATE_REQUESTS_MAX
    assert requests_of(asked, lambda: insert(graph, "draft")) <= FIRST_WRITE_REQUESTS_MAX
    insert(graph, "draft")
    counts = [requests_of(asked, lambda: insert(graph, "draft")) for _ in range(3)]
    assert_within(BRANCH_INSERT_REQUESTS_MAX, counts)

    created = requests_of(asked, lambda: graph.branches.create("below", branch="draft"))
    assert created <= CREATE_REQUESTS_MAX
    # Its table is another ref of a ref.
    assert requests_of(asked, lambda: insert(graph, "below")) <= FIRST_WRITE_REQUESTS_MAX
    counts = [requests_of(asked, lambda: insert(graph, "below")) for _ in range(3)]
    assert_within(BRANCH_INSERT_REQUESTS_MAX, counts)


def test_a_first_write_by_a_handle_that_did_not_create_the_branch(
    graph: Graph, asked: Counted
) -> None:
    deepened(graph, 10)
    other = omnigraph.open(graph.uri)
    insert(other)
    graph.branches.create("draft")

    assert requests_of(asked, lambda: insert(other, "draft")) <= FIRST_WRITE_REQUESTS_MAX
    assert requests_of(asked, lambda: insert(other, "draft")) <= BRANCH_INSERT_REQUESTS_MAX


@at_depths
def test_a_small_merge(graph: Graph, asked: Counted, depth: int) -> None:
    deepened(graph, depth)
    graph.branches.create("draft")
    insert(graph, "draft")
    insert(graph, "draft")
    insert(graph)
    counts = [requests_of(asked, lambda: graph.merge("draft"))]
    # Once more, with a commit of the branch as the base; then where only the branch went on.
    insert(graph, "draft")
    insert(graph)
    counts.append(requests_of(asked, lambda: graph.merge("draft")))
    graph.branches.create("ahead")
    insert(graph, "ahead")
    counts.append(requests_of(asked, lambda: graph.merge("ahead")))

    assert_within(MERGE_REQUESTS_MAX, counts)
