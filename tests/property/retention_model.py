"""A model of a graph under retention: its commits, and the rules as a user reads them.

What a commit has is a set of facts that only grow: rows that were inserted and deleted, types and
properties that were added and dropped. So a merge is the union of both sides, whatever was merged
in which order. Nothing here is taken from the code under test.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import combinations

from tests.support.plain_lance import Place

MAIN = "main"


@dataclass(frozen=True)
class State:
    """What a commit has.

    Attributes:
        inserted: Types and ids of rows; and `deleted`, of those that are gone.
        types: The types that were added; and `dropped`, those that are gone.
        properties: Types and names of properties that were added; and `lost`, those that are gone.
    """

    inserted: frozenset[tuple[str, str]] = frozenset()
    deleted: frozenset[tuple[str, str]] = frozenset()
    types: frozenset[str] = frozenset()
    dropped: frozenset[str] = frozenset()
    properties: frozenset[tuple[str, str]] = frozenset()
    lost: frozenset[tuple[str, str]] = frozenset()

    @property
    def current_types(self) -> set[str]:
        return set(self.types - self.dropped)

    @property
    def rows(self) -> set[tuple[str, str]]:
        return {row for row in self.inserted - self.deleted if row[0] in self.current_types}

    @property
    def gone(self) -> "Dropped":
        return Dropped(self.dropped, self.lost)

    def rows_of(self, type_name: str) -> list[str]:
        return sorted(row_id for name, row_id in self.rows if name == type_name)

    def merged(self, other: "State") -> "State":
        return State(
            self.inserted | other.inserted,
            self.deleted | other.deleted,
            self.types | other.types,
            self.dropped | other.dropped,
            self.properties | other.properties,
            self.lost | other.lost,
        )


@dataclass(frozen=True)
class Dropped:
    """Types and properties that a branch has dropped."""

    types: frozenset[str]
    properties: frozenset[tuple[str, str]]

    def __bool__(self) -> bool:
        return bool(self.types or self.properties)

    def is_in(self, state: State) -> bool:
        """Whether files of the state may hold it: what was added stays there after a drop."""
        return bool(self.types & state.types or self.properties & state.properties)


@dataclass(frozen=True)
class KnownCommit:
    """One commit.

    Attributes:
        branch: The number of the branch that it was made on; a name may be used again.
        place: Where the graph said that it is, when it was made.
        digest: A digest of all its rows, when it was made.
    """

    commit_id: str
    parents: tuple[str, ...]
    branch: int
    created_at: datetime
    place: Place
    digest: str
    state: State


@dataclass(frozen=True)
class Rules:
    """The rules of one cleanup; without any, every commit is kept."""

    keep_commits: int | None = None
    older_than: timedelta | None = None
    grace: timedelta = timedelta(hours=1)

    @property
    def lets_go(self) -> bool:
        return self.keep_commits is not None or self.older_than is not None


@dataclass(frozen=True)
class EndedBranch:
    """A deleted branch: its newest commit, and when it was deleted."""

    tip: str
    at: datetime


@dataclass
class Model:
    """A graph.

    Attributes:
        tips: By name, the newest commit of each branch.
        numbers: By name, the number of each branch.
        tags: By name, the commits with tags.
        ended: By number, the deleted branches.
        gone: The commits that expired.
    """

    commits: dict[str, KnownCommit] = field(default_factory=dict)
    tips: dict[str, str] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    ended: dict[int, EndedBranch] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)

    def tip(self, branch: str) -> KnownCommit:
        return self.commits[self.tips[branch]]

    def ancestors(self, heads: Collection[str]) -> set[str]:
        """The commits that can be reached from these, themselves included."""
        reached: set[str] = set()
        ahead = list(heads)
        while ahead:
            commit_id = ahead.pop()
            if commit_id not in reached:
                reached.add(commit_id)
                ahead += self.commits[commit_id].parents
        return reached

    def known(self) -> set[str]:
        """The commits that somebody can name: those in the history of a branch or a tag."""
        return self.ancestors([*self.tips.values(), *self.tags.values()])

    def readable(self) -> set[str]:
        """Those of them that were not let go."""
        return self.known() - self.gone

    def named(self) -> set[str]:
        """The commits with a name, of a branch or a tag: these are kept whatever happens."""
        return {*self.tips.values(), *self.tags.values()}

    def must_keep(self, rules: Rules, now: datetime) -> set[str]:
        """The commits that a cleanup by these rules must leave readable."""
        kept = self.named() | self.bases() | self.left_since(now - rules.grace)
        known = self.known()
        if not rules.lets_go:
            kept |= known
        if rules.keep_commits is not None:
            for tip in self.tips.values():
                kept |= set(list(self.first_parents(tip))[: rules.keep_commits])
        if rules.older_than is not None:
            since = now - rules.older_than
            kept |= {each for each in known if self.commits[each].created_at > since}
        return kept - self.gone

    def forget_unnamed(self, rules: Rules, now: datetime) -> None:
        """Count the commits as gone that nobody can name, and that these rules do not keep."""
        self.gone |= self.commits.keys() - self.known() - self.must_keep(rules, now)

    def may_keep(self, rules: Rules, now: datetime) -> set[str]:
        """The commits that it may leave readable.

        With any commit of a deleted branch its newest one is kept, and a branch that was deleted a
        moment ago is kept whole.
        """
        kept = self.must_keep(rules, now)
        known = self.known()
        kept_on = {self.commits[each].branch for each in kept}
        for number, ended in self.ended.items():
            own = [each for each in self.commits.values() if each.branch == number]
            if ended.at > now - max(rules.grace, timedelta(minutes=2)):
                kept |= {each.commit_id for each in own}
            elif number in kept_on:
                nameable = [each for each in own if each.commit_id in known]
                newest = max(nameable, key=lambda each: each.place[1])
                kept.add(newest.commit_id)
        return kept - self.gone

    def holders(self, dropped: Dropped) -> set[str]:
        """The commits whose files may hold something that was dropped."""
        return {each.commit_id for each in self.commits.values() if dropped.is_in(each.state)}

    def had(self, branch: str, dropped: Dropped) -> Dropped:
        """What of this the branch had itself: a merge may bring what came and went elsewhere."""
        line = [self.commits[each].state for each in self.first_parents(self.tips[branch])]
        return Dropped(
            frozenset(each for each in dropped.types if any(each in s.current_types for s in line)),
            frozenset(
                each
                for each in dropped.properties
                if any(each in s.properties - s.lost for s in line)
            ),
        )

    def ended_with(self, some: Collection[str]) -> set[str]:
        """The commits of deleted branches that ended with one of these."""
        numbers = {number for number, ended in self.ended.items() if ended.tip in some}
        return {each.commit_id for each in self.commits.values() if each.branch in numbers}

    def first_parents(self, tip: str) -> Iterator[str]:
        """The commits of a branch, newest first."""
        parents: tuple[str, ...] = (tip,)
        while parents:
            yield parents[0]
            parents = self.commits[parents[0]].parents

    def left_since(self, since: datetime) -> set[str]:
        """The commits that were the newest of a branch at some time after this."""
        left = {
            commit.parents[0]
            for commit in self.commits.values()
            if commit.parents and commit.created_at > since
        }
        return left | {ended.tip for ended in self.ended.values() if ended.at > since}

    def bases(self) -> set[str]:
        """What merges between any two branches need as their base."""
        needed: set[str] = set()
        for one, other in combinations(sorted(set(self.tips.values())), 2):
            needed |= self.bases_of(one, other)
        return needed

    def bases_of(self, one: str, other: str) -> set[str]:
        """What a merge of two commits needs as its base, and what that needs as its own."""
        needed: set[str] = set()
        self._add_bases([one], other, needed)
        return needed

    def _add_bases(self, some: list[str], other: str, needed: set[str]) -> None:
        bases = self._best_common(some, other)
        needed |= set(bases)
        for number in range(1, len(bases)):
            self._add_bases(bases[:number], bases[number], needed)

    def _best_common(self, some: Collection[str], other: str) -> list[str]:
        """The common ancestors that are not ancestors of another one, by id."""
        common = self.ancestors(some) & self.ancestors([other])
        older = self.ancestors({parent for id_ in common for parent in self.commits[id_].parents})
        return sorted(common - older)
