"""How many requests the operations of a day make on S3: a bound for each, at any depth."""

from collections.abc import Callable
from functools import cache, partial
from itertools import count as count_up
from pathlib import Path

import pytest

import omnigraph
from omnigraph.graph import Graph
from omnigraph.manifest.publisher import RECENT_COMMITS_MAX
from tests.support.counting import Counted, Upload, assert_at_most, requests_of

SCHEMA = """
node Person { name: String @key  age: I32? }
node City { name: String @key }
node Company { name: String @key  city: String? }
edge Knows: Person -> Person { since: Date? }
edge LivesIn: Person -> City
"""
PERSON = "query q($n: String) { insert Person { name: $n, age: 1 } }"
AGE = "query q($n: String) { update Person set { age: 2 } where name = $n }"
DELETED = "query q($n: String) { delete Person where name = $n }"
KNOWS = "query q($a: String, $b: String) { insert Knows { from: $a, to: $b } }"
ACQUAINTANCE = """query q($a: String, $b: String) {
    insert Person { name: $b }
    insert Knows { from: $a, to: $b }
}"""
COMPANY = "query q($n: String) { insert Company { name: $n } }"

INSERT_REQUESTS_MAX = 12
FOLD_REQUESTS = 2
"""What a commit needs more that folds the lineage: one in every `RECENT_COMMITS_MAX`."""
BRANCH_INSERT_REQUESTS_MAX = 12
SECOND_TABLE_REQUESTS = 5
"""What a write to one more table needs: its rows, a look at its head, and Lance's commit."""
CREATE_REQUESTS_MAX = 11
"""One of them lists recovery files: one that cannot be read stops every write."""
FIRST_WRITE_REQUESTS_MAX = 24
MERGE_REQUESTS_MAX = 25

_names = (f"n{number}" for number in count_up())


def insert(graph: Graph, branch: str = "main") -> None:
    graph.mutate(PERSON, {"n": next(_names)}, branch=branch)


def assert_within(requests_max: int, commits: list[list[str]], folds: int = 1) -> None:
    """At most so many of the commits fold the lineage."""
    by_count = sorted(commits, key=len)
    assert_at_most(requests_max + FOLD_REQUESTS, by_count[-1])
    assert_at_most(requests_max, by_count[-1 - folds])


@pytest.fixture
def graph(root: str) -> Graph:
    return omnigraph.init(root, SCHEMA)


@pytest.fixture(scope="module")
def grown(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], Path]:
    """Graphs on the disk after so many commits of several types; each is made once."""
    folder = tmp_path_factory.mktemp("grown")

    @cache
    def grow(depth: int) -> Path:
        graph = omnigraph.init(folder / str(depth), SCHEMA)
        for number in range(depth):
            if number % 10:
                insert(graph)
            else:
                graph.mutate(COMPANY, {"n": next(_names)})
        return folder / str(depth)

    return grow


@pytest.fixture
def deep(grown: Callable[[int], Path], upload: Upload) -> Callable[[int], Graph]:
    return lambda depth: upload(grown(depth))


DEPTHS = [10, 120, pytest.param(1_000, marks=pytest.mark.soak)]
at_depths = pytest.mark.parametrize("depth", DEPTHS)


@at_depths
def test_a_warm_insert_and_update(deep: Callable[[int], Graph], asked: Counted, depth: int) -> None:
    graph = deep(depth)
    insert(graph)
    commits = [requests_of(asked, lambda: insert(graph)) for _ in range(5)]
    name = next(_names)
    graph.mutate(PERSON, {"n": name})
    update = requests_of(asked, lambda: graph.mutate(AGE, {"n": name}))

    assert_within(INSERT_REQUESTS_MAX, commits)
    # It also reads the row, and writes which one it replaces.
    assert_at_most(INSERT_REQUESTS_MAX + 2, update)


@at_depths
def test_a_warm_delete_and_edges(deep: Callable[[int], Graph], asked: Counted, depth: int) -> None:
    graph = deep(depth)
    graph.settings.set("maintenance.optimize", "off")
    first, second, *others = [next(_names) for _ in range(6)]
    for name in (first, second, *others):
        graph.mutate(PERSON, {"n": name})
    ends = {"a": first, "b": second}
    graph.mutate(KNOWS, ends)
    graph.mutate(DELETED, {"n": others[0]})

    edges = [requests_of(asked, lambda: graph.mutate(KNOWS, ends)) for _ in range(2)]
    assert_within(INSERT_REQUESTS_MAX, edges)
    both = [
        requests_of(asked, lambda: graph.mutate(ACQUAINTANCE, {"a": first, "b": next(_names)}))
        for _ in range(2)
    ]
    assert_within(INSERT_REQUESTS_MAX + SECOND_TABLE_REQUESTS, both)
    # It also reads the row that it deletes.
    deleted = [
        requests_of(asked, partial(graph.mutate, DELETED, {"n": name})) for name in others[1:3]
    ]
    assert_within(INSERT_REQUESTS_MAX + 1, deleted)


def test_only_a_commit_that_folds_the_lineage_needs_more(graph: Graph, asked: Counted) -> None:
    # A writer that folds small fragments, too, makes another commit for that.
    graph.settings.set("maintenance.optimize", "off")
    insert(graph)
    insert(graph)
    count = 2 * RECENT_COMMITS_MAX
    commits = [requests_of(asked, lambda: insert(graph)) for _ in range(count)]

    assert_within(INSERT_REQUESTS_MAX, commits, folds=2)


@at_depths
def test_a_branch_its_first_write_and_a_warm_insert(
    deep: Callable[[int], Graph], asked: Counted, depth: int
) -> None:
    graph = deep(depth)
    insert(graph)
    graph.branches.create("before")
    assert_at_most(CREATE_REQUESTS_MAX, requests_of(asked, lambda: graph.branches.create("draft")))
    assert_at_most(FIRST_WRITE_REQUESTS_MAX, requests_of(asked, lambda: insert(graph, "draft")))
    insert(graph, "draft")
    commits = [requests_of(asked, lambda: insert(graph, "draft")) for _ in range(3)]
    assert_within(BRANCH_INSERT_REQUESTS_MAX, commits)

    created = requests_of(asked, lambda: graph.branches.create("below", branch="draft"))
    assert_at_most(CREATE_REQUESTS_MAX, created)
    # Its table is another ref of a ref.
    assert_at_most(FIRST_WRITE_REQUESTS_MAX, requests_of(asked, lambda: insert(graph, "below")))
    commits = [requests_of(asked, lambda: insert(graph, "below")) for _ in range(3)]
    assert_within(BRANCH_INSERT_REQUESTS_MAX, commits)


def test_a_first_write_by_a_handle_that_did_not_create_the_branch(
    deep: Callable[[int], Graph], asked: Counted
) -> None:
    graph = deep(10)
    other = omnigraph.open(graph.uri)
    insert(other)
    graph.branches.create("draft")

    assert_at_most(FIRST_WRITE_REQUESTS_MAX, requests_of(asked, lambda: insert(other, "draft")))
    assert_at_most(BRANCH_INSERT_REQUESTS_MAX, requests_of(asked, lambda: insert(other, "draft")))


@at_depths
def test_a_small_merge(deep: Callable[[int], Graph], asked: Counted, depth: int) -> None:
    graph = deep(depth)
    graph.branches.create("draft")
    insert(graph, "draft")
    insert(graph, "draft")
    insert(graph)
    commits = [requests_of(asked, lambda: graph.merge("draft"))]
    # Once more, with a commit of the branch as the base; then where only the branch went on.
    insert(graph, "draft")
    insert(graph)
    commits.append(requests_of(asked, lambda: graph.merge("draft")))
    graph.branches.create("ahead")
    insert(graph, "ahead")
    commits.append(requests_of(asked, lambda: graph.merge("ahead")))

    assert_within(MERGE_REQUESTS_MAX, commits)
