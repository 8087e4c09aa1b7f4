"""What heads say and what is to be done: the protocol's table, then every small case there is."""

from itertools import combinations_with_replacement, product

import pytest

from omnigraph.model.commits import OperationKind
from omnigraph.recovery.classify import (
    Decision,
    Observation,
    ProofMode,
    TableFinding,
    classify,
    decide,
    mode_of,
)

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
    #                                      H  M  E  P  C                   strict  confirm
    "below its pin":                 (seen(4, 5, 5, 6),                    BROKEN, BROKEN),
    "far below its pin":             (seen(1, 9, 5, 6, 6),                 BROKEN, BROKEN),
    "at its pin":                    (seen(5, 5, 5, 6),                    STILL,  STILL),
    "at a pin that moved on":        (seen(7, 7, 5, 6),                    STILL,  STILL),
    "at its pin, confirmed":         (seen(5, 5, 5, 6, 6),                 STILL,  STILL),
    "one step, ours":                (seen(6, 5, 5, 6),                    PAST,   HALF),
    "one step, ours, confirmed":     (seen(6, 5, 5, 6, 6),                 PAST,   PAST),
    "one step, confirmed elsewhere": (seen(6, 5, 5, 6, 7),                 PAST,   ODD),
    "one step, another's":           (seen(6, 5, 5, 6, 6, ours=False),     ODD,    ODD),
    "one step from another pin":     (seen(6, 5, 4, 6, 6),                 ODD,    ODD),
    "one step to another place":     (seen(6, 5, 5, 7, 6),                 ODD,    ODD),
    "one step, restored":            (seen(6, 5, 5, 6, 6, restored=True),  ODD,    ODD),
    "two steps of two, ours":        (seen(7, 5, 5, 7),                    PAST,   HALF),
    "two steps of two, another's":   (seen(7, 5, 5, 7, ours=False),        FAR,    HALF),
    "two steps of two, other pin":   (seen(7, 5, 4, 7),                    FAR,    HALF),
    "two steps of two, restored":    (seen(7, 5, 5, 7, restored=True),     FAR,    HALF),
    "two steps of two, confirmed":   (seen(7, 5, 5, 7, 7),                 PAST,   PAST),
    "one step of two":               (seen(6, 5, 5, 7),                    ODD,    HALF),
    "three steps of two":            (seen(8, 5, 5, 7),                    FAR,    HALF),
    "two steps":                     (seen(7, 5, 5, 6),                    FAR,    HALF),
    "two steps, confirmed":          (seen(7, 5, 5, 6, 7),                 FAR,    PAST),
    "two steps, confirmed one":      (seen(7, 5, 5, 6, 6),                 FAR,    FAR),
    "two steps, another's":          (seen(7, 5, 5, 6, 7, ours=False),     FAR,    PAST),
    "two steps from another pin":    (seen(7, 5, 4, 6, 7),                 FAR,    FAR),
    "two steps, restored":           (seen(7, 5, 5, 6, 7, restored=True),  FAR,    FAR),
}
# fmt: on


@pytest.mark.parametrize(("observed", "strict", "confirmed"), CASES.values(), ids=CASES.keys())
def test_classify(observed, strict, confirmed):
    assert classify(ProofMode.STRICT, observed) is strict
    assert classify(ProofMode.CONFIRMED, observed) is confirmed


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


@pytest.mark.parametrize("kind", OperationKind)
def test_merges_and_schema_changes_have_to_confirm(kind):
    confirms = kind in (OperationKind.MERGE, OperationKind.SCHEMA_APPLY)
    assert (mode_of(kind) is ProofMode.CONFIRMED) is confirms
