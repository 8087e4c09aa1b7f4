"""What branches, merges and diffs ask of S3: by the delta, not by the tables."""

from dataclasses import replace

import pyarrow as pa
import pytest

import omnigraph
from omnigraph.clock import encode_ulid
from omnigraph.engine.local.execute import LocalEngine
from omnigraph.graph import Graph
from omnigraph.manifest.drafts import AddHistory, AddParent, CommitDraft
from omnigraph.manifest.publisher import LINEAGE_PAGE_ROWS_MAX, RECENT_COMMITS_MAX, publish
from omnigraph.merge.outcomes import Outcome
from omnigraph.model.commits import OperationKind
from omnigraph.model.ids import CommitId
from omnigraph.model.names import MAIN
from omnigraph.storage import lookups, staging
from omnigraph.transaction.writes import Stage
from tests.support.counting import Counted
from tests.support.graphs import add_rows
from tests.support.publishing import PERSON
from tests.support.writers import write

SCHEMA = """
node Person { name: String @key  age: I32? }
node City { name: String @key }
edge Knows: Person -> Person { since: Date? }
"""
CREATE_REQUESTS_MAX = 11


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


def costs_of_branches(root: str, asked: Counted, size: int) -> tuple[int, int]:
    """How many requests make a branch of main, and one of that branch."""
    graph = of_size(f"{root}/{size}", size)
    graph.branches.list()
    graph.snapshot()
    asked.take()
    graph.branches.create("draft")
    of_main = asked.take()
    graph.branches.create("on_draft", branch="draft")
    return of_main, asked.take()


def test_a_branch_costs_the_same_at_any_size(root: str, asked: Counted) -> None:
    costs = [costs_of_branches(root, asked, size) for size in (5_000, 200_000)]

    assert costs[0] == costs[1]
    of_main, of_branch = costs[0]
    assert of_main <= CREATE_REQUESTS_MAX
    # There is that branch to find, and once more to see that nobody has deleted it meanwhile.
    assert of_branch <= CREATE_REQUESTS_MAX


@pytest.mark.soak
def test_a_branch_costs_the_same_with_millions_of_rows(root: str, asked: Counted) -> None:
    few, many = (costs_of_branches(root, asked, size) for size in (5_000, 5_000_000))
    assert few == many


def changes(first: int, count: int) -> pa.Table:
    """Rows of those ids with another age."""
    rows = people(first, count)
    ages = pa.array([-1] * count, pa.int32())
    return rows.set_column(2, rows.schema.field(2), ages)


def upserting(rows: pa.Table) -> Stage:
    return lambda table: staging.stage_upsert(table, rows)


def appending(rows: pa.Table) -> Stage:
    return lambda table: staging.stage_append(table, rows)


DELTA = 1_000
LARGE = 250_000
"""Rows whose files are larger than what is fetched in one request."""


def diverged(root: str, size: int) -> Graph:
    """A draft and main that have both changed a thousand rows of a table, and added as many."""
    graph = of_size(root, size)
    graph.ensure_indices()
    graph.branches.create("draft")
    write(graph, {PERSON: upserting(changes(DELTA, DELTA))}, branch="draft")
    write(graph, {PERSON: appending(people(10**7, DELTA))}, branch="draft")
    write(graph, {PERSON: upserting(changes(3 * DELTA, DELTA))})
    write(graph, {PERSON: appending(people(2 * 10**7, DELTA))})
    # As whoever merges a second time, or after a diff, finds it.
    graph.merge("draft", dry_run=True)
    return graph


def cost_of_merge(root: str, asked: Counted, size: int) -> int:
    """How many requests a merge makes."""
    graph = diverged(root, size)
    asked.take()
    outcome = graph.merge("draft")
    requests = asked.take()
    assert outcome.outcome is Outcome.MERGED
    counts = outcome.changes["Person"]
    assert (counts.inserted, counts.updated, counts.deleted) == (DELTA, DELTA, 0)
    assert graph.snapshot().pin(PERSON).row_count == size + 2 * DELTA
    return requests


def costs_are_alike(costs: list[int]) -> bool:
    """Whether the larger ones, which come last, cost no more than the first."""
    return max(costs) <= 1.2 * costs[0]


def test_merging_a_delta_costs_the_same_at_any_size(root: str, asked: Counted) -> None:
    costs = [cost_of_merge(f"{root}/{size}", asked, size) for size in (50_000, 500_000)]
    assert costs_are_alike(costs), costs


@pytest.mark.soak
def test_merging_a_delta_costs_the_same_in_millions(root: str, asked: Counted) -> None:
    costs = [cost_of_merge(f"{root}/{size}", asked, size) for size in (50_000, 5_000_000)]
    assert costs_are_alike(costs), costs


def test_a_merge_reads_no_file_that_both_sides_share(root: str, asked: Counted) -> None:
    graph = of_size(root, 1_000)
    for number in range(1, 5):
        add_rows(graph, {"Person": people(number * 10**6, 1_000)})
    graph.ensure_indices()
    shared = {
        file.path
        for fragment in graph._store.tables.open_latest(
            graph.snapshot().pin(PERSON).location, ref=None
        ).fragments()[1:]
        for file in fragment.files
    }
    graph.branches.create("draft")
    write(graph, {PERSON: upserting(changes(0, 10))}, branch="draft")
    write(graph, {PERSON: appending(people(10**7, DELTA))}, branch="draft")
    write(graph, {PERSON: upserting(changes(100, 10))})
    fresh = omnigraph.open(root)
    asked.take()
    fresh.merge("draft")

    read = {path for path in shared for each in asked.requests if each.endswith(path)}
    assert read == set()
    assert fresh.snapshot().pin(PERSON).row_count == 6_000


def test_a_fast_forward_of_new_rows_joins_nothing_and_looks_nothing_up(
    root: str, asked: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = of_size(root, 1_000)
    graph.branches.create("draft")
    write(graph, {PERSON: appending(people(10**7, DELTA))}, branch="draft")
    write(graph, {PERSON: appending(people(2 * 10**7, DELTA))}, branch="draft")

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError

    monkeypatch.setattr(LocalEngine, "run", refuse)
    monkeypatch.setattr(lookups, "find", refuse)
    asked.take()
    outcome = graph.merge("draft")

    assert outcome.outcome is Outcome.FAST_FORWARD
    assert outcome.changes["Person"].inserted == 2 * DELTA
    assert graph.snapshot().pin(PERSON).row_count == 1_000 + 2 * DELTA


def test_a_diff_costs_the_same_at_any_size(root: str, asked: Counted) -> None:
    costs = []
    for size in (LARGE, 2 * LARGE):
        graph = diverged(f"{root}/{size}", size)
        graph.diff("main", "draft")
        asked.take()
        assert graph.diff("main", "draft").counts["Person"].updated == 2 * DELTA
        costs.append(asked.take())
    assert costs_are_alike(costs), costs


def with_history(graph: Graph, *, commits: int, branches: int) -> Graph:
    """The graph after so many commits, and with so many branches beside those that are used."""
    chain = [graph.snapshot().head]
    for number in range(commits):
        before = chain[-1]
        assert before.generation is not None
        chain.append(
            replace(
                before,
                commit_id=CommitId(encode_ulid(number)),
                parent=before.commit_id,
                manifest_version=number + 10**6,
                generation=before.generation + 1,
            )
        )
    for start in range(1, len(chain), LINEAGE_PAGE_ROWS_MAX - RECENT_COMMITS_MAX):
        page = chain[start : start + LINEAGE_PAGE_ROWS_MAX - RECENT_COMMITS_MAX]
        publication = CommitDraft(
            MAIN,
            CommitId(graph._clock.ulid()),
            OperationKind.MERGE,
            changes=(AddParent(page[-1].commit_id), AddHistory(tuple(page))),
        )
        publish(graph._manifest, graph._clock, publication)
    for number in range(branches):
        graph.branches.create(f"beside/{number}")
    return graph


def test_a_merge_base_costs_the_same_after_10000_commits_and_beside_100_branches(
    root: str, asked: Counted
) -> None:
    costs, lookups_of_main = [], []
    for commits, branches in ((10, 1), (10_000, 100)):
        graph = of_size(f"{root}/{commits}", 100)
        graph.branches.create("old")
        with_history(graph, commits=commits, branches=branches)
        graph.branches.create("draft")
        write(graph, {PERSON: appending(people(10**7, 1))}, branch="old")
        write(graph, {PERSON: appending(people(2 * 10**7, 1))}, branch="draft")
        # A branch from before all of that history lands: no short cut, and nothing more to read.
        graph.merge("old")
        head = graph.snapshot().head.commit_id
        fresh = omnigraph.open(graph.uri)
        pages = {
            file.path
            for fragment in fresh._manifest.open(MAIN).table.fragments()[1:-1]
            for file in fragment.files
        }
        fresh.merge("draft", dry_run=True)
        asked.take()
        assert fresh.merge("draft", dry_run=True).outcome is Outcome.MERGED
        read = [each for each in asked.requests if any(each.endswith(path) for path in pages)]
        assert read == []
        costs.append(asked.take())
        fresh.at(commit=head)
        lookups_of_main.append(asked.take())
    assert costs_are_alike(costs), costs
    assert costs_are_alike(lookups_of_main), lookups_of_main


@pytest.mark.parametrize(
    "branches",
    [
        pytest.param(["main"], id="main", marks=pytest.mark.soak),
        pytest.param(["draft"], id="draft", marks=pytest.mark.soak),
        pytest.param(["main", "draft"], id="both"),
    ],
)
def test_merging_across_a_compaction_costs_the_same_at_any_size(
    root: str, asked: Counted, branches: list[str]
) -> None:
    costs, sizes = [], []
    for size in (LARGE, 2 * LARGE):
        graph = diverged(f"{root}/{size}", size)
        for branch in branches:
            assert graph.optimize(branch=branch, types="Person").commit_id is not None
        fresh = omnigraph.open(graph.uri)
        asked.take()
        # Nothing is known of any file yet.
        assert fresh.merge("draft", dry_run=True).changes["Person"].updated == DELTA
        sizes.append(asked.byte_count)
        costs.append(asked.take())
        assert fresh.merge("draft").changes["Person"].updated == DELTA
        sizes.append(asked.byte_count)
        costs.append(asked.take())
    assert costs_are_alike(costs[::2]), costs
    assert costs_are_alike(costs[1::2]), costs
    # Of twice as many rows; footers of files are a little longer, and read in larger blocks.
    assert all(large < 1.5 * small for small, large in zip(sizes[:2], sizes[2:], strict=True)), (
        sizes
    )


def test_nothing_is_read_of_a_table_that_was_only_compacted(root: str, asked: Counted) -> None:
    graph = of_size(root, 20_000)
    write(graph, {PERSON: upserting(changes(DELTA, DELTA))})
    before = graph.snapshot().head.commit_id
    after = graph.optimize().commit_id
    assert after is not None
    location = graph.snapshot().pin(PERSON).location
    for one, other in ((before, after), (after, before)):
        fresh = omnigraph.open(root)
        asked.take()
        assert fresh.diff(one, other).counts == {}
        assert not any(f"{location}/data/" in each for each in asked.requests)
    fresh = omnigraph.open(root)
    asked.take()
    assert fresh.changes(after=before).commits == ()
    assert fresh.commits.changes(after).counts == {}
    assert not any(location in each for each in asked.requests)
