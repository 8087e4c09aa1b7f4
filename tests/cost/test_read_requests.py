"""How many requests a query makes on S3, on a fresh handle and on one that was asked before."""

from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

import pyarrow as pa
import pytest

import omnigraph
from omnigraph.graph import Graph
from tests.support.counting import Counted, Upload, assert_at_most, requests_of

SCHEMA = """
node Person { name: String @key  age: I32? }
node Company { name: String @key }
edge Knows: Person -> Person { since: Date? }
"""
PEOPLE = 20_000
LARGE = 200_000
"""People whose table has a file of 3 MB, and that of their edges one of 5 MB."""
POINT = "query q($n: String) { match { $p: Person {name: $n} } return { $p.age } }"
HOP = """query q($n: String) {
    match { $p: Person {name: $n}  $p knows $q } return { $q.name, $q.age }
}"""
COMPANY = "query q($n: String) { insert Company { name: $n } }"

OPEN_REQUESTS_MAX = 3
"""The newest version of the manifest, by a listing, and the state."""
POINT_REQUESTS_MAX = 8
HOP_REQUESTS_MAX = 12
"""One of them for the settings, which may limit queries; a point query needs none."""
LARGE_POINT_REQUESTS_MAX = 9
LARGE_HOP_REQUESTS_MAX = 14
"""One more for each table: it is opened again, to fetch its file whole."""
WARM_REQUESTS_MAX = 1
"""Whether there is a newer commit."""
BRANCH_REQUESTS = 3
"""What a branch takes more on a handle of main: its record, and its manifest."""
LATENCY_SECONDS = 0.05


def load(place: Path, people: int, depth: int) -> Path:
    """Load people with indexes, and make so many commits of another type."""
    graph = omnigraph.init(place, SCHEMA)
    names = [f"p{number}" for number in range(people)]
    ends = [names[(7 * number + 1) % people] for number in range(people)]
    ages = pa.array([number % 90 for number in range(people)], pa.int32())
    graph.load(
        {
            "Person": pa.table({"name": names, "age": ages}),
            "Knows": pa.table({"from": names, "to": ends}),
        }
    )
    for number in range(depth):
        graph.mutate(COMPANY, {"n": f"c{number}"})
    return place


Loaded = Callable[..., Graph]
"""Gives a graph on S3 with so many people, after so many further commits."""


@pytest.fixture(scope="module")
def on_disk(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int, int], Path]:
    """Such graphs; each is made once."""
    folder = tmp_path_factory.mktemp("loaded")
    return cache(lambda people, depth: load(folder / f"{people}-{depth}", people, depth))


@pytest.fixture
def loaded(on_disk: Callable[[int, int], Path], upload: Upload) -> Loaded:
    return lambda people, depth=1: upload(on_disk(people, depth))


def cold(uri: str, query: str, branch: str | None = None) -> Callable[[], object]:
    """Ask a handle that knows nothing."""

    def run() -> None:
        assert (
            len(omnigraph.open(uri, read_only=True).query(query, {"n": "p3"}, branch=branch)) == 1
        )

    return run


@pytest.mark.parametrize("depth", [10, 120, pytest.param(1_000, marks=pytest.mark.soak)])
def test_reads_at_any_depth(root: str, loaded: Loaded, asked: Counted, depth: int) -> None:
    graph = loaded(PEOPLE, depth)
    graph.branches.create("draft")

    assert_at_most(
        OPEN_REQUESTS_MAX, requests_of(asked, lambda: omnigraph.open(root, read_only=True))
    )
    for query, requests_max in ((POINT, POINT_REQUESTS_MAX), (HOP, HOP_REQUESTS_MAX)):
        assert_at_most(requests_max, requests_of(asked, cold(root, query)))
        on_branch = requests_of(asked, cold(root, query, "draft"))
        assert_at_most(requests_max + BRANCH_REQUESTS, on_branch)
        handle = omnigraph.open(root, read_only=True)
        handle.query(query, {"n": "p3"})
        for name in ("p3", "p77"):
            warm = requests_of(asked, partial(handle.query, query, {"n": name}))
            assert_at_most(WARM_REQUESTS_MAX, warm)


def test_reads_of_files_that_are_larger_than_a_block(
    root: str, loaded: Loaded, asked: Counted
) -> None:
    loaded(LARGE)
    for query, requests_max in ((POINT, LARGE_POINT_REQUESTS_MAX), (HOP, LARGE_HOP_REQUESTS_MAX)):
        assert_at_most(requests_max, requests_of(asked, cold(root, query)))
        handle = omnigraph.open(root, read_only=True)
        handle.query(query, {"n": "p3"})
        for name in ("p3", f"p{LARGE - 1}"):
            warm = requests_of(asked, partial(handle.query, query, {"n": name}))
            assert_at_most(WARM_REQUESTS_MAX, warm)


def test_each_fragment_that_is_not_folded_yet_is_one_request_more(
    root: str, loaded: Loaded, asked: Counted
) -> None:
    graph = loaded(PEOPLE)
    graph.settings.set("maintenance.optimize", "off")
    new = 5
    for number in range(new):
        graph.mutate("query q($n: String) { insert Person { name: $n } }", {"n": f"new{number}"})
    assert_at_most(POINT_REQUESTS_MAX + new, requests_of(asked, cold(root, POINT)))
    assert_at_most(HOP_REQUESTS_MAX + new, requests_of(asked, cold(root, HOP)))


def test_a_reader_sees_what_was_committed_after_it_was_opened(root: str, loaded: Loaded) -> None:
    graph = loaded(10)
    handle = omnigraph.open(root, read_only=True)
    graph.mutate('query q() { update Person set { age: 99 } where name = "p3" }')
    assert handle.query(POINT, {"n": "p3"}).rows() == [{"p.age": 99}]


@pytest.mark.parametrize(("query", "chain_max"), [(POINT, 8), (HOP, 9)], ids=["point", "hop"])
def test_tables_are_opened_at_once(
    root: str,
    loaded: Loaded,
    asked: Counted,
    monkeypatch: pytest.MonkeyPatch,
    query: str,
    chain_max: int,
) -> None:
    loaded(100)
    monkeypatch.setattr(asked, "latency_seconds", LATENCY_SECONDS)
    chains = []
    # On a busy machine, requests that are made at once may arrive one after the other.
    for _ in range(3):
        asked.take()
        cold(root, query)()
        chains.append(asked.count_round_trips())
    assert min(chains) <= chain_max
