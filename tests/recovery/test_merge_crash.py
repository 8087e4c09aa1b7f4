"""Merges that are cut off anywhere, or race writers: all or nothing, and no row is lost."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.clock import SystemClock
from omnigraph.errors import ConflictError
from omnigraph.failpoints import Failpoint, arm
from omnigraph.graph import Graph
from omnigraph.merge.conflicts import MergeConflictError
from omnigraph.merge.outcomes import Outcome
from omnigraph.model.names import MAIN
from omnigraph.model.tables import TableKey
from omnigraph.recovery.entries import RecoveryKind
from tests.support.concurrency import in_processes
from tests.support.crashes import (
    Cut,
    Picture,
    as_other_machine,
    assert_next_writes_work,
    at_rest,
    copied,
    cut_off,
    has_sidecar,
    picture,
    put_to_death,
    reopen,
    trace,
)
from tests.support.publishing import CITY, KNOWS, PERSON
from tests.support.writers import (
    RESHAPED,
    deletes,
    furnished,
    insert,
    knows,
    person,
    upserts,
    write,
)

_numbers = count()
Place = Callable[[], str]
SOURCE = "source"
TARGETS = (MAIN, "target")
PET = TableKey.parse("node:Pet")


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> str:
    return furnish(str(tmp_path_factory.mktemp("base") / "graph.omni"))


@pytest.fixture
def place(base: str, tmp_path: Path) -> Place:
    return lambda: copied(base, tmp_path / f"{next(_numbers)}.omni")


def furnish(uri: str) -> str:
    """A source and two targets that have all gone their own ways."""
    graph = furnished(uri)
    graph.branches.create(SOURCE)
    graph.branches.create("target")
    changes = {
        PERSON: upserts(person("eva"), person("ada", 37)),
        KNOWS: upserts(knows("eva", "ada")),
    }
    write(graph, changes, branch=SOURCE)
    write(graph, {PERSON: upserts(person("sue"))}, branch=SOURCE)
    for target in TARGETS:
        write(graph, {CITY: upserts({"id": "oslo", "name": "oslo"})}, branch=target)
        write(graph, {PERSON: upserts(person("bob", 5))}, branch=target)
    return graph.uri


def merge(uri: str, target: str) -> None:
    omnigraph.open(uri).merge(SOURCE, into=target, actor="grace")


class Loop:
    """Cuts one merge off, again and again, and checks what is left."""

    def __init__(self, place: Place, target: str) -> None:
        self.place, self.target = place, target
        uri = place()
        self.before = rows(uri)
        self.cuts = trace(lambda: merge(uri, target))
        self.after = rows(uri)
        assert self.after != self.before
        self.check_history(uri)
        points = [each.point for each in self.cuts]
        self.claimed = points.index(Failpoint.CLAIM_AFTER_PUT)
        self.confirmed = points.index(Failpoint.WRITE_AFTER_CONFIRM)
        self.published = self.cuts.index(Cut(Failpoint.APPLY_AFTER_COMMIT, 3))
        self.settled = points.index(Failpoint.WRITE_AFTER_SETTLE)

    def kind(self, cut: Cut) -> RecoveryKind | None:
        where = self.cuts.index(cut)
        if not self.claimed <= where < self.settled:
            return None
        if where < self.confirmed:
            return RecoveryKind.ROLLED_BACK
        return (
            RecoveryKind.ROLLED_FORWARD
            if where < self.published
            else RecoveryKind.ALREADY_PUBLISHED
        )

    def check_history(self, uri: str) -> None:
        """The merge has two parents, and its branch's history holds what was merged."""
        graph = omnigraph.open(uri, read_only=True)
        theirs = graph.commits.list(branch=SOURCE)[:2]
        merged = next(c for c in graph.commits.list(branch=self.target) if c.merged_parent)
        assert merged.merged_parent == theirs[0].commit_id
        history = graph._manifest.history(graph.snapshot(branch=self.target))
        assert [history.find(each.commit_id) for each in theirs] == list(theirs)

    def check(self, uri: str, cut: Cut) -> None:
        kind = self.kind(cut)
        done = self.cuts.index(cut) >= self.confirmed and kind is not RecoveryKind.ROLLED_BACK
        assert rows(uri) == (self.after if done else self.before), cut
        rest = at_rest(uri)
        assert [each.kind for each in rest.recoveries] == ([] if kind is None else [kind]), cut
        assert {each.recovery_for_actor for each in rest.recoveries} <= {"grace"}
        reopen(uri)
        assert at_rest(uri) == rest
        again = omnigraph.open(uri).merge(SOURCE, into=self.target)
        assert again.outcome is (Outcome.ALREADY_UP_TO_DATE if done else Outcome.MERGED)
        assert rows(uri) == self.after
        self.check_history(uri)

    def crashed(self, cut: Cut, by: Callable[..., None]) -> str:
        uri = self.place()
        by(cut, merge, uri, self.target)
        assert has_sidecar(uri) is (self.kind(cut) is not None), cut
        assert rows(uri) in (self.before, self.after)
        return uri


def rows(uri: str) -> Picture:
    found = picture(uri)
    return replace(found, indexed={}, fragments={})


def in_process(cut: Cut, work: Callable[..., object], *arguments: object) -> None:
    cut_off(cut, lambda: work(*arguments))


@pytest.mark.parametrize("target", TARGETS)
def test_a_merge_that_is_cut_off_is_all_or_nothing(place, target):
    loop = Loop(place, target)
    for cut in loop.cuts:
        uri = loop.crashed(cut, in_process)
        reopen(uri)
        loop.check(uri, cut)
    assert Failpoint.WRITE_AFTER_CONFIRM in {each.point for each in loop.cuts}
    assert_next_writes_work(uri)


# Nothing moved; one head of two; all heads, and nobody said so; all said so; published.
TYPICAL = [
    Cut(Failpoint.WRITE_AFTER_CHECK),
    Cut(Failpoint.WRITE_AFTER_EACH_APPLY),
    Cut(Failpoint.WRITE_AFTER_EACH_APPLY, 2),
    Cut(Failpoint.WRITE_AFTER_CONFIRM),
    Cut(Failpoint.WRITE_AFTER_PUBLISH),
]


def test_a_killed_merge_is_all_or_nothing(place):
    loop = Loop(place, MAIN)
    for cut in TYPICAL:
        uri = loop.crashed(cut, put_to_death)
        reopen(uri)
        loop.check(uri, cut)


@pytest.mark.soak
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("cut", TYPICAL, ids=str)
def test_the_recovery_of_a_merge_may_be_cut_off_too(place, target, cut):
    loop = Loop(place, target)
    first = loop.crashed(cut, in_process)
    for second in trace(lambda: reopen(first)):
        uri = loop.crashed(cut, in_process)
        in_process(second, reopen, uri)
        reopen(uri)
        loop.check(uri, cut)


def furnish_schemas(uri: str) -> str:
    """A source with another schema, and a target that has gone its own way."""
    graph = furnished(uri)
    graph.branches.create(SOURCE)
    graph.schema.apply(RESHAPED, branch=SOURCE)
    write(graph, {PET: upserts({"id": "rex", "name": "rex"})}, branch=SOURCE)
    write(graph, {PERSON: upserts(person("bob", 5), person("sue"))})
    return uri


def test_a_merge_that_changes_the_schema_is_all_or_nothing(tmp_path):
    base = furnish_schemas(str(tmp_path / "base.omni"))
    uri = copied(base, tmp_path / "whole.omni")
    before = rows(uri)
    cuts = trace(lambda: merge(uri, MAIN))
    after = rows(uri)
    assert after.schemas[MAIN] != before.schemas[MAIN]
    confirmed = [cut.point for cut in cuts].index(Failpoint.WRITE_AFTER_CONFIRM)
    for number, cut in enumerate(cuts):
        uri = copied(base, tmp_path / f"{number}.omni")
        in_process(cut, merge, uri, MAIN)
        reopen(uri)
        assert rows(uri) == (after if number >= confirmed else before), cut
        at_rest(uri)
        merge(uri, MAIN)
        assert rows(uri) == after, cut


def test_a_merge_is_rolled_forward_after_its_source_was_deleted(place):
    uri = place()
    cut_off(Cut(Failpoint.WRITE_AFTER_CONFIRM), lambda: merge(uri, MAIN))
    # Readers and writers of other branches do not heal main.
    reader = omnigraph.Graph(
        omnigraph.open(uri, read_only=True)._store, SystemClock(), read_only=False
    )
    source = reader.snapshot(branch=SOURCE).head.commit_id
    reader.branches.delete(SOURCE)
    graph = omnigraph.open(uri)
    head = graph.snapshot().head
    assert head.merged_parent == source
    # What was merged is not in any history now; merges go on all the same.
    graph.branches.create("later")
    insert(graph, "zoe", branch="later")
    insert(graph, "max")
    assert graph.merge("later").outcome is Outcome.MERGED


@pytest.fixture
def apart(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with as_other_machine(monkeypatch):
        yield


BEFORE_CLAIM = [
    Failpoint.WRITE_AFTER_HEAL,
    Failpoint.WRITE_AFTER_PLAN,
    Failpoint.WRITE_AFTER_STAGE,
]
WHILE_CLAIMED = [
    Failpoint.CLAIM_AFTER_PUT,
    Failpoint.WRITE_AFTER_CHECK,
    Failpoint.WRITE_AFTER_EACH_APPLY,
    Failpoint.WRITE_AFTER_CONFIRM,
    Failpoint.PUBLISH_AFTER_READ,
]


def interfering(graph: Graph, point: Failpoint, change: Callable[[Graph], object]) -> Any:
    rival, waiting = omnigraph.open(graph.uri), [change]

    def act() -> None:
        if waiting:
            waiting.pop()(rival)

    return arm(point, act)


def people(graph: Graph, branch: str = MAIN) -> set[str]:
    return {row["id"] for row in picture(graph.uri).rows[branch, str(PERSON)]}


@pytest.mark.usefixtures("apart")
@pytest.mark.parametrize("point", BEFORE_CLAIM + WHILE_CLAIMED)
def test_a_source_that_moves_on_is_merged_as_it_was(place, point):
    graph = omnigraph.open(place())
    at_start = graph.snapshot(branch=SOURCE).head.commit_id
    with interfering(graph, point, lambda rival: insert(rival, "late", branch=SOURCE)):
        outcome = graph.merge(SOURCE)
    assert outcome.source_commit == graph.snapshot().head.merged_parent == at_start
    assert people(graph) == {"ada", "bob", "eva", "sue"}
    graph.merge(SOURCE)
    assert people(graph) == {"ada", "bob", "eva", "sue", "late"}
    at_rest(graph.uri)


@pytest.mark.usefixtures("apart")
@pytest.mark.parametrize("point", BEFORE_CLAIM)
def test_a_target_that_moves_on_keeps_its_rows(place, point):
    graph = omnigraph.open(place())
    with interfering(graph, point, lambda rival: insert(rival, "late")):
        graph.merge(SOURCE)
    assert people(graph) == {"ada", "bob", "eva", "sue", "late"}
    assert len([each for each in graph.commits.list() if each.merged_parent]) == 1
    at_rest(graph.uri)


@pytest.mark.usefixtures("apart")
@pytest.mark.parametrize("point", BEFORE_CLAIM[1:])
def test_a_target_that_comes_to_conflict_is_not_merged(place, point):
    graph = omnigraph.open(place())
    with (
        interfering(graph, point, lambda rival: write(rival, {PERSON: upserts(person("ada", 99))})),
        pytest.raises(MergeConflictError) as refused,
    ):
        graph.merge(SOURCE)
    assert refused.value.conflicts
    assert people(graph) == {"ada", "bob"}
    at_rest(graph.uri)


@pytest.mark.usefixtures("apart")
@pytest.mark.parametrize("point", BEFORE_CLAIM[1:])
def test_a_node_that_goes_while_edges_to_it_are_merged_leaves_no_edge_behind(place, point):
    graph = omnigraph.open(place())

    def delete(rival: Graph) -> None:
        rival.mutate('query q() { delete Person where name = "ada" }')

    with interfering(graph, point, delete), pytest.raises(MergeConflictError) as refused:
        graph.merge(SOURCE)
    kinds = {str(each.kind) for each in refused.value.conflicts}
    assert kinds == {"delete_vs_update", "orphan_edge"}
    assert at_rest(graph.uri).recoveries == ()


@pytest.mark.usefixtures("apart")
def test_two_merges_of_one_source_make_one_merge(place):
    graph = omnigraph.open(place())
    with interfering(graph, Failpoint.WRITE_AFTER_STAGE, lambda rival: rival.merge(SOURCE)):
        outcome = graph.merge(SOURCE)
    assert outcome.outcome is Outcome.ALREADY_UP_TO_DATE
    assert len([each for each in graph.commits.list() if each.merged_parent]) == 1


ROUNDS = 6


def work(barrier: Any, uri: str, role: str) -> list[str]:
    """Insert, delete or merge, all at once; what landed."""
    graph = omnigraph.open(uri)
    landed = []
    barrier.wait(60)
    for number in range(ROUNDS):
        name = f"{role} {number}"
        if role == "merger":
            graph.merge(SOURCE)
        else:
            insert(graph, name, branch=SOURCE if role == "source" else MAIN)
            landed.append(name)
            if number % 3 == 2:
                write_until_landed(graph, f"{role} {number - 1}", role)
                landed.remove(f"{role} {number - 1}")
    return landed


def write_until_landed(graph: Graph, name: str, role: str) -> None:
    branch = SOURCE if role == "source" else MAIN
    for _ in range(50):
        try:
            write(graph, {PERSON: deletes(name)}, branch=branch)
        except ConflictError:
            continue
        return
    raise AssertionError


def test_no_row_is_lost_between_writers_and_a_merger(place):
    uri = place()
    roles = ("source", "target", "merger")
    source, target, _ = in_processes(work, [(uri, role) for role in roles])
    graph = omnigraph.open(uri)
    graph.merge(SOURCE)
    # What the source deleted after an earlier merge brought it goes with the later one.
    assert people(graph) == {"ada", "bob", "eva", "sue", *source, *target}
    assert people(graph, SOURCE) == {"ada", "bob", "eva", "sue", *source}
    at_rest(uri)
    assert_next_writes_work(uri)
