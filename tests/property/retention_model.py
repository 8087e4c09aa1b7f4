"""A model of a graph under retention: dictionaries of commits, and the rules as a user reads them.

Rows are inserted under ids that are used once, and deleted. So a commit has the rows that were
inserted in its history and not deleted there, whatever was merged in which order. Nothing here is
taken from the code under test.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import combinations


@dataclass(frozen=True)
class Row:
    """A row: its type, and an id that no other row ever has."""

    type_name: str
    id: str


@dataclass(frozen=True)
class KnownCommit:
    """One commit.

    Attributes:
        branch: The number of the branch that it was made on; a name may be used again.
        types: The types of its schema.
    """

    commit_id: str
    parents: tuple[str, ...]
    branch: int
    created_at: datetime
    inserted: frozenset[Row]
    deleted: frozenset[Row]
    types: frozenset[str]

    @property
    def rows(self) -> frozenset[Row]:
        return frozenset(row for row in self.inserted - self.deleted if row.type_name in self.types)


@dataclass(frozen=True)
class Rules:
    """The rules of one cleanup."""

    keep_commits: int | None = None
    older_than: timedelta | None = None
    grace: timedelta = timedelta(hours=1)


@dataclass
class Model:
    """A graph.

    Attributes:
        tips: By name, the newest commit of each branch.
        numbers: By name, the number of each branch.
        tags: By name, the commits with tags.
        ended: By the number of a deleted branch, its newest commit, and when it was deleted.
        gone: The commits that were let go.
    """

    commits: dict[str, KnownCommit] = field(default_factory=dict)
    tips: dict[str, str] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    ended: dict[int, tuple[str, datetime]] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)

    def ancestors(self, heads: Collection[str]) -> set[str]:
        """The commits that can be reached from these, themselves included."""
        found: set[str] = set()
        ahead = list(heads)
        while ahead:
            commit_id = ahead.pop()
            if commit_id not in found:
                found.add(commit_id)
                ahead += self.commits[commit_id].parents
        return found

    def known(self) -> set[str]:
        """The commits that somebody can name: those in the history of a branch or a tag."""
        return self.ancestors([*self.tips.values(), *self.tags.values()])

    def readable(self) -> set[str]:
        """Those of them that were not let go."""
        return self.known() - self.gone

    def must_keep(self, rules: Rules, now: datetime) -> set[str]:
        """The commits that a cleanup by these rules must leave readable."""
        if rules.keep_commits is None and rules.older_than is None:
            return self.readable()
        kept = set(self.tips.values()) | set(self.tags.values()) | self.bases()
        for tip in self.tips.values():
            line = list(self.first_parents(tip))
            kept |= set(line[: rules.keep_commits or 0])
        for commit_id in self.known():
            age = now - self.commits[commit_id].created_at
            if rules.older_than is not None and age < rules.older_than:
                kept.add(commit_id)
            left = self.left_at(commit_id)
            if left is not None and now - left < rules.grace:
                kept.add(commit_id)
        for number, (last, _) in self.ended.items():
            if last in self.known() and any(self.commits[each].branch == number for each in kept):
                kept.add(last)
        return kept - self.gone

    def first_parents(self, tip: str) -> Iterator[str]:
        """The commits of a branch, newest first."""
        parents: tuple[str, ...] = (tip,)
        while parents:
            yield parents[0]
            parents = self.commits[parents[0]].parents

    def left_at(self, commit_id: str) -> datetime | None:
        """When a commit stopped being the newest of the last branch that had it as its newest."""
        known = self.known()
        times = [
            self.commits[each].created_at
            for each in known
            if self.commits[each].parents[:1] == (commit_id,)
        ]
        # A deleted branch may have gone on after what others merged of it.
        ends = [
            (max(own, key=self._place), at)
            for number, (_, at) in self.ended.items()
            if (own := [each for each in known if self.commits[each].branch == number])
        ]
        times += [at for last, at in ends if last == commit_id]
        return max(times, default=None)

    def _place(self, commit_id: str) -> int:
        return len(self.ancestors([commit_id]))

    def bases(self) -> set[str]:
        """What merges between any two branches need as their base."""
        found: set[str] = set()
        for one, other in combinations(sorted(set(self.tips.values())), 2):
            self._add_bases([one], other, found)
        return found

    def _add_bases(self, some: list[str], other: str, found: set[str]) -> None:
        bases = self.best_common(some, other)
        found |= set(bases)
        for number in range(1, len(bases)):
            self._add_bases(bases[:number], bases[number], found)

    def best_common(self, some: Collection[str], other: str) -> list[str]:
        """The common ancestors that are not ancestors of another one, by id."""
        common = self.ancestors(some) & self.ancestors([other])
        older = self.ancestors({each for id_ in common for each in self.commits[id_].parents})
        return sorted(common - older)
