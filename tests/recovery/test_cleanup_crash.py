"""A cleanup, cut off anywhere and run again: nothing needed goes, and nothing else stays."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

import omnigraph
from omnigraph.clock import SystemClock
from omnigraph.failpoints import Failpoint
from omnigraph.graph import Graph
from omnigraph.maintenance.cleanup import run
from omnigraph.manifest.layout import RETENTION
from omnigraph.recovery.scratch import scratch_folder
from tests.support.clocks import LaterClock
from tests.support.crashes import (
    Cut,
    assert_next_writes_work,
    at_rest,
    cut_off,
    put_to_death,
    trace,
)
from tests.support.retention import LET_GO, digests, tree, unnamed_files
from tests.support.writers import furnished, insert

MUCH_LATER: Final = 10 * 24 * 3600.0
CHUNK: Final = 3
"""Files between two failpoints."""


def furnish(uri: str) -> Graph:
    """A graph with something of every kind that a cleanup removes."""
    graph = furnished(uri)
    graph.settings.set("maintenance.optimize", "off")
    graph.branches.create("old")
    insert(graph, "eva", branch="old")
    graph.merge("old", delete_branch=True)
    graph.ensure_indices()
    graph.schema.apply("node Person { name: String @key  age: I32? }")
    graph.optimize()
    graph.branches.create("draft")
    insert(graph, "fay", branch="draft")
    insert(graph, "gus")
    graph.tags.create("kept")
    for name in ("hal", "ida", "jo"):
        insert(graph, name)
    cut_off(Cut(Failpoint.WRITE_AFTER_STAGE), lambda: insert(graph, "kim"))
    graph._store.objects.put(f"{scratch_folder(SystemClock().ulid())}/part.parquet", b"rows")
    return graph


class Place:
    """A graph that can be put back as it was, at the same path: branches hold absolute paths."""

    def __init__(self, folder: Path) -> None:
        self.uri = str(folder / "graph.omni")
        self._copy = folder / "copy"
        furnish(self.uri)
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


def clean(uri: str) -> None:
    omnigraph.open(uri, clock=LaterClock(MUCH_LATER)).cleanup(keep_commits=2)


def clean_in_chunks(uri: str) -> None:
    # In a process of its own, which is killed.
    setattr(run, "CLEANUP_CHUNK_FILES", CHUNK)  # noqa: B010
    clean(uri)


def cuts(uri: str) -> list[Cut]:
    return [each for each in trace(lambda: clean(uri)) if each.point.startswith("cleanup.")]


def settled(uri: str) -> dict[str, int]:
    """The files of a graph, without what tells when a cleanup ran."""
    files = {path: size for path, size in tree(uri).items() if not path.startswith(RETENTION)}
    for path in files:
        if path.endswith("_removed_versions"):
            files[path] = 0
    return files


def raised(cut: Cut, uri: str) -> None:
    cut_off(cut, lambda: clean(uri))


def killed(cut: Cut, uri: str) -> None:
    put_to_death(cut, clean_in_chunks, uri)


def check_after_a_cut(place: Place, uri: str, expected: dict[str, str]) -> None:
    """Every commit reads as before, or says that it expired, if it may go."""
    now = digests(uri)
    for commit_id, was in place.before.items():
        allowed = {was, expected[commit_id]}
        assert now[commit_id] in allowed, commit_id
    at_rest(uri)


def test_the_loop_passes_every_failpoint_of_a_cleanup(place):
    assert {each.point for each in cuts(place.uri)} == {
        each for each in Failpoint if each.startswith("cleanup.")
    }


@pytest.mark.parametrize(("kill", "step"), [(raised, 1), (killed, 7)], ids=["raised", "killed"])
def test_a_cleanup_that_is_cut_off_is_finished_by_the_next(
    place: Place, kill: Callable[[Cut, str], None], step: int
) -> None:
    every = cuts(place.uri)
    expected, files = digests(place.uri), settled(place.uri)
    assert LET_GO in expected.values()
    assert unnamed_files(place.uri) == set()
    assert len(every) > 20
    for cut in every[::step]:
        uri = place.restore()
        kill(cut, uri)
        check_after_a_cut(place, uri, expected)
        clean(uri)
        assert digests(uri) == expected, cut
        assert settled(uri) == files, cut
    assert_next_writes_work(place.uri)


def test_a_second_cleanup_that_is_cut_off_too_is_finished_by_a_third(place):
    every = cuts(place.uri)
    expected, files = digests(place.uri), settled(place.uri)
    for number, cut in enumerate(every[::4]):
        uri = place.restore()
        raised(cut, uri)
        again = cuts_left(uri)
        if again:
            raised(again[number % len(again)], uri)
        check_after_a_cut(place, uri, expected)
        clean(uri)
        assert digests(uri) == expected
        assert settled(uri) == files


def cuts_left(uri: str) -> list[Cut]:
    """The cuts of a cleanup of a graph as it is, which stays as it is."""
    copy = f"{uri}.aside"
    shutil.copytree(uri, copy)
    try:
        return cuts(uri)
    finally:
        shutil.rmtree(uri)
        shutil.move(copy, uri)


def test_writes_between_a_cut_and_the_next_cleanup_are_kept(place):
    for cut in cuts(place.uri)[::5]:
        uri = place.restore()
        raised(cut, uri)
        graph = omnigraph.open(uri)
        insert(graph, "zed")
        insert(graph, "zed", branch="draft")
        graph.merge("draft")
        before = digests(uri)[graph.snapshot().head.commit_id]
        clean(uri)
        assert digests(uri)[graph.snapshot().head.commit_id] == before
        assert unnamed_files(uri) == set()
        at_rest(uri)


def test_marks_that_nobody_confirmed_mean_nothing(place):
    uri = place.restore()
    raised(Cut(Failpoint.CLEANUP_AFTER_MARK), uri)
    assert digests(uri) == place.before
    record = json.loads(Path(uri, RETENTION, "main.json").read_text())
    assert record["marked"]
    graph = omnigraph.open(uri)
    marked = graph.commits.list()[-1]
    assert graph.commits.let_go([marked]) == {}
    graph.branches.create("late", commit=marked.commit_id)
    clean(uri)
    assert digests(uri)[marked.commit_id] == place.before[marked.commit_id]
