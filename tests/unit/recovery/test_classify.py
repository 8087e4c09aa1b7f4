"""What heads say and what is to be done: the protocol's table, then every small case there is."""

from datetime import UTC, datetime
from itertools import combinations_with_replacement, product

import pytest

from omnigraph.model.commits import OperationKind
from omnigraph.model.ids import OperationId
from omnigraph.model.names import MAIN
from omnigraph.recovery.classify import (
    Decision,
    Observation,
    ProofMode,
    TableFinding,
    classify,
    decide,
    mode_of,
)
from omnigraph.recovery.intents import Intent

BROKEN = TableFinding.INVARIANT_VIOLATION
STILL = TableFinding.NO_MOVEMENT
PAST = TableFinding.ROLLED_PAST_EXPECTED
ODD = TableFinding.UNEXPECTED_AT_P1
FAR = TableFinding.UNEXPECTED_MULTISTEP
HALF = TableFinding.INCOMPLETE_PHASE_B


def seen(
    head: int,
    pinned: int,
    expected: int,
    post_commit: int,
    confirmed: int | None = None,
    *,
    ours: bool = True,
    restored: bool = False,
) -> Observation:
    return Observation(head, pinned, expected, post_commit, confirmed, ours, restored)


# fmt: off
CASES = {
    #                                      H  M  E  P  C                   strict  confirm loose
    "below its pin":                 (seen(4, 5, 5, 6),                    BROKEN, BROKEN, BROKEN),
    "far below its pin":             (seen(1, 9, 5, 6, 6),                 BROKEN, BROKEN, BROKEN),
    "at its pin":                    (seen(5, 5, 5, 6),                    STILL,  STILL,  STILL),
    "at a pin that moved on":        (seen(7, 7, 5, 6),                    STILL,  STILL,  STILL),
    "at its pin, confirmed":         (seen(5, 5, 5, 6, 6),                 STILL,  STILL,  STILL),
    "one step, ours":                (seen(6, 5, 5, 6),                    PAST,   HALF,   PAST),
    "one step, ours, confirmed":     (seen(6, 5, 5, 6, 6),                 PAST,   PAST,   PAST),
    "one step, confirmed elsewhere": (seen(6, 5, 5, 6, 7),                 PAST,   ODD,    PAST),
    "one step, another's":           (seen(6, 5, 5, 6, 6, ours=False),     ODD,    ODD,    ODD),
    "one step from another pin":     (seen(6, 5, 4, 6, 6),                 ODD,    ODD,    ODD),
    "one step to another place":     (seen(6, 5, 5, 7, 6),                 ODD,    ODD,    ODD),
    "one step, restored":            (seen(6, 5, 5, 6, 6, restored=True),  ODD,    ODD,    ODD),
    "two steps of two, ours":        (seen(7, 5, 5, 7),                    PAST,   HALF,   PAST),
    "two steps of two, another's":   (seen(7, 5, 5, 7, ours=False),        FAR,    HALF,   PAST),
    "two steps of two, other pin":   (seen(7, 5, 4, 7),                    FAR,    HALF,   FAR),
    "two steps of two, restored":    (seen(7, 5, 5, 7, restored=True),     FAR,    HALF,   FAR),
    "two steps of two, confirmed":   (seen(7, 5, 5, 7, 7),                 PAST,   PAST,   PAST),
    "one step of two":               (seen(6, 5, 5, 7),                    ODD,    HALF,   ODD),
    "three steps of two":            (seen(8, 5, 5, 7),                    FAR,    HALF,   PAST),
    "two steps":                     (seen(7, 5, 5, 6),                    FAR,    HALF,   PAST),
    "two steps, confirmed":          (seen(7, 5, 5, 6, 7),                 FAR,    PAST,   PAST),
    "two steps, confirmed one":      (seen(7, 5, 5, 6, 6),                 FAR,    FAR,    PAST),
    "two steps, another's":          (seen(7, 5, 5, 6, 7, ours=False),     FAR,    PAST,   PAST),
    "two steps from another pin":    (seen(7, 5, 4, 6, 7),                 FAR,    FAR,    FAR),
    "two steps, restored":           (seen(7, 5, 5, 6, 7, restored=True),  FAR,    FAR,    FAR),
}
# fmt: on


@pytest.mark.parametrize(
    ("observed", "strict", "confirmed", "loose"), CASES.values(), ids=CASES.keys()
)
def test_classify(observed, strict, confirmed, loose):
    assert classify(ProofMode.STRICT, observed) is strict
    assert classify(ProofMode.CONFIRMED, observed) is confirmed
    assert classify(ProofMode.LOOSE, observed) is loose


EVERY = [
    (mode, seen(head, pinned, expected, post, confirmed, ours=ours, restored=restored))
    for mode in ProofMode
    for head, pinned, expected, post in product(range(4), repeat=4)
    for confirmed in (None, *range(4))
    for ours in (False, True)
    for restored in (False, True)
]


def spelt_out(mode: ProofMode, o: Observation) -> set[TableFinding]:
    """The rows of the protocol's table that hold, each said on its own."""
    H, M, E, P, C = o.head, o.pinned, o.expected, o.post_commit, o.confirmed
    needs = mode is ProofMode.CONFIRMED
    confirmed = not needs or C == H
    awaits = needs and C is None and H > M
    rows = {
        BROKEN: H < M,
        STILL: H == M,
        HALF: awaits,
        PAST: not awaits
        and not o.is_restored
        and E == M
        and confirmed
        and H > M
        and ((o.is_ours and P == H) or (H > M + 1 and mode is not ProofMode.STRICT)),
    }
    found = {finding for finding, holds in rows.items() if holds}
    if not found:
        found = {ODD if H == M + 1 else FAR}
    return found


def test_every_small_case_has_one_finding_and_it_is_the_tables():
    for mode, observed in EVERY:
        assert {classify(mode, observed)} == spelt_out(mode, observed), (mode, observed)


def test_only_what_is_proven_is_rolled_forward():
    for mode, o in EVERY:
        if classify(mode, o) is PAST:
            assert o.head > o.pinned == o.expected
            assert not o.is_restored
            is_intended = o.is_ours and o.head == o.post_commit
            assert is_intended or (o.head > o.pinned + 1 and mode is not ProofMode.STRICT)


def test_decide_aborts_first_rolls_forward_only_together_and_back_otherwise():
    for count in range(1, 4):
        for findings in combinations_with_replacement(TableFinding, count):
            decided = decide(findings)
            assert decided is decide(findings[::-1])
            assert (decided is Decision.ABORT) is (BROKEN in findings)
            assert (decided is Decision.ROLL_FORWARD) is (set(findings) == {PAST})


def test_a_write_that_names_no_table_is_rolled_back():
    assert decide([]) is Decision.ROLL_BACK


@pytest.mark.parametrize(
    ("kind", "mode", "mode_at_first"),
    [
        (OperationKind.MUTATION, ProofMode.STRICT, ProofMode.STRICT),
        (OperationKind.LOAD, ProofMode.STRICT, ProofMode.STRICT),
        (OperationKind.EMBED, ProofMode.STRICT, ProofMode.STRICT),
        (OperationKind.MERGE, ProofMode.CONFIRMED, ProofMode.LOOSE),
        (OperationKind.SCHEMA_APPLY, ProofMode.CONFIRMED, ProofMode.LOOSE),
        # They move a head by as many versions as their sidecar says, and at first said none.
        (OperationKind.INDEX, ProofMode.STRICT, ProofMode.LOOSE),
        (OperationKind.OPTIMIZE, ProofMode.STRICT, ProofMode.LOOSE),
    ],
)
def test_each_kind_of_writer_has_its_mode(kind, mode, mode_at_first):
    now = datetime(2026, 1, 1, tzinfo=UTC)
    intent = Intent(OperationId("x"), kind, MAIN, now, (), schema_version=2)
    oldest = Intent(OperationId("x"), kind, MAIN, now, (), schema_version=1)

    assert mode_of(intent) is mode
    assert mode_of(oldest) is mode_at_first
