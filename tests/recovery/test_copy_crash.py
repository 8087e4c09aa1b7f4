"""A copy, cut off anywhere and run again: never half a graph, and at the end all of it."""

from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path

import pytest

import omnigraph
from omnigraph.errors import GraphNotFoundError
from omnigraph.failpoints import Failpoint
from tests.support.crashes import Cut, at_rest, copied, cut_off, picture, put_to_death, trace
from tests.support.lived_in import SECOND, History, history_of, lived_in
from tests.support.writers import DRAFT, RESHAPED, insert

_numbers = count()
COMPLETE = {Failpoint.COPY_AFTER_OPEN, Failpoint.COPY_AFTER_COMPLETE}


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> str:
    uri = str(tmp_path_factory.mktemp("source") / "world.omni")
    lived_in(uri)
    return uri


@pytest.fixture
def place(source: str, tmp_path: Path) -> Callable[[], tuple[str, str]]:
    """A graph of its own, and a place for a copy."""

    def make() -> tuple[str, str]:
        number = next(_numbers)
        return copied(source, tmp_path / f"{number}.omni"), str(tmp_path / f"{number}-copy.omni")

    return make


def copy(source: str, target: str) -> None:
    assert omnigraph.open(source, read_only=True).copy(target).is_sound


def change(source: str) -> None:
    """Something new of every kind."""
    graph = omnigraph.open(source)
    graph.settings.set("maintenance.keep_days", 7)
    insert(graph, "new", branch=DRAFT)
    graph.merge(DRAFT)
    graph.branches.create("third", branch=DRAFT)
    insert(graph, "of third", branch="third")
    graph.tags.create("late", branch="third")
    graph.branches.delete(SECOND)
    graph.schema.apply(RESHAPED)
    insert(graph, "last")


def sample(cuts: list[Cut]) -> list[Cut]:
    """The first, a middle and the last pass through each point."""
    passes: dict[Failpoint, list[Cut]] = {}
    for cut in cuts:
        if cut.point.startswith("copy."):
            passes.setdefault(cut.point, []).append(cut)
    chosen = ((each[0], each[len(each) // 2], each[-1]) for each in passes.values())
    return [cut for some in chosen for cut in dict.fromkeys(some)]


def assert_closed(target: str) -> None:
    """Nobody takes the target for a graph, not for reading and not for writing."""
    for read_only in (True, False):
        with pytest.raises(GraphNotFoundError):
            omnigraph.open(target, read_only=read_only)


def assert_same(source: str, target: str) -> None:
    assert history_of(target) == history_of(source)
    assert picture(target).rows == picture(source).rows
    assert omnigraph.open(target).tags.list() == omnigraph.open(source).tags.list()
    at_rest(target)


def assert_whole_commits(target: str, known: History) -> None:
    """Every commit that a reader finds has its rows, and every branch is at one of them."""
    found = history_of(target)
    assert found == {each: known[each] for each in found}
    report = omnigraph.open(target, read_only=True).check(rows=False, history=True)
    assert {each.invariant for each in report.findings} <= {"head"}, report.findings


@pytest.mark.timeout(600)
def test_first_copy_that_is_cut_off_is_no_graph_and_continued(place):
    uri, target = place()
    cuts = sample(trace(lambda: copy(uri, target)))
    assert len({cut.point for cut in cuts}) == 8
    for cut in cuts:
        uri, target = place()
        cut_off(cut, partial(copy, uri, target))
        if cut.point in COMPLETE:
            assert_same(uri, target)
        else:
            assert_closed(target)
        copy(uri, target)
        assert_same(uri, target)


@pytest.mark.timeout(600)
def test_first_copy_is_continued_after_its_source_moved_on(place):
    uri, target = place()
    cuts = sample(trace(lambda: copy(uri, target)))
    uri, target = place()
    for point in dict.fromkeys(cut.point for cut in cuts if cut.point not in COMPLETE):
        cut_off(Cut(point), partial(copy, uri, target))
        assert_closed(target)
        graph = omnigraph.open(uri)
        insert(graph, f"meanwhile {point}")
        insert(graph, f"meanwhile {point}", branch=DRAFT)
    copy(uri, target)
    assert_same(uri, target)


@pytest.mark.timeout(600)
def test_later_copy_that_is_cut_off_leaves_whole_commits(place):
    uri, target = place()
    copy(uri, target)
    before = history_of(uri)
    change(uri)
    known = {**before, **history_of(uri)}
    base = copied(target, Path(f"{target}-base"))
    cuts = sample(trace(lambda: copy(uri, target)))
    assert len({cut.point for cut in cuts}) == 8
    assert_same(uri, target)
    for cut in cuts:
        again = copied(base, Path(f"{target}-{cut}"))
        cut_off(cut, partial(copy, uri, again))
        assert_whole_commits(again, known)
        if cut.point not in COMPLETE:
            cut_off(Cut(Failpoint.COPY_AFTER_TABLES), partial(copy, uri, again))
            assert_whole_commits(again, known)
        copy(uri, again)
        assert_same(uri, again)


@pytest.mark.parametrize(
    "point", [Failpoint.COPY_AFTER_SHUT, Failpoint.COPY_AFTER_EACH_FILE, Failpoint.COPY_AFTER_OPEN]
)
def test_killed_copy_is_continued_at_once(place, point):
    """Its process has ended, so nobody waits for its lease."""
    uri, target = place()
    put_to_death(Cut(point), copy, uri, target)
    if point not in COMPLETE:
        assert_closed(target)
    copy(uri, target)
    assert_same(uri, target)
