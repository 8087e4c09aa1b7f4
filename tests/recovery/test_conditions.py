"""Writes on condition of the branch's head: before any effect, in between, and after a crash."""

from collections.abc import Callable
from pathlib import Path

import pytest

import omnigraph
from omnigraph.errors import StaleHeadError
from omnigraph.failpoints import Failpoint, arm
from omnigraph.graph import Graph
from omnigraph.model.names import MAIN
from omnigraph.recovery.entries import RecoveryKind
from tests.support.clocks import LaterClock
from tests.support.crashes import (
    Cut,
    as_other_machine,
    assert_next_writes_work,
    at_rest,
    cut_off,
    has_sidecar,
    picture,
)
from tests.support.graphs import add_rows
from tests.support.publishing import KNOWS, PERSON
from tests.support.writers import found_city, furnished, knows, person, upserts, write


@pytest.fixture
def graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with as_other_machine(monkeypatch):
        yield furnished(str(tmp_path / "graph.omni"))


def conditional(graph: Graph, head: str) -> object:
    changes = {PERSON: upserts(person("eva")), KNOWS: upserts(knows("eva", "ada"))}
    return write(graph, changes, expect_head=head, replans=True)


def head_of(graph: Graph) -> str:
    return graph.snapshot().head.commit_id


def once(action: Callable[[], object]) -> Callable[[], None]:
    done: list[bool] = []

    def act() -> None:
        if not done:
            done.append(True)
            action()

    return act


def test_a_head_that_is_not_there_stops_a_write_before_any_effect(graph):
    head = head_of(graph)
    found_city(graph, "pisa")
    before = at_rest(graph.uri)

    with (
        arm(Failpoint.WRITE_AFTER_PLAN, lambda: pytest.fail("it was planned")),
        pytest.raises(StaleHeadError) as told,
    ):
        conditional(graph, head)

    assert told.value.details == {"expected": head, "actual": head_of(graph)}
    assert at_rest(graph.uri) == before


def test_a_head_that_is_there_lets_a_write_land_once(graph):
    head = head_of(graph)
    conditional(graph, head)

    with pytest.raises(StaleHeadError):
        conditional(graph, head)

    assert at_rest(graph.uri).recoveries == ()


MOVING_AT = [
    Failpoint.WRITE_AFTER_PLAN,
    Failpoint.WRITE_AFTER_STAGE,
    Failpoint.CLAIM_AFTER_PUT,
    Failpoint.CLAIM_AFTER_LIST,
    Failpoint.WRITE_AFTER_CHECK,
    Failpoint.WRITE_AFTER_EACH_APPLY,
    Failpoint.PUBLISH_AFTER_READ,
    Failpoint.PUBLISH_AFTER_STAGE,
]


@pytest.mark.parametrize("point", MOVING_AT)
def test_a_head_that_moves_meanwhile_undoes_the_write(graph, point):
    before = picture(graph.uri)
    other = omnigraph.open(graph.uri)

    with (
        arm(point, once(lambda: found_city(other, "pisa"))),
        pytest.raises(StaleHeadError),
    ):
        conditional(graph, head_of(graph))

    after = picture(graph.uri)
    for key in (PERSON, KNOWS):
        assert after.rows[MAIN, str(key)] == before.rows[MAIN, str(key)]
    at_rest(graph.uri)
    assert_next_writes_work(graph.uri)


@pytest.mark.parametrize("moved", [False, True])
def test_recovery_keeps_to_the_condition_of_a_write_that_died(graph, moved):
    head = head_of(graph)
    cut_off(Cut(Failpoint.WRITE_AFTER_EACH_APPLY, 2), lambda: conditional(graph, head))
    assert has_sidecar(graph.uri)

    if moved:
        # Somebody else's commit on another table lands before anybody heals.
        with arm(Failpoint.RECOVERY_AFTER_CLASSIFY, once(lambda: _publish_city(graph))):
            omnigraph.open(graph.uri)
    else:
        omnigraph.open(graph.uri)

    people = {each["id"] for each in picture(graph.uri).rows[MAIN, str(PERSON)]}
    assert ("eva" in people) is not moved
    (only,) = at_rest(graph.uri).recoveries
    assert only.kind == (RecoveryKind.ROLLED_BACK if moved else RecoveryKind.ROLLED_FORWARD)
    assert_next_writes_work(graph.uri)


def test_a_condition_that_broke_before_recovery_came_is_broken_for_good(graph):
    head = head_of(graph)
    cut_off(Cut(Failpoint.WRITE_AFTER_EACH_APPLY, 2), lambda: conditional(graph, head))
    _publish_city(graph)

    omnigraph.open(graph.uri)

    people = {each["id"] for each in picture(graph.uri).rows[MAIN, str(PERSON)]}
    assert "eva" not in people
    (only,) = at_rest(graph.uri).recoveries
    assert only.kind == RecoveryKind.ROLLED_BACK
    assert_next_writes_work(graph.uri)


def _publish_city(graph: Graph) -> None:
    """A commit on another table that heals nothing: by a writer that was under way before."""
    add_rows(omnigraph.open(graph.uri, read_only=True), {"City": [{"id": "pisa", "name": "pisa"}]})


def test_a_conditional_writer_that_slept_lands_by_recovery_or_not_at_all(graph):
    head = head_of(graph)
    later = once(lambda: omnigraph.open(graph.uri, clock=LaterClock(3600)))

    with arm(Failpoint.PUBLISH_AFTER_READ, later):
        landed = conditional(graph, head)

    assert landed is not None
    (only,) = at_rest(graph.uri).recoveries
    assert only.kind == RecoveryKind.ROLLED_FORWARD
