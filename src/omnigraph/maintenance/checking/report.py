"""What a check looked at and found: values for programs, and words for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from omnigraph.errors import ErrorCode, OmnigraphError

BACKUP: Final = "restore the graph's files from a backup, and report how this came about"
"""The next step where what is lost, or wrong, is nowhere else."""


_OF_WHO_LOOKS: Final = frozenset(
    {ErrorCode.ENGINE_UNAVAILABLE, ErrorCode.STORAGE_DENIED, ErrorCode.WORKERS_MISMATCH}
)


class Invariant(StrEnum):
    """What must hold of every graph. Programs match on these words."""

    BRANCH = "branch"
    HISTORY = "history"
    SCHEMA = "schema"
    PAST = "past"
    TABLE = "table"
    HEAD = "head"
    ROW = "row"
    RULE = "rule"
    SIDECAR = "sidecar"
    RECOVERY = "recovery"

    @property
    def sentence(self) -> str:
        """What holds where nothing is found."""
        return _SENTENCES[self]


_SENTENCES: Final = {
    Invariant.BRANCH: "every branch has a name, a ref and a head",
    Invariant.HISTORY: "every commit has its parents, down to one first commit",
    Invariant.SCHEMA: "every commit's schema is kept, and its text means the same",
    Invariant.PAST: "every older commit can still be read",
    Invariant.TABLE: "every pinned version opens, with the files, columns and rows it should have",
    Invariant.HEAD: "every table ends where its branch pins it",
    Invariant.ROW: "every row is readable and keeps the rules about one row",
    Invariant.RULE: "ids, keys, uniques, ends and cardinalities hold",
    Invariant.SIDECAR: "no write was interrupted and left as it was",
    Invariant.RECOVERY: "every interrupted write was brought to an end once",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is not as it must be, or worth knowing.

    Attributes:
        subject: The thing: a branch, a commit, a type, a file.
        place: Where it is.
        problem: The facts in one sentence.
        next_step: What to do about it.
        count: How many times it was met.
    """

    invariant: Invariant
    subject: str
    place: str
    problem: str
    next_step: str
    count: int = 1

    def __str__(self) -> str:
        return f"{self.invariant}: {self.subject} ({self.place}): {self.problem}"


@dataclass(frozen=True, slots=True)
class CheckReport:
    """What a check of a graph found.

    Attributes:
        branches: The branches that were looked at.
        checked: How many things were looked at for each invariant that was asked for.
        findings: What is wrong.
        notes: What is worth knowing and harms nobody: writes in flight, leftovers.
    """

    uri: str
    branches: tuple[str, ...]
    checked: Mapping[Invariant, int] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    notes: tuple[Finding, ...] = ()

    @property
    def is_sound(self) -> bool:
        """Whether nothing is wrong."""
        return not self.findings

    def wrong(self, invariant: Invariant) -> int:
        """How many findings there are about one invariant."""
        return sum(each.count for each in self.findings if each.invariant is invariant)


class Notebook:
    """A report in the making. What several branches share is told once."""

    def __init__(self) -> None:
        self._checked: Counter[Invariant] = Counter()
        self._findings: dict[tuple[str, ...], Finding] = {}
        self._notes: dict[tuple[str, ...], Finding] = {}

    def count(self, invariant: Invariant, number: int = 1) -> None:
        """So many things were looked at."""
        self._checked[invariant] += number

    def find(self, finding: Finding) -> None:
        """This is wrong."""
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
        """This could not be read, which is wrong, too.

        Args:
            what: What could not be done, if the failure does not say it.
            step: What to do about it; what the failure advises when empty.

        Raises:
            OmnigraphError: it says nothing about the graph, but about who looks at it.
        """
        if failure.code in _OF_WHO_LOOKS:
            raise failure
        problem = f"{what}: {failure.message}" if what else failure.message
        self.find(Finding(invariant, subject, place, problem, step or failure.hint or BACKUP))

    def note(self, finding: Finding) -> None:
        """This is worth knowing."""
        self._notes.setdefault(_identity(finding), finding)

    def report(
        self, uri: str, branches: tuple[str, ...], invariants: Iterable[Invariant]
    ) -> CheckReport:
        """What was found so far, by who looked at these invariants."""
        checked = {each: self._checked[each] for each in invariants}
        return CheckReport(
            uri,
            branches,
            MappingProxyType(checked),
            tuple(self._findings.values()),
            tuple(self._notes.values()),
        )


def _identity(finding: Finding) -> tuple[str, ...]:
    return finding.invariant, finding.subject, finding.problem
