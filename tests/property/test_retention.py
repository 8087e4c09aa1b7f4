"""Random histories with cleanups in between, against a model of every commit and of the rules."""

import random
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any, Final

import pyarrow as pa
import pytest

import omnigraph
from omnigraph.errors import (
    CommitLetGoError,
    CommitNotFoundError,
    NotAllowedError,
    StorageError,
)
from omnigraph.failpoints import Failpoint, SimulatedCrash, arm
from omnigraph.graph import Graph
from omnigraph.maintenance import retention
from omnigraph.maintenance.cleanup import plan, run, survey
from omnigraph.maintenance.cleanup.results import CleanupResult
from omnigraph.maintenance.retention import Reason
from omnigraph.manifest.let_go import LetGoCommits
from omnigraph.model.commits import OperationKind
from omnigraph.storage import inventory, staging
from omnigraph.storage.store import Store
from omnigraph.storage.tables import Table
from tests.property.retention_model import KnownCommit, Model, Row, Rules
from tests.support.clocks import LaterClock
from tests.support.retention import tree, unnamed_files
from tests.support.writers import write

GATE: Final = range(8)
STEPS: Final = 60
SCHEMA: Final = "node P { name: String @key }  node C { name: String @key }"
DROPPED: Final = "node P { name: String @key }"
NAMES: Final = ("q", "r", "s", "t")
MAIN: Final = "main"
WRITE_CRASHES: Final = tuple(
    point
    for point in Failpoint
    if point.partition(".")[0] in ("write", "claim", "apply", "publish", "recovery")
)
CLEANUP_CRASHES: Final = tuple(point for point in Failpoint if point.startswith("cleanup."))


class MovingClock(LaterClock):
    """The machine's clock, moved on by the test."""

    def advance(self, duration: timedelta) -> None:
        self._ahead += duration


class Walk:
    """One history: a graph, and the model of it.

    Attributes:
        held: Handles on commits, as readers hold them.
    """

    def __init__(self, uri: Path, source: Random) -> None:
        self.clock = MovingClock(0.0)
        self.random = source
        self.graph = omnigraph.init(uri, SCHEMA, clock=self.clock)
        self.graph.settings.set("maintenance.optimize", "off")
        self.uri = self.graph.uri
        self.model = Model()
        self.held: list[tuple[Graph, str]] = []
        self.counts: Counter[str] = Counter()
        self.has_dropped = False
        self._next = 0
        first = self.graph.snapshot().head
        self.model.numbers[MAIN] = 0
        self._branches = 1
        self._add(MAIN, first.commit_id, (), frozenset(), frozenset(), frozenset({"P", "C"}))

    def _add(
        self,
        branch: str,
        commit_id: str,
        parents: tuple[str, ...],
        inserted: frozenset[Row],
        deleted: frozenset[Row],
        types: frozenset[str],
    ) -> None:
        model = self.model
        model.commits[commit_id] = KnownCommit(
            commit_id,
            parents,
            model.numbers[branch],
            self.clock.now(),
            inserted,
            deleted,
            types,
        )
        model.tips[branch] = commit_id

    def tip(self, branch: str) -> KnownCommit:
        return self.model.commits[self.model.tips[branch]]

    def _learn(
        self,
        branch: str,
        inserted: frozenset[Row],
        deleted: frozenset[Row],
        types: frozenset[str],
        *,
        merged: str | None = None,
        is_certain: bool = True,
    ) -> None:
        """Add the commits that a step made; after a crash there may be none, or recoveries."""
        new = []
        for commit in self.graph.commits.list(branch=branch):
            if commit.commit_id in self.model.commits:
                break
            new.append(commit)
        assert len(new) == 1 or not is_certain, new
        for commit in reversed(new):
            before = self.tip(branch)
            is_step = commit.operation is not OperationKind.RECOVERY
            parents = (before.commit_id, *([merged] if is_step and merged else []))
            assert tuple(map(str, commit.parents)) == parents
            after = (inserted, deleted, types) if is_step else _state(before)
            self._add(branch, commit.commit_id, parents, *after)
            assert self.rows(self.graph, commit.commit_id) == self.tip(branch).rows

    def rows(self, graph: Graph, commit_id: str) -> frozenset[Row]:
        """All rows at a commit, as a handle reads them."""
        snapshot = graph.snapshot(commit=commit_id)
        tables = Store.open(graph.uri).tables if graph is self.graph else graph._store.tables
        return frozenset(
            Row(key.type_name, id_)
            for key, pin in snapshot.pins.items()
            for id_ in tables.open_pin(pin).read(["id"])["id"].to_pylist()
        )

    def step(self) -> str:
        """Take one random step, and return what it was."""
        steps: dict[Callable[[], object], int] = {
            self._write: 30,
            self._merge: 14,
            self._create: 12,
            self._delete: 7,
            self._tag: 7,
            self._untag: 3,
            self._hold: 6,
            self._maintain: 6,
            self._drop: 2,
            self._reopen: 3,
            self._clean: 14,
        }
        (chosen,) = self.random.choices(tuple(steps), tuple(steps.values()))
        self.clock.advance(self._duration())
        done = chosen()
        self.counts[chosen.__name__] += 1
        return f"{chosen.__name__} {done or ''}"

    def _duration(self) -> timedelta:
        return timedelta(
            minutes=self.random.choice([0, 1, 10, 50, 70, 600, 1440, 3000]) * self.random.random()
        )

    def _branch(self) -> str:
        return self.random.choice(sorted(self.model.tips))

    def _crash(self, points: tuple[Failpoint, ...], chance: float) -> Failpoint | None:
        return self.random.choice(points) if self.random.random() < chance else None

    def _write(self) -> str:
        branch = self._branch()
        before = self.tip(branch)
        types = sorted(before.types - ({"C"} if self.has_dropped else set()))
        name = self.random.choice(types)
        new = {Row(name, f"{name}{self._number()}") for _ in range(self.random.randint(1, 2))}
        old = sorted((row for row in before.rows if row.type_name == name), key=lambda row: row.id)
        gone = set(self.random.sample(old, 1)) if old and self.random.random() < 0.3 else set()
        crash = self._crash(WRITE_CRASHES, 0.12)

        def stage(table: Table) -> staging.StagedWrite:
            added = pa.Table.from_pylist(
                [{"id": row.id, "name": row.id} for row in new], table.schema
            )
            if gone:
                return staging.stage_delete(table, ids=[row.id for row in gone])
            return staging.stage_upsert(table, added)

        key = next(k for k in self.graph.snapshot(branch=branch).pins if k.type_name == name)
        landed = self._unless_crashed(
            crash, lambda: write(self.graph, {key: stage}, branch=branch, replans=True)
        )
        inserted = before.inserted if gone else before.inserted | new
        deleted = before.deleted | gone
        self._learn(branch, inserted, deleted, before.types, is_certain=landed)
        return f"{branch} {sorted(row.id for row in new)} -{len(gone)} {crash or ''}"

    def _number(self) -> int:
        self._next += 1
        return self._next

    def _unless_crashed(self, crash: Failpoint | None, action: Callable[[], object]) -> bool:
        """Whether an action was done; if it crashed, the graph is opened anew."""
        if crash is None:
            action()
            return True
        try:
            with arm(crash, after_hits=self.random.randint(0, 2)):
                action()
        except SimulatedCrash:
            self._reopen()
            return False
        return True

    def _merge(self) -> str | None:
        if len(self.model.tips) < 2:
            return None
        source, into = self.random.sample(sorted(self.model.tips), 2)
        ours, theirs = self.tip(into), self.tip(source)
        crash = self._crash(WRITE_CRASHES, 0.08)
        if theirs.commit_id in self.model.ancestors([ours.commit_id]):
            assert self.graph.merge(source, into=into).commit_id is None
            return f"{source} into {into}: nothing"
        try:
            landed = self._unless_crashed(crash, lambda: self.graph.merge(source, into=into))
        except CommitLetGoError as refused:
            base = str(refused.details["commit_id"])
            common = self.model.ancestors([ours.commit_id])
            assert base in common & self.model.ancestors([theirs.commit_id]) & self.model.gone
            return f"{source} into {into}: base let go"
        if not landed and self.model.tips[into] == str(self._newest(into)):
            return f"{source} into {into}: crashed"
        self._learn(
            into,
            ours.inserted | theirs.inserted,
            ours.deleted | theirs.deleted,
            ours.types & theirs.types,
            merged=theirs.commit_id,
            is_certain=landed,
        )
        return f"{source} into {into} {crash or ''}"

    def _newest(self, branch: str) -> str:
        return str(self.graph.snapshot(branch=branch).head.commit_id)

    def _create(self) -> str | None:
        free = [name for name in NAMES if name not in self.model.tips]
        if not free:
            return None
        name = self.random.choice(free)
        if self.random.random() < 0.5:
            source = self._branch()
            self.graph.branches.create(name, branch=source)
            start = self.model.tips[source]
        else:
            start = self.random.choice(sorted(self.model.known()))
            if self._is_refused(start, lambda: self.graph.branches.create(name, commit=start)):
                return f"{name} at {start}: let go"
        self.model.tips[name] = start
        self.model.numbers[name] = self._branches
        self._branches += 1
        return f"{name} at {start}"

    def _is_refused(self, commit_id: str, action: Callable[[], object]) -> bool:
        """Whether a commit was let go, which the action has to say."""
        if commit_id not in self.model.gone:
            action()
            return False
        with pytest.raises(CommitLetGoError):
            action()
        return True

    def _delete(self) -> str | None:
        others = [name for name in sorted(self.model.tips) if name != MAIN]
        if not others:
            return None
        name = self.random.choice(others)
        try:
            self.graph.branches.delete(name)
        except NotAllowedError:
            return f"{name}: in use"
        number = self.model.numbers.pop(name)
        tip = self.model.tips.pop(name)
        self.model.ended[number] = (tip, self.clock.now())
        return name

    def _tag(self) -> str | None:
        name = f"tag{self._number()}"
        commit_id = self.random.choice(sorted(self.model.known()))
        create = lambda: self.graph.tags.create(name, commit=commit_id)  # noqa: E731
        if self._is_refused(commit_id, create):
            return f"{commit_id}: let go"
        self.model.tags[name] = commit_id
        return f"{name} at {commit_id}"

    def _untag(self) -> str | None:
        if not self.model.tags:
            return None
        name = self.random.choice(sorted(self.model.tags))
        self.graph.tags.delete(name)
        del self.model.tags[name]
        return name

    def _hold(self) -> str:
        branch = self._branch()
        commit_id = self.model.tips[branch]
        reader = omnigraph.open(self.uri, read_only=True).at(commit=commit_id)
        self.rows(reader, commit_id)
        self.held.append((reader, commit_id))
        return commit_id

    def _maintain(self) -> str | None:
        branch = self._branch()
        before = self.tip(branch)
        work = self.random.choice([self.graph.optimize, self.graph.ensure_indices])
        if work(branch=branch).commit_id is not None:
            self._learn(branch, *_state(before))
        return f"{branch} {work.__name__}"

    def _drop(self) -> str | None:
        """Drop a type on main, once no other branch can contradict it."""
        if len(self.model.tips) > 1 or self.has_dropped:
            return None
        before = self.tip(MAIN)
        self.graph.schema.apply(DROPPED)
        self.has_dropped = True
        self._learn(MAIN, before.inserted, before.deleted, frozenset({"P"}))
        return MAIN

    def _reopen(self) -> None:
        self.graph = omnigraph.open(self.uri, clock=self.clock)

    def _clean(self) -> str:
        rules = self.random.choice(
            [
                Rules(),
                Rules(keep_commits=1),
                Rules(keep_commits=3),
                Rules(older_than=timedelta(days=1)),
                Rules(older_than=timedelta(days=3)),
                Rules(keep_commits=2, older_than=timedelta(hours=10)),
                Rules(keep_commits=1, grace=timedelta(days=1)),
            ]
        )
        crash = self._crash(CLEANUP_CRASHES, 0.35)
        kept = self.model.must_keep(rules, self.clock.now())
        every = self.model.known()
        before = tree(self.uri)
        planned = self.clean(rules, dry_run=True)
        assert tree(self.uri) == before, "a preview changed something"
        done: list[CleanupResult] = []
        finished = self._unless_crashed(crash, lambda: done.append(self.clean(rules)))
        if finished and done:
            assert done == [planned]
            gone = before.keys() - tree(self.uri).keys()
            size = sum(before[path] for path in gone if not path.startswith("__retired"))
            assert size == planned.size, (gone, planned)
        self._check_commits(kept, every, is_finished=finished)
        self._check_readers(rules)
        return f"{rules} {crash or ''}: {len(kept)} of {len(every)} kept"

    def clean(self, rules: Rules, *, dry_run: bool = False) -> CleanupResult:
        return self.graph.cleanup(
            keep_commits=rules.keep_commits,
            older_than=rules.older_than,
            grace=rules.grace,
            dry_run=dry_run,
        )

    def _check_commits(self, kept: set[str], every: set[str], *, is_finished: bool) -> None:
        """What must be kept reads as before; the rest says that it was let go, or reads so, too."""
        fresh = omnigraph.open(self.uri, read_only=True)
        marked = fresh.commits.let_go([fresh.commits.show(commit_id) for commit_id in every])
        assert marked.keys() & kept == set(), "a commit is marked, and has to be kept"
        for commit_id in sorted(every):
            try:
                rows: frozenset[Row] | None = self.rows(fresh, commit_id)
            except CommitLetGoError:
                rows = None
            if commit_id in kept:
                assert rows is not None, f"{commit_id} was let go, and has to be kept"
            elif is_finished:
                assert rows is None, f"{commit_id} is still there, and nothing keeps it"
            assert rows in (None, self.model.commits[commit_id].rows), commit_id
            if commit_id in marked:
                self.model.gone.add(commit_id)
            else:
                assert rows is not None, f"{commit_id} was let go, and is not marked"
                assert commit_id not in self.model.gone, f"{commit_id} came back"

    def _check_readers(self, rules: Rules) -> None:
        """Who holds a commit that was the newest a moment ago reads on."""
        now = self.clock.now()
        still = []
        for reader, commit_id in self.held:
            left = self.model.left_at(commit_id) if commit_id in self.model.known() else now
            is_newest = commit_id in self.model.tips.values()
            if commit_id in self.model.known() and (
                is_newest or (left is not None and now - left < rules.grace)
            ):
                if commit_id not in self.model.gone:
                    assert self.rows(reader, commit_id) == self.model.commits[commit_id].rows
                still.append((reader, commit_id))
        self.held = still

    def finish(self) -> None:
        """Everything is as the model says, and after two cleanups no file is left over."""
        self.clock.advance(timedelta(days=10))
        self._reopen()
        self.clean(Rules())
        self.clean(Rules())
        self._check_commits(self.model.readable(), self.model.known(), is_finished=False)
        assert unnamed_files(self.uri) == set()
        report = self.graph.check(history=True)
        assert report.is_sound, report.findings


def _state(commit: KnownCommit) -> tuple[frozenset[Row], frozenset[Row], frozenset[str]]:
    return commit.inserted, commit.deleted, commit.types


def check(uri: Path, seed: int, *, steps: int = STEPS) -> Counter[str]:
    """Take random steps; a failure names the seed and all steps up to it."""
    walk = Walk(uri, Random(seed))
    taken: list[str] = []
    try:
        for _ in range(steps):
            taken.append(walk.step())
        walk.finish()
    except BaseException as failure:
        failure.add_note(f"in the history of seed {seed}, after")
        for number, step in enumerate(taken):
            failure.add_note(f"{number:3} {step}")
        raise
    return walk.counts


@pytest.mark.parametrize("seed", GATE)
def test_a_graph_with_cleanups_is_what_its_history_says(tmp_path: Path, seed: int) -> None:
    check(tmp_path / "graph.omni", seed)


@pytest.mark.soak
@pytest.mark.timeout(0)
def test_a_graph_with_many_cleanups_is_what_its_history_says() -> None:
    for _ in range(300):
        with tempfile.TemporaryDirectory() as folder:
            check(Path(folder) / "graph.omni", random.getrandbits(32), steps=150)


Patch = Callable[[pytest.MonkeyPatch], None]


def _forget_reason(reason: Reason) -> Patch:
    """Keep nothing for one of the reasons."""

    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        reasons = retention._reasons

        def fewer(*arguments: Any) -> Iterator[Any]:
            return (each for each in reasons(*arguments) if each[0] is not reason)

        monkeypatch.setattr(retention, "_reasons", fewer)

    return patch


def _skip_branches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the versions of branches name nothing."""
    collect = inventory.collect_named_files

    def main_only(tables: Any, location: str, ref: str | None, *rest: Any) -> None:
        if ref is None:
            collect(tables, location, ref, *rest)

    monkeypatch.setattr(plan, "collect_named_files", main_only)


def _skip_shared_indexes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inventory, "_collect_inherited_indexes", lambda *_: None)


def _keep_no_record(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove without recording what was let go."""
    monkeypatch.setattr(LetGoCommits, "mark", lambda *_: None)
    monkeypatch.setattr(LetGoCommits, "confirm", lambda _self, _run, _needed: {})
    monkeypatch.setattr(plan.CleanupPlan, "limited_to", lambda self, _: self)


def _leave_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run._Removal, "_remove_files", lambda *_: True)


def _leave_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run._Removal, "_remove_versions", lambda *_: True)


def _see_only_main(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read the commits of main alone."""
    read = survey._read_commits

    def main_only(manifest: Any, tips: Any, tags: Any, pages: Any) -> Iterator[Any]:
        return read(manifest, {name: tips[name] for name in tips if name == MAIN}, tags, pages)

    monkeypatch.setattr(survey, "_read_commits", main_only)


DEFECTS: Final[dict[str, Patch]] = {
    "tags keep nothing": _forget_reason(Reason.TAG),
    "bases of merges are not kept": _forget_reason(Reason.MERGE_BASE),
    "there is no grace": _forget_reason(Reason.GRACE),
    "young commits are not kept": _forget_reason(Reason.YOUNG),
    "the newest commits are not counted": _forget_reason(Reason.NEWEST),
    "branches name no files": _skip_branches,
    "what was let go is not recorded": _keep_no_record,
    "files stay": _leave_files,
    "versions stay": _leave_versions,
}


@pytest.mark.parametrize("defect", DEFECTS)
def test_a_defect_is_noticed(tmp_path: Path, defect: str, monkeypatch: pytest.MonkeyPatch) -> None:
    DEFECTS[defect](monkeypatch)
    with pytest.raises((AssertionError, StorageError, CommitNotFoundError, CommitLetGoError)):
        _check_seeds(tmp_path)


def _check_seeds(folder: Path) -> None:
    for seed in range(30):
        check(folder / f"{seed}.omni", seed, steps=40)
