"""Protections: branches that change by merges alone, and the approvals that those need."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final

from omnigraph.policy.actions import Action
from omnigraph.policy.questions import AccessQuestion

_BY_MERGE_ONLY: Final = frozenset(
    {Action.MUTATE, Action.LOAD, Action.SCHEMA_APPLY, Action.BRANCH_DELETE}
)


@dataclass(frozen=True, slots=True)
class Protection:
    """Branches that change by merges alone.

    Attributes:
        pattern: Their names, in which `*` stands for any text.
        approvals: How many reviewers have to approve what is merged.
    """

    pattern: str
    approvals: int = 1

    def covers(self, branch: str | None) -> bool:
        """Whether a branch is one of them.

        >>> Protection("release/*").covers("release/1"), Protection("main").covers("maine")
        (True, False)
        """
        return branch is not None and fnmatchcase(branch, self.pattern)

    def refuses(self, question: AccessQuestion) -> str | None:
        """Why it forbids what is asked about; None if it does not."""
        branch = question.resource.branch
        if not self.covers(branch):
            return None
        if question.action in _BY_MERGE_ONLY:
            return f"branch {branch} is protected, and changes by merges alone"
        if question.action is Action.MERGE and question.approvals < self.approvals:
            plural = "s" * (self.approvals != 1)
            return (
                f"branch {branch} is protected, and takes proposals with {self.approvals} "
                f"approval{plural}; this merge has {question.approvals}"
            )
        return None
