"""The record of let-go commits: marks, confirmations and claims, and what readers are told."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Barrier, Thread

import pytest

from omnigraph import errors
from omnigraph.errors import CommitLetGoError, ErrorCode, FeedGapError, FormatError, StorageError
from omnigraph.failpoints import Failpoint, arm
from omnigraph.graph import Graph
from omnigraph.graph import open as open_graph
from omnigraph.maintenance.checking.report import Invariant
from omnigraph.manifest.layout import MANIFEST, RETENTION
from omnigraph.manifest.let_go import LetGoCommits, let_go_path
from omnigraph.model.commits import Commit
from omnigraph.model.ids import OperationId
from omnigraph.model.let_go import LetGo
from omnigraph.storage.store import Store
from tests.support.writers import furnished, insert

WHY = LetGo(datetime(2026, 6, 1, 12, 30, tzinfo=UTC), "keep_commits=2")
RUN, OTHER_RUN = OperationId("one"), OperationId("two")
REF = "01ARZ3NDEKTSV4RRFFQ69G5FAV"


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    graph = furnished(str(tmp_path / "graph.omni"))
    for name in ("eva", "fay", "gus"):
        insert(graph, name)
    return graph


def record_of(graph: Graph) -> LetGoCommits:
    return LetGoCommits(Store.open(graph.uri).objects)


def let_go(graph: Graph, commit: Commit) -> None:
    """Let a commit go as a cleanup does, and remove its version of the manifest."""
    record = record_of(graph)
    record.mark(RUN, {commit.ref: [commit.manifest_version]}, WHY)
    record.confirm(RUN, {})
    version = (1 << 64) - 1 - commit.manifest_version
    folder = MANIFEST if commit.ref is None else f"{MANIFEST}/tree/{commit.ref}"
    graph._store.objects.delete(f"{folder}/_versions/{version:020}.manifest")


def test_a_mark_counts_only_once_it_is_confirmed(graph):
    record = record_of(graph)
    record.mark(RUN, {None: [1, 2, 3, 7], REF: [4]}, WHY)
    assert record.find(None, 2) is None
    assert record.confirm(RUN, {None: [3]}) == {None: {1, 2, 7}, REF: {4}}
    assert [record.find(None, each) for each in (1, 2, 3, 7, 8)] == [WHY, WHY, None, WHY, None]
    assert record.find(REF, 4) == WHY
    assert record.confirm(RUN, {}) == {}


def test_runs_do_not_confirm_each_others_marks(graph):
    record = record_of(graph)
    record.mark(RUN, {None: [1, 2]}, WHY)
    record.mark(OTHER_RUN, {None: [2, 3]}, WHY)
    assert record.confirm(OTHER_RUN, {}) == {None: {2, 3}}
    assert record.find(None, 1) is None
    assert record.confirm(RUN, {None: [1]}) == {None: {2}}


def test_marks_of_a_killed_run_are_forgotten_in_time(graph):
    record = record_of(graph)
    record.mark(RUN, {None: [1, 2]}, WHY)
    record.forget_marks(WHY.at)
    assert record.confirm(RUN, {}) == {None: {1, 2}}
    record.mark(OTHER_RUN, {None: [5]}, WHY)
    record.forget_marks(WHY.at + timedelta(seconds=1))
    assert record.confirm(OTHER_RUN, {}) == {}
    assert record.find(None, 1) == WHY


def test_a_claim_takes_a_mark_back_and_refuses_what_was_confirmed(graph):
    record = record_of(graph)
    *_, second, first = graph.commits.list()
    versions = [first.manifest_version, second.manifest_version]
    record.mark(RUN, {None: versions}, WHY)
    record.claim(second)
    assert record.confirm(RUN, {}) == {None: {first.manifest_version}}
    record.claim(second)
    with pytest.raises(CommitLetGoError, match="keep_commits=2") as refused:
        record.claim(first)
    assert refused.value.code is ErrorCode.COMMIT_LET_GO
    assert refused.value.details["commit_id"] == first.commit_id


def test_concurrent_changes_of_the_record_are_all_kept(graph):
    barrier = Barrier(6)

    def work(number: int) -> None:
        barrier.wait()
        record_of(graph).mark(OperationId(f"run {number}"), {None: [number]}, WHY)

    threads = [Thread(target=work, args=(number,)) for number in range(6)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    marked = json.loads(Path(graph.uri, let_go_path(None)).read_text())["marked"]
    assert sorted(each["versions"] for each in marked) == [[[each, each]] for each in range(6)]


def test_every_way_to_read_a_let_go_commit_says_so(graph):
    tip, gone, *_ = graph.commits.list()
    let_go(graph, gone)
    reader = open_graph(graph.uri, read_only=True)
    query = "query q() { match { $p: Person } return { $p.name } }"
    reads = [
        lambda: reader.at(commit=gone.commit_id),
        lambda: reader.at(branch="main", version=gone.manifest_version),
        lambda: reader.query(query, commit=gone.commit_id),
        lambda: reader.diff(gone.commit_id, "main"),
        lambda: reader.entity("Person", "ada", at=gone.commit_id),
        lambda: open_graph(graph.uri).branches.create("late", commit=gone.commit_id),
        lambda: open_graph(graph.uri).tags.create("late", commit=gone.commit_id),
        lambda: open_graph(graph.uri).branches.create("late", version=gone.manifest_version),
    ]
    for read in reads:
        with pytest.raises(CommitLetGoError, match=r"expired on 2026-06-01 12:30") as told:
            read()
        assert told.value.details["rule"] == WHY.rule
    for read in (
        lambda: reader.changes(after=gone.commit_id),
        lambda: reader.commits.changes(tip.commit_id),
    ):
        with pytest.raises(FeedGapError, match="expired"):
            read()
    assert graph.branches.list() == ("main",)
    assert reader.commits.let_go(reader.commits.list()) == {gone.commit_id: WHY}
    assert reader.commits.show(gone.commit_id) == gone


def test_a_check_knows_let_go_commits_and_reports_others_that_are_missing(graph):
    _, gone, lost, *_ = graph.commits.list()
    let_go(graph, gone)
    report = graph.check(history=True)
    assert report.is_sound, report.findings
    assert [each.problem for each in report.notes if each.invariant is Invariant.PAST] == [
        "1 commit expired, and can no longer be read"
    ]
    version = (1 << 64) - 1 - lost.manifest_version
    graph._store.objects.delete(f"{MANIFEST}/_versions/{version:020}.manifest")
    report = graph.check(history=True)
    assert [each.subject for each in report.findings] == [f"commit {lost.commit_id}"]


def test_a_merge_whose_base_was_let_go_says_so(graph):
    base = graph.snapshot().head
    graph.branches.create("draft")
    insert(graph, "hal", branch="draft")
    insert(graph, "ida")
    let_go(graph, base)
    with pytest.raises(CommitLetGoError, match="what both branches come from") as refused:
        open_graph(graph.uri).merge("draft")
    assert refused.value.details["commit_id"] == base.commit_id
    assert "diff" in refused.value.hint


def test_a_branch_that_was_made_while_its_commit_was_let_go_is_withdrawn(graph):
    _, gone, *_ = graph.commits.list()
    with (
        arm(Failpoint.BRANCH_AFTER_NAME, lambda: let_go(graph, gone)),
        pytest.raises(CommitLetGoError),
    ):
        graph.branches.create("late", commit=gone.commit_id)
    assert graph.branches.list() == ("main",)


def test_a_tag_that_was_made_while_its_commit_was_let_go_is_withdrawn(graph):
    _, gone, *_ = graph.commits.list()
    with (
        arm(Failpoint.TAG_AFTER_PUT, lambda: let_go(graph, gone)),
        pytest.raises(CommitLetGoError),
    ):
        graph.tags.create("late", commit=gone.commit_id)
    assert graph.tags.list() == ()


def test_a_tag_at_a_marked_commit_keeps_it(graph):
    _, marked, *_ = graph.commits.list()
    record = record_of(graph)
    record.mark(RUN, {None: [marked.manifest_version]}, WHY)
    graph.tags.create("kept", commit=marked.commit_id)
    assert record.confirm(RUN, {}) == {}


def test_a_branch_that_is_made_at_a_marked_commit_keeps_it(graph):
    _, marked, *_ = graph.commits.list()
    record = record_of(graph)
    record.mark(RUN, {None: [marked.manifest_version]}, WHY)
    graph.branches.create("draft", commit=marked.commit_id)
    assert record.confirm(RUN, {}) == {}
    assert graph.snapshot(branch="draft").head == marked


def test_a_check_reports_a_branch_whose_creation_was_interrupted_and_lost_its_start(graph):
    _, gone, *_ = graph.commits.list()
    graph.branches.create("late", commit=gone.commit_id)
    let_go(graph, gone)
    (finding,) = graph.check(rows=False).findings
    assert finding.subject == "branch late"
    assert "branch delete late" in finding.next_step


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"", StorageError),
        (b"{}", StorageError),
        (b'{"format": 1, "let_go": [{"at": "x"}], "marked": []}', StorageError),
        (b'{"format": 2}', FormatError),
    ],
)
def test_a_record_that_cannot_be_read_is_refused_and_reported(graph, data, error):
    graph._store.objects.put(let_go_path(None), data)
    with pytest.raises(error):
        record_of(graph).find(None, 1)
    with pytest.raises(errors.OmnigraphError):
        record_of(graph).mark(RUN, {None: [1]}, WHY)
    (finding,) = graph.check(rows=False).findings
    assert finding.subject == f"{RETENTION}/main.json"
    graph._store.objects.put(f"{RETENTION}/notes.txt", b"mine")
    assert "notes.txt" in str(graph.check(rows=False).notes)
