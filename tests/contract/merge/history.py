"""A model of a history: every commit's parents and all its rows, and the result of a merge."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from omnigraph.merge.outcomes import Outcome
from tests.contract.merge import oracle
from tests.contract.merge.oracle import Base, Expected, Rows


@dataclass(frozen=True)
class KnownCommit:
    """One commit: the numbers of its parents, and all its rows.

    Attributes:
        is_maintenance: Whether it has the rows of its parent, and is nothing to merge.
    """

    parents: tuple[int, ...]
    rows: Rows
    is_maintenance: bool = False


class History:
    """Commits, numbered as they are added, and the ids that a graph has for them.

    Those of deleted branches stay.
    """

    def __init__(self) -> None:
        self.commits: list[KnownCommit] = []
        self._ids: list[str] = []

    def add(self, commit_id: str, commit: KnownCommit) -> int:
        assert commit_id not in self._ids, f"{commit_id} exists twice"
        self.commits.append(commit)
        self._ids.append(commit_id)
        return len(self.commits) - 1

    def commit_id(self, number: int) -> str:
        return self._ids[number]

    def has(self, commit_id: str) -> bool:
        return commit_id in self._ids

    def rows(self, number: int) -> Rows:
        return self.commits[number].rows

    def ancestors(self, heads: Collection[int]) -> set[int]:
        """The commits reachable from these over all parents, including themselves."""
        numbers: set[int] = set()
        todo = list(heads)
        while todo:
            if (number := todo.pop()) not in numbers:
                numbers.add(number)
                todo.extend(self.commits[number].parents)
        return numbers

    def bases(self, some: Collection[int], other: int) -> list[int]:
        """The common ancestors that are no proper ancestors of others, by the graph's ids.

        The ancestors of some commits are those that any of them has.
        """
        common = self.ancestors(some) & self.ancestors([other])
        older = self.ancestors({parent for each in common for parent in self.commits[each].parents})
        return sorted(common - older, key=self.commit_id)

    def base(self, some: Collection[int], other: int) -> Base:
        """The rows both sides are compared with: the base, or all bases merged with each other."""
        bases = self.bases(some, other)
        merged: Base = self.rows(bases[0])
        for place, number in enumerate(bases[1:], start=1):
            before = self.base(bases[:place], number)
            merged = self.virtual_merge(before, merged, self.rows(number))
        return merged

    def virtual_merge(self, base: Base, left: Base, right: Base) -> Base:
        return oracle.virtual_merge(base, left, right)

    def _rows_from(self, number: int) -> int:
        """The commit itself, or the newest one before it that is no maintenance."""
        while self.commits[number].is_maintenance:
            (number,) = self.commits[number].parents
        return number

    def merge(self, theirs: int, ours: int, **how: Any) -> tuple[Outcome, Expected]:
        """The expected result of merging a source at one commit into a target at another."""
        if self._rows_from(theirs) in self.ancestors([ours]):
            return Outcome.ALREADY_UP_TO_DATE, Expected(self.rows(ours))
        base = self.base([ours], theirs)
        expected = oracle.merge(base, self.rows(ours), self.rows(theirs), **how)
        is_behind = self._rows_from(ours) in self.ancestors([theirs])
        return Outcome.FAST_FORWARD if is_behind else Outcome.MERGED, expected
