"""Crashes: traces the failpoints of a write, crashes it there, and checks the state afterwards."""

import shutil
import signal
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph import failpoints
from omnigraph.errors import StaleHeadError
from omnigraph.failpoints import Failpoint, SimulatedCrash, arm
from omnigraph.graph import Graph
from omnigraph.maintenance.checking.report import Invariant
from omnigraph.manifest.layout import RECOVERY
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.model.commits import MAINTENANCE_KINDS, OperationKind
from omnigraph.model.names import MAIN
from omnigraph.model.tables import TableKey
from omnigraph.recovery.entries import RecoveryEntry
from omnigraph.storage.indexes import IndexSpec, covered_fragments
from omnigraph.storage.store import Store
from tests.support.clocks import LaterClock
from tests.support.concurrency import fork_context
from tests.support.publishing import PERSON
from tests.support.writers import WRITERS, current_key, furnished, insert, person, upserts, write

NEVER_ENDING = 3_600.0
COLUMNS = ("id", "name", "src", "dst")


@dataclass(frozen=True, slots=True)
class Cut:
    """One pass through a failpoint: the `nth` one through this point."""

    point: Failpoint
    nth: int = 1

    def __str__(self) -> str:
        return f"{self.point}@{self.nth}"


def trace(action: Callable[[], object]) -> list[Cut]:
    """Every pass of the action through a failpoint, in order."""
    passes: list[Cut] = []
    counts: Counter[Failpoint] = Counter()

    def note(point: Failpoint) -> None:
        counts[point] += 1
        passes.append(Cut(point, counts[point]))

    with ExitStack() as stack:
        for point in Failpoint:
            stack.enter_context(arm(point, partial(note, point)))
        action()
    return passes


def cut_off(cut: Cut, action: Callable[[], object]) -> None:
    """Let the action crash at this pass, which it must reach."""
    with arm(cut.point, after_hits=cut.nth - 1), pytest.raises(SimulatedCrash):
        action()


def put_to_death(cut: Cut, work: Callable[..., object], *arguments: Any) -> None:
    """Do the work in its own process, which is killed at this pass and must reach it."""
    process = fork_context().Process(target=_armed_and, args=(str(cut), work, *arguments))
    process.start()
    process.join(60)
    assert process.exitcode == -signal.SIGKILL, f"{cut}: {process.exitcode}"


def _armed_and(cut: str, work: Callable[..., object], *arguments: Any) -> None:
    point, _, nth = cut.partition("@")
    failpoints.arm_from_environment(f"{point}=kill@{nth}")
    work(*arguments)


def write_by_name(uri: str, writer: str) -> None:
    """Open the graph and run the writer's write."""
    WRITERS[writer].write(omnigraph.open(uri))


def reopen(uri: str) -> None:
    """A read-write open, which sweeps."""
    omnigraph.open(uri)


def sleeping_at(cut: Cut, meanwhile: Callable[[], object]) -> AbstractContextManager[None]:
    """Let whoever comes to this pass sleep there once, while something else happens."""
    slept = False

    def sleep() -> None:
        nonlocal slept
        if not slept:
            slept = True
            meanwhile()

    return arm(cut.point, sleep, after_hits=cut.nth - 1)


def much_later(uri: str) -> Graph:
    """A handle for which every lease has run out; opening it sweeps."""
    return omnigraph.open(uri, clock=LaterClock(NEVER_ENDING))


@contextmanager
def as_other_machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let handles of this process compete like those of two machines: without queues or locks.

    Only the protocol itself protects them from each other.
    """
    with monkeypatch.context() as patch:
        patch.setattr("omnigraph.transaction.commit.QUEUE_SECONDS_MAX", 0.0)
        patch.setattr("omnigraph.manifest.publisher.PUBLISH_TURN_SECONDS_MAX", 0.0)
        patch.setattr("omnigraph.recovery.sweep._locks", _NoLocks())
        yield


class _NoLocks:
    def __getitem__(self, _: str) -> ExitStack:
        return ExitStack()


@dataclass(frozen=True, slots=True)
class Picture:
    """What readers can see of a graph, without its history.

    Attributes:
        rows: By branch and type, its rows ordered by id.
        indexed: By branch and type, the columns whose index covers all rows.
        fragments: By branch and type, the rows and the deleted rows of each fragment.
        schemas: By branch, the digest of its schema.
    """

    rows: Mapping[tuple[str, str], Sequence[Mapping[str, Any]]]
    indexed: Mapping[tuple[str, str], frozenset[str]]
    fragments: Mapping[tuple[str, str], Sequence[tuple[int, int]]]
    schemas: Mapping[str, str]


def picture(uri: str) -> Picture:
    """What a fresh reader sees."""
    rows, indexed, fragments, schemas = {}, {}, {}, {}
    for snapshot in _snapshots(uri):
        schemas[str(snapshot.branch)] = snapshot.schema_digest
        tables = Store.open(uri).tables
        for key, pin in snapshot.pins.items():
            table = tables.open(pin.location, ref=pin.ref, version=pin.version)
            sorted_rows = sorted(table.read().to_pylist(), key=lambda row: row["id"])
            name = (str(snapshot.branch), str(key))
            rows[name] = sorted_rows
            every = {each.id for each in table.fragments()}
            full = (each for each in COLUMNS if covered_fragments(table, IndexSpec(each)) >= every)
            indexed[name] = frozenset(full if every else ())
            fragments[name] = [(each.num_rows, each.num_deletions) for each in table.fragments()]
    return Picture(rows, indexed, fragments, schemas)


def past_rows(uri: str, commit_id: str) -> Mapping[str, Sequence[Mapping[str, Any]]]:
    """By type, what a fresh reader sees at a commit."""
    reader = omnigraph.open(uri, read_only=True)
    tables = Store.open(uri).tables
    return {
        str(key): tables.open_pin(pin).read().to_pylist()
        for key, pin in reader.snapshot(commit=commit_id).pins.items()
    }


def rows_of(uri: str, key: TableKey, branch: str = MAIN) -> Sequence[Mapping[str, Any]]:
    """The rows of the type that was introduced by this key, whatever it is called now."""
    snapshot = omnigraph.open(uri, read_only=True).snapshot(branch=branch)
    return picture(uri).rows[branch, str(current_key(snapshot, key))]


def _snapshots(uri: str) -> list[Snapshot]:
    reader = omnigraph.open(uri, read_only=True)
    return [reader.snapshot(branch=each) for each in reader._manifest.branches()]


@dataclass(frozen=True, slots=True)
class Rest:
    """A graph at rest: what a sweep with nothing to do must not change."""

    snapshots: Sequence[Snapshot]
    recoveries: tuple[RecoveryEntry, ...]


def at_rest(uri: str, *, rows: bool = False) -> Rest:
    """Assert that the graph is sound, without a write in progress, every head pinned; return it.

    Args:
        rows: Whether to check the rules on every row, too, which takes ten times as long: for
            states that others are compared with, row by row.
    """
    reader = omnigraph.open(uri, read_only=True)
    report = reader.check(rows=rows, history=True)
    assert report.is_sound, report.findings
    # Unreferenced forks of a killed writer are harmless.
    moving = {Invariant.HEAD, Invariant.SIDECAR}
    assert not [each for each in report.notes if each.invariant in moving], report.notes
    return Rest(_snapshots(uri), reader.recoveries.list())


def has_sidecar(uri: str) -> bool:
    """Whether an interrupted write, or one in progress, has a sidecar."""
    return bool(Store.open(uri).objects.list(RECOVERY))


def assert_next_writes_work(uri: str) -> None:
    """Assert that the graph accepts further writes, and that nothing else changes."""
    before = picture(uri)
    graph = omnigraph.open(uri)
    for branch in graph._manifest.branches():
        insert(graph, "zoe", branch=branch)
    graph.ensure_indices()
    after = picture(uri)
    people = {
        (str(snapshot.branch), str(current_key(snapshot, PERSON)))
        for snapshot in at_rest(uri).snapshots
    }
    for place, rows in after.rows.items():
        others = [each for each in rows if each["id"] != "zoe"]
        assert others == before.rows[place]
        assert len(rows) - len(others) == (place in people)
        assert place not in people or place[0] != MAIN or after.indexed[place] == {"id", "name"}


def assert_maintenance_is_invisible(uri: str) -> None:
    """Assert that conditions on the last commit that changed rows hold, and that optimize works."""
    graph = omnigraph.open(uri)
    kinds = (*MAINTENANCE_KINDS, OperationKind.RECOVERY)
    last = next(each for each in graph.commits.list() if each.operation not in kinds)
    changes = {PERSON: upserts(person("yan"))}
    write(graph, changes, expect_head=last.commit_id)
    with pytest.raises(StaleHeadError):
        write(graph, changes, expect_head=last.commit_id)
    before = picture(uri)
    graph.optimize()
    after = picture(uri)
    assert after.rows == before.rows
    assert all(len(fragments) == 1 for fragments in after.fragments.values())
    at_rest(uri)


class Bases:
    """Graphs to copy for each writer, with what it starts from; made once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._uris: dict[object, str] = {}

    def of(self, writer: str) -> str:
        """The graph that this writer starts from."""
        kind = WRITERS[writer]
        start = (kind.branch, kind.prepare)
        if start not in self._uris:
            graph = furnished(str(self._folder / f"{len(self._uris)}.omni"))
            if kind.branch != MAIN:
                graph.branches.create(kind.branch)
            if kind.prepare is not None:
                kind.prepare(graph)
            self._uris[start] = graph.uri
        return self._uris[start]


def copied(source: str, target: Path) -> str:
    """Copy a graph on the disk."""
    shutil.copytree(source, target)
    return str(target)


def upload_graph(source: str, uri: str) -> str:
    """Copy a graph on the disk to an object store."""
    objects = Store.open(uri).objects
    for path in sorted(Path(source).rglob("*")):
        if path.is_file():
            objects.put(str(path.relative_to(source)), path.read_bytes())
    return uri
