"""Letting commits go: what is kept reads as before, the rest says so, and its files are removed."""

import os
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

import omnigraph
from omnigraph.clock import SystemClock
from omnigraph.errors import (
    CommitLetGoError,
    ConflictError,
    FeedGapError,
    InvalidParameterError,
    RecoveryNeededError,
    StorageError,
)
from omnigraph.failpoints import Failpoint
from omnigraph.graph import Graph
from omnigraph.maintenance.cleanup.results import CleanupResult
from omnigraph.manifest.layout import MANIFEST, RECOVERY, RETENTION, SCHEMAS
from omnigraph.storage.objects import Objects
from tests.support.clocks import LaterClock
from tests.support.crashes import (
    Cut,
    as_other_machine,
    assert_next_writes_work,
    at_rest,
    copied,
    cut_off,
    sleeping_at,
)
from tests.support.publishing import CITY
from tests.support.retention import LET_GO, digest, digests, tree, unnamed_files
from tests.support.writers import found_city, furnished, insert

DAY = 24 * 3600.0
MUCH_LATER = 10 * DAY


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> str:
    graph = furnished(str(tmp_path_factory.mktemp("base") / "graph.omni"))
    graph.settings.set("maintenance.optimize", "off")
    for number in range(6):
        insert(graph, f"p{number}")
    return graph.uri


@pytest.fixture
def graph(base: str, tmp_path: Path) -> Graph:
    return omnigraph.open(copied(base, tmp_path / "graph.omni"))


def later(graph: Graph, seconds: float = MUCH_LATER) -> Graph:
    """A handle of somebody who looks so many seconds later."""
    return omnigraph.open(graph.uri, clock=LaterClock(seconds))


def clean(graph: Graph, **rules: Any) -> CleanupResult:
    """Preview and remove, and assert that both are the same, in the report and on the disk."""
    handle = later(graph)
    before = tree(graph.uri)
    planned = handle.cleanup(**rules, dry_run=True)
    assert tree(graph.uri) == before
    done = handle.cleanup(**rules)
    assert done == planned
    gone = before.keys() - tree(graph.uri).keys()
    size = sum(before[path] for path in gone if not path.startswith("__retired"))
    assert size == done.size
    assert done.troubles == ()
    return done


def kept(graph: Graph) -> list[str]:
    """The commits of main that can be read, newest first."""
    found = digests(graph.uri)
    return [each.commit_id for each in graph.commits.list() if found[each.commit_id] != LET_GO]


def ids(graph: Graph) -> list[str]:
    return [commit.commit_id for commit in graph.commits.list()]


def test_what_is_kept_reads_as_before_and_the_rest_says_so(graph):
    before, every = digests(graph.uri), ids(graph)
    done = clean(graph, keep_commits=3)
    assert [each.commit_id for each in done.commits] == every[3:]
    assert done.kept == 3
    after = digests(graph.uri)
    assert after == {id_: before[id_] if id_ in every[:3] else LET_GO for id_ in every}
    assert unnamed_files(graph.uri) == set()
    assert clean(graph, keep_commits=3).is_empty
    assert clean(graph).is_empty
    at_rest(graph.uri, rows=True)
    assert_next_writes_work(graph.uri)


def test_without_rules_every_commit_is_kept(graph):
    before = digests(graph.uri)
    assert clean(graph).is_empty
    assert digests(graph.uri) == before


def test_commits_younger_than_an_age_are_kept(graph):
    assert len(clean(graph, older_than="11d").commits) == 0
    assert len(clean(graph, older_than="9d").commits) == 7
    assert kept(graph) == ids(graph)[:1]


def test_settings_that_somebody_set_are_the_rules_of_a_cleanup_without_any(graph):
    assert clean(graph).is_empty
    graph.settings.set("maintenance.keep_commits", 2)
    assert clean(graph).is_empty, "for 30 days, which is the default, commits are kept, too"
    graph.settings.set("maintenance.keep_days", 7)
    assert clean(graph, keep_all=True).is_empty
    done = clean(graph)
    assert (done.kept, done.rules) == (2, "keep_commits=2, older_than=7d")


def test_a_commit_is_kept_for_the_grace_after_it_stopped_being_the_newest(graph):
    hour = later(graph, 3000.0)
    assert hour.cleanup(keep_commits=1, dry_run=True).commits == ()
    assert len(hour.cleanup(keep_commits=1, grace="30m", dry_run=True).commits) == 7


def test_a_reader_that_holds_a_kept_snapshot_reads_on(graph):
    snapshot = graph.snapshot()
    old = graph.at(commit=snapshot.head.commit_id)
    insert(graph, "newer")
    before = digest(old, snapshot.head.commit_id)
    later(graph, 3000.0).cleanup(keep_commits=1)
    assert digest(old, snapshot.head.commit_id) == before
    assert old.entity("Person", "p5") is not None


def test_a_reader_whose_commit_is_let_go_under_it_is_told_so(graph):
    gone = ids(graph)[3]
    reader = graph.at(commit=gone)
    query = "query q() { match { $p: Person } return { $p.name } }"
    clean(graph, keep_commits=1)
    with pytest.raises(CommitLetGoError, match=gone):
        reader.query(query)
    with pytest.raises(CommitLetGoError):
        reader.entity("Person", "ada")


def test_a_handle_that_had_read_a_commit_is_told_that_it_was_let_go(graph):
    gone = graph.commits.list()[3]
    version = gone.manifest_version
    graph._manifest.at(gone)
    clean(graph, keep_commits=1)
    # The state is forgotten before the open version is: there are fewer places for states.
    graph._manifest._states.clear()
    with pytest.raises(CommitLetGoError, match=gone.commit_id):
        graph.snapshot(commit=gone.commit_id)
    with pytest.raises(CommitLetGoError, match=f"version {version} of branch main"):
        graph.snapshot(version=version)


def test_the_start_of_a_branch_that_was_just_deleted_is_kept_for_its_readers(graph):
    start = ids(graph)[4]
    graph.branches.create("draft", commit=start)
    day = later(graph, DAY)
    reader = day.at(branch="draft")
    before = digest(reader, start)
    day.branches.delete("draft")
    later(graph, DAY + 60).cleanup(keep_commits=1)
    assert digests(graph.uri)[start] == before
    clean(graph, keep_commits=1)
    assert digests(graph.uri)[start] == LET_GO


def test_commits_that_nobody_can_name_are_not_listed_as_let_go(graph):
    graph.branches.create("draft")
    insert(graph, "eva", branch="draft")
    insert(graph, "fay", branch="draft")
    listed = set(ids(graph))
    day = later(graph, DAY)
    day.branches.delete("draft")
    done = later(graph, DAY + 60).cleanup(keep_commits=1, dry_run=True)
    assert done.commits
    assert {commit.commit_id for commit in done.commits} <= listed
    assert {commit.commit_id for commit in clean(graph, keep_commits=1).commits} <= listed
    assert unnamed_files(graph.uri) == set()


def test_what_a_deleted_branch_wrote_after_it_was_merged_goes_before_the_branch(graph):
    graph.branches.create("draft")
    insert(graph, "eva", branch="draft")
    graph.merge("draft")
    found_city(graph, "oslo", branch="draft")
    city = graph.snapshot(branch="draft").pin(CITY)
    assert city.ref is not None
    graph.branches.delete("draft")
    before = digests(graph.uri)

    clean(graph)

    left = [path for path in tree(graph.uri) if path.startswith(f"{city.location}/tree/{city.ref}")]
    assert [path for path in left if path.endswith((".lance", ".manifest", ".txn"))] == []
    assert digests(graph.uri) == before
    assert clean(graph).is_empty
    clean(graph, keep_commits=1)
    clean(graph, keep_commits=1)
    assert not [path for path in tree(graph.uri) if "/tree/" in path]
    at_rest(graph.uri)


def test_tags_branches_and_their_bases_keep_what_they_need(graph):
    every = ids(graph)
    graph.tags.create("release", commit=every[4])
    graph.branches.create("old", commit=every[5])
    graph.branches.create("draft", commit=every[3])
    insert(graph, "eva", branch="draft")
    before = digests(graph.uri)
    clean(graph, keep_commits=1)
    after = digests(graph.uri)
    assert {id_ for id_ in every if after[id_] != LET_GO} == {
        every[place] for place in (0, 3, 4, 5)
    }
    assert all(after[id_] in (before[id_], LET_GO) for id_ in before)
    assert unnamed_files(graph.uri) == set()
    graph.merge("draft")
    insert(graph, "fay", branch="old")
    graph.merge("old")
    assert {"eva", "fay"} <= {row["id"] for row in _people(graph)}
    graph.tags.delete("release")
    graph.branches.delete("old")
    graph.branches.delete("draft")
    clean(graph, keep_commits=1)
    assert len(kept(graph)) == 1
    assert unnamed_files(graph.uri) == set()
    assert graph._store.refs.list(MANIFEST) == ()
    at_rest(graph.uri)


def _people(graph: Graph) -> list[dict[str, Any]]:
    snapshot = graph.snapshot()
    (pin,) = (pin for pin in snapshot.pins.values() if pin.key.type_name == "Person")
    rows: list[dict[str, Any]] = graph._store.tables.open_pin(pin).read().to_pylist()
    return rows


def test_a_merged_branch_that_was_deleted_goes_with_its_last_commit(graph):
    graph.branches.create("draft")
    insert(graph, "eva", branch="draft")
    insert(graph, "fay", branch="draft")
    graph.merge("draft", delete_branch=True)
    for number in range(3):
        insert(graph, f"q{number}")
    assert clean(graph, older_than="11d").refs == ()
    assert len(clean(graph, keep_commits=2).refs) == 2
    assert graph._store.refs.list(MANIFEST) == ()
    assert unnamed_files(graph.uri) == set()
    at_rest(graph.uri)


def test_a_dropped_type_goes_with_the_last_commit_that_reads_it(graph):
    old_schemas = set(graph._store.objects.list(SCHEMAS))
    tables = {pin.key.type_name: pin.location for pin in graph.snapshot().pins.values()}
    graph.schema.apply("node Person { name: String @key }")
    (new_schema,) = set(graph._store.objects.list(SCHEMAS)) - old_schemas
    insert(graph, "eva")
    assert clean(graph, keep_commits=3).tables == ()
    done = clean(graph, keep_commits=2)
    assert set(done.tables) == {tables["City"], tables["Knows"]}
    assert set(done.schemas) == old_schemas
    assert graph._store.objects.list(SCHEMAS) == (new_schema,)
    (revision,) = graph.schema.history()
    assert revision.plan is None
    assert unnamed_files(graph.uri) == set()
    at_rest(graph.uri, rows=True)
    assert_next_writes_work(graph.uri)


def test_a_schema_that_comes_back_is_stored_again(graph):
    first = graph.schema.show()
    graph.schema.apply("node Person { name: String @key }")
    insert(graph, "eva")
    clean(graph, keep_commits=2)
    graph.schema.apply(first.text)
    assert graph.schema.show().digest == first.digest
    at_rest(graph.uri, rows=True)


@pytest.mark.parametrize(
    "point", [Failpoint.WRITE_AFTER_PLAN, Failpoint.WRITE_AFTER_STAGE, Failpoint.WRITE_AFTER_CHECK]
)
def test_a_schema_that_comes_back_while_it_is_removed_stays(graph, point):
    first = graph.schema.show()
    graph.schema.apply("node Person { name: String @key }")
    insert(graph, "eva")
    old = SystemClock().now().timestamp() - MUCH_LATER
    os.utime(Path(graph.uri, SCHEMAS, f"{first.digest}.json"), (old, old))
    with sleeping_at(Cut(point), lambda: later(graph, 3 * 3600.0).cleanup(keep_commits=2)):
        graph.schema.apply(first.text)
    assert graph.schema.show().digest == first.digest
    at_rest(graph.uri, rows=True)


def test_files_of_killed_writes_and_previews_go_once_they_are_old(graph):
    for point in (Failpoint.WRITE_AFTER_STAGE, Failpoint.WRITE_AFTER_EACH_APPLY):
        cut_off(Cut(point), lambda: insert(graph, "eva"))
    conflicting = "node Person { name: String @key  age: String }  node City { name: String @key }"
    with suppress(omnigraph.errors.OmnigraphError):
        graph.schema.apply(conflicting, convert="Person.age")
    graph = omnigraph.open(graph.uri)
    assert unnamed_files(graph.uri)
    assert later(graph, DAY).cleanup(dry_run=True).size < 2000
    clean(graph)
    assert unnamed_files(graph.uri) == set()
    at_rest(graph.uri)


def test_indexes_that_only_a_branch_has_left_are_kept_for_it(graph):
    graph.ensure_indices()
    graph.branches.create("draft")
    insert(graph, "eva", branch="draft")
    graph.schema.apply(
        "node Person { name: String @key  years: I64? }  node City { name: String @key }"
    )
    graph.optimize()
    insert(graph, "fay")
    before = digests(graph.uri)
    clean(graph, keep_commits=1)
    assert unnamed_files(graph.uri) == set()
    handle = omnigraph.open(graph.uri)
    assert handle.entity("Person", "eva", at="draft") is not None
    assert digests(graph.uri)[handle.snapshot(branch="draft").head.commit_id] in before.values()
    at_rest(graph.uri)


def test_files_of_main_that_only_a_branch_has_left_are_kept_for_it(graph):
    graph.branches.create("draft")
    insert(graph, "eva", branch="draft")
    insert(graph, "fay")
    # From now on the merge base is a commit of main whose tables have none of the old files.
    graph.optimize()
    graph.merge("main", into="draft")
    insert(graph, "gil")
    graph.optimize()
    draft = graph.at(branch="draft")
    before = digest(draft, draft.snapshot().head.commit_id)

    assert len(clean(graph, keep_commits=1).commits) > 1

    assert digest(omnigraph.open(graph.uri), draft.snapshot().head.commit_id) == before
    at_rest(graph.uri)


def test_large_values_go_with_their_rows_and_stay_with_them(tmp_path):
    graph = omnigraph.init(tmp_path / "blobs.omni", "node Doc { name: String @key  body: Blob? }")
    for name, letter in (("a", b"x"), ("b", b"y")):
        graph.load({"Doc": [{"name": name, "body": letter * 300_000}]}, index=False)
    graph.load({"Doc": [{"name": "b", "body": b"z" * 300_000}]}, mode="merge", index=False)
    insert_ids = [commit.commit_id for commit in graph.commits.list()]
    before = digests(graph.uri)
    assert len([path for path in tree(graph.uri) if path.endswith(".blob")]) == 3
    clean(graph, keep_commits=1)
    assert len([path for path in tree(graph.uri) if path.endswith(".blob")]) == 2
    assert digests(graph.uri)[insert_ids[0]] == before[insert_ids[0]]


def test_the_feed_has_a_gap_where_commits_were_let_go(graph):
    cursor = ids(graph)[3]
    newest = graph.baseline()
    clean(graph, keep_commits=2)
    reader = omnigraph.open(graph.uri, read_only=True)
    with pytest.raises(FeedGapError, match="expired") as gap:
        reader.changes(after=cursor)
    assert "baseline" in gap.value.hint
    assert reader.changes(after=newest).is_newest
    assert len(reader.changes(after=ids(graph)[1]).commits) == 1


POINTS = [point for point in Failpoint if point.startswith("cleanup.")]
NEEDS = {
    "branch": lambda graph, commit: graph.branches.create("late", commit=commit),
    "tag": lambda graph, commit: graph.tags.create("late", commit=commit),
}


@pytest.mark.parametrize("need", NEEDS)
@pytest.mark.parametrize("point", POINTS)
def test_who_needs_a_commit_while_it_is_let_go_gets_it_whole_or_is_refused(graph, need, point):
    wanted = ids(graph)[3]
    before = digests(graph.uri)
    outcome: list[bool] = []

    def create() -> None:
        other = omnigraph.open(graph.uri)
        try:
            NEEDS[need](other, wanted)
        except CommitLetGoError:
            outcome.append(False)
        else:
            outcome.append(True)

    with sleeping_at(Cut(point), create):
        later(graph).cleanup(keep_commits=1)
    if not outcome:
        create()
    after = digests(graph.uri)
    assert after[wanted] == (before[wanted] if outcome[0] else LET_GO)
    names = omnigraph.open(graph.uri)
    assert (
        "late" in (*names.branches.list(), *(tag.name for tag in names.tags.list()))
    ) == outcome[0]
    clean(graph, keep_commits=1)
    assert digests(graph.uri)[wanted] == after[wanted]
    assert unnamed_files(graph.uri) == set()
    at_rest(graph.uri)


@pytest.mark.parametrize("need", NEEDS)
@pytest.mark.parametrize("place", ["branch.after_ref", "branch.after_name", "tag.after_put"])
def test_a_creator_that_sleeps_while_its_commit_is_let_go_is_refused(graph, need, place):
    if not place.startswith(need):
        pytest.skip("this creator does not pass there")
    wanted = ids(graph)[3]
    before = digests(graph.uri)[wanted]
    with sleeping_at(Cut(Failpoint(place)), lambda: later(graph).cleanup(keep_commits=1)):
        try:
            NEEDS[need](graph, wanted)
        except CommitLetGoError:
            expected = LET_GO
        else:
            expected = before
    assert digests(graph.uri)[wanted] == expected
    clean(graph, keep_commits=1)
    assert digests(graph.uri)[wanted] == expected
    at_rest(graph.uri)


@pytest.mark.parametrize("point", [each for each in POINTS if "each" not in each])
def test_two_cleanups_at_once_by_different_rules_agree(graph, point):
    before, every = digests(graph.uri), ids(graph)
    other = lambda: later(graph).cleanup(keep_commits=4)  # noqa: E731
    with sleeping_at(Cut(point), other):
        later(graph).cleanup(keep_commits=2)
    after = digests(graph.uri)
    assert after == {id_: before[id_] if id_ in every[:2] else LET_GO for id_ in every}
    clean(graph, keep_commits=2)
    assert unnamed_files(graph.uri) == set()
    at_rest(graph.uri)


@pytest.mark.parametrize("point", [each for each in POINTS if "each" not in each])
def test_a_merge_or_a_write_beside_a_cleanup_is_not_disturbed(graph, point):
    graph.branches.create("draft", commit=ids(graph)[2])
    insert(graph, "eva", branch="draft")

    def work() -> None:
        other = omnigraph.open(graph.uri)
        insert(other, "fay")
        other.merge("draft")
        other.optimize()

    with sleeping_at(Cut(point), work):
        later(graph).cleanup(keep_commits=1)
    assert {"eva", "fay"} <= {row["id"] for row in _people(omnigraph.open(graph.uri))}
    at_rest(graph.uri, rows=True)
    assert_next_writes_work(graph.uri)


@pytest.mark.parametrize(
    "point",
    [
        Failpoint.WRITE_AFTER_PLAN,
        Failpoint.WRITE_AFTER_STAGE,
        Failpoint.WRITE_AFTER_CHECK,
        Failpoint.WRITE_AFTER_EACH_APPLY,
        Failpoint.WRITE_AFTER_PUBLISH,
        Failpoint.PUBLISH_AFTER_STAGE,
    ],
)
def test_a_cleanup_in_the_middle_of_a_write_takes_nothing_of_it(graph, point):
    with sleeping_at(Cut(point), lambda: later(graph, 2 * 3600.0).cleanup(keep_commits=1)):
        insert(graph, "eva")
    assert "eva" in {row["id"] for row in _people(graph)}
    at_rest(graph.uri, rows=True)
    clean(graph, keep_commits=1)
    assert_next_writes_work(graph.uri)


def test_a_handle_that_saw_an_old_version_last_still_finds_the_newest(graph):
    stale = omnigraph.open(graph.uri)
    stale.snapshot()
    graph.tags.create("kept")
    for number in range(4):
        insert(graph, f"q{number}")
    clean(graph, keep_commits=1)
    assert stale.snapshot() == omnigraph.open(graph.uri).snapshot()
    insert(stale, "eva")
    assert "eva" in {row["id"] for row in _people(omnigraph.open(graph.uri))}
    at_rest(graph.uri)


def test_a_publish_that_slept_while_its_version_number_was_freed_does_not_land_unseen(
    graph, monkeypatch
):
    class Slow(LaterClock):
        def sleep_over(self) -> None:
            self._ahead += timedelta(days=5)

    clock = Slow(0.0)
    writer = omnigraph.open(graph.uri, clock=clock)

    def meanwhile() -> None:
        other = omnigraph.open(graph.uri, clock=LaterClock(DAY))
        for number in range(4):
            insert(other, f"q{number}")
        later(graph).cleanup(keep_commits=1)
        clock.sleep_over()

    has_landed = True
    # On this machine the others would wait for the turn of the writer that sleeps.
    with (
        as_other_machine(monkeypatch),
        sleeping_at(Cut(Failpoint.PUBLISH_AFTER_STAGE), meanwhile),
    ):
        try:
            insert(writer, "late")
        except ConflictError:
            has_landed = False
    people = {row["id"] for row in _people(omnigraph.open(graph.uri))}
    assert ("late" in people) == has_landed
    assert {"q0", "q1", "q2", "q3"} <= people
    at_rest(graph.uri)


def test_a_branch_that_cannot_be_read_keeps_everything(graph):
    graph.branches.create("draft")
    insert(graph, "eva", branch="draft")
    before = digests(graph.uri)
    stored = graph._store.objects.read("__branches/draft.json")
    assert stored is not None
    graph._store.objects.put("__branches/draft.json", b"?")
    done = later(graph).cleanup(keep_commits=1)
    assert done.commits == ()
    assert done.versions == ()
    assert done.troubles
    graph._store.objects.put("__branches/draft.json", stored.data)
    assert digests(graph.uri) == before


def test_a_sidecar_that_cannot_be_read_keeps_everything(graph):
    graph._store.objects.put(f"{RECOVERY}/{LaterClock(0).ulid()}.json", b"?")
    before = tree(graph.uri)
    with pytest.raises(RecoveryNeededError):
        graph.cleanup(keep_commits=1)
    assert tree(graph.uri) == before


def test_a_record_that_cannot_be_read_keeps_everything(graph):
    clean(graph, keep_commits=3)
    graph._store.objects.put(f"{RETENTION}/main.json", b"?")
    before = tree(graph.uri)
    for keep_commits in (1, None):
        with pytest.raises(StorageError, match="record of commits"):
            later(graph).cleanup(keep_commits=keep_commits)
    assert tree(graph.uri) == before


def test_a_kept_commit_that_is_lost_stops_a_cleanup(graph):
    lost = graph.commits.list()[1]
    version = (1 << 64) - 1 - lost.manifest_version
    Path(graph.uri, MANIFEST, "_versions", f"{version:020}.manifest").unlink()
    before = tree(graph.uri)
    with pytest.raises(StorageError, match="kept cannot be read"):
        later(graph).cleanup(keep_commits=2)
    assert tree(graph.uri) == before


def test_a_failure_with_one_table_is_reported_and_the_next_cleanup_goes_on(graph, monkeypatch):
    (person,) = (
        pin.location for pin in graph.snapshot().pins.values() if pin.key.type_name == "Person"
    )
    delete_all = Objects.delete_all

    def failing(objects: Objects, paths: list[str]) -> None:
        if any(path.startswith(f"{person}/data") for path in paths):
            message = "out of order"
            raise StorageError(message)
        delete_all(objects, paths)

    for number in range(3):
        insert(graph, "ada") if number else graph.optimize()
    with monkeypatch.context() as patch:
        patch.setattr(Objects, "delete_all", failing)
        done = later(graph).cleanup(keep_commits=1)
    assert [(each.location, each.message) for each in done.troubles] == [(person, "out of order")]
    at_rest(graph.uri)
    clean(graph, keep_commits=1)
    assert unnamed_files(graph.uri) == set()


@pytest.mark.parametrize(
    "rules",
    [
        {"keep_commits": 0},
        {"keep_commits": -1},
        {"older_than": "soon"},
        {"grace": "0m"},
        {"keep_commits": 1, "keep_all": True},
    ],
    ids=str,
)
def test_rules_that_make_no_sense_remove_nothing(graph, rules):
    before = tree(graph.uri)
    with pytest.raises(InvalidParameterError):
        graph.cleanup(**rules)
    assert tree(graph.uri) == before


def test_a_read_only_handle_previews_and_does_not_remove(graph):
    reader = omnigraph.open(graph.uri, read_only=True)
    reader.cleanup(keep_commits=1, dry_run=True)
    with pytest.raises(omnigraph.NotAllowedError):
        reader.cleanup(keep_commits=1)


def test_files_of_others_in_the_graphs_folders_stay(graph):
    (person,) = (
        pin.location for pin in graph.snapshot().pins.values() if pin.key.type_name == "Person"
    )
    for path in (f"{person}/notes.txt", f"{person}/data/notes.txt", f"{MANIFEST}/data/a.csv"):
        graph._store.objects.put(path, b"mine")
    clean(graph, keep_commits=1)
    notes = [path for path in tree(graph.uri) if path.endswith((".txt", ".csv"))]
    assert len(notes) == 3


def test_writers_and_readers_go_on_beside_a_cleanup(graph):
    stop: list[bool] = []
    failures: list[BaseException] = []

    def work() -> None:
        handle = omnigraph.open(graph.uri)
        try:
            for number in range(40):
                insert(handle, f"w{number}")
                handle.entity("Person", f"w{number}")
        except BaseException as failure:  # noqa: BLE001  # the thread's failure is the test's
            failures.append(failure)
        finally:
            stop.append(True)

    thread = Thread(target=work)
    thread.start()
    while not stop:
        later(graph, 3 * 3600.0).cleanup(keep_commits=1, grace="2h")
    thread.join()
    assert failures == []
    clean(graph, keep_commits=1)
    assert unnamed_files(graph.uri) == set()
    assert len(_people(omnigraph.open(graph.uri))) == 48


def test_commits_on_s3_are_let_go_as_on_a_disk(s3_bucket):
    graph = furnished(f"s3://{s3_bucket}/graph.omni")
    for number in range(3):
        insert(graph, f"p{number}")
    graph.branches.create("draft")
    insert(graph, "eva", branch="draft")
    before, every = digests(graph.uri), ids(graph)
    handle = later(graph)
    planned = handle.cleanup(keep_commits=2, dry_run=True)
    listed = set(graph._store.objects.list(""))
    assert handle.cleanup(keep_commits=2) == planned
    gone = listed - set(graph._store.objects.list(""))
    assert len(gone) == sum(each.versions + each.files for each in planned.versions)
    after = digests(graph.uri)
    assert {id_ for id_ in after if after[id_] == LET_GO} == set(every[2:])
    assert all(after[id_] in (before[id_], LET_GO) for id_ in before)
    at_rest(graph.uri)
    insert(graph, "last")
    assert later(graph).cleanup(keep_commits=9).commits == ()
