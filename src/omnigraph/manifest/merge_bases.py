"""Merge bases: the best common ancestor of both sides, or several folded into a virtual base.

Criss-cross merges, where each side merged the other, have several best common ancestors. Those are
merged with each other first, recursively (docs/decisions/0009). The plan made here names commits;
`merge.virtual` folds the rows of one table.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from omnigraph.manifest.lineage import Ancestry
from omnigraph.model.commits import Commit
from omnigraph.model.ids import CommitId

MERGE_BASE_DEPTH_MAX: Final = 32
"""Levels of criss-cross merges in two histories beyond which their merge base counts as unknown."""


@dataclass(frozen=True, slots=True)
class Fold:
    """The result of merging one commit into an earlier step.

    Attributes:
        left: The number of the step that it is merged into.
        right: The commit that is merged.
        base: The number of the step that is the base of both; None if it is unknown, because there
            is none or criss-cross merges are nested too deeply.
    """

    left: int
    right: CommitId
    base: int | None


Step: TypeAlias = CommitId | Fold


@dataclass(frozen=True, slots=True)
class Base:
    """The base of a merge: the last of some steps.

    Attributes:
        steps: Commits and folds; each fold follows the steps that it names.
    """

    steps: tuple[Step, ...]

    @property
    def commit(self) -> CommitId | None:
        """The commit, if the base is one; None for a virtual base."""
        last = self.steps[-1]
        return None if isinstance(last, Fold) else last

    @property
    def commits(self) -> tuple[CommitId, ...]:
        """Every commit whose rows it needs, without repetition."""
        found = (each.right if isinstance(each, Fold) else each for each in self.steps)
        return tuple(dict.fromkeys(found))

    @property
    def anchor(self) -> CommitId:
        """The commit that sides are compared with; the base is a difference from it."""
        return self.anchor_of(len(self.steps) - 1)

    def anchor_of(self, number: int) -> CommitId:
        """The anchor of one step."""
        step = self.steps[number]
        return self.anchor_of(step.left) if isinstance(step, Fold) else step

    def pairs(self) -> Iterator[tuple[CommitId, CommitId]]:
        """The commits that are compared with each other to fold the steps."""
        for step in self.steps:
            if not isinstance(step, Fold):
                continue
            left = self.anchor_of(step.left)
            below = left if step.base is None else self.anchor_of(step.base)
            yield from ((below, each) for each in (left, step.right) if each != below)

    def for_table(self, version: Callable[[CommitId], Hashable]) -> Base:
        """The base of one table, with no more folds than the versions of that table need.

        Args:
            version: The version of the table at a commit: equal versions have equal rows.
        """
        return _Simplification(version).run(self)


def find_base(bases: Sequence[Commit], ancestry: Ancestry) -> Base:
    """The base of a merge, from the best common ancestors of its sides."""
    plan = _Plan(ancestry)
    plan.add(tuple(each.commit_id for each in bases), depth=0)
    return Base(tuple(plan.steps))


class _Plan:
    """Collects steps, each once."""

    def __init__(self, ancestry: Ancestry) -> None:
        self._ancestry = ancestry
        self._known: dict[tuple[CommitId, ...], int] = {}
        self.steps: list[Step] = []

    def add(self, bases: tuple[CommitId, ...], *, depth: int) -> int:
        """The number of the step that folds some commits, in the order of their ids."""
        if bases not in self._known:
            self._known[bases] = self._append(self._step(bases, depth))
        return self._known[bases]

    def _step(self, bases: tuple[CommitId, ...], depth: int) -> Step:
        *others, last = bases
        if not others:
            return last
        left = self.add(tuple(others), depth=depth)
        if depth >= MERGE_BASE_DEPTH_MAX:
            return Fold(left, last, None)
        below = self._ancestry.divergence(others, last).bases
        ids = tuple(each.commit_id for each in below)
        return Fold(left, last, self.add(ids, depth=depth + 1) if ids else None)

    def _append(self, step: Step) -> int:
        self.steps.append(step)
        return len(self.steps) - 1


class _Simplification:
    """Removes the folds of a base that do not change a table."""

    def __init__(self, version: Callable[[CommitId], Hashable]) -> None:
        self._version = version
        self._first: dict[Hashable, CommitId] = {}
        self._steps: list[Step] = []

    def run(self, base: Base) -> Base:
        numbers: list[int] = []
        for step in base.steps:
            if isinstance(step, Fold):
                below = None if step.base is None else numbers[step.base]
                numbers.append(self._fold(Fold(numbers[step.left], step.right, below)))
            else:
                numbers.append(self._append(self._alike(step)))
        return Base(_reached(self._steps, numbers[-1]))

    def _fold(self, fold: Fold) -> int:
        right = self._alike(fold.right)
        left = self._steps[fold.left]
        if left == right:
            return fold.left
        if fold.base is not None:
            below = self._steps[fold.base]
            if below == right:
                return fold.left
            if below == left:
                return self._append(right)
        return self._append(replace(fold, right=right))

    def _alike(self, commit_id: CommitId) -> CommitId:
        """The first commit with the same version of the table as this one."""
        return self._first.setdefault(self._version(commit_id), commit_id)

    def _append(self, step: Step) -> int:
        if step in self._steps:
            return self._steps.index(step)
        self._steps.append(step)
        return len(self._steps) - 1


def _reached(steps: Sequence[Step], last: int) -> tuple[Step, ...]:
    """The steps that the step `last` needs, then that step itself."""
    needed = {last}
    for number in range(last, -1, -1):
        step = steps[number]
        if number in needed and isinstance(step, Fold):
            needed |= {step.left} if step.base is None else {step.left, step.base}
    order = {number: place for place, number in enumerate(sorted(needed))}

    def renumbered(step: Step) -> Step:
        if not isinstance(step, Fold):
            return step
        below = None if step.base is None else order[step.base]
        return replace(step, left=order[step.left], base=below)

    return tuple(renumbered(steps[number]) for number in sorted(needed))
