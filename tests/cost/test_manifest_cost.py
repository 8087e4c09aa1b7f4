"""What the manifest costs: counted, not timed, and the same at any depth of history."""

from itertools import pairwise
from pathlib import Path

import pytest

import omnigraph
from omnigraph.manifest import publisher
from omnigraph.manifest.publisher import (
    LINEAGE_JOIN_FACTOR,
    LINEAGE_PAGE_ROWS_MAX,
    RECENT_COMMITS_MAX,
)
from omnigraph.manifest.reader import Manifest
from omnigraph.model.names import MAIN
from omnigraph.storage.meter import IOCount
from omnigraph.storage.store import Store
from tests.support.crashes import copied
from tests.support.publishing import PERSON, SCHEMA, advance, manifest_at, publish_pin

READS_MAX = 2
WRITES_MAX = 6


def cost_of_publish(manifest: Manifest) -> IOCount:
    pin = manifest.current(MAIN).pin(PERSON)
    manifest.store.meter.take()
    publish_pin(manifest, pin)
    return manifest.store.meter.take()


@pytest.fixture(scope="module")
def deep(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, list[IOCount]]:
    """A graph of a thousand commits, and what each publish cost."""
    uri = str(tmp_path_factory.mktemp("deep") / "graph.omni")
    omnigraph.init(uri, SCHEMA)
    manifest = manifest_at(uri)
    return uri, [cost_of_publish(manifest) for _ in range(1000)]


def test_no_publish_costs_more_than_its_budget(deep: tuple[str, list[IOCount]]) -> None:
    _, costs = deep
    assert max(cost.reads for cost in costs) <= READS_MAX
    assert max(cost.writes for cost in costs) <= WRITES_MAX
    assert min(cost.writes for cost in costs) >= 3, "the meter counts: data, transaction, manifest"


def test_a_publish_costs_the_same_at_depth_ten_and_at_depth_thousand(
    deep: tuple[str, list[IOCount]],
) -> None:
    _, costs = deep
    # One whole cycle of folding on each side, so that folds are compared with folds.
    early = costs[RECENT_COMMITS_MAX : 2 * RECENT_COMMITS_MAX]
    late = costs[-RECENT_COMMITS_MAX:]
    assert sorted((c.reads, c.writes) for c in late) <= sorted((c.reads, c.writes) for c in early)
    assert (costs[10].reads, costs[10].writes) == (costs[-2].reads, costs[-2].writes)
    # A fold rewrites at most one page, whatever lies below it.
    assert max(c.bytes_written for c in late) < LINEAGE_PAGE_ROWS_MAX * 200


STATE_BYTES_MAX = 12_000
"""What a publish writes besides a page of lineage: the state, the transaction and the version."""

MEAN_BYTES_MAX = 10_000
"""The same and the pages, spread over all commits."""


def test_a_commit_writes_little_of_the_commits_before_it(deep: tuple[str, list[IOCount]]) -> None:
    _, costs = deep
    written = [cost.bytes_written for cost in costs]
    plain = [each for each in written if each <= STATE_BYTES_MAX]
    assert len(plain) >= len(written) * (1 - 1 / RECENT_COMMITS_MAX) - 1
    for first, last in ((0, 250), (250, 500), (500, 1000)):
        assert sum(written[first:last]) / (last - first) <= MEAN_BYTES_MAX
    assert min(written) >= 1_000, "the meter counts bytes"


def test_pages_are_few_and_each_is_much_larger_than_the_next(
    deep: tuple[str, list[IOCount]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    uri, _ = deep
    assert_tiers(manifest_at(uri))
    monkeypatch.setattr(publisher, "RECENT_COMMITS_MAX", 2)
    small = str(tmp_path / "graph.omni")
    omnigraph.init(small, SCHEMA)
    manifest = manifest_at(small)
    for _ in range(100):
        advance(manifest, PERSON)
        assert_tiers(manifest)


def assert_tiers(manifest: Manifest) -> None:
    sizes = [page.physical_rows for page in manifest.open(MAIN).table.fragments()[1:]]
    for larger, smaller in pairwise(sizes):
        assert larger > LINEAGE_JOIN_FACTOR * smaller or larger + smaller > LINEAGE_PAGE_ROWS_MAX
    assert len(sizes) <= 5


def test_a_handle_that_has_read_nothing_reads_the_pages_that_it_joins(
    deep: tuple[str, list[IOCount]], tmp_path: Path
) -> None:
    uri = copied(deep[0], tmp_path / "graph.omni")
    costs = []
    for _ in range(2 * RECENT_COMMITS_MAX):
        manifest = manifest_at(uri)
        manifest.current(MAIN)
        costs.append(cost_of_publish(manifest))

    assert max(cost.reads for cost in costs) <= READS_MAX + 5
    assert sorted(cost.reads for cost in costs)[-3] <= READS_MAX


def test_reading_the_current_state_opens_one_fragment_at_any_depth(
    deep: tuple[str, list[IOCount]], tmp_path: Path
) -> None:
    uri, _ = deep
    shallow = str(tmp_path / "graph.omni")
    omnigraph.init(shallow, SCHEMA)

    def cost_of_state(where: str) -> IOCount:
        store = Store.open(where)
        manifest = Manifest(store)
        manifest.branches()
        store.meter.take()
        manifest.current(MAIN)
        return store.meter.take()

    assert cost_of_state(uri).reads == cost_of_state(shallow).reads == 1


def test_the_newest_commits_are_listed_without_opening_a_page(
    deep: tuple[str, list[IOCount]],
) -> None:
    uri, _ = deep
    graph = omnigraph.open(uri, read_only=True)
    graph.snapshot()
    graph._store.meter.take()

    assert len(graph.commits.list(limit=5)) == 5
    # They are in the first fragment, which the snapshot has read.
    assert graph._store.meter.take().reads == 0
    assert len(graph.commits.list()) == 1001


def test_pages_fill_up_and_then_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publisher, "RECENT_COMMITS_MAX", 3)
    monkeypatch.setattr(publisher, "LINEAGE_PAGE_ROWS_MAX", 7)
    uri = str(tmp_path / "graph.omni")
    graph = omnigraph.init(uri, SCHEMA)
    manifest = manifest_at(uri)
    made = [advance(manifest, PERSON).commit_id for _ in range(40)]

    sizes = [each.physical_rows for each in manifest.open(MAIN).table.fragments()[1:]]
    assert sizes[:-1] == [6] * (len(sizes) - 1)
    assert [each.commit_id for each in graph.commits.list()][:-1] == made[::-1]
    for commit_id in made:
        assert graph.commits.show(commit_id).commit_id == commit_id
        assert graph.snapshot(commit=commit_id).head.commit_id == commit_id


def test_init_costs_follow_the_number_of_types(tmp_path: Path) -> None:
    def files(types: int) -> int:
        root = tmp_path / f"graph-{types}"
        omnigraph.init(str(root), "\n".join(f"node T{n} {{ x: I64 }}" for n in range(types)))
        return sum(path.is_file() for path in root.rglob("*"))

    assert files(5) - files(3) == files(9) - files(7)
