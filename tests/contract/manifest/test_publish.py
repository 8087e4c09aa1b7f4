"""Publishing: one chain, one winner per table, and nothing lost with a lost answer."""

import dataclasses
import threading
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

import omnigraph
from omnigraph.clock import SystemClock
from omnigraph.errors import (
    ConflictError,
    ErrorCode,
    OutcomeUnknownError,
    StaleHeadError,
    StorageError,
    TableConflictError,
)
from omnigraph.failpoints import Failpoint, SimulatedCrash, arm
from omnigraph.limits import PUBLISH_ATTEMPTS_MAX
from omnigraph.manifest import lineage, publisher
from omnigraph.manifest.drafts import CommitDraft, DropTable
from omnigraph.manifest.publisher import publish
from omnigraph.manifest.reader import Manifest
from omnigraph.manifest.requirements import HeadIs, SchemaIs, TableAt
from omnigraph.model.commits import OperationKind
from omnigraph.model.ids import CommitId
from omnigraph.model.names import MAIN, BranchName
from omnigraph.model.tables import Tombstone
from omnigraph.storage import heads
from omnigraph.storage.staging import StagedWrite
from omnigraph.storage.tables import Table
from tests.support.publishing import (
    CITY,
    KNOWS,
    PERSON,
    SCHEMA,
    advance,
    manifest_at,
    move_pin,
    publish_pin,
)
from tests.support.races import Crowd, LostRace, race

in_rounds = pytest.mark.parametrize(
    "rounds", [15, pytest.param(200, marks=pytest.mark.soak)], ids="{} rounds".format
)


def chain(manifest: Manifest) -> list[CommitId]:
    """Main's commits by first parents, oldest first."""
    head = manifest.current(MAIN).head.commit_id
    walk = lineage.first_parents(head, manifest.history(manifest.current(MAIN)).find)
    return [commit.commit_id for commit in walk][::-1]


@in_rounds
@pytest.mark.parametrize("crowd", ["threads", "processes"])
def test_writers_to_disjoint_tables_all_land_in_one_chain(
    graph: omnigraph.Graph, crowd: Crowd, rounds: int
) -> None:
    outcomes = race(graph.uri, (PERSON, CITY), rounds=rounds, crowd=crowd)

    landed = {commit_id for each in outcomes for commit_id in each}
    manifest = manifest_at(graph.uri)
    first, *rest = chain(manifest)
    assert len(landed) == 2 * rounds
    assert set(rest) == landed
    snapshot = manifest.current(MAIN)
    assert snapshot.pin(PERSON).version == snapshot.pin(CITY).version == 1 + rounds
    assert manifest.find(first).parent is None


@in_rounds
@pytest.mark.parametrize("crowd", ["threads", "processes"])
def test_of_two_writers_to_one_table_exactly_one_wins_each_round(
    graph: omnigraph.Graph, crowd: Crowd, rounds: int
) -> None:
    outcomes = race(graph.uri, (PERSON, PERSON), rounds=rounds, crowd=crowd)

    winners = []
    for number, each in enumerate(outcomes):
        lost = [outcome for outcome in each if isinstance(outcome, LostRace)]
        winners += [outcome for outcome in each if not isinstance(outcome, LostRace)]
        assert lost == [
            LostRace(
                "expected_version_mismatch",
                {"table_key": "node:Person", "expected": 1 + number, "actual": 2 + number},
            )
        ]
    manifest = manifest_at(graph.uri)
    assert chain(manifest)[1:] == winners
    assert manifest.current(MAIN).pin(PERSON).version == 1 + rounds


def test_the_race_would_notice_a_publish_that_is_no_compare_and_swap(
    graph: omnigraph.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    strict = heads.apply
    one_at_a_time = threading.Lock()

    def last_writer_wins(staged: StagedWrite, author: heads.Authorship) -> Table:
        with one_at_a_time:
            latest = manifest_at(graph.uri).open(MAIN).table
            rebased = dataclasses.replace(staged, address=latest.address, base=latest.handle)
            return strict(rebased, author)

    monkeypatch.setattr(heads, "apply", last_writer_wins)
    # Both have read before either commits, so only the commit itself can tell them apart.
    meeting = threading.Barrier(2)

    def meet() -> None:
        meeting.wait(30)

    with arm(Failpoint.PUBLISH_AFTER_STAGE, meet):
        outcomes = race(graph.uri, (PERSON, PERSON), rounds=1, crowd="threads")

    assert not any(isinstance(outcome, LostRace) for outcome in outcomes[0])


def test_a_publish_shows_pins_head_and_lineage_together(graph: omnigraph.Graph) -> None:
    manifest = manifest_at(graph.uri)
    before = manifest.current(MAIN)
    commit = publish_pin(manifest, before.pin(PERSON), actor="ada")
    after = manifest_at(graph.uri).current(MAIN)

    assert after.head == commit
    assert (commit.parent, commit.actor) == (before.head.commit_id, "ada")
    assert commit.manifest_version == after.manifest_version == before.manifest_version + 1
    assert after.pin(PERSON) == move_pin(before.pin(PERSON))
    assert after.pin(CITY) == before.pin(CITY)


def test_an_older_snapshot_stays_what_it_was(graph: omnigraph.Graph) -> None:
    manifest = manifest_at(graph.uri)
    snapshots = [manifest.current(MAIN)]
    for _ in range(3):
        advance(manifest, PERSON)
        snapshots.append(manifest.current(MAIN))

    reader = manifest_at(graph.uri)
    for each in snapshots:
        assert reader.at_version(MAIN, each.manifest_version) == each
        assert reader.at_commit(each.head.commit_id) == each


def test_a_dropped_table_leaves_a_tombstone_and_no_pin(graph: omnigraph.Graph) -> None:
    manifest = manifest_at(graph.uri)
    pin = manifest.current(MAIN).pin(KNOWS)
    tombstone = Tombstone(
        pin.table_id, pin.key, pin.location, pin.version, pin.ref, pin.identity.origin
    )
    clock = SystemClock()
    publish(
        manifest,
        clock,
        CommitDraft(
            MAIN,
            CommitId(clock.ulid()),
            OperationKind.SCHEMA_APPLY,
            changes=(DropTable(tombstone),),
        ),
    )
    advance(manifest, PERSON)

    after = manifest.current(MAIN)
    assert KNOWS not in after.pins
    assert after.tombstones == (tombstone,)


def test_unmet_requirement_names_table_and_versions(graph: omnigraph.Graph) -> None:
    manifest = manifest_at(graph.uri)
    stale = manifest.current(MAIN)
    advance(manifest, PERSON)

    with pytest.raises(TableConflictError) as refused:
        publish_pin(manifest, stale.pin(PERSON))

    assert refused.value.code is ErrorCode.EXPECTED_VERSION_MISMATCH
    assert refused.value.details == {"table_key": "node:Person", "expected": 1, "actual": 2}
    assert len(chain(manifest)) == 2


def test_a_required_head_or_schema_that_moved_is_refused(graph: omnigraph.Graph) -> None:
    manifest = manifest_at(graph.uri)
    stale = manifest.current(MAIN)
    advance(manifest, PERSON)
    pin = stale.pin(CITY)

    head = stale.head.commit_id
    with pytest.raises(StaleHeadError, match=head):
        publish_pin(manifest, pin, requires=(HeadIs(head, head),))
    with pytest.raises(ConflictError) as refused:
        publish_pin(manifest, pin, requires=(SchemaIs("another"),))

    assert refused.value.code is ErrorCode.SCHEMA_CHANGED
    assert manifest.current(MAIN).pin(CITY) == pin


def test_every_unmet_requirement_is_named(graph: omnigraph.Graph) -> None:
    manifest = manifest_at(graph.uri)
    pin = manifest.current(MAIN).pin(CITY)
    wrong = (TableAt(PERSON, 7, None), TableAt(CITY, 9, None))

    with pytest.raises(TableConflictError) as refused:
        publish_pin(manifest, pin, requires=wrong)

    said = [refused.value.message, *refused.value.__notes__]
    assert "node:Person" in said[0]
    assert "node:City" in said[1]


def lose_the_answer() -> NoReturn:
    message = "the connection broke after the request was sent"
    raise StorageError(message)


def test_a_lost_answer_is_recognised_as_landed_and_not_repeated(graph: omnigraph.Graph) -> None:
    manifest = manifest_at(graph.uri)
    with arm(Failpoint.PUBLISH_AFTER_COMMIT, lose_the_answer):
        commit = advance(manifest, PERSON)

    assert chain(manifest)[1:] == [commit.commit_id]
    assert manifest.current(MAIN).pin(PERSON).version == 2


def test_a_lost_answer_that_looks_like_a_lost_race_is_recognised(graph: omnigraph.Graph) -> None:
    manifest = manifest_at(graph.uri)
    with arm(Failpoint.PUBLISH_AFTER_COMMIT, look_like_a_race):
        commit = advance(manifest, PERSON)

    assert chain(manifest)[1:] == [commit.commit_id]


def test_a_failure_that_did_not_land_is_reported_as_such(
    graph: omnigraph.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest = manifest_at(graph.uri)
    pin = manifest.current(MAIN).pin(PERSON)

    def fail_before_it_is_sent(*_: object) -> NoReturn:
        lose_the_answer()

    with monkeypatch.context() as patched:
        patched.setattr(heads, "apply", fail_before_it_is_sent)
        with pytest.raises(StorageError, match="connection broke"):
            publish_pin(manifest, pin)

    assert len(chain(manifest)) == 1
    assert publish_pin(manifest, pin).parent == chain(manifest)[0], "and may be tried again"


def look_like_a_race() -> NoReturn:
    message = "somebody else was first, says the storage"
    raise TableConflictError(message, code=ErrorCode.TABLE_HEAD_MOVED)


@pytest.mark.parametrize("answer", [lose_the_answer, look_like_a_race])
@pytest.mark.parametrize("attempts", [1, PUBLISH_ATTEMPTS_MAX])
def test_an_outcome_that_cannot_be_looked_up_is_unknown_and_names_the_commit(
    graph: omnigraph.Graph,
    monkeypatch: pytest.MonkeyPatch,
    answer: Callable[[], NoReturn],
    attempts: int,
) -> None:
    # With one attempt, what cannot be read is the look after the last.
    monkeypatch.setattr(publisher, "PUBLISH_ATTEMPTS_MAX", attempts)
    manifest = manifest_at(graph.uri)
    pin = manifest.current(MAIN).pin(PERSON)
    commit_id = CommitId(SystemClock().ulid())

    class Unreadable(Manifest):
        def open(self, *_: object, **__: object) -> NoReturn:
            lose_the_answer()

    def break_the_line() -> None:
        manifest.__class__ = Unreadable
        answer()

    with (
        arm(Failpoint.PUBLISH_AFTER_COMMIT, break_the_line),
        pytest.raises(OutcomeUnknownError) as unknown,
    ):
        publish_pin(manifest, pin, commit_id=commit_id)

    assert unknown.value.details == {"commit_id": commit_id}
    assert manifest_at(graph.uri).find(commit_id).commit_id == commit_id


@pytest.mark.parametrize(
    "point",
    [
        Failpoint.PUBLISH_AFTER_READ,
        Failpoint.PUBLISH_AFTER_STAGE,
        Failpoint.APPLY_AFTER_COMMIT,
        Failpoint.PUBLISH_AFTER_COMMIT,
    ],
)
def test_a_crash_of_publish_is_all_or_nothing(graph: omnigraph.Graph, point: Failpoint) -> None:
    manifest = manifest_at(graph.uri)
    before = manifest.current(MAIN)
    with arm(point), pytest.raises(SimulatedCrash):
        publish_pin(manifest, before.pin(PERSON))

    after = manifest_at(graph.uri).current(MAIN)
    landed = point in (Failpoint.APPLY_AFTER_COMMIT, Failpoint.PUBLISH_AFTER_COMMIT)
    expected = move_pin(before.pin(PERSON)) if landed else before.pin(PERSON)
    assert after.pin(PERSON) == expected
    assert (after.head == before.head) is not landed


def test_a_publish_that_always_loses_gives_up_and_says_so(graph: omnigraph.Graph) -> None:
    manifest = manifest_at(graph.uri)
    rival = manifest_at(graph.uri)
    attempts: list[str] = []

    def be_overtaken() -> None:
        if attempts and attempts[-1] == "rival":
            return
        attempts.append("rival")
        with arm(Failpoint.PUBLISH_AFTER_STAGE, lambda: None):
            advance(rival, CITY)
        attempts[-1] = "ours"

    with (
        arm(Failpoint.PUBLISH_AFTER_STAGE, be_overtaken),
        pytest.raises(ConflictError) as gave_up,
    ):
        advance(manifest, PERSON)

    assert gave_up.value.code is ErrorCode.PUBLISH_CONTENTION
    assert len(attempts) == PUBLISH_ATTEMPTS_MAX
    after = manifest.current(MAIN)
    assert (after.pin(PERSON).version, after.pin(CITY).version) == (1, 1 + PUBLISH_ATTEMPTS_MAX)


def test_a_branch_publishes_on_inherited_lineage_and_leaves_main_alone(
    graph: omnigraph.Graph,
) -> None:
    manifest = manifest_at(graph.uri)
    base = advance(manifest, PERSON)
    draft = BranchName("review/1")
    graph.branches.create(draft)
    inherited = manifest.current(draft)
    made = advance(manifest, PERSON, branch=draft)

    assert inherited.head == base
    assert (made.branch, made.parent) == (draft, base.commit_id)
    assert manifest.branches() == (MAIN, draft)
    assert manifest.current(MAIN).head == base
    assert manifest.at_commit(made.commit_id).pin(PERSON).version == 3
    assert manifest.at_commit(base.commit_id).branch == MAIN
    assert [c.commit_id for c in graph.commits.list(branch=draft)][:2] == [
        made.commit_id,
        base.commit_id,
    ]


def test_branches_carry_the_pages_they_inherit_and_fold_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publisher, "RECENT_COMMITS_MAX", 3)
    monkeypatch.setattr(publisher, "LINEAGE_PAGE_ROWS_MAX", 7)
    graph = omnigraph.init(tmp_path / "graph.omni", SCHEMA)
    manifest = manifest_at(graph.uri)
    expected = dict.fromkeys((MAIN, BranchName("draft"), BranchName("of-draft")), 1)
    source = MAIN
    for number, branch in enumerate(expected, start=1):
        if branch != MAIN:
            graph.at(branch=source).branches.create(branch)
        for _ in range(10):
            advance(manifest, PERSON, branch=branch)
        expected[branch] += 10 * number
        source = branch

    found = {branch: graph.commits.list(branch=branch) for branch in expected}

    assert {branch: len(commits) for branch, commits in found.items()} == expected
    for each in found[source]:
        assert graph.snapshot(commit=each.commit_id).head == each
