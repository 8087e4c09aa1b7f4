"""Cleanup: what nothing names goes, and nothing else."""

import json
import multiprocessing
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

import omnigraph.errors
from omnigraph.branching import lifecycle
from omnigraph.choices import TableKind
from omnigraph.clock import SystemClock
from omnigraph.errors import RecoveryNeededError, StorageError
from omnigraph.failpoints import Failpoint
from omnigraph.graph import Graph
from omnigraph.maintenance.cleanup import refs as ref_cleanup
from omnigraph.maintenance.cleanup import run
from omnigraph.maintenance.cleanup.ages import NAMELESS_AGE_MIN, STAGED_AGE_MIN
from omnigraph.maintenance.cleanup.refs import RefCleanup, clean_refs
from omnigraph.maintenance.cleanup.results import CleanupResult
from omnigraph.maintenance.retention import RetentionRules
from omnigraph.manifest.layout import MANIFEST, RECOVERY
from omnigraph.model.names import MAIN
from omnigraph.recovery.owners import Owner, this_process
from omnigraph.recovery.scratch import SCRATCH, find_scratch, hold_scratch, scratch_folder
from omnigraph.storage.objects import Objects
from omnigraph.storage.refs import Refs
from tests.support.clocks import LaterClock
from tests.support.crashes import (
    Cut,
    assert_next_writes_work,
    at_rest,
    cut_off,
    past_rows,
    picture,
    sleeping_at,
)
from tests.support.publishing import PERSON
from tests.support.writers import RESHAPED, furnished, insert

NOW = timedelta()
CLOCK = SystemClock()
LATER = 10 * 24 * 3600.0


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return furnished(str(tmp_path / "graph.omni"))


def clean(graph: Graph, *, later: float = LATER, dry_run: bool = False) -> RefCleanup:
    """Clean up as somebody would who looks so many seconds later."""
    recovery = graph._transactions.recovery
    clock = LaterClock(later)
    return clean_refs(graph._manifest, recovery.sidecars, clock, dry_run=dry_run)


def left(graph: Graph) -> set[tuple[str, str]]:
    """Every file that only refs have, and every ref."""
    store = graph._store
    places = [MANIFEST, *(pin.location for pin in graph.snapshot().pins.values())]
    refs = {(place, ref) for place in places for ref in store.refs.list(place)}
    return refs | {
        (place, path) for place in places for path in store.objects.list(f"{place}/tree")
    }


def crash_create(graph: Graph) -> None:
    cut_off(Cut(Failpoint.BRANCH_AFTER_REF), lambda: graph.branches.create("draft"))


def delete_unmerged(graph: Graph) -> None:
    """A branch whose commits no other has."""
    graph.branches.create("draft")
    insert(graph, "eva", branch="draft")
    graph.branches.delete("draft")


def crash_first_write(graph: Graph) -> None:
    """A fork that no write came to use, of a branch that is gone since."""
    graph.branches.create("draft")
    fork = Cut(Failpoint.WRITE_AFTER_EACH_FORK)
    cut_off(fork, lambda: insert(graph, "eva", branch="draft"))
    graph.branches.delete("draft")


def sleep_through_the_end(graph: Graph) -> None:
    """A writer's files on a ref that was removed under it."""
    graph.branches.create("draft")
    insert(graph, "eva", branch="draft")
    pin = graph.snapshot(branch="draft").pin(PERSON)
    graph.branches.delete("draft")
    assert pin.ref is not None
    graph._store.objects.put(f"{pin.location}/tree/{pin.ref}/data/late.lance", b"late")


def children_first(graph: Graph) -> None:
    """Refs that were made of one another: the younger must go first."""
    for parent, child in (("main", "a"), ("a", "b"), ("b", "c")):
        graph.branches.create(child, branch=parent)
        insert(graph, f"of {child}", branch=child)
    for name in "cba":
        graph.branches.delete(name)


LEFTOVERS: dict[str, Callable[[Graph], None]] = {
    "create": crash_create,
    "delete": delete_unmerged,
    "first write": crash_first_write,
    "sleeper": sleep_through_the_end,
    "children": children_first,
}


@pytest.mark.parametrize("name", LEFTOVERS)
def test_what_nothing_names_is_reclaimed_once_it_is_old_enough(graph, name):
    LEFTOVERS[name](graph)
    before = picture(graph.uri)
    rubbish = left(graph)
    assert rubbish

    assert clean(graph, later=NAMELESS_AGE_MIN.total_seconds() - 60) == RefCleanup()
    assert left(graph) == rubbish
    planned = clean(graph, dry_run=True)
    assert left(graph) == rubbish
    later = NAMELESS_AGE_MIN.total_seconds() + 60
    assert clean(graph, later=later) == planned
    assert planned.troubles == ()
    assert {each.location for each in planned.reclaimed} == {place for place, _ in rubbish}
    assert left(graph) == set()
    assert clean(graph) == RefCleanup()
    assert picture(graph.uri) == before
    assert_next_writes_work(graph.uri)


def test_branches_and_what_they_stand_on_stay(graph):
    graph.branches.create("a")
    insert(graph, "eva", branch="a")
    graph.branches.create("a2", branch="a")
    graph.branches.create("b", commit=graph.snapshot(branch="a").head.commit_id)
    insert(graph, "fay", branch="b")
    graph.branches.create("c", branch="b")
    before, files = picture(graph.uri), left(graph)

    assert clean(graph) == RefCleanup()
    assert (picture(graph.uri), left(graph)) == (before, files)


def test_a_fork_of_a_branch_that_lives_may_be_in_the_making_for_a_day(graph):
    graph.branches.create("draft")
    fork = Cut(Failpoint.WRITE_AFTER_EACH_FORK)
    cut_off(fork, lambda: insert(graph, "eva", branch="draft"))
    insert(graph, "fay", branch="draft")
    before = picture(graph.uri)

    assert clean(graph, later=STAGED_AGE_MIN.total_seconds() - 60) == RefCleanup()
    (only,) = clean(graph, later=STAGED_AGE_MIN.total_seconds() + 60).reclaimed
    assert only.ref != graph.snapshot(branch="draft").pin(PERSON).ref
    assert picture(graph.uri) == before
    at_rest(graph.uri)


def test_a_write_in_progress_keeps_the_ref_that_it_names(graph):
    graph.branches.create("draft")
    cut_off(Cut(Failpoint.WRITE_AFTER_CHECK), lambda: insert(graph, "eva", branch="draft"))
    assert clean(graph) == RefCleanup()
    assert_next_writes_work(graph.uri)


def test_what_gets_a_name_while_we_look_stays(graph, monkeypatch):
    crash_create(graph)
    (ref,) = graph._store.refs.list(MANIFEST)
    collect, looks = ref_cleanup._collect_references, []

    def late(*arguments: object) -> object:
        found = collect(*arguments)  # type: ignore[arg-type]
        looks.append(found)
        if len(looks) == 2:
            return replace(found, living=found.living | {ref})
        return found

    monkeypatch.setattr(ref_cleanup, "_collect_references", late)
    assert clean(graph) == RefCleanup()
    assert graph._store.refs.list(MANIFEST) == (ref,)


def test_trouble_with_one_table_keeps_none_of_the_others(graph, monkeypatch):
    delete_unmerged(graph)
    person = graph.snapshot().pin(PERSON).location
    delete, listed = Refs.delete, Refs.list

    def failing(refs: Refs, location: str, name: str) -> None:
        if location == person:
            message = "out of order"
            raise StorageError(message)
        delete(refs, location, name)

    with monkeypatch.context() as patch:
        patch.setattr(Refs, "delete", failing)
        told = clean(graph)
    assert {each.location for each in told.reclaimed} == {MANIFEST}
    assert [(each.location, each.message) for each in told.troubles] == [(person, "out of order")]

    def unlistable(refs: Refs, location: str) -> tuple[str, ...]:
        if location == person:
            message = "out of order"
            raise StorageError(message)
        return listed(refs, location)

    with monkeypatch.context() as patch:
        patch.setattr(Refs, "list", unlistable)
        assert [each.ref for each in clean(graph).troubles] == [None]
    assert {each.location for each in clean(graph).reclaimed} == {person}
    assert left(graph) == set()


def test_nothing_goes_while_a_sidecar_cannot_be_read(graph):
    crash_create(graph)
    graph._store.objects.put(f"{RECOVERY}/{SystemClock().ulid()}.json", b"?")
    with pytest.raises(RecoveryNeededError):
        clean(graph)
    assert left(graph)


def test_who_knows_that_nobody_is_at_work_need_not_wait(graph):
    crash_create(graph)
    recovery = graph._transactions.recovery
    told = clean_refs(graph._manifest, recovery.sidecars, SystemClock(), age_min=NOW)
    assert len(told.reclaimed) == 1
    assert left(graph) == set()


def test_cleanup_keeps_refs_of_the_manifest_that_other_programs_made(graph):
    version = graph.snapshot().manifest_version
    refs = graph._store.refs
    refs.create(MANIFEST, "theirs", source=None, version=version)
    assert clean(graph) == RefCleanup()
    assert refs.list(MANIFEST) == ("theirs",)
    assert graph.branches.list() == (MAIN,)


def test_a_branch_that_took_too_long_to_make_is_not_named(graph, monkeypatch):
    monkeypatch.setattr(lifecycle, "LEASE_SECONDS", -1.0)
    with pytest.raises(omnigraph.errors.ConflictError, match="took longer"):
        graph.branches.create("draft")
    assert left(graph) == set()


def strew(graph: Graph, load_id: str, *, owner: Owner | None = None) -> str:
    """Leave scratch as a load that was killed does; its folder."""
    folder = scratch_folder(load_id)
    graph._store.objects.put(f"{folder}/part-00000-0.parquet", b"rows")
    if owner is not None:
        graph._store.objects.put(f"{folder}/owner.json", json.dumps(asdict(owner)).encode())
    return folder


def scrub(graph: Graph, *, later: float = LATER, dry_run: bool = False) -> CleanupResult:
    """Clean up everything, as somebody would who looks so many seconds later."""
    sidecars, clock = graph._transactions.recovery.sidecars, LaterClock(later)
    return run.clean(graph._manifest, sidecars, clock, RetentionRules(), dry_run=dry_run)


def scratch(graph: Graph) -> list[str]:
    return [each.folder for each in find_scratch(graph._store.objects)]


def test_scratch_of_a_load_that_has_ended_goes_once_it_is_a_day_old(graph):
    this = this_process()
    assert this is not None
    # Nobody knows whose it is; its process is gone; its thread is.
    owners = (None, replace(this, started=this.started - 1), this)
    folders = [strew(graph, CLOCK.ulid(), owner=each) for each in owners]
    before = picture(graph.uri)

    assert scrub(graph, later=STAGED_AGE_MIN.total_seconds() - 60).is_empty
    planned = scrub(graph, dry_run=True)
    assert planned.scratch == tuple(folders)
    assert scratch(graph) == folders
    assert scrub(graph, later=STAGED_AGE_MIN.total_seconds() + 60) == planned
    assert scratch(graph) == []
    assert scrub(graph).is_empty
    assert picture(graph.uri) == before


def test_a_load_that_is_at_work_keeps_its_scratch_however_old(graph):
    load_id, elsewhere = CLOCK.ulid(), CLOCK.ulid()
    other = multiprocessing.get_context("spawn").Process(target=time.sleep, args=(60,))
    other.start()
    try:
        stat = Path(f"/proc/{other.pid}/stat").read_text().rpartition(")")[2].split()
        this = this_process()
        assert this is not None
        assert other.pid is not None
        strew(graph, elsewhere, owner=Owner(this.host, other.pid, int(stat[19])))
        with hold_scratch(graph._store.objects, load_id):
            strew(graph, load_id)
            assert scrub(graph).is_empty
            assert len(scratch(graph)) == 2
        assert scratch(graph) == [scratch_folder(elsewhere)]
    finally:
        other.kill()
        other.join()
    assert scrub(graph).scratch == (scratch_folder(elsewhere),)


def test_what_is_no_load_of_ours_is_not_ours_to_judge(graph):
    graph._store.objects.put("__staging/notes/mine.txt", b"mine")
    graph._store.objects.put("__staging/mine.txt", b"mine")
    assert scrub(graph).is_empty
    assert len(graph._store.objects.list("__staging")) == 2


def test_trouble_with_scratch_keeps_nothing_else(graph, monkeypatch):
    crash_create(graph)
    first, second = (strew(graph, CLOCK.ulid()) for _ in range(2))
    clear = Objects.clear

    def failing(objects: Objects, prefix: str) -> None:
        if prefix == first:
            message = "out of order"
            raise StorageError(message)
        clear(objects, prefix)

    with monkeypatch.context() as patch:
        patch.setattr(Objects, "clear", failing)
        told = scrub(graph)
    assert ([each.location for each in told.refs], told.scratch) == ([MANIFEST], (second,))
    assert [(each.location, each.message) for each in told.troubles] == [(first, "out of order")]

    times = Objects.times

    def unlistable(objects: Objects, prefix: str) -> dict[str, datetime]:
        if prefix == SCRATCH:
            message = "out of order"
            raise StorageError(message)
        return times(objects, prefix)

    with monkeypatch.context() as patch:
        patch.setattr(Objects, "times", unlistable)
        assert [each.location for each in scrub(graph).troubles] == ["__staging"]
    assert graph.cleanup(dry_run=True).scratch == ()
    assert scrub(graph).scratch == (first,)


def tables_of(graph: Graph) -> set[str]:
    return {place for kind in TableKind for place in graph._store.objects.folders(kind.folder)}


def test_tables_that_a_killed_schema_change_created_are_reclaimed_once_they_are_old(graph):
    used = tables_of(graph)
    cut = Cut(Failpoint.WRITE_AFTER_EACH_TABLE)
    cut_off(cut, lambda: graph.schema.apply(RESHAPED))
    (unused,) = tables_of(graph) - used

    assert scrub(graph, later=STAGED_AGE_MIN.total_seconds() - 60).tables == ()
    assert scrub(graph, dry_run=True).tables == (unused,)
    assert tables_of(graph) == {*used, unused}
    assert scrub(graph).tables == (unused,)
    assert tables_of(graph) == used
    assert_next_writes_work(graph.uri)


def test_tables_that_any_history_or_sidecar_names_stay(graph):
    # One was created on a branch, another was dropped there and on main, and a third belongs to a
    # write that recovery is going to finish.
    start = graph.snapshot().head.commit_id
    graph.branches.create("draft")
    graph.schema.apply(RESHAPED, branch="draft")
    graph.schema.apply("node Person { name: String @key }")
    with_horse = "node Person { name: String @key }  node Horse { name: String @key }"
    cut_off(Cut(Failpoint.WRITE_AFTER_CONFIRM), lambda: graph.schema.apply(with_horse))
    tables = tables_of(graph)

    assert scrub(graph).tables == ()

    assert tables_of(graph) == tables
    assert len(tables) == 5
    assert past_rows(graph.uri, start)["node:City"] == [{"id": "rome", "name": "rome"}]
    at_rest(omnigraph.open(graph.uri).uri, rows=True)


def test_the_ref_of_a_type_that_its_branch_dropped_stays(graph):
    # Main still pins the table, and earlier commits of the branch read it on their own ref.
    graph.branches.create("draft")
    insert(graph, "eva", branch="draft")
    before = graph.snapshot(branch="draft").head.commit_id
    rows = past_rows(graph.uri, before)
    graph.schema.apply("node City { name: String @key }", branch="draft")

    told = scrub(graph)
    assert (told.refs, told.tables) == ((), ())

    assert [row["id"] for row in rows["node:Person"]] == ["ada", "bob", "eva"]
    assert past_rows(graph.uri, before) == rows


def test_a_schema_change_that_slept_for_half_a_day_creates_its_tables_again(graph, monkeypatch):
    monkeypatch.setattr("omnigraph.transaction.commit.STAGED_SECONDS_MAX", 0.0)
    made = len(tables_of(graph))

    def wake_up() -> None:
        monkeypatch.undo()

    with sleeping_at(Cut(Failpoint.WRITE_AFTER_EACH_TABLE, 2), wake_up):
        graph.schema.apply(RESHAPED)

    pinned = {pin.location for pin in graph.snapshot().pins.values()}
    assert len(tables_of(graph)) == made + 2
    assert len(scrub(graph).tables) == 1
    assert pinned <= tables_of(graph)
    assert_next_writes_work(graph.uri)
