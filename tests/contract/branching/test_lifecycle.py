"""Branches from their beginning to their end, and what their names may be."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest

import omnigraph
from omnigraph.branching import lifecycle
from omnigraph.errors import (
    AlreadyExistsError,
    BranchNotFoundError,
    CommitNotFoundError,
    ConflictError,
    ErrorCode,
    InvalidInputError,
    InvalidNameError,
    NotAllowedError,
    NotFoundError,
    OmnigraphError,
    StaleHeadError,
)
from omnigraph.failpoints import Failpoint, arm
from omnigraph.graph import Graph
from omnigraph.maintenance.cleanup.refs import clean_refs
from omnigraph.manifest.branches import Branches
from omnigraph.manifest.drafts import CommitDraft
from omnigraph.manifest.layout import MANIFEST, RECOVERY
from omnigraph.manifest.publisher import publish
from omnigraph.manifest.reader import Manifest, OpenManifest
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.model.commits import OperationKind
from omnigraph.model.ids import CommitId
from omnigraph.model.names import MAIN, BranchName
from omnigraph.model.tables import TablePin
from omnigraph.recovery.entries import RecoveryKind
from omnigraph.storage.tables import Table
from tests.support.crashes import as_other_machine, assert_next_writes_work, at_rest, picture
from tests.support.publishing import CITY, KNOWS, PERSON, manifest_at
from tests.support.writers import deletes, furnished, insert, person, upserts, write


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return furnished(str(tmp_path / "graph.omni"))


def people(graph: Graph, branch: str = MAIN) -> list[str]:
    return [row["id"] for row in picture(graph.uri).rows[branch, str(PERSON)]]


def pins(graph: Graph, branch: str = MAIN) -> dict[str, TablePin]:
    return {str(key): pin for key, pin in graph.snapshot(branch=branch).pins.items()}


def refs(graph: Graph) -> dict[str, tuple[str, ...]]:
    """Every ref of the graph, by what it is of."""
    store = graph._store
    places = [MANIFEST, *(pin.location for pin in pins(graph).values())]
    return {place: found for place in places if (found := store.refs.list(place))}


def test_a_branch_changes_nothing_of_main_and_shares_what_it_leaves_alone(graph):
    before = pins(graph)
    draft = graph.branches.create("draft")
    assert pins(graph, "draft") == before
    assert refs(graph).keys() == {MANIFEST}

    insert(graph, "eva", branch="draft")

    assert pins(graph) == before
    assert people(graph) == ["ada", "bob"]
    assert people(graph, "draft") == ["ada", "bob", "eva"]
    there = pins(graph, "draft")
    assert {key for key in there if there[key] != before[key]} == {str(PERSON)}
    assert [len(found) for found in refs(graph).values()] == [1, 1]
    first = there[str(PERSON)].ref
    insert(graph, "fay", branch="draft")
    assert pins(graph, "draft")[str(PERSON)].ref == first
    assert draft.snapshot().branch == "draft"


def test_main_goes_on_unseen_by_its_branches(graph):
    graph.branches.create("draft")
    insert(graph, "eva")
    assert people(graph, "draft") == ["ada", "bob"]
    insert(graph, "fay", branch="draft")
    assert (people(graph), people(graph, "draft")) == (["ada", "bob", "eva"], ["ada", "bob", "fay"])


def test_branches_start_at_a_branch_a_commit_or_a_version(graph):
    past = graph.snapshot()
    insert(graph, "eva")
    graph.branches.create("a")
    insert(graph, "fay", branch="a")
    there = graph.snapshot(branch="a").head.commit_id
    insert(graph, "gus", branch="a")
    graph.branches.create("b", branch="a")
    graph.branches.create("c", commit=past.head.commit_id)
    graph.branches.create("d", version=past.manifest_version)
    graph.branches.create("e", commit=there)
    graph.at(branch="a").branches.create("f")

    assert graph.branches.list() == ("main", "a", "b", "c", "d", "e", "f")
    newest = ["ada", "bob", "eva", "fay", "gus"]
    assert [people(graph, each) for each in "abcdef"] == [
        newest,
        newest,
        ["ada", "bob"],
        ["ada", "bob"],
        ["ada", "bob", "eva", "fay"],
        newest,
    ]
    for each in "abcdef":
        insert(graph, "zoe", branch=each)
    assert people(graph) == ["ada", "bob", "eva"]
    assert people(graph, "e") == ["ada", "bob", "eva", "fay", "zoe"]
    at_rest(graph.uri)


def test_a_branch_of_a_branch_of_a_branch_stands_by_itself(graph):
    for parent, child in (("main", "a"), ("a", "b"), ("b", "c")):
        graph.branches.create(child, branch=parent)
        insert(graph, f"of {child}", branch=child)
    write(graph, {PERSON: deletes("of a")}, branch="c")

    assert people(graph, "a") == ["ada", "bob", "of a"]
    assert people(graph, "b") == ["ada", "bob", "of a", "of b"]
    assert people(graph, "c") == ["ada", "bob", "of b", "of c"]
    for each in "cba":
        graph.branches.delete(each)
    assert graph.branches.list() == ("main",)
    assert_next_writes_work(graph.uri)


def test_a_handle_on_a_branch_reads_and_writes_there_and_ends_with_it(graph):
    draft = graph.branches.create("draft")
    other = graph.at(branch="draft")
    other.mutate('query q() { insert Person { name: "eva" } }')
    assert [each.branch for each in draft.commits.list(limit=1)] == ["draft"]
    assert draft.entity("Person", "eva") is not None
    assert graph.entity("Person", "eva") is None
    assert graph.entity("Person", "eva", at="draft") is not None

    graph.branches.delete("draft")
    with pytest.raises(BranchNotFoundError):
        draft.snapshot()
    with pytest.raises(BranchNotFoundError):
        draft.mutate('query q() { insert Person { name: "fay" } }')


def test_a_branch_that_was_deleted_is_not_there_for_anybody(graph):
    graph.branches.create("draft")
    insert(graph, "eva", branch="draft")
    lost = graph.snapshot(branch="draft").head.commit_id
    before = picture(graph.uri).rows[MAIN, str(PERSON)]

    graph.branches.delete("draft")

    assert graph.branches.list() == ("main",)
    assert picture(graph.uri).rows[MAIN, str(PERSON)] == before
    for look in (graph.commits.show, lambda each: graph.at(commit=each)):
        with pytest.raises(CommitNotFoundError):
            look(lost)


@pytest.mark.parametrize("written", [True, False])
def test_a_branch_made_again_has_nothing_of_the_one_before(graph, written):
    for name in ("eva", "fay"):
        graph.branches.create("draft")
        assert people(graph, "draft") == ["ada", "bob"]
        if written:
            insert(graph, name, branch="draft")
            assert people(graph, "draft") == ["ada", "bob", name]
        graph.branches.delete("draft")
    graph.branches.create("draft")
    assert people(graph, "draft") == ["ada", "bob"]


def test_a_branch_that_others_build_on_is_not_deleted(graph):
    graph.branches.create("draft")
    insert(graph, "eva", branch="draft")
    graph.branches.create("x", branch="draft")
    graph.branches.create("y", commit=graph.snapshot(branch="draft").head.commit_id)
    with pytest.raises(NotAllowedError, match="x, y build on it") as refused:
        graph.branches.delete("draft")
    assert refused.value.code is ErrorCode.BRANCH_IN_USE
    assert "delete x first" in refused.value.hint
    for each in ("x", "y"):
        graph.branches.delete(each)
    graph.branches.delete("draft")
    assert graph.branches.list() == ("main",)


@pytest.mark.parametrize(
    ("existing", "name"), [("review", "review/x"), ("review/x", "review"), ("a/b/c", "a/b")]
)
def test_no_branch_lies_below_another(graph, existing, name):
    graph.branches.create(existing)
    with pytest.raises(InvalidNameError, match=existing):
        graph.branches.create(name)
    assert graph.branches.list() == ("main", existing)
    graph.branches.delete(existing)
    graph.branches.create(name)


def test_names_beside_each_other_are_all_right(graph):
    names = ("review", "review.json", "reviews/x", "reviews/y", "Überblick", "0" * 25)
    for each in names:
        graph.branches.create(each)
    assert set(graph.branches.list()) == {"main", *names}
    for each in names:
        insert(graph, "eva", branch=each)
        graph.branches.delete(each)
    assert graph.branches.list() == ("main",)


BAD_NAMES = [
    "",
    "-x",
    "a b",
    "__x",
    "/a",
    "a//b",
    "a/../b",
    "main/x",
    "x" * 300,
    "a\n",
    "@",
    "a/",
]


@pytest.mark.parametrize("name", BAD_NAMES)
def test_names_that_break_the_rules_are_refused(graph, name):
    with pytest.raises(InvalidNameError):
        graph.branches.create(name)
    assert refs(graph) == {}


def test_main_is_taken_in_every_graph(graph):
    with pytest.raises(AlreadyExistsError) as refused:
        graph.branches.create("main")
    assert refused.value.code is ErrorCode.BRANCH_EXISTS


def test_taken_names_are_refused_and_what_holds_them_stays(graph):
    graph.branches.create("draft")
    insert(graph, "eva", branch="draft")
    with pytest.raises(AlreadyExistsError, match="already has a branch draft"):
        graph.branches.create("draft")
    assert people(graph, "draft") == ["ada", "bob", "eva"]
    assert len(refs(graph)[MANIFEST]) == 1


def test_points_that_do_not_exist_are_refused(graph, tmp_path):
    other = furnished(str(tmp_path / "other.omni"))
    attempts: list[tuple[type[OmnigraphError], Callable[[], object]]] = [
        (BranchNotFoundError, lambda: graph.branches.create("x", branch="nope")),
        (CommitNotFoundError, lambda: graph.branches.create("x", commit="0" * 26)),
        (
            CommitNotFoundError,
            lambda: graph.branches.create("x", commit=other.snapshot().head.commit_id),
        ),
        (NotFoundError, lambda: graph.branches.create("x", version=99)),
        (InvalidInputError, lambda: graph.branches.create("x", version=1, commit="0" * 26)),
        (BranchNotFoundError, lambda: graph.at(branch="nope")),
        (CommitNotFoundError, lambda: graph.at(commit=other.snapshot().head.commit_id)),
        (BranchNotFoundError, lambda: graph.branches.delete("nope")),
        (NotAllowedError, lambda: graph.branches.delete("main")),
        (InvalidNameError, lambda: graph.branches.delete("__x")),
    ]
    for error, attempt in attempts:
        with pytest.raises(error):
            attempt()
    assert graph.branches.list() == ("main",)
    assert refs(graph) == {}


def test_readers_and_handles_on_the_past_make_no_branches(graph):
    head = graph.snapshot().head.commit_id
    for handle in (graph.at(commit=head), omnigraph.open(graph.uri, read_only=True)):
        with pytest.raises(NotAllowedError):
            handle.branches.create("draft")
        with pytest.raises(NotAllowedError):
            handle.branches.delete("draft")


def test_the_past_stays_readable_on_the_branch_and_beside_it(graph):
    graph.branches.create("draft")
    insert(graph, "eva", branch="draft")
    first = graph.snapshot(branch="draft")
    write(graph, {PERSON: upserts(person("eva", 5)), KNOWS: deletes("ada-bob")}, branch="draft")
    write(graph, {PERSON: deletes("eva")}, branch="draft")

    for past in (
        graph.at(commit=first.head.commit_id),
        graph.at(branch="draft", version=first.manifest_version),
    ):
        assert past.entity("Person", "eva") == {"id": "eva", "name": "eva", "age": None}
        text = "query q() { match { $a: Person $b: Person $a knows $b } return { $a.name } }"
        assert past.query(text).rows() == [{"a.name": "ada"}]
    assert graph.entity("Person", "eva", at="draft") is None


@contextmanager
def once_at(point: Failpoint, action: Callable[[], object]) -> Iterator[None]:
    """Let something happen the first time that anybody comes to this point."""
    done = False

    def act() -> None:
        nonlocal done
        if not done:
            done = True
            action()

    with arm(point, act):
        yield
    assert done, f"nobody came to {point}"


@pytest.fixture
def apart(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with as_other_machine(monkeypatch):
        yield


WRITE_POINTS = [
    Failpoint.WRITE_AFTER_PLAN,
    Failpoint.WRITE_AFTER_EACH_FORK,
    Failpoint.WRITE_AFTER_STAGE,
    Failpoint.CLAIM_AFTER_PUT,
    Failpoint.CLAIM_AFTER_LIST,
    Failpoint.WRITE_AFTER_CHECK,
    Failpoint.WRITE_AFTER_EACH_APPLY,
    Failpoint.PUBLISH_AFTER_READ,
    Failpoint.PUBLISH_AFTER_STAGE,
]


# A branch that has its own ref of a table already makes none.
SLEEPS = [
    (point, written)
    for point in WRITE_POINTS
    for written in (True, False)
    if not (written and point is Failpoint.WRITE_AFTER_EACH_FORK)
]


@pytest.mark.usefixtures("apart")
@pytest.mark.parametrize("again", [True, False], ids=["made again", "gone"])
@pytest.mark.parametrize(("point", "written"), SLEEPS)
def test_a_writer_that_slept_through_the_end_of_its_branch_lands_nowhere(
    graph, point, written, again
):
    graph.branches.create("draft")
    if written:
        insert(graph, "old", branch="draft")
    rival = omnigraph.open(graph.uri)

    def meanwhile() -> None:
        rival.branches.delete("draft")
        if again:
            rival.branches.create("draft")

    with once_at(point, meanwhile), pytest.raises(BranchNotFoundError, match="draft"):
        insert(graph, "eva", branch="draft")

    assert people(graph) == ["ada", "bob"]
    if again:
        assert people(graph, "draft") == ["ada", "bob"]
        made = graph.snapshot(branch="draft")
        assert made.head.branch == MAIN
    omnigraph.open(graph.uri)
    assert graph._store.objects.list(RECOVERY) == ()
    assert {each.kind for each in graph.recoveries.list()} <= {
        RecoveryKind.ORPHANED_BRANCH_DISCARDED
    }
    assert_next_writes_work(graph.uri)


@pytest.mark.usefixtures("apart")
@pytest.mark.parametrize("point", [Failpoint.PUBLISH_AFTER_COMMIT, Failpoint.WRITE_AFTER_PUBLISH])
def test_a_write_that_landed_before_its_branch_went_succeeded(graph, point):
    graph.branches.create("draft")
    rival = omnigraph.open(graph.uri)
    with once_at(point, lambda: rival.branches.delete("draft")):
        assert insert(graph, "eva", branch="draft").commit is not None
    assert graph.branches.list() == ("main",)


@pytest.mark.usefixtures("apart")
def test_a_merge_that_changes_nothing_is_not_recorded_on_a_branch_that_is_gone(graph):
    graph.branches.create("draft")
    graph.branches.create("other")
    insert(graph, "eva", branch="other")
    write(graph, {PERSON: deletes("eva")}, branch="other")
    rival = omnigraph.open(graph.uri)

    def meanwhile() -> None:
        rival.branches.delete("draft")
        rival.branches.create("draft")

    with (
        once_at(Failpoint.WRITE_AFTER_STAGE, meanwhile),
        pytest.raises(BranchNotFoundError, match="draft"),
    ):
        graph.merge("other", into="draft")
    assert graph.snapshot(branch="draft").head.branch == MAIN


def test_a_branch_that_is_being_deleted_gets_no_more_branches(graph):
    graph.branches.create("draft")
    rival = omnigraph.open(graph.uri)
    said = []

    def meanwhile() -> None:
        with pytest.raises(ConflictError, match="draft is being deleted") as refused:
            rival.branches.create("x", branch="draft")
        said.append(refused.value)

    with once_at(Failpoint.BRANCH_AFTER_MARK, meanwhile):
        graph.branches.delete("draft")
    assert len(said) == 1
    assert graph.branches.list() == ("main",)
    assert len(refs(graph)[MANIFEST]) == 1


def test_a_branch_from_which_another_was_just_made_is_not_deleted(graph):
    graph.branches.create("draft")
    insert(graph, "eva", branch="draft")
    rival = omnigraph.open(graph.uri)

    def meanwhile() -> None:
        with pytest.raises(NotAllowedError, match="x builds on it"):
            rival.branches.delete("draft")

    with once_at(Failpoint.BRANCH_AFTER_NAME, meanwhile):
        graph.branches.create("x", branch="draft")
    assert people(graph, "x") == people(graph, "draft") == ["ada", "bob", "eva"]
    insert(graph, "fay", branch="x")


def test_of_two_branches_made_at_once_above_and_below_each_other_one_yields(graph):
    rival = omnigraph.open(graph.uri)

    def meanwhile() -> None:
        rival.branches.create("review/x")

    with (
        once_at(Failpoint.BRANCH_AFTER_REF, meanwhile),
        pytest.raises(InvalidNameError, match="review cannot exist together with review/x"),
    ):
        graph.branches.create("review")
    assert graph.branches.list() == ("main", "review/x")
    assert len(refs(graph)[MANIFEST]) == 1
    insert(graph, "eva", branch="review/x")


def test_many_who_race_for_names_above_and_below_each_other_never_have_both(graph):
    rivals = [omnigraph.open(graph.uri) for _ in range(2)]

    def created(rival: Graph, name: str) -> bool:
        try:
            rival.branches.create(name)
        except InvalidNameError:
            return False
        return True

    with ThreadPoolExecutor(max_workers=2) as pool:
        for turn in range(10):
            names = [f"r{turn}", f"r{turn}/x"]
            made = list(pool.map(created, rivals, names))
            assert made != [True, True]
            found = [name for name in graph.branches.list() if name.startswith(f"r{turn}")]
            assert found == [name for name, is_made in zip(names, made, strict=True) if is_made]


def test_no_branch_is_named_like_a_commit(graph):
    head = graph.snapshot().head.commit_id
    for name in (head, "01ARZ3NDEKTSV4RRFFQ69G5FAV"):
        with pytest.raises(InvalidNameError, match="looks like a commit id"):
            graph.branches.create(name)
    # A name that only has one in it is nobody else's.
    graph.branches.create(f"fix-{head}")
    assert graph.diff("main", f"fix-{head}").counts == {}
    assert graph.diff(head, "main").counts == {}


def test_a_snapshot_of_a_branch_that_was_made_again_starts_no_branch(graph):
    # The version number is there, on the other one.
    graph.branches.create("draft")
    insert(graph, "eva", branch="draft")
    snapshot = graph.snapshot(branch="draft")
    graph.branches.delete("draft")
    graph.branches.create("draft")
    insert(graph, "fay", branch="draft")

    with pytest.raises(ConflictError, match="draft"):
        lifecycle.create(graph._manifest, graph._clock, BranchName("x"), snapshot)
    assert graph.branches.list() == ("main", "draft")


def remade_once_read(graph: Graph, monkeypatch: pytest.MonkeyPatch, *, is_remade: bool) -> None:
    """Delete a branch and its rows, and make it again, once a reader knows where they are."""
    current = Manifest.current

    def late(manifest: Manifest, branch: BranchName) -> Snapshot:
        found = current(manifest, branch)
        monkeypatch.undo()
        graph.branches.delete("draft")
        sidecars = graph._transactions.recovery.sidecars
        clean_refs(graph._manifest, sidecars, graph._clock, age_min=timedelta())
        if is_remade:
            graph.branches.create("draft")
        return found

    monkeypatch.setattr(Manifest, "current", late)


READS_OF_DRAFT = {
    "query": lambda reader, _: reader.query(
        "query q() { match { $p: Person } return { $p.name } }", branch="draft"
    ),
    "entity": lambda reader, _: reader.entity("Person", "eva", at="draft"),
    "diff": lambda reader, _: reader.diff("draft", "main"),
    "export": lambda reader, place: reader.on(BranchName("draft")).export(place / "out.jsonl"),
}


@pytest.mark.parametrize("read", READS_OF_DRAFT.values(), ids=READS_OF_DRAFT.keys())
def test_a_reader_of_a_branch_that_is_made_again_is_told_to_read_again(
    graph, tmp_path, monkeypatch, read
):
    graph.branches.create("draft")
    insert(graph, "eva", branch="draft")
    reader = omnigraph.open(graph.uri, read_only=True)

    remade_once_read(graph, monkeypatch, is_remade=True)
    with pytest.raises(ConflictError, match="draft was deleted and made again") as refused:
        read(reader, tmp_path)
    assert refused.value.hint == "read it again"
    read(reader, tmp_path)


def test_a_reader_of_a_branch_that_is_deleted_is_told_that_it_is_gone(graph, monkeypatch):
    graph.branches.create("draft")
    insert(graph, "eva", branch="draft")
    reader = omnigraph.open(graph.uri, read_only=True)

    remade_once_read(graph, monkeypatch, is_remade=False)
    with pytest.raises(BranchNotFoundError, match="no branch draft"):
        READS_OF_DRAFT["query"](reader, None)


def test_a_branch_that_moved_on_is_not_deleted_by_who_expected_it_elsewhere(graph):
    graph.branches.create("draft")
    head = graph.snapshot(branch="draft").head.commit_id
    draft = graph._manifest.names.find(BranchName("draft"))
    insert(graph, "eva", branch="draft")
    for expected in (head, CommitId("0" * 26)):
        with pytest.raises(StaleHeadError):
            lifecycle.delete_unmoved(graph._manifest, graph._clock, draft, expected)
    assert people(graph, "draft") == ["ada", "bob", "eva"]


def test_no_commit_is_lost_with_a_branch_that_is_deleted_once_merged(graph):
    graph.branches.create("draft")
    insert(graph, "eva", branch="draft")
    landed = []

    def land() -> None:
        """The publish of a writer that found the branch before anybody began to delete it."""
        commit_id = CommitId(graph._clock.ulid())
        empty = CommitDraft(BranchName("draft"), commit_id, OperationKind.LOAD)
        landed.append(publish(manifest_at(graph.uri), graph._clock, empty))

    with once_at(Failpoint.BRANCH_AFTER_MARK, land):
        assert graph.merge("draft", delete_branch=True).deleted_source is False

    assert people(graph) == ["ada", "bob", "eva"]
    assert graph.snapshot(branch="draft").head == landed[0]
    insert(graph, "fay", branch="draft")
    assert graph.merge("draft", delete_branch=True).deleted_source
    assert people(graph) == ["ada", "bob", "eva", "fay"]
    assert graph.branches.list() == ("main",)


@pytest.mark.usefixtures("apart")
@pytest.mark.parametrize(
    ("point", "refusal"),
    [
        (Failpoint.BRANCH_AFTER_MARK, ConflictError),
        (Failpoint.BRANCH_AFTER_RETIRE, ConflictError),
        (Failpoint.BRANCH_AFTER_UNREGISTER, BranchNotFoundError),
    ],
)
def test_a_branch_that_is_being_deleted_is_not_written(graph, point, refusal):
    graph.branches.create("draft")
    rival = omnigraph.open(graph.uri)
    refused = []

    def meanwhile() -> None:
        with pytest.raises(refusal, match="draft"):
            insert(rival, "fay", branch="draft")
        refused.append(True)

    with once_at(point, meanwhile):
        graph.branches.delete("draft")
    assert refused == [True]
    assert graph.branches.list() == ("main",)


def test_types_that_a_branch_does_not_touch_stay_where_main_has_them(graph):
    graph.branches.create("draft")
    write(graph, {CITY: upserts({"id": "oslo", "name": "oslo"})}, branch="draft")
    there, here = pins(graph, "draft"), pins(graph)
    for key in (PERSON, KNOWS):
        assert there[str(key)] == here[str(key)]
    assert there[str(CITY)].ref is not None


def test_who_reads_a_branch_while_it_is_deleted_reads_it_to_the_end(graph, monkeypatch):
    graph.branches.create("draft")
    insert(graph, "eva", branch="draft")
    reader = omnigraph.open(graph.uri, read_only=True)
    open_table = Manifest._open_table
    gone: list[bool] = []

    def late(manifest: Manifest, table: Table) -> OpenManifest:
        if manifest is reader._manifest and table.address.ref is not None and not gone:
            gone.append(True)
            graph.branches.delete("draft")
        return open_table(manifest, table)

    monkeypatch.setattr(Manifest, "_open_table", late)
    assert reader.snapshot(branch="draft").pin(PERSON).row_count == 3
    assert len(gone) == 1
    with pytest.raises(BranchNotFoundError):
        reader.snapshot(branch="draft")


def test_a_handle_at_a_point_of_a_branch_answers_for_that_point(graph):
    graph.branches.create("draft")
    insert(graph, "eva", branch="draft")
    point = graph.snapshot(branch="draft")
    insert(graph, "fay", branch="draft")
    insert(graph, "gus")
    by_commit = graph.at(commit=point.head.commit_id)
    by_version = graph.at(branch="draft", version=point.manifest_version)

    for handle in (by_commit, by_version):
        assert handle.baseline() == point.head.commit_id
        assert handle.commits.list()[0] == point.head
        assert handle.commits.list(branch="main")[0] == graph.snapshot().head
        newest = handle.changes(after=point.head.parent)
        assert [each.commit for each in newest.commits] == [point.head]
        assert newest.is_newest
        for dry_run in (True, False):
            with pytest.raises(NotAllowedError, match="past"):
                handle.merge("main", dry_run=dry_run)
        assert handle.merge("draft", into="main", dry_run=True).changes["Person"].inserted == 2


def test_who_looks_a_commit_up_does_not_mind_that_another_branch_goes(graph, monkeypatch):
    for name in ("a", "b", "c"):
        graph.branches.create(name)
    insert(graph, "eva", branch="c")
    wanted = graph.snapshot(branch="c").head.commit_id
    rival = omnigraph.open(graph.uri)
    listed = Branches.names

    def late(names: Branches) -> tuple[BranchName, ...]:
        found = listed(names)
        for name in ("a", "b"):
            if names is not rival._manifest.names and name in listed(rival._manifest.names):
                rival.branches.delete(name)
        return found

    monkeypatch.setattr(Branches, "names", late)
    assert graph.at(commit=wanted).snapshot().pin(PERSON).row_count == 3
    for name in ("a", "b"):
        rival.branches.create(name)
    assert graph.repair(dry_run=True).drifts == ()
    for name in ("a", "b"):
        rival.branches.create(name)
    assert graph.cleanup(dry_run=True).troubles == ()
