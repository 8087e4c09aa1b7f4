"""Lance branches of tables that no branch of the graph names: reported, and reclaimed in time."""

from collections.abc import Callable
from pathlib import Path

import lance
import pytest

import omnigraph
from omnigraph.failpoints import Failpoint
from omnigraph.graph import Graph
from omnigraph.maintenance.cleanup.ages import STAGED_AGE_MIN
from omnigraph.storage.staging import stage_append
from tests.support.clocks import LaterClock
from tests.support.crashes import Cut, assert_next_writes_work, at_rest, cut_off, picture
from tests.support.publishing import PERSON
from tests.support.tables import applied
from tests.support.writers import furnished, person

LATER = STAGED_AGE_MIN.total_seconds() + 60
SOON = STAGED_AGE_MIN.total_seconds() - 60


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return furnished(str(tmp_path / "graph.omni"))


def clean(graph: Graph, seconds: float = LATER) -> list[str]:
    """Clean up so many seconds later; the refs that were removed."""
    result = omnigraph.open(graph.uri, clock=LaterClock(seconds)).cleanup()
    assert not result.troubles, result.troubles
    return [each.ref for each in result.refs]


def noted(graph: Graph) -> list[str]:
    report = graph.check()
    assert report.is_sound
    return [note.subject.removeprefix("ref ") for note in report.notes if "ref " in note.subject]


def location(graph: Graph) -> str:
    return graph.snapshot().pin(PERSON).location


def plain(graph: Graph) -> lance.LanceDataset:
    return lance.dataset(f"{graph.uri}/{location(graph)}")


def left(graph: Graph, *names: str) -> list[Path]:
    folder = Path(graph.uri, location(graph))
    return [
        path
        for name in names
        for path in (*folder.glob(f"tree/{name}/**/*"), *folder.glob(f"_refs/branches/{name}*"))
    ]


def create_named(graph: Graph) -> list[str]:
    plain(graph).create_branch("review", plain(graph).version)
    return ["review"]


def create_written(graph: Graph) -> list[str]:
    """Another program wrote to it, and nobody published that."""
    branch = plain(graph).create_branch("team/review", plain(graph).version)
    branch.delete("true")
    return ["team/review"]


def create_chain(graph: Graph) -> list[str]:
    """Each shares files with the one before."""
    first = plain(graph).create_branch("first", plain(graph).version)
    lance.write_dataset(plain(graph).to_table(), first, mode="append")
    plain(graph).create_branch("second", ("first", None))
    return ["second", "first"]


def create_halves(graph: Graph) -> list[str]:
    """Kills inside Lance left files without a name, and a name without files."""
    for name in ("nameless", "empty"):
        plain(graph).create_branch(name, plain(graph).version)
    folder = Path(graph.uri, location(graph))
    (folder / "_refs/branches/nameless.json").unlink()
    for path in (folder / "tree/empty").rglob("*.*"):
        path.unlink()
    return ["empty", "nameless"]


STRAYS: dict[str, Callable[[Graph], list[str]]] = {
    "named": create_named,
    "written": create_written,
    "chain": create_chain,
    "halves": create_halves,
}


@pytest.mark.parametrize("kind", STRAYS)
def test_unnamed_ref_is_reported_and_reclaimed_after_the_grace(graph, kind):
    strays = STRAYS[kind](graph)
    rows = picture(graph.uri).rows

    assert sorted(noted(graph)) == sorted(strays)
    assert clean(graph, SOON) == []
    assert sorted(noted(graph)) == sorted(strays)
    assert sorted(clean(graph)) == sorted(strays)

    assert noted(graph) == []
    assert not [path for path in left(graph, *strays) if path.is_file()]
    assert picture(graph.uri).rows == rows
    at_rest(graph.uri, rows=True)
    assert_next_writes_work(graph.uri)


@pytest.mark.parametrize("kind", STRAYS)
def test_dry_run_and_check_leave_unnamed_refs(graph, kind):
    strays = STRAYS[kind](graph)
    before = left(graph, *strays)

    shown = omnigraph.open(graph.uri, clock=LaterClock(LATER), read_only=True).cleanup(dry_run=True)

    assert sorted(each.ref for each in shown.refs) == sorted(strays)
    assert left(graph, *strays) == before


@pytest.mark.parametrize("kind", STRAYS)
def test_killed_cleanup_of_unnamed_refs_is_finished_by_the_next(graph, kind):
    strays = STRAYS[kind](graph)
    for nth in range(1, len(strays) + 1):
        cut_off(Cut(Failpoint.CLEANUP_AFTER_EACH_REF), lambda: clean(graph))
        assert len(noted(graph)) == len(strays) - nth

    assert clean(graph) == []
    at_rest(graph.uri, rows=True)


def test_ref_that_another_program_still_writes_to_stays(graph):
    create_named(graph)
    clock = LaterClock(LATER)
    branch = plain(graph).checkout_version(("review", None))
    branch.delete("name = 'ada'")
    newest = max(path.stat().st_mtime for path in left(graph, "review"))
    age = STAGED_AGE_MIN.total_seconds() - (clock.now().timestamp() - LATER - newest) - 30

    assert clean(graph, age) == []
    assert noted(graph) == ["review"]


def test_ref_that_a_branch_shares_files_with_stays(graph):
    pin = graph.snapshot().pin(PERSON)
    refs, tables = graph._store.refs, graph._store.tables
    stray = refs.create(pin.location, "review", source=None, version=pin.version)
    written = applied(
        stage_append(stray, stray.read().slice(0, 0).from_pylist([person("x")], stray.schema))
    )
    graph.branches.create("draft")
    fork = f"{graph.snapshot(branch='draft').ref}/{graph._clock.ulid()}"
    refs.start(pin.location, fork, source="review", version=written.version)
    later = omnigraph.open(graph.uri, clock=LaterClock(SOON))

    # The fork is too young to be reclaimed, so what it shares files with is needed.
    removed = [each.ref for each in later.cleanup().refs]
    assert removed == []
    assert tables.open_latest(pin.location, ref=fork).count_rows() == 3
