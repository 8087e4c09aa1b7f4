"""Classification of an interrupted write by its table heads, and the decision: pure functions.

For each table: H is the head on its ref, M the version the manifest pins, E the version the write
expected, P the head it intended, C the head it confirmed.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import Final

from omnigraph.model.commits import OperationKind


class ProofMode(Enum):
    """How much evidence a kind of writer must leave to be rolled forward.

    Attributes:
        STRICT: The head is the one that it intended, and it made every version above the pin.
        CONFIRMED: It recorded that all heads have moved, and where to.
    """

    STRICT = "strict"
    CONFIRMED = "confirmed"


class TableFinding(StrEnum):
    """What happened to one table."""

    NO_MOVEMENT = "no_movement"
    ROLLED_PAST_EXPECTED = "rolled_past_expected"
    UNEXPECTED_AT_P1 = "unexpected_at_p1"
    UNEXPECTED_MULTISTEP = "unexpected_multistep"
    INCOMPLETE_PHASE_B = "incomplete_phase_b"
    INVARIANT_VIOLATION = "invariant_violation"


class Decision(StrEnum):
    """What to do about the whole write."""

    ROLL_FORWARD = "roll_forward"
    ROLL_BACK = "roll_back"
    ABORT = "abort"


@dataclass(frozen=True, slots=True)
class Observation:
    """The state of one table at the time of a recovery.

    Attributes:
        is_ours: Whether every version above the pin names the write in question as its author.
        is_restored: Whether a recovery made the head: then it is not a step of any write.
    """

    head: int
    pinned: int
    expected: int
    post_commit: int
    confirmed: int | None = None
    is_ours: bool = True
    is_restored: bool = False


CONFIRMED_KINDS: Final = frozenset({OperationKind.MERGE, OperationKind.SCHEMA_APPLY})
"""Writers that record when all their heads have moved."""


def mode_of(kind: OperationKind) -> ProofMode:
    """The mode for classifying the heads of a kind of write."""
    return ProofMode.CONFIRMED if kind in CONFIRMED_KINDS else ProofMode.STRICT


def classify(mode: ProofMode, seen: Observation) -> TableFinding:
    """What happened to one table."""
    if seen.head < seen.pinned:
        return TableFinding.INVARIANT_VIOLATION
    if seen.head == seen.pinned:
        return TableFinding.NO_MOVEMENT
    if mode is ProofMode.CONFIRMED and seen.confirmed is None:
        return TableFinding.INCOMPLETE_PHASE_B
    was_expected = seen.expected == seen.pinned and not seen.is_restored
    if mode is ProofMode.CONFIRMED:
        was_expected = was_expected and seen.confirmed == seen.head
    is_one_step = seen.head == seen.pinned + 1
    if mode is ProofMode.STRICT or is_one_step:
        was_expected = was_expected and seen.is_ours and seen.post_commit == seen.head
    if was_expected:
        return TableFinding.ROLLED_PAST_EXPECTED
    if is_one_step:
        return TableFinding.UNEXPECTED_AT_P1
    return TableFinding.UNEXPECTED_MULTISTEP


def decide(findings: Collection[TableFinding]) -> Decision:
    """What to do, given what happened to each table."""
    if TableFinding.INVARIANT_VIOLATION in findings:
        return Decision.ABORT
    if findings and all(finding is TableFinding.ROLLED_PAST_EXPECTED for finding in findings):
        return Decision.ROLL_FORWARD
    return Decision.ROLL_BACK
