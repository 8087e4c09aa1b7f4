"""A purge, cut off anywhere and run again: nothing else goes, and nothing of it stays."""

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

import pytest

import omnigraph
from omnigraph.failpoints import Failpoint
from omnigraph.maintenance.cleanup import run
from tests.support.crashes import Cut, at_rest, cut_off, much_later, put_to_death, trace
from tests.support.purging import AFTER, files_with_needles, furnish_secrets, later, purge_now
from tests.support.retention import LET_GO, digests

DAYS: Final = 10 * 86_400.0
"""By then whatever a killed process staged is old."""
CHUNK: Final = 3
"""Files between two failpoints."""


class Place:
    """A graph with dropped values that can be put back as it was, at the same path."""

    def __init__(self, folder: Path) -> None:
        self.uri = str(folder / "graph.omni")
        self._copy = folder / "copy"
        graph = furnish_secrets(self.uri)
        self.first = graph.commits.list()[-1].commit_id
        graph.schema.apply(AFTER)
        graph.load({"Person": [{"name": "dan"}]}, index=False)
        shutil.copytree(self.uri, self._copy)
        self.before = digests(self.uri)

    def restore(self) -> str:
        shutil.rmtree(self.uri)
        shutil.copytree(self._copy, self.uri)
        return self.uri


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setattr(run, "CLEANUP_CHUNK_FILES", CHUNK)
    return Place(tmp_path)


def purge_in_chunks(uri: str) -> None:
    # In a process of its own, which is killed.
    setattr(run, "CLEANUP_CHUNK_FILES", CHUNK)  # noqa: B010
    purge_now(uri)


def raised(cut: Cut, uri: str) -> None:
    cut_off(cut, lambda: purge_now(uri))


def killed(cut: Cut, uri: str) -> None:
    put_to_death(cut, purge_in_chunks, uri)


def cuts(uri: str) -> list[Cut]:
    """Every pass of a purge of a graph as it is; the graph stays as it is."""
    copy = f"{uri}.aside"
    shutil.copytree(uri, copy)
    try:
        return trace(partial(purge_now, uri))
    finally:
        shutil.rmtree(uri)
        shutil.move(copy, uri)


def check_after_a_cut(place: Place, uri: str) -> None:
    """Every commit reads as before, or says that it expired, if it holds what is purged."""
    much_later(uri)
    now = digests(uri)
    for commit_id, was in place.before.items():
        allowed = {was} if commit_id == place.first else {was, LET_GO}
        assert now[commit_id] in allowed, commit_id
    assert len(set(digests(uri).values()) - {LET_GO}) >= 2, "the newest commit, and the first one"
    at_rest(uri)


def check_the_end(place: Place, uri: str) -> None:
    """Run it again: a purge that says that it is done has left nothing."""
    if purge_now(uri).is_done:
        assert files_with_needles(uri) == set()
    assert later(uri, DAYS).schema.purge(keep_commits=1).is_done
    assert files_with_needles(uri) == set()
    now = digests(uri)
    held = place.before.keys() - {place.first}
    assert {commit_id for commit_id, read in now.items() if read == LET_GO} >= held
    assert now[place.first] == place.before[place.first]
    query = "query q() { match { $p: Person } return { $p.name } order { $p.name } }"
    rows = omnigraph.open(uri).query(query).rows()
    assert [row["p.name"] for row in rows] == ["ada", "bob", "cy", "dan"]
    at_rest(uri, rows=True)


def test_the_loop_passes_the_failpoints_of_a_rewrite_and_of_a_removal(place):
    points = {cut.point for cut in cuts(place.uri)}
    wanted = {point for point in Failpoint if point.startswith(("write.after_", "cleanup.after_"))}
    others = {
        Failpoint.WRITE_AFTER_EACH_FORK,
        Failpoint.WRITE_AFTER_EACH_TABLE,
        Failpoint.WRITE_AFTER_CONFIRM,
        Failpoint.CLEANUP_AFTER_EACH_REF,
        Failpoint.CLEANUP_AFTER_EACH_SCRATCH,
        Failpoint.CLEANUP_AFTER_EACH_SCHEMA,
        Failpoint.CLEANUP_AFTER_EACH_TABLE,
    }
    assert wanted - others <= points


def interrupt_each(
    place: Place, kill: Callable[[Cut, str], None], *, first: int, step: int, twice: bool
) -> None:
    every = cuts(place.restore())
    assert len(every) > 40
    confirmed = Cut(Failpoint.CLEANUP_AFTER_CONFIRM)
    for number, cut in enumerate([confirmed, *every[first::step]]):
        uri = place.restore()
        kill(cut, uri)
        if twice and (again := cuts(uri)):
            kill(again[number % len(again)], uri)
        check_after_a_cut(place, uri)
        check_the_end(place, uri)


def test_a_purge_that_is_cut_off_twice_is_finished_by_the_next(place):
    # The soak test below visits every cut, once and twice.
    interrupt_each(place, raised, first=3, step=8, twice=True)


@pytest.mark.soak
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("kill", [raised, killed], ids=["raised", "killed"])
@pytest.mark.parametrize("twice", [False, True], ids=["once", "twice"])
def test_a_purge_survives_every_cut(place, kill, twice):
    interrupt_each(place, kill, first=0, step=1, twice=twice)
