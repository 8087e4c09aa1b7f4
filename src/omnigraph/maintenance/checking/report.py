"""The report of a check: what was examined and what is wrong, for programs and for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from omnigraph.errors import ErrorCode, OmnigraphError
from omnigraph.model.brief import brief

BACKUP: Final = "restore the graph's files from a backup, and report how this came about"
"""The next step where the graph has no other copy of what is lost or wrong."""


_CALLER_ERRORS: Final = frozenset(
    {ErrorCode.ENGINE_UNAVAILABLE, ErrorCode.STORAGE_DENIED, ErrorCode.WORKERS_MISMATCH}
)
"""Failures that concern who runs the check, and say nothing about the graph."""


class Invariant(StrEnum):
    """What must hold of every graph. Programs match on these words."""

    BRANCH = "branch"
    HISTORY = "history"
    SCHEMA = "schema"
    PAST = "past"
    TABLE = "table"
    INDEX = "index"
    HEAD = "head"
    ROW = "row"
    RULE = "rule"
    SIDECAR = "sidecar"
    RECOVERY = "recovery"
    TAG = "tag"
    SETTING = "setting"

    @property
    def sentence(self) -> str:
        """The invariant in words."""
        return _SENTENCES[self]


_SENTENCES: Final = {
    Invariant.BRANCH: "every branch has a name, a ref and a head",
    Invariant.HISTORY: "every commit has its parents, down to one first commit",
    Invariant.SCHEMA: "every commit's schema is kept, and its text means the same",
    Invariant.PAST: "every older commit can still be read",
    Invariant.TABLE: "every pinned version opens, with the files, columns and rows it should have",
    Invariant.INDEX: "every index is readable, and finds the rows that it covers",
    Invariant.HEAD: "every table ends where its branch pins it",
    Invariant.ROW: "every row is readable and keeps the rules about one row",
    Invariant.RULE: "ids, keys, uniques, ends and cardinalities hold",
    Invariant.SIDECAR: "no write was interrupted and left as it was",
    Invariant.RECOVERY: "every interrupted write was brought to an end once",
    Invariant.TAG: "every tag names a commit that can be read",
    Invariant.SETTING: "every setting has a value that it accepts",
}


@brief
@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that breaks an invariant, or is worth knowing.

    Attributes:
        subject: The thing: a branch, a commit, a type, a file.
        place: Where it is.
        problem: The facts in one sentence.
        next_step: What to do about it.
        count: How many times it occurs.
    """

    invariant: Invariant
    subject: str
    place: str
    problem: str
    next_step: str
    count: int = 1

    def __str__(self) -> str:
        return f"{self.invariant}: {self.subject} ({self.place}): {self.problem}"


@brief
@dataclass(frozen=True, slots=True)
class CheckReport:
    """The result of a check of a graph.

    Attributes:
        branches: The branches that were checked.
        checked: How many things were checked for each requested invariant.
        findings: What is wrong.
        notes: What is worth knowing and does no harm: writes in progress, leftovers.
        hidden: The types that the actor may not read: their tables were not checked.
    """

    uri: str
    branches: tuple[str, ...]
    checked: Mapping[Invariant, int] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    notes: tuple[Finding, ...] = ()
    hidden: tuple[str, ...] = ()

    @property
    def is_sound(self) -> bool:
        """Whether nothing is wrong."""
        return not self.findings

    def wrong(self, invariant: Invariant) -> int:
        """How many findings there are about one invariant."""
        return sum(finding.count for finding in self.findings if finding.invariant is invariant)


class Notebook:
    """Collects a report. A finding that several branches share is reported once."""

    def __init__(self) -> None:
        self._checked: Counter[Invariant] = Counter()
        self._findings: dict[tuple[str, ...], Finding] = {}
        self._notes: dict[tuple[str, ...], Finding] = {}

    def count(self, invariant: Invariant, number: int = 1) -> None:
        """Count things that were checked."""
        self._checked[invariant] += number

    def find(self, finding: Finding) -> None:
        """Record something wrong."""
        self._findings.setdefault(_identity(finding), finding)

    def fail(
        self,
        invariant: Invariant,
        subject: str,
        place: str,
        failure: OmnigraphError,
        *,
        what: str = "",
        step: str = "",
    ) -> None:
        """Record something that could not be read.

        Args:
            what: What could not be done, if the failure does not say it.
            step: What to do about it; the hint of the failure when empty.

        Raises:
            OmnigraphError: the failure concerns who runs the check, and not the graph.
        """
        if failure.code in _CALLER_ERRORS:
            raise failure
        problem = f"{what}: {failure.message}" if what else failure.message
        self.find(Finding(invariant, subject, place, problem, step or failure.hint or BACKUP))

    def note(self, finding: Finding) -> None:
        """Record something worth knowing."""
        self._notes.setdefault(_identity(finding), finding)

    def report(
        self, uri: str, branches: tuple[str, ...], invariants: Iterable[Invariant]
    ) -> CheckReport:
        """The report so far, of a check of these invariants."""
        checked = {invariant: self._checked[invariant] for invariant in invariants}
        return CheckReport(
            uri,
            branches,
            MappingProxyType(checked),
            tuple(self._findings.values()),
            tuple(self._notes.values()),
        )


def _identity(finding: Finding) -> tuple[str, ...]:
    return finding.invariant, finding.subject, finding.problem
