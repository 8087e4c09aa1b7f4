"""What a batch of a stream asks of S3: as much after many commits of others as after a few."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from shutil import copytree

import pytest

import omnigraph
from omnigraph.graph import Graph
from omnigraph.manifest.publisher import RECENT_COMMITS_MAX
from omnigraph.streams.options import FeedOptions
from tests.support.counting import Counted, assert_at_most, put_files, requests_of
from tests.support.streams import write_people

pytest.importorskip("pyspark.sql.streaming.datasource", reason="needs Spark 4.2")

from pyspark.sql.streaming.datasource import ReadAllAvailable

from omnigraph.streams import source
from omnigraph.streams.source import FeedReader

SCHEMA = "node Person { name: String @key }\nnode City { name: String @key }"
CITY = "query q($n: String) { insert City { name: $n } }"

FEW, MANY = 3, 3 + 4 * RECENT_COMMITS_MAX
"""As far from the next fold of the lineage; after many commits, it has pages."""

REPEAT_REQUESTS_MAX = 2
BATCH_REQUESTS_MAX = 19
EMPTY_REQUESTS_MAX = 8
POLL_REQUESTS_MAX = 8

Requests = Callable[[Callable[[Graph], object]], tuple[list[str], list[str]]]
"""Returns what an action of a new process asks of a graph after few commits, and after many."""


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Graphs in which others made few or many commits since the first batch of a stream."""
    folder = tmp_path_factory.mktemp("grown")
    graph = omnigraph.init(folder / "many", SCHEMA)
    graph.settings.set("maintenance.optimize", "off")
    write_people(graph, 0, "ada")
    for number in range(1, MANY + 1):
        graph.mutate(CITY, {"n": f"city {number}"})
        if number == FEW:
            copytree(folder / "many", folder / "few")
    return folder / "few", folder / "many"


@pytest.fixture
def requests(asked: Counted, root: str, folders: tuple[Path, Path]) -> Requests:
    def opened(folder: Path) -> Graph:
        put_files(folder, f"{root}/{folder.name}")
        return omnigraph.open(f"{root}/{folder.name}")

    def count(action: Callable[[Graph], object]) -> tuple[list[str], list[str]]:
        few, many = (requests_of(asked, partial(action, opened(each))) for each in folders)
        return few, many

    return count


def test_a_batch_that_is_there_is_found_without_reading_history(requests: Requests) -> None:
    few, many = requests(lambda graph: write_people(graph, 0, "ada"))
    assert_at_most(REPEAT_REQUESTS_MAX, few)
    assert_at_most(len(few), many)


def test_a_batch_costs_the_same_after_many_commits(requests: Requests) -> None:
    few, many = requests(lambda graph: write_people(graph, 1, "bob"))
    assert_at_most(BATCH_REQUESTS_MAX, few)
    assert_at_most(len(few), many)


def test_a_batch_without_rows_costs_one_publish(requests: Requests) -> None:
    few, many = requests(lambda graph: write_people(graph, 1))
    assert_at_most(EMPTY_REQUESTS_MAX, few)
    assert_at_most(len(few), many)


def test_a_poll_of_changes_costs_the_same_after_many_commits(requests: Requests) -> None:
    def poll(graph: Graph) -> None:
        source._manifest.cache_clear()
        reader = FeedReader(FeedOptions.parse({"graph": graph.uri, "changes": "true"}))
        newest, before = graph.commits.list(limit=2)
        assert reader.latestOffset({"commit": before.commit_id}, ReadAllAvailable()) == {
            "commit": newest.commit_id
        }
        groups = reader.partitions({"commit": before.commit_id}, {"commit": newest.commit_id})
        assert [len(group.value) for group in groups] == [1]

    few, many = requests(poll)
    assert_at_most(POLL_REQUESTS_MAX, few)
    assert_at_most(len(few), many)
