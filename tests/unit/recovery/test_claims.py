"""Claims: of two that overlap one is at work; nobody waits for ever, or for the dead."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from omnigraph.errors import ConflictError, ErrorCode, RecoveryNeededError, StorageError
from omnigraph.failpoints import Failpoint, arm
from omnigraph.limits import EXCLUSION_SECONDS_MAX, LEASE_SECONDS
from omnigraph.manifest.drafts import CommitDraft
from omnigraph.manifest.requirements import BranchIs
from omnigraph.model.commits import OperationKind
from omnigraph.model.ids import CommitId, OperationId
from omnigraph.model.names import MAIN, BranchName
from omnigraph.model.tables import TableKey
from omnigraph.recovery.claims import claim
from omnigraph.recovery.intents import Intent, TableIntent
from omnigraph.recovery.owners import Owner, this_process, track_operation
from omnigraph.recovery.pending import Pending, PendingWrite
from omnigraph.recovery.sidecars import Sidecars
from omnigraph.storage.store import Store
from tests.support.clocks import FakeClock

PERSON = TableKey.parse("node:Person")
CITY = TableKey.parse("node:City")


class Scene:
    """A folder of sidecars, and claimants whose processes nobody can look at."""

    def __init__(self, root: Path) -> None:
        self.clock = FakeClock()
        self.objects = Store.open(root).objects
        self.sidecars = Sidecars(self.objects)

    def intent(self, *keys: TableKey, owner: Owner | None = None) -> Intent:
        return Intent(
            OperationId(self.clock.ulid()),
            _draft(self.clock),
            self.clock.now(),
            tuple(TableIntent(key, f"nodes/{key.type_name}", None, 1, 2) for key in keys),
            owner=owner or Owner("elsewhere", 1, 1),
        )

    def claim(self, intent: Intent, *, excluding: OperationId | None = None) -> set[str]:
        found = claim(self.sidecars, self.clock, intent, excluding=excluding)
        return {each.operation_id for each in found.intents}

    def present(self) -> set[str]:
        return {each.operation_id for each in self.sidecars.find().intents}


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def test_a_claim_leaves_a_sidecar_with_a_lease_from_now(scene):
    intent = scene.intent(PERSON)

    assert scene.claim(intent) == {intent.operation_id}

    (stored,) = scene.sidecars.find().intents
    lease = scene.clock.now() + timedelta(seconds=LEASE_SECONDS)
    assert stored == replace(intent, lease_until=lease)


def test_whoever_comes_second_takes_its_own_away_and_waits_for_the_first(scene):
    first, second = scene.intent(PERSON, CITY), scene.intent(CITY)
    scene.claim(first)
    seen: list[set[str]] = []

    def settle_the_first() -> None:
        seen.append(scene.present())
        if len(seen) == 3:
            scene.sidecars.delete(first.operation_id)

    with arm(Failpoint.CLAIM_AFTER_PUT, settle_the_first):
        assert scene.claim(second) == {second.operation_id}

    assert len(scene.clock.slept) == 2
    assert seen == [{first.operation_id, second.operation_id}] * 3


def test_two_that_see_each_other_both_yield(scene):
    one, two = scene.intent(PERSON), scene.intent(PERSON)
    met: list[set[str]] = []

    def let_the_other_put() -> None:
        if not met:
            met.append(set())
            scene.sidecars.put(replace(two, lease_until=scene.clock.now() + timedelta(seconds=30)))

    scene.clock.sleep = lambda _: _yielded(scene, two, met)
    with arm(Failpoint.CLAIM_AFTER_PUT, let_the_other_put):
        scene.claim(one)

    assert met[1] == {two.operation_id}
    assert scene.present() == {one.operation_id}


def _yielded(scene: Scene, other: Intent, met: list[set[str]]) -> None:
    met.append(scene.present())
    scene.sidecars.delete(other.operation_id)


def _draft(clock: FakeClock) -> CommitDraft:
    commit_id = CommitId(clock.ulid())
    return CommitDraft(MAIN, commit_id, OperationKind.MUTATION, requires=(BranchIs(None),))


def _on_draft(intent: Intent) -> Intent:
    return replace(intent, draft=replace(intent.draft, branch=BranchName("draft")))


OTHERS: dict[str, Callable[[Scene], Intent]] = {
    "another table": lambda scene: scene.intent(CITY),
    "another branch": lambda scene: _on_draft(scene.intent(PERSON)),
    "a process that is gone": lambda scene: scene.intent(PERSON, owner=_this(started=-1)),
    "work that ended here": lambda scene: scene.intent(PERSON, owner=_this()),
}


def _this(started: int | None = None) -> Owner:
    here = this_process()
    assert here is not None
    return here if started is None else replace(here, started=started)


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
def test_nobody_waits_for(scene, other):
    theirs = other(scene)
    scene.sidecars.put(replace(theirs, lease_until=scene.clock.now() + timedelta(hours=1)))
    intent = scene.intent(PERSON)

    assert scene.claim(intent) == {theirs.operation_id, intent.operation_id}
    assert scene.clock.slept == []


def test_what_is_guarded_is_claimed_too(scene):
    locking = replace(scene.intent(CITY), locks=(PERSON,))
    scene.sidecars.put(replace(locking, lease_until=scene.clock.now() + timedelta(hours=1)))

    with pytest.raises(ConflictError):
        scene.claim(scene.intent(PERSON))


def test_a_lease_that_runs_out_is_waited_for_and_no_longer(scene):
    first = scene.intent(PERSON)
    scene.claim(first)
    started = scene.clock.now()

    second = scene.intent(PERSON)
    assert first.operation_id in scene.claim(second)

    waited = (scene.clock.now() - started).total_seconds()
    assert LEASE_SECONDS <= waited < LEASE_SECONDS + 1


def test_a_table_that_stays_busy_is_given_up_and_nothing_stays(scene):
    first = scene.intent(PERSON)
    scene.sidecars.put(replace(first, lease_until=scene.clock.now() + timedelta(hours=1)))
    started = scene.clock.now()

    with pytest.raises(ConflictError, match=first.operation_id) as told:
        scene.claim(scene.intent(PERSON))

    assert told.value.code is ErrorCode.TABLE_BUSY
    waited = (scene.clock.now() - started).total_seconds()
    assert EXCLUSION_SECONDS_MAX <= waited < EXCLUSION_SECONDS_MAX + 1
    assert scene.present() == {first.operation_id}


def test_a_recovery_does_not_wait_for_what_it_resolves(scene):
    dead = scene.intent(PERSON)
    scene.claim(dead)
    recovery = scene.intent(PERSON)

    assert scene.claim(recovery, excluding=dead.operation_id) == {
        dead.operation_id,
        recovery.operation_id,
    }


def test_a_thread_of_this_process_is_waited_for(scene):
    first = scene.intent(PERSON, owner=_this())
    with track_operation(first.operation_id):
        scene.sidecars.put(replace(first, lease_until=scene.clock.now() + timedelta(hours=1)))
        with pytest.raises(ConflictError):
            scene.claim(scene.intent(PERSON))

    scene.claim(scene.intent(PERSON))


def test_an_unreadable_sidecar_ends_the_claim(scene):
    path = "__recovery/01J00000000000000000000000.json"
    scene.objects.put(path, b"{")

    with pytest.raises(RecoveryNeededError, match=path):
        scene.claim(scene.intent(PERSON))

    assert scene.objects.list("__recovery") == (path,)


@pytest.mark.parametrize("name", ["notes.txt", "odd.json", "old/01J00000000000000000000000.json"])
def test_a_file_that_no_writer_named_holds_nobody_up(scene, name):
    scene.objects.put(f"__recovery/{name}", b"{")
    intent = scene.intent(PERSON)

    assert scene.claim(intent) == {intent.operation_id}
    assert scene.sidecars.pending(scene.clock).unreadable == ()


def test_a_listing_that_fails_ends_the_claim(scene, monkeypatch):
    def fail(_: str) -> None:
        message = "no answer"
        raise StorageError(message)

    with monkeypatch.context() as patch:
        patch.setattr(scene.objects, "list", fail)
        with pytest.raises(StorageError, match="no answer"):
            scene.claim(scene.intent(PERSON))

    assert scene.present() == set()


def test_what_is_pending_is_live_interrupted_or_unreadable(scene):
    live, interrupted = scene.intent(PERSON), scene.intent(CITY)
    scene.claim(live)
    scene.sidecars.put(interrupted)
    odd = f"__recovery/{scene.clock.ulid()}.json"
    scene.objects.put(odd, b"{}")

    pending = scene.sidecars.pending(scene.clock)

    assert [each.operation_id for each in pending.live] == [live.operation_id]
    assert [each.operation_id for each in pending.interrupted] == [interrupted.operation_id]
    assert [each.path for each in pending.unreadable] == [odd]


def test_a_write_that_ends_while_it_is_looked_at_was_not_interrupted(scene, monkeypatch):
    intent = scene.intent(PERSON, owner=this_process())
    lease = scene.clock.now() + timedelta(seconds=30)
    with track_operation(intent.operation_id):
        scene.sidecars.put(replace(intent, lease_until=lease))
        assert scene.sidecars.pending(scene.clock).live == (
            PendingWrite.of(replace(intent, lease_until=lease)),
        )
    assert scene.sidecars.pending(scene.clock).interrupted != ()
    find = scene.sidecars.find

    def find_and_let_it_end(*known):
        found = find(*known)
        scene.sidecars.delete(intent.operation_id)
        return found

    monkeypatch.setattr(scene.sidecars, "find", find_and_let_it_end)
    assert scene.sidecars.pending(scene.clock) == Pending((), (), ())
