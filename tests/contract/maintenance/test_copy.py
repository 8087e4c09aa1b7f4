"""Copies of graphs: complete, checked, of one state, continued, and added to."""

from collections.abc import Callable
from itertools import count
from pathlib import Path
from threading import Event, Thread
from typing import Final

import pytest

import omnigraph
from omnigraph.errors import (
    AlreadyExistsError,
    BranchNotFoundError,
    ConflictError,
    GraphNotFoundError,
    InvalidInputError,
    NotAllowedError,
)
from omnigraph.failpoints import Failpoint
from omnigraph.graph import Graph
from omnigraph.manifest.layout import COPY, MANIFEST
from omnigraph.model.names import MAIN
from omnigraph.storage.store import Store
from tests.support.clocks import LaterClock
from tests.support.crashes import (
    Cut,
    assert_next_writes_work,
    at_rest,
    copied,
    cut_off,
    picture,
    sleeping_at,
    upload_graph,
)
from tests.support.lived_in import SECOND, TAG, History, history_of, lived_in
from tests.support.publishing import PERSON
from tests.support.writers import DRAFT, RESHAPED, insert

MONTH_SECONDS: Final = 32 * 86_400.0

_numbers = count()


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, History]:
    uri = str(tmp_path_factory.mktemp("original") / "world.omni")
    lived_in(uri)
    return uri, history_of(uri)


@pytest.fixture
def graph(original: tuple[str, History], tmp_path: Path) -> Graph:
    """A graph that was moved since it was made."""
    return omnigraph.open(copied(original[0], tmp_path / "world.omni"))


@pytest.fixture
def target(tmp_path: Path) -> str:
    return str(tmp_path / "backup.omni")


@pytest.fixture(params=["disk to disk", "disk to bucket", "bucket to disk", "bucket to bucket"])
def places(
    request: pytest.FixtureRequest, original: tuple[str, History], tmp_path: Path
) -> tuple[str, str]:
    """A graph, and a place for its copy."""
    source, _, target = request.param.partition(" to ")

    def bucket() -> str:
        return f"s3://{request.getfixturevalue('s3_bucket')}/graphs/{next(_numbers)}.omni"

    local = copied(original[0], tmp_path / "world.omni")
    return (
        local if source == "disk" else upload_graph(local, bucket()),
        str(tmp_path / "new" / "backup.omni") if target == "disk" else bucket(),
    )


def assert_same(uri: str, target: str) -> None:
    """The target answers as the source does, at every commit, and is sound."""
    assert history_of(target) == history_of(uri)
    assert picture(target).rows == picture(uri).rows
    one, other = (omnigraph.open(each, read_only=True) for each in (uri, target))
    assert one.branches.list() == other.branches.list()
    assert one.tags.list() == other.tags.list()
    assert one.settings.list() == other.settings.list()
    at_rest(target, rows=True)


def test_copy_is_complete_and_independent(places):
    source, target = places
    omnigraph.open(source).settings.set("maintenance.keep_days", 7)
    result = omnigraph.open(source, read_only=True).copy(target)

    assert result.is_sound
    assert (result.source, result.target) == (source, target)
    assert set(result.branches) == {MAIN, DRAFT, SECOND}
    assert_same(source, target)
    assert_next_writes_work(target)
    graph = omnigraph.open(target)
    for branch in (DRAFT, SECOND):
        insert(graph, "new", branch=branch)
    graph.merge(DRAFT)
    at_rest(target, rows=True)
    assert "new" not in {row["id"] for row in picture(source).rows[DRAFT, str(PERSON)]}


def test_copy_needs_nothing_of_the_source(graph, target):
    before = history_of(graph.uri)
    graph.copy(target)
    Path(graph.uri).rename(f"{graph.uri}-away")

    assert history_of(target) == before
    at_rest(target, rows=True)


def test_copy_writes_nothing_to_its_source(graph, target):
    objects = graph._store.objects
    before = {each.path: (each.size, each.written_at) for each in objects.entries("")}
    omnigraph.open(graph.uri, read_only=True).copy(target)
    assert {each.path: (each.size, each.written_at) for each in objects.entries("")} == before


def test_second_copy_transfers_what_is_new(places):
    source, target = places
    graph = omnigraph.open(source)
    whole = graph.copy(target)
    again = graph.copy(target)
    assert (again.files, again.commits) == (0, 0)
    insert(graph, "new", branch=DRAFT)
    graph.branches.create("third", branch=DRAFT)
    insert(graph, "of third", branch="third")
    graph.tags.create("late", branch="third")
    graph.tags.delete(TAG)
    graph.branches.delete(SECOND)
    graph.schema.apply(RESHAPED)

    added = graph.copy(target)

    assert added.commits == 3
    assert 0 < added.files < whole.files / 2
    assert_same(source, target)
    assert_next_writes_work(target)


def test_copy_of_a_copy_and_of_a_moved_copy(graph, target, tmp_path):
    graph.copy(target)
    moved = str(Path(target).rename(tmp_path / "moved.omni"))
    omnigraph.open(moved, read_only=True).copy(target)
    insert(graph, "new", branch=DRAFT)
    graph.copy(moved)

    assert_same(graph.uri, moved)
    assert omnigraph.open(moved, read_only=True).copy(target).commits == 1
    assert_same(graph.uri, target)


def test_reader_of_the_target_sees_what_a_later_copy_brings(graph, target):
    graph.copy(target)
    reader = omnigraph.open(target, read_only=True)
    draft = reader.at(branch=DRAFT)
    ask = "query q() { match { $p: Person } return { count($p) as n } }"
    before = draft.query(ask).rows()[0]["n"]
    for name in ("one", "two", "three"):
        insert(graph, name, branch=DRAFT)
    graph.copy(target)

    assert draft.query(ask).rows()[0]["n"] == before + 3


def test_chosen_branches_are_copied_with_what_they_read(graph, target):
    everything = history_of(graph.uri)
    result = graph.copy(target, branches=[DRAFT])

    assert result.branches == (MAIN, DRAFT)
    found = history_of(target)
    assert found == {each: everything[each] for each in found}
    assert {each.partition(" ")[0] for each in found} == {MAIN, DRAFT}
    assert omnigraph.open(target).branches.list() == (MAIN, DRAFT)
    at_rest(target, rows=True)
    later = omnigraph.open(target, clock=LaterClock(MONTH_SECONDS))
    assert not later.cleanup().troubles
    assert history_of(target) == found

    graph.copy(target)
    assert_same(graph.uri, target)


def test_branch_that_was_merged_and_not_chosen_stays_readable(graph, target):
    insert(graph, "late", branch=SECOND)
    graph.merge(SECOND)
    merged = graph.snapshot(branch=SECOND).head.commit_id
    insert(graph, "later", branch=SECOND)
    before = history_of(graph.uri)
    graph.copy(target, branches=MAIN)

    copy = omnigraph.open(target, clock=LaterClock(MONTH_SECONDS))
    assert copy.branches.list() == (MAIN,)
    assert not copy.cleanup().troubles
    found = history_of(target)
    assert found == {each: before[each] for each in before if each.startswith("main ")}
    assert copy.snapshot(commit=merged).head.commit_id == merged
    at_rest(target, rows=True)
    graph.copy(f"{target}-2", branches=MAIN)
    graph.copy(f"{target}-2", branches=[SECOND])
    assert "later" in {row["id"] for row in picture(f"{target}-2").rows[SECOND, str(PERSON)]}
    at_rest(f"{target}-2", rows=True)


def test_unknown_branch_is_refused(graph, target):
    with pytest.raises(BranchNotFoundError):
        graph.copy(target, branches=["nowhere"])
    assert not Path(target).exists()


def test_missing_source_is_refused(tmp_path, target):
    with pytest.raises(GraphNotFoundError):
        omnigraph.open(tmp_path / "nowhere", read_only=True).copy(target)


@pytest.mark.parametrize("place", ["", "/inside", "/.."])
def test_target_in_or_around_the_source_is_refused(graph, place):
    with pytest.raises(InvalidInputError, match="the same place"):
        graph.copy(str(Path(f"{graph.uri}{place}").resolve()))


def test_target_with_other_files_is_untouched(graph, target):
    Path(target).mkdir()
    Path(target, "notes.txt").write_text("mine")
    with pytest.raises(AlreadyExistsError, match="is not empty, and is not a copy"):
        graph.copy(target)
    assert [each.name for each in Path(target).iterdir()] == ["notes.txt"]


def own_commit(graph: Graph) -> None:
    insert(graph, "own")


def own_commit_on_branch(graph: Graph) -> None:
    insert(graph, "own", branch=DRAFT)


def own_branch(graph: Graph) -> None:
    graph.branches.create("own")


def own_write_in_progress(graph: Graph) -> None:
    cut_off(Cut(Failpoint.WRITE_AFTER_EACH_APPLY), lambda: insert(graph, "own"))


OWN: dict[str, tuple[Callable[[Graph], None], str]] = {
    "commit": (own_commit, "it has newer commits, on main"),
    "commit on a branch": (own_commit_on_branch, "it has newer commits, on 0"),
    "branch": (own_branch, "it has "),
    "write": (own_write_in_progress, "a write was begun there"),
}


@pytest.mark.parametrize("kind", OWN)
def test_target_with_work_of_its_own_is_refused_and_kept(graph, target, kind):
    write, why = OWN[kind]
    graph.copy(target)
    write(omnigraph.open(target))
    before = picture(target).rows

    with pytest.raises(ConflictError, match=f"is not a copy of .*: {why}"):
        graph.copy(target)

    assert picture(target).rows == before


def test_target_of_the_same_number_of_commits_and_another_history_is_refused(graph, target):
    graph.copy(target)
    insert(omnigraph.open(target), "theirs")
    insert(graph, "ours")
    with pytest.raises(ConflictError, match="its history is another one, on main"):
        graph.copy(target)
    other = omnigraph.init(f"{target}-other", "node A { x: I32 }")
    with pytest.raises(ConflictError, match="its history is another one"):
        graph.copy(other.uri)


def test_copy_made_by_hand_is_taken_over(graph, target):
    copied(graph.uri, Path(target))
    insert(graph, "new", branch=DRAFT)
    assert graph.copy(target).commits == 1
    assert_same(graph.uri, target)


def test_two_copies_to_one_target_exclude_each_other(graph, target):
    def other() -> None:
        with pytest.raises(ConflictError, match="is in progress"):
            omnigraph.open(graph.uri, read_only=True).copy(target)

    with sleeping_at(Cut(Failpoint.COPY_AFTER_TABLES), other):
        graph.copy(target)
    assert_same(graph.uri, target)


def test_copy_whose_lease_ran_out_stops_for_the_one_that_took_over(graph, target, monkeypatch):
    monkeypatch.setattr("omnigraph.maintenance.copying.run.is_gone", lambda *_: False)

    def other() -> None:
        clock = LaterClock(MONTH_SECONDS)
        omnigraph.open(graph.uri, read_only=True, clock=clock).copy(target)

    with (
        sleeping_at(Cut(Failpoint.COPY_AFTER_TABLES), other),
        pytest.raises(ConflictError, match="took over"),
    ):
        graph.copy(target)
    assert_same(graph.uri, target)


def test_unfinished_copy_says_what_it_is(graph, target):
    cut_off(Cut(Failpoint.COPY_AFTER_EACH_RECORD), lambda: graph.copy(target))

    for branch in (MAIN, DRAFT):
        with pytest.raises(GraphNotFoundError, match="is an unfinished copy of") as refused:
            omnigraph.open(target, read_only=True).at(branch=branch).snapshot()
        assert f"omnigraph copy {graph.uri} {target}" in refused.value.hint
    with pytest.raises(AlreadyExistsError):
        omnigraph.init(target, "node A { x: I32 }")


def test_source_without_commits_that_were_let_go(graph, target):
    for number in range(6):
        insert(graph, f"n{number}")
    graph.copy(f"{target}-old")
    later = omnigraph.open(graph.uri, clock=LaterClock(MONTH_SECONDS))
    gone = later.cleanup(keep_commits=1, older_than="1d").commits
    assert gone

    for place in (target, f"{target}-old"):
        graph.copy(place)
        at_rest(place, rows=True)
        assert picture(place).rows == picture(graph.uri).rows
        assert not omnigraph.open(place, clock=LaterClock(MONTH_SECONDS)).cleanup().troubles
        with pytest.raises(omnigraph.CommitLetGoError):
            omnigraph.open(place, read_only=True).snapshot(commit=gone[0].commit_id)
        insert(omnigraph.open(place), "new")
        at_rest(place, rows=True)


def test_cleanup_that_overtakes_a_copy_is_noticed(graph, target):
    for number in range(6):
        insert(graph, f"n{number}")

    def clean() -> None:
        later = omnigraph.open(graph.uri, clock=LaterClock(MONTH_SECONDS))
        assert later.cleanup(keep_commits=1, older_than="1d").commits

    with sleeping_at(Cut(Failpoint.COPY_AFTER_SHUT), clean):
        graph.copy(target)

    at_rest(target, rows=True)
    assert picture(target).rows == picture(graph.uri).rows


def overtake_by_write(graph: Graph) -> None:
    insert(graph, "late")
    insert(graph, "late", branch=DRAFT)


def overtake_by_merges(graph: Graph) -> None:
    """Each branch then has commits of the other that are newer than what was read of it."""
    insert(graph, "late", branch=DRAFT)
    graph.merge(DRAFT)
    insert(graph, "later")
    graph.merge(MAIN, into=DRAFT)
    graph.merge(DRAFT, into=SECOND)


def overtake_by_deletion(graph: Graph) -> None:
    graph.merge(DRAFT)
    graph.branches.delete(SECOND)
    graph.branches.create(SECOND)


def overtake_by_schema(graph: Graph) -> None:
    graph.schema.apply(RESHAPED)


def overtake_by_optimize(graph: Graph) -> None:
    graph.ensure_indices()
    graph.optimize()
    graph.optimize(branch=DRAFT)


OVERTAKING: dict[str, Callable[[Graph], None]] = {
    "write": overtake_by_write,
    "merges": overtake_by_merges,
    "deletion": overtake_by_deletion,
    "schema": overtake_by_schema,
    "optimize": overtake_by_optimize,
}


@pytest.mark.parametrize("kind", OVERTAKING)
@pytest.mark.parametrize(
    "point",
    [
        Failpoint.COPY_AFTER_CUT,
        Failpoint.COPY_AFTER_CLAIM,
        Failpoint.COPY_AFTER_SHUT,
        Failpoint.COPY_AFTER_TABLES,
        Failpoint.COPY_AFTER_OPEN,
    ],
)
def test_concurrent_writers_do_not_tear_a_copy(graph, target, kind, point):
    before = history_of(graph.uri)
    with sleeping_at(Cut(point), lambda: OVERTAKING[kind](omnigraph.open(graph.uri))):
        assert graph.copy(target).is_sound

    assert history_of(target) == before
    at_rest(target, rows=True)
    graph.copy(target)
    assert_same(graph.uri, target)


@pytest.mark.parametrize("kind", OVERTAKING)
def test_writer_between_reading_two_branches_does_not_tear_a_copy(graph, target, kind, monkeypatch):
    """Main is read first; then somebody merges, and the other branches are read."""
    from omnigraph.maintenance.copying import cut

    open_tip, done = cut._open, Event()

    def open_then_write(manifest, ref, version):
        opened = open_tip(manifest, ref, version)
        if not done.is_set():
            done.set()
            OVERTAKING[kind](omnigraph.open(graph.uri))
        return opened

    monkeypatch.setattr(cut, "_open", open_then_write)
    result = graph.copy(target)

    assert done.is_set()
    assert result.is_sound
    at_rest(target, rows=True)
    everything = history_of(graph.uri)
    found = history_of(target)
    assert {each: everything[each] for each in found if each in everything} == {
        each: found[each] for each in found if each in everything
    }


def test_copies_beside_a_busy_writer_are_whole(graph, target):
    stop = Event()

    def work() -> None:
        writer = omnigraph.open(graph.uri)
        for number in count():
            if stop.is_set():
                return
            insert(writer, f"busy{number}", branch=(MAIN, DRAFT)[number % 2])
            if number % 5 == 4:
                writer.merge(DRAFT)

    thread = Thread(target=work)
    thread.start()
    try:
        for _ in range(3):
            assert graph.copy(target).is_sound
            at_rest(target, rows=True)
    finally:
        stop.set()
        thread.join()
    graph.copy(target)
    assert_same(graph.uri, target)


def test_copy_says_that_its_source_is_not_sound(graph, target):
    pin = graph.snapshot().pin(PERSON)
    lost = next(graph._store.tables.open_pin(pin).data_paths())
    Path(graph.uri, lost).unlink()

    result = graph.copy(target)

    assert not result.is_sound
    assert any(lost in finding.problem for finding in result.findings)


ALL: Final = """
@id("all") permit(principal, action, resource);
"""
RIGHTS: dict[str, str] = {
    "no administration": """
@id("most") permit(principal, action in [Action::"read", Action::"export", Action::"maintain"],
    resource in Graph::"world");
""",
    "a hidden type": f"""{ALL}
@id("no cities") forbid(principal, action == Action::"read", resource == Type::"City");
""",
    "a hidden branch": f"""{ALL}
@id("no draft") forbid(principal, action == Action::"export", resource)
    when {{ resource has branch && resource.branch == "draft" }};
""",
}


@pytest.mark.parametrize("kind", RIGHTS)
def test_copy_needs_the_right_to_everything(graph, target, tmp_path, kind):
    rules = tmp_path / "rules.cedar"
    rules.write_text(RIGHTS[kind])
    reader = omnigraph.open(graph.uri, actor="ada", read_only=True, policy=rules)
    with pytest.raises(NotAllowedError):
        reader.copy(target)
    assert not Path(target).exists()


def test_copy_is_allowed_to_whoever_may_do_everything(graph, target, tmp_path):
    rules = tmp_path / "rules.cedar"
    rules.write_text(ALL)
    reader = omnigraph.open(graph.uri, actor="ada", read_only=True, policy=rules)
    assert reader.copy(target).is_sound


def test_record_of_a_copy_names_its_source(graph, target):
    graph.copy(target)
    assert graph.uri in Path(target, COPY).read_text()
    assert Store.open(target).tables.exists(MANIFEST)
