"""Cleanups race every other operation, in every order: what is kept is whole, and nobody fails."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import count
from pathlib import Path
from typing import Final

import pytest

import omnigraph
from omnigraph.clock import SystemClock
from omnigraph.errors import CommitLetGoError
from omnigraph.failpoints import Failpoint
from omnigraph.graph import Graph
from omnigraph.recovery.scratch import scratch_folder
from tests.recovery import test_optimize_races
from tests.support import crashes
from tests.support.clocks import LaterClock
from tests.support.crashes import Cut, as_other_machine, at_rest, picture, sleeping_at, trace
from tests.support.retention import LET_GO, digests, unnamed_files
from tests.support.writers import DRAFT, WRITERS, furnished, insert

Operation = Callable[[Graph], object]

HOURS: Final = 3 * 3600.0
"""How much later a cleanup runs: beyond the grace of every commit, and before files are garbage."""
MUCH_LATER: Final = 10 * 24 * 3600.0

OPERATIONS: Final[Mapping[str, Operation]] = {
    **test_optimize_races.OPERATIONS,
    "an optimize": lambda graph: graph.optimize(),
    "a tag": lambda graph: graph.tags.create("late"),
    "a deleted tag": lambda graph: graph.tags.delete("early"),
    "another cleanup": lambda graph: clean(graph.uri),
    "a setting": lambda graph: graph.settings.set("maintenance.keep_commits", 5),
}

_numbers = count()


def clean(uri: str, seconds: float = HOURS) -> None:
    done = omnigraph.open(uri, clock=LaterClock(seconds)).cleanup(keep_commits=1)
    assert done.troubles == ()


def furnish(uri: str) -> Graph:
    """Something of everything that a cleanup removes, and branches to merge and to delete."""
    graph = furnished(uri)
    prepare = WRITERS["optimize"].prepare
    assert prepare is not None
    graph.branches.create("old")
    insert(graph, "uma", branch="old")
    graph.merge("old", delete_branch=True)
    graph.tags.create("early")
    prepare(graph)
    for name in (test_optimize_races.SIDE, DRAFT):
        graph.branches.create(name)
        insert(graph, f"of {name}", branch=name)
    graph._store.objects.put(f"{scratch_folder(SystemClock().ulid())}/part.parquet", b"rows")
    return graph


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> str:
    return furnish(str(tmp_path_factory.mktemp("base") / "graph.omni")).uri


@pytest.fixture
def place(base: str, tmp_path: Path) -> Callable[[], str]:
    return lambda: crashes.copied(base, tmp_path / f"{next(_numbers)}.omni")


@pytest.fixture
def _apart(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with as_other_machine(monkeypatch):
        yield


def check(uri: str, right: crashes.Picture, cut: Cut) -> None:
    """The operation happened, branches have their rows, and the next cleanup leaves no garbage."""
    seen = picture(uri)
    assert seen.rows == right.rows, cut
    assert seen.schemas == right.schemas, cut
    at_rest(uri, rows=True)
    before = digests(uri)
    clean(uri, MUCH_LATER)
    after = digests(uri)
    assert all(after[each] in (before[each], LET_GO) for each in after), cut
    assert picture(uri).rows == right.rows, cut
    assert unnamed_files(uri) == set(), cut


def alone(place: Callable[[], str], operation: Operation) -> crashes.Picture:
    """The rows that are right: those after the operation alone."""
    uri = place()
    operation(omnigraph.open(uri))
    return picture(uri)


def overtake_cleanup(uri: str, cut: Cut, operation: Operation) -> None:
    """The operation happens while a cleanup sleeps here; neither may fail."""
    with sleeping_at(cut, lambda: operation(omnigraph.open(uri))):
        clean(uri)


def overtake_by_cleanup(uri: str, cut: Cut, operation: Operation) -> None:
    """A cleanup happens while the operation sleeps here; neither may fail."""
    graph = omnigraph.open(uri)
    with sleeping_at(cut, partial(clean, uri)):
        operation(graph)


def cuts_of(uri: str, operation: Operation) -> list[Cut]:
    return trace(lambda: operation(omnigraph.open(uri)))


@pytest.mark.usefixtures("_apart")
@pytest.mark.parametrize("name", OPERATIONS)
def test_a_cleanup_that_is_overtaken_takes_nothing_of_what_overtook_it(place, name):
    uri, cut = place(), Cut(Failpoint.CLEANUP_AFTER_CONFIRM)
    overtake_cleanup(uri, cut, OPERATIONS[name])
    check(uri, alone(place, OPERATIONS[name]), cut)


@pytest.mark.soak
@pytest.mark.timeout(0)
@pytest.mark.usefixtures("_apart")
@pytest.mark.parametrize("name", OPERATIONS)
def test_a_cleanup_may_be_overtaken_anywhere(place, name):
    right = alone(place, OPERATIONS[name])
    met = place()
    points = {cut.point for cut in trace(partial(clean, met)) if cut.point.startswith("cleanup.")}
    assert len(points) >= 6
    for point in sorted(points):
        uri = place()
        overtake_cleanup(uri, Cut(point), OPERATIONS[name])
        check(uri, right, Cut(point))


@pytest.mark.soak
@pytest.mark.timeout(0)
@pytest.mark.usefixtures("_apart")
@pytest.mark.parametrize("name", OPERATIONS)
def test_a_cleanup_may_overtake_anywhere(place, name):
    operation = OPERATIONS[name]
    right = alone(place, operation)
    for cut in cuts_of(place(), operation):
        uri = place()
        overtake_by_cleanup(uri, cut, operation)
        check(uri, right, cut)


def test_a_cleanup_on_s3_may_be_overtaken_and_cut_off(s3_bucket):
    """At one point each; the soak test takes all."""
    _check_on_s3(s3_bucket, step=9)


@pytest.mark.soak
@pytest.mark.timeout(0)
def test_a_cleanup_on_s3_may_be_cut_off_anywhere(s3_bucket):
    _check_on_s3(s3_bucket, step=1)


def _check_on_s3(bucket: str, *, step: int) -> None:
    graph = furnished(f"s3://{bucket}/{next(_numbers)}.omni")
    graph.branches.create(DRAFT)
    insert(graph, "eva", branch=DRAFT)
    for name in ("fay", "gil"):
        insert(graph, name)
    stored = {path: graph._store.objects.read(path) for path in graph._store.objects.list("")}

    def restored() -> str:
        other = graph._store.objects
        for path in set(other.list("")) - stored.keys():
            other.delete(path)
        for path, each in stored.items():
            assert each is not None
            other.put(path, each.data)
        return graph.uri

    right = picture(graph.uri)
    cuts = [cut for cut in trace(lambda: clean(restored())) if cut.point.startswith("cleanup.")]
    assert cuts
    expected = digests(graph.uri)
    for cut in cuts[::step]:
        uri = restored()
        crashes.cut_off(cut, lambda uri=uri: clean(uri))  # type: ignore[misc]
        late = f"late {next(_numbers)}"
        insert(omnigraph.open(uri), late)
        clean(uri)
        after = digests(uri)
        assert {each: after[each] for each in expected if expected[each] == LET_GO} == {
            each: LET_GO for each in expected if expected[each] == LET_GO
        }
        seen = picture(uri)
        assert {late} == {row["id"] for row in seen.rows["main", "node:Person"]} - {
            row["id"] for row in right.rows["main", "node:Person"]
        }
        at_rest(uri)


@pytest.mark.parametrize("need", ["branch", "tag"])
def test_a_commit_that_was_let_go_cannot_be_named_again(place, need):
    uri = place()
    clean(uri, MUCH_LATER)
    graph = omnigraph.open(uri)
    gone = graph.commits.list()[-1].commit_id
    create = graph.branches.create if need == "branch" else graph.tags.create
    with pytest.raises(CommitLetGoError, match="keep_commits=1"):
        create("again", commit=gone)
    assert "again" not in (*graph.branches.list(), *(tag.name for tag in graph.tags.list()))
