"""Every kind of write is cut off at every failpoint it passes: the graph is before, or after."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import count, pairwise, takewhile
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import omnigraph
from omnigraph.errors import StorageError
from omnigraph.failpoints import Failpoint
from omnigraph.manifest.drafts import CommitDraft
from omnigraph.model.commits import RECOVERY_ACTOR, OperationKind
from omnigraph.recovery import sweep
from omnigraph.recovery.entries import RecoveryKind
from omnigraph.recovery.sweep import Recovery
from omnigraph.storage.store import Store
from omnigraph.transaction.records import draft_of
from tests.support import crashes
from tests.support.crashes import (
    Bases,
    Cut,
    Picture,
    assert_maintenance_is_invisible,
    assert_next_writes_work,
    at_rest,
    cut_off,
    has_sidecar,
    past_rows,
    picture,
    put_to_death,
    reopen,
    sleeping_at,
    trace,
    write_by_name,
)
from tests.support.publishing import PERSON
from tests.support.writers import WRITERS, Writer

PROTOCOL = ("write.", "claim.", "apply.", "publish.")

Place = Callable[[str], str]
"""Gives a fresh graph for a writer to crash on, always with the same rows."""

_numbers = count()


@pytest.fixture(scope="module")
def bases(tmp_path_factory: pytest.TempPathFactory) -> Bases:
    return Bases(tmp_path_factory.mktemp("bases"))


@pytest.fixture
def local(bases: Bases, tmp_path: Path) -> Place:
    return lambda writer: crashes.copied(bases.of(writer), tmp_path / f"{next(_numbers)}.omni")


@pytest.fixture
def s3(bases: Bases, s3_bucket: str) -> Place:
    return lambda writer: crashes.upload_graph(
        bases.of(writer), f"s3://{s3_bucket}/{next(_numbers)}.omni"
    )


@dataclass(frozen=True)
class Step:
    """One transaction of a writer.

    Attributes:
        cuts: Where it can be cut off.
        before, after: What readers see without it, and with it.
    """

    kind: Writer
    cuts: Sequence[Cut]
    before: Picture
    after: Picture

    @property
    def leaving_a_sidecar(self) -> Sequence[Cut]:
        """The cuts between the first trace of the write and its last."""
        first, last = self._place(Failpoint.CLAIM_AFTER_PUT), len(self.cuts) - 1
        assert self.cuts[last].point is Failpoint.WRITE_AFTER_SETTLE
        return self.cuts[first:last]

    def end(self, cut: Cut) -> tuple[Picture, RecoveryKind | None]:
        """What a write that was cut off here must become: after, once every head has moved."""
        place, kind = self.cuts.index(cut), self.kind
        applies = kind.created + kind.tables * kind.versions
        published = self._place(Failpoint.APPLY_AFTER_COMMIT, applies + 1)
        proven = self._place(Failpoint.APPLY_AFTER_COMMIT, applies) if applies else published
        if kind.confirms:
            proven = self._place(Failpoint.WRITE_AFTER_CONFIRM)
        if cut not in self.leaving_a_sidecar:
            return (self.after if place > published else self.before), None
        if not kind.tables and place < published:
            # It moved nothing, so there is nothing to undo, nor to prove it complete by.
            return self.before, None
        if place < proven:
            return self.before, RecoveryKind.ROLLED_BACK
        if place < published:
            return self.after, RecoveryKind.ROLLED_FORWARD
        return self.after, RecoveryKind.ALREADY_PUBLISHED

    @property
    def last_of_each_end(self) -> Collection[Cut]:
        """For each thing that a write can become, the cut with which it has done most."""
        ends = ((cut, *self.end(cut)) for cut in self.cuts)
        return {(end is self.after, kind): cut for cut, end, kind in ends}.values()

    def _place(self, point: Failpoint, nth: int = 1) -> int:
        return [place for place, cut in enumerate(self.cuts) if cut.point is point][nth - 1]


class Loop:
    """Crashes one writer, or its recovery, again and again, and checks what is left each time.

    Attributes:
        cuts: Where the write can be cut off.
        steps: Its transactions: one, unless another follows its commit.
        past: What readers of the commit before the write see, for ever.
        tried: How many crashes were checked.
    """

    def __init__(self, place: Place, writer: str) -> None:
        self._place = place
        self.writer = writer
        self.branch = WRITERS[writer].branch
        self.tried = 0
        uri = self.place()
        pictures = [picture(uri)]
        self.start = omnigraph.open(uri).snapshot(branch=self.branch).head.commit_id
        self.past = past_rows(uri, self.start)
        self.cuts = trace(lambda: write_by_name(uri, writer))
        ends = [cut for cut in self.cuts if cut.point is Failpoint.WRITE_AFTER_SETTLE]
        for end in ends[:-1]:
            between = self.place()
            cut_off(end, partial(write_by_name, between, writer))
            pictures.append(picture(between))
        pictures.append(picture(uri))
        self.steps = list(_steps(WRITERS[writer], self.cuts, pictures))
        assert len(self.steps) == len(ends)
        # Every graph after a crash must be like this one or one before, row by row.
        assert at_rest(uri, rows=True).recoveries == ()

    def place(self) -> str:
        """A fresh graph for this writer."""
        return self._place(self.writer)

    @property
    def leaving_a_sidecar(self) -> list[Cut]:
        """The cuts between the first trace of a transaction and its last."""
        return [cut for step in self.steps for cut in step.leaving_a_sidecar]

    def step_of(self, cut: Cut) -> Step:
        """The transaction that this cut is in."""
        return next(step for step in self.steps if cut in step.cuts)

    def crashed(self, cut: Cut, *, by: Callable[..., None]) -> str:
        """A graph on which the write was cut off here; readers must not see half of it."""
        uri = self.place()
        by(cut, write_by_name, uri, self.writer)
        assert has_sidecar(uri) is (cut in self.leaving_a_sidecar), cut
        self.assert_readers_see_before_or_after(uri)
        return uri

    def assert_readers_see_before_or_after(self, uri: str) -> None:
        """A read-only reader waits for nobody, and sees the new state if it was published."""
        commits = omnigraph.open(uri, read_only=True).commits.list(branch=self.branch)
        new = takewhile(lambda each: each.commit_id != self.start, commits)
        landed = sum(each.operation is not OperationKind.RECOVERY for each in new)
        pictures = [self.steps[0].before, *(step.after for step in self.steps)]
        assert picture(uri) == pictures[landed]

    def check(self, uri: str, cut: Cut) -> None:
        """The graph after recovery: as it must be, at rest, and as good as new."""
        self.tried += 1
        step = self.step_of(cut)
        wanted, kind = step.end(cut)
        assert picture(uri) == wanted, f"{self.writer} cut off at {cut} is neither before nor after"
        rest = at_rest(uri)
        assert [each.kind for each in rest.recoveries] == ([] if kind is None else [kind]), cut
        for each in rest.recoveries:
            assert each.recovery_for_actor == step.kind.actor
            assert len(each.tables) == step.kind.tables
            made_by_us = omnigraph.open(uri, read_only=True).commits.show(str(each.commit_id))
            assert (made_by_us.actor == RECOVERY_ACTOR) is (kind != RecoveryKind.ALREADY_PUBLISHED)
        reopen(uri)
        assert at_rest(uri) == rest, "a second sweep found something to do"
        assert picture(uri) == wanted

    def once(self, cut: Cut, *, by: Callable[..., None], goes_on: bool = True) -> None:
        """Cut off, recover, check.

        Args:
            goes_on: Whether to write to the graph afterwards, which takes longer than the rest.
        """
        uri = self.crashed(cut, by=by)
        reopen(uri)
        self.check(uri, cut)
        if not goes_on:
            return
        if self.step_of(cut).kind.keeps_rows:
            assert_maintenance_is_invisible(uri)
        assert_next_writes_work(uri)
        assert past_rows(uri, self.start) == self.past, cut

    def twice(self, cut: Cut, *, by: Callable[..., None]) -> None:
        """Cut off, cut the recovery off at every failpoint it passes, recover, check."""
        # A writer of this process is dead for this process alone: killers kill it, too.
        first = self.crashed(cut, by=by)
        for second in trace(lambda: reopen(first)):
            uri = self.crashed(cut, by=by)
            by(second, reopen, uri)
            self.assert_readers_see_before_or_after(uri)
            reopen(uri)
            self.check(uri, cut)
        assert_next_writes_work(uri)


def _steps(writer: Writer, cuts: Sequence[Cut], pictures: Sequence[Picture]) -> Iterator[Step]:
    """The transactions of a write, each of which ends by settling."""
    kind: Writer | None = writer
    for before, after in pairwise(pictures):
        assert kind is not None
        assert before != after
        points = [cut.point for cut in cuts]
        end = points.index(Failpoint.WRITE_AFTER_SETTLE) + 1
        yield Step(kind, cuts[:end], before, after)
        cuts, kind = cuts[end:], kind.then
    assert not cuts
    assert kind is None


def _in_process(cut: Cut, work: Callable[..., object], *arguments: object) -> None:
    cut_off(cut, lambda: work(*arguments))


@pytest.fixture
def say(capsys: pytest.CaptureFixture[str]) -> Callable[[str], None]:
    def say(text: str) -> None:
        with capsys.disabled():
            print(f"\n  {text}", end=" ")  # noqa: T201  # how much was tried is part of the answer

    return say


def test_the_loop_passes_every_failpoint_of_the_protocol(local):
    passed = {each.point for writer in WRITERS for each in Loop(local, writer).cuts}

    assert passed == {each for each in Failpoint if each.startswith(PROTOCOL)}


# A schema change of main passes what others pass: that of a branch, and one that moves no head.
GATED = [
    pytest.param(writer, marks=pytest.mark.soak) if writer == "schema" else writer
    for writer in WRITERS
]


@pytest.mark.parametrize("writer", GATED)
def test_a_crash_is_all_or_nothing(local, writer, say):
    loop = Loop(local, writer)
    # A write that another follows is like one that stands alone.
    last = loop.steps[-1]
    for cut in last.cuts:
        loop.once(cut, by=_in_process, goes_on=cut in last.last_of_each_end)
    say(f"{loop.tried} cuts of {writer}")
    assert loop.tried == len(last.cuts) > 12


# One for each thing that a recovery can find: nothing moved, one head of two, both, published.
TYPICAL = [
    Cut(Failpoint.CLAIM_AFTER_PUT),
    Cut(Failpoint.WRITE_AFTER_EACH_APPLY),
    Cut(Failpoint.PUBLISH_AFTER_STAGE),
    Cut(Failpoint.WRITE_AFTER_PUBLISH),
]


def test_recovery_may_itself_be_interrupted(local, say):
    loop = Loop(local, "insert two")
    for cut in TYPICAL:
        loop.twice(cut, by=_in_process)
    say(f"{loop.tried} double cuts of insert two")
    assert loop.tried > 40


def test_recovery_of_a_table_with_one_version_of_two_may_be_interrupted(local, say):
    loop = Loop(local, "optimize")
    loop.twice(Cut(Failpoint.APPLY_AFTER_COMMIT, 3), by=_in_process)
    say(f"{loop.tried} double cuts of optimize")
    assert loop.tried > 8


@pytest.mark.soak
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("writer", WRITERS)
def test_recovery_may_be_interrupted_after_any_interruption(local, writer, say):
    loop = Loop(local, writer)
    for cut in loop.leaving_a_sidecar:
        loop.twice(cut, by=_in_process)
    say(f"{loop.tried} double cuts of {writer}")
    assert loop.tried > (100 if WRITERS[writer].tables else 40)


def test_a_killed_process_is_all_or_nothing(local, say):
    loop = Loop(local, "insert two")
    first_passes = {cut.point: cut for cut in reversed(loop.cuts)}
    for cut in first_passes.values():
        loop.once(cut, by=put_to_death)
    say(f"{loop.tried} kills of insert two")
    assert loop.tried == len(first_passes)


@pytest.mark.soak
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("writer", WRITERS)
def test_a_killed_process_is_all_or_nothing_at_every_pass(local, writer, say):
    loop = Loop(local, writer)
    for cut in loop.cuts:
        loop.once(cut, by=put_to_death)
    for cut in loop.leaving_a_sidecar:
        loop.twice(cut, by=put_to_death)
    say(f"{loop.tried} kills of {writer}, alone and during recovery")
    assert loop.tried > (100 if WRITERS[writer].tables else 40)


def test_a_crash_on_an_object_store_is_all_or_nothing(s3, say):
    loop = Loop(s3, "insert two")
    for cut in TYPICAL:
        loop.once(cut, by=_in_process)
    say(f"{loop.tried} cuts of insert two on S3")


@pytest.mark.soak
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("writer", WRITERS)
def test_a_crash_on_an_object_store_is_all_or_nothing_at_every_pass(s3, writer, say):
    loop = Loop(s3, writer)
    for cut in loop.cuts:
        loop.once(cut, by=_in_process)
    # Every other writer must reach all of them.
    moves_heads = writer != "schema without heads"
    for cut in TYPICAL if moves_heads else [cut for cut in TYPICAL if cut in loop.cuts]:
        loop.twice(cut, by=_in_process)
    say(f"{loop.tried} cuts of {writer} on S3, alone and during recovery")
    assert loop.tried > (40 if moves_heads else len(loop.cuts))


def _left_unrestored(restore: Callable[..., object]) -> Callable[..., object]:
    """A recovery that forgets the first table."""

    def faulty(recovery: Recovery, states: list[object], *others: object) -> object:
        return restore(recovery, states[1:], *others)

    return faulty


def _rolled_forward_by_half(roll_forward: Callable[..., object]) -> Callable[..., object]:
    """A recovery that publishes one table of two."""

    def faulty(recovery: Recovery, intent: object, states: list[object]) -> object:
        return roll_forward(recovery, intent, states[:1])

    return faulty


def _unrecorded(_: Callable[..., object]) -> Callable[..., object]:
    """A recovery that keeps no record of itself."""
    return lambda *_: None


FAULTS = {
    "_restore": (_left_unrestored, Cut(Failpoint.WRITE_AFTER_EACH_APPLY, 1)),
    "_roll_forward": (_rolled_forward_by_half, Cut(Failpoint.PUBLISH_AFTER_READ)),
    "_entry": (_unrecorded, Cut(Failpoint.WRITE_AFTER_PUBLISH)),
}


@pytest.mark.parametrize("name", FAULTS)
def test_the_loop_notices_a_faulty_recovery(local, monkeypatch, name):
    fault, cut = FAULTS[name]
    loop = Loop(local, "delete")
    monkeypatch.setattr(Recovery, name, fault(getattr(Recovery, name)))

    # It leaves heads that nobody answers for, half a write, or no record.
    with pytest.raises(AssertionError):
        loop.once(cut, by=_in_process)


def test_the_loop_notices_a_recovery_that_does_not_publish(local, monkeypatch):
    loop = Loop(local, "update")
    monkeypatch.setattr(sweep, "publish", lambda *_, **__: None)

    with pytest.raises(AssertionError):
        loop.once(Cut(Failpoint.WRITE_AFTER_CHECK), by=_in_process)


def test_the_loop_notices_a_write_that_publishes_half_of_itself(local, monkeypatch):
    loop = Loop(local, "delete")

    def half(*arguments: Any) -> CommitDraft:
        whole = draft_of(*arguments)
        return replace(whole, changes=whole.changes[:1])

    monkeypatch.setattr("omnigraph.transaction.commit.draft_of", half)

    with pytest.raises(AssertionError):
        loop.crashed(Cut(Failpoint.WRITE_AFTER_PUBLISH), by=_in_process)


def test_what_was_rolled_back_is_not_rolled_forward_by_a_later_recovery(local):
    # Restoring a table twice takes its head two versions past its pin, as steps of a loose writer
    # would: what recoveries left there must not be taken for the writer's own.
    loop = Loop(local, "index")
    cut = Cut(Failpoint.WRITE_AFTER_EACH_APPLY, 1)
    uri = loop.crashed(cut, by=_in_process)
    for _ in range(3):
        cut_off(Cut(Failpoint.RECOVERY_AFTER_EACH_RESTORE, 3), lambda: reopen(uri))

    reopen(uri)

    loop.check(uri, cut)


def _people(uri: str) -> lance.LanceDataset:
    """The table of people, for commits that the graph knows nothing of."""
    pin = omnigraph.open(uri, read_only=True).snapshot().pin(PERSON)
    return lance.dataset(Store.open(uri).tables.open_pin(pin).address.uri)


def _append_a_foreign_row(uri: str) -> None:
    people = _people(uri)
    row = {"id": "foreign", "name": "foreign"}
    people.insert(pa.Table.from_pylist([row], people.schema))


def _set_a_foreign_option(uri: str) -> None:
    _people(uri).update_config({"foreign": "yes"})


@pytest.mark.parametrize("is_cut_off", [False, True])
def test_a_foreign_commit_under_an_optimize_is_not_published(local, is_cut_off):
    # Lance puts the rewrite on top of the foreign commit, which makes the head the intended one,
    # by the right author. Only the version below it is not the optimize's.
    loop = Loop(local, "optimize")
    uri = loop.place()
    optimize = partial(write_by_name, uri, "optimize")

    after_the_edges = Cut(Failpoint.WRITE_AFTER_EACH_APPLY)
    with sleeping_at(after_the_edges, partial(_set_a_foreign_option, uri)):
        if is_cut_off:
            cut_off(Cut(Failpoint.APPLY_AFTER_COMMIT, 3), optimize)
            reopen(uri)
        else:
            optimize()

    step = loop.steps[0]
    assert picture(uri) == (step.before if is_cut_off else step.after)
    assert [each.kind for each in at_rest(uri).recoveries] == [RecoveryKind.ROLLED_BACK]
    assert "foreign" not in _people(uri).config()
    assert_maintenance_is_invisible(uri)


def test_foreign_rows_under_an_optimize_are_not_published(local):
    loop = Loop(local, "optimize")
    uri = loop.place()

    after_the_edges = Cut(Failpoint.WRITE_AFTER_EACH_APPLY)
    with (
        sleeping_at(after_the_edges, partial(_append_a_foreign_row, uri)),
        pytest.raises(StorageError, match="two fragments"),
    ):
        write_by_name(uri, "optimize")

    assert picture(uri) == loop.steps[0].before
    assert [each.kind for each in at_rest(uri).recoveries] == [RecoveryKind.ROLLED_BACK]
    assert_maintenance_is_invisible(uri)
