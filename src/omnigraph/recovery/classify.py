"""What an interrupted write's table heads say, and what is to be done: pure functions.

Of each table: H is the head on its ref, M the version the manifest pins, E the version the write
expected, P where it was going to leave the head, C where it confirmed to have left it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import Final

from omnigraph.model.commits import OperationKind
from omnigraph.recovery.intents import Intent


class Mode(Enum):
    """How much a kind of writer has to prove."""

    STRICT = "strict"
    CONFIRMED = "confirmed"
    LOOSE = "loose"


class Finding(StrEnum):
    """What became of one table."""

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
class Observed:
    """One table as recovery finds it.

    Attributes:
        is_ours: Whether the head was made by the write in question, by its transaction's own word.
        is_restored: Whether the head was made by a recovery: it is no step of any write.
    """

    head: int
    pinned: int
    expected: int
    post_commit: int
    confirmed: int | None = None
    is_ours: bool = True
    is_restored: bool = False


_MODES: Final = {
    OperationKind.MUTATION: Mode.STRICT,
    OperationKind.LOAD: Mode.STRICT,
    OperationKind.MERGE: Mode.CONFIRMED,
    OperationKind.SCHEMA_APPLY: Mode.LOOSE,
    OperationKind.INDEX: Mode.LOOSE,
    OperationKind.OPTIMIZE: Mode.LOOSE,
}


CONFIRMED_KINDS: Final = frozenset(kind for kind, mode in _MODES.items() if mode is Mode.CONFIRMED)
"""Writers that write down when all their heads have moved."""


def mode_of(intent: Intent) -> Mode:
    """How the heads of this write are to be read."""
    mode = _MODES.get(intent.writer_kind, Mode.STRICT)
    # The first sidecars had nothing to confirm merges with.
    return Mode.LOOSE if mode is Mode.CONFIRMED and intent.schema_version == 1 else mode


def classify(mode: Mode, seen: Observed) -> Finding:
    """What became of one table."""
    if seen.head < seen.pinned:
        return Finding.INVARIANT_VIOLATION
    if seen.head == seen.pinned:
        return Finding.NO_MOVEMENT
    if mode is Mode.CONFIRMED and seen.confirmed is None:
        return Finding.INCOMPLETE_PHASE_B
    was_expected = seen.expected == seen.pinned and not seen.is_restored
    if mode is Mode.CONFIRMED:
        was_expected = was_expected and seen.confirmed == seen.head
    if seen.head == seen.pinned + 1:
        proven = was_expected and seen.is_ours and seen.post_commit == seen.head
        return Finding.ROLLED_PAST_EXPECTED if proven else Finding.UNEXPECTED_AT_P1
    if mode is not Mode.STRICT and was_expected:
        return Finding.ROLLED_PAST_EXPECTED
    return Finding.UNEXPECTED_MULTISTEP


def decide(findings: Collection[Finding]) -> Decision:
    """What to do, given what became of each table."""
    if Finding.INVARIANT_VIOLATION in findings:
        return Decision.ABORT
    if findings and all(each is Finding.ROLLED_PAST_EXPECTED for each in findings):
        return Decision.ROLL_FORWARD
    return Decision.ROLL_BACK
