"""A repair undoes what nobody answers for, and that alone."""

import pytest

import omnigraph
from omnigraph.errors import NotAllowedError, RecoveryNeededError
from omnigraph.graph import Graph
from omnigraph.maintenance.results import Drift
from omnigraph.model.commits import RECOVERY_ACTOR, OperationKind
from omnigraph.model.names import MAIN
from omnigraph.recovery.entries import RecoveryKind
from tests.support.crashes import assert_next_writes_work, at_rest, copied, picture
from tests.support.faults import FAULTS, sound_graph
from tests.support.publishing import PERSON
from tests.support.writers import DRAFT, insert


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> str:
    return sound_graph(str(tmp_path_factory.mktemp("base") / "graph.omni")).uri


@pytest.fixture
def graph(base: str, tmp_path) -> Graph:
    return omnigraph.open(copied(base, tmp_path / "graph.omni"))


def test_a_drifted_head_is_shown_and_then_undone_and_writes_go_on(graph):
    before = picture(graph.uri)
    FAULTS["a head that nobody answers for"].plant(graph)
    pin = graph.snapshot().pin(PERSON)
    with pytest.raises(RecoveryNeededError, match="omnigraph repair"):
        insert(graph, "eva")

    shown = omnigraph.open(graph.uri, read_only=True).repair(dry_run=True)
    done = graph.repair()

    drift = Drift(MAIN, str(PERSON), pin.location, pin.version, pin.version + 1, OperationKind.LOAD)
    assert (shown.drifts, shown.commit_ids) == ((drift,), ())
    assert done.drifts == (drift,)
    [commit_id] = done.commit_ids
    assert graph.commits.show(commit_id).actor == RECOVERY_ACTOR
    assert at_rest(graph.uri).recoveries[-1].kind == RecoveryKind.STRAY_RESTORE_UNDONE
    assert picture(graph.uri) == before
    assert_next_writes_work(graph.uri)


def test_where_nothing_drifted_nothing_is_done(graph):
    head = graph.snapshot().head
    assert graph.repair() == graph.repair(dry_run=True)
    assert graph.snapshot().head == head


def test_an_interrupted_write_is_no_drift(graph):
    FAULTS["an interrupted write"].plant(graph)

    assert graph.repair(dry_run=True).drifts == ()
    assert graph.repair().drifts == ()
    at_rest(graph.uri)


def test_one_branch_may_be_repaired_alone(graph):
    FAULTS["a head that nobody answers for"].plant(graph)

    assert graph.repair(branch=DRAFT).drifts == ()
    assert len(graph.repair(branch=MAIN, dry_run=True).drifts) == 1


def test_what_cannot_be_read_might_answer_for_any_head(graph):
    FAULTS["an unreadable sidecar"].plant(graph)
    for dry_run in (True, False):
        with pytest.raises(RecoveryNeededError):
            graph.repair(dry_run=dry_run)


def test_a_reader_may_look_and_not_repair(graph):
    reader = omnigraph.open(graph.uri, read_only=True)
    assert reader.repair(dry_run=True).drifts == ()
    with pytest.raises(NotAllowedError):
        reader.repair()
