"""Graphs that are moved or copied keep their branches, at every commit, and can be written."""

import shutil
from pathlib import Path
from typing import Final

import pytest

import omnigraph
from omnigraph.errors import StorageError
from omnigraph.model.names import MAIN
from omnigraph.storage.store import Store
from tests.support.clocks import LaterClock
from tests.support.crashes import at_rest, copied, picture, upload_graph
from tests.support.lived_in import SECOND, History, history_of, lived_in
from tests.support.publishing import KNOWS, PERSON
from tests.support.writers import DRAFT, found_city, insert

MONTH_SECONDS: Final = 32 * 86_400.0


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, History]:
    uri = str(tmp_path_factory.mktemp("original") / "world.omni")
    lived_in(uri)
    return uri, history_of(uri)


def _rename(source: str, target: Path) -> str:
    return str(Path(source).rename(target / "elsewhere.omni"))


def _copy(source: str, target: Path) -> str:
    copy = copied(source, target / "copy.omni")
    # What it would read of the original is not there any more.
    shutil.rmtree(source)
    return copy


def _rename_twice(source: str, target: Path) -> str:
    between = Path(source).rename(target / "between.omni")
    insert(omnigraph.open(between), "between", branch=DRAFT)
    omnigraph.open(between).branches.create("third", branch=DRAFT)
    return str(between.rename(target / "ünd wider %41.omni"))


@pytest.fixture(params=["renamed", "copied", "renamed twice", "in a bucket"])
def moved(
    request: pytest.FixtureRequest, original: tuple[str, History], tmp_path: Path
) -> tuple[str, History]:
    """A graph in another place than it was made in, and its history before it moved."""
    source = copied(original[0], tmp_path / "source" / "world.omni")
    # A copy for each test; its branches were made at the place of the original.
    match request.param:
        case "renamed":
            return _rename(source, tmp_path), original[1]
        case "copied":
            return _copy(source, tmp_path), original[1]
        case "renamed twice":
            return _rename_twice(source, tmp_path), original[1]
        case _:
            bucket = request.getfixturevalue("s3_bucket")
            uri = upload_graph(source, f"s3://{bucket}/backups/world.omni")
            shutil.rmtree(source)
            return uri, original[1]


def test_moved_graph_reads_every_commit_of_every_branch(moved, original):
    uri, history = moved
    damage(original[0])
    try:
        found = history_of(uri)
    finally:
        mend(original[0])

    assert {place: found[place] for place in history} == history
    at_rest(uri)


def damage(uri: str) -> None:
    """Take away what a copy must not read."""
    for folder in ("nodes", "edges", "__manifest"):
        Path(uri, folder).rename(Path(uri, f"away-{folder}"))


def mend(uri: str) -> None:
    for folder in ("nodes", "edges", "__manifest"):
        Path(uri, f"away-{folder}").rename(Path(uri, folder))


def test_moved_graph_can_be_written_on_every_branch(moved):
    uri, history = moved
    graph = omnigraph.open(uri)
    for branch in (MAIN, DRAFT, SECOND):
        insert(graph, f"new on {branch}", branch=branch)
    graph.branches.create("late", branch=SECOND)
    insert(graph, "late", branch="late")
    graph.ensure_indices(branch=DRAFT)
    graph.optimize(branch=SECOND)
    graph.merge(DRAFT, into=SECOND)
    graph.merge("late")
    graph.branches.delete("late")

    fresh = picture(uri).rows
    assert {"yan", "ada", "late", "sam", f"new on {SECOND}"} <= {
        row["id"] for row in fresh[MAIN, str(PERSON)]
    }
    assert [row["id"] for row in fresh[DRAFT, str(KNOWS)]] == []
    found = history_of(uri)
    assert {place: found[place] for place in history} == history
    at_rest(uri, rows=True)


def test_moved_graph_keeps_its_maintenance(moved):
    uri, history = moved
    graph = omnigraph.open(uri)
    insert(graph, "new", branch=DRAFT)

    removed = graph.cleanup()
    assert graph.repair().drifts == ()

    assert not removed.troubles
    found = history_of(uri)
    assert {place: found[place] for place in history} == history
    at_rest(uri, rows=True)


def test_moved_graph_lets_commits_go(moved):
    uri, history = moved
    graph = omnigraph.open(uri, clock=LaterClock(MONTH_SECONDS))
    newest = {
        branch: f"{branch} {graph.snapshot(branch=branch).head.commit_id}"
        for branch in graph.branches.list()
    }

    removed = graph.cleanup(keep_commits=1, older_than="1d")

    assert removed.commits
    assert removed.versions
    assert not removed.troubles
    for branch, place in newest.items():
        # One copy was written to between its two moves.
        if place in history:
            rows = picture(uri).rows
            assert {key: rows[branch, key] for key in history[place]} == history[place]
    at_rest(uri, rows=True)


def test_reading_moved_graph_writes_nothing(moved):
    uri, _ = moved
    before = {entry.path: entry.written_at for entry in Store.open(uri).objects.entries("")}

    history_of(uri)
    reader = omnigraph.open(uri, read_only=True)
    reader.check(history=True)

    after = {entry.path: entry.written_at for entry in Store.open(uri).objects.entries("")}
    assert after == before


def test_copy_and_original_are_independent(original, tmp_path):
    source = copied(original[0], tmp_path / "source.omni")
    other = copied(source, tmp_path / "other.omni")

    insert(omnigraph.open(source), "ours", branch=DRAFT)
    insert(omnigraph.open(other), "theirs", branch=DRAFT)
    found_city(omnigraph.open(other), "paris", branch=DRAFT)

    names = {
        uri: {row["id"] for row in picture(uri).rows[DRAFT, str(PERSON)]} for uri in (source, other)
    }
    assert names[source] == {"ada", "bob", "yan", "ours"}
    assert names[other] == {"ada", "bob", "yan", "theirs"}
    at_rest(source)
    at_rest(other)


def test_base_path_of_another_table_is_refused(tmp_path):
    graph = lived_in(tmp_path / "graph.omni")
    pin = graph.snapshot(branch=DRAFT).pin(PERSON)
    other = pin.location[:-1] + ("0" if pin.location[-1] != "0" else "1")
    shutil.copytree(Path(graph.uri, pin.location), Path(graph.uri, other))

    with pytest.raises(StorageError, match="is not of this table"):
        Store.open(graph.uri).tables.open(other, ref=pin.ref, version=pin.version)
