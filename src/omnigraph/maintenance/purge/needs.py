"""Who still needs what is purged: branches, tags, merges, writes and rules, each with a way out."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from itertools import combinations
from typing import Final, assert_never

from omnigraph.errors import ErrorCode, NotAllowedError
from omnigraph.maintenance.purge.results import Need
from omnigraph.maintenance.retention import (
    Needs,
    Reason,
    RetentionRules,
    find_kept,
    find_merge_bases,
    find_superseded,
)
from omnigraph.model.commits import Commit
from omnigraph.model.durations import format_duration
from omnigraph.model.ids import CommitId
from omnigraph.model.names import TagName
from omnigraph.wording import format_instant


@dataclass(frozen=True, slots=True)
class Situation:
    """What a graph's commits are needed for, at one moment.

    Attributes:
        commits: Every commit in the history of a branch, deleted ones included.
        tags: By tag, its commit.
    """

    commits: Mapping[CommitId, Commit]
    needs: Needs
    tags: Mapping[TagName, CommitId]
    rules: RetentionRules
    now: datetime

    def find_needs(self, holders: Collection[CommitId]) -> tuple[Need, ...]:
        """Why those of these commits are kept that are kept."""
        kept = find_kept(self.commits, self.needs, self.rules, self.now)
        groups: dict[tuple[Reason, str], list[CommitId]] = {}
        for commit_id in holders:
            if commit_id in kept:
                reason = kept[commit_id]
                groups.setdefault((reason, self._describe(reason, commit_id)), []).append(commit_id)
        newest_first = sorted(groups.items(), key=lambda group: list(Reason).index(group[0][0]))
        return tuple(
            Need(
                reason,
                tuple(map(str, sorted(commits, key=self._age))),
                what,
                _WAYS[reason] if self.rules.lets_go or reason is not Reason.YOUNG else _NO_RULE,
                self._end(reason, commits),
            )
            for (reason, what), commits in newest_first
        )

    def _age(self, commit_id: CommitId) -> float:
        return (self.now - self.commits[commit_id].created_at).total_seconds()

    def _describe(self, reason: Reason, commit_id: CommitId) -> str:
        rules = self.rules
        match reason:
            case Reason.TIP:
                branches = [name for name, tip in self.needs.tips.items() if tip == commit_id]
                return f"branch {_join(branches)} has it"
            case Reason.TAG:
                tags = [name for name, tagged in self.tags.items() if tagged == commit_id]
                return f"tag {_join(tags)} names a commit that has it"
            case Reason.MERGE_BASE:
                pairs = sorted(set(self._merges_on(commit_id)))
                return f"a merge of {_join(pairs)} would start from a commit that has it"
            case Reason.WRITE:
                return "a write in progress, or an interrupted one, needs commits that have it"
            case Reason.NEWEST:
                return f"keep_commits={rules.keep_commits} keeps commits that have it"
            case Reason.YOUNG if rules.older_than is not None:
                return f"older_than={format_duration(rules.older_than)} keeps commits that have it"
            case Reason.YOUNG:
                return "no rule expires any commit, and some have it"
            case Reason.GRACE:
                age = format_duration(rules.grace)
                return f"commits that have it were the newest of a branch less than {age} ago"
            case Reason.DELETED_BRANCH:
                return "a deleted branch has it, and other commits of that branch are kept"
            case Reason.UNPLACED:
                return "an earlier release made commits that have it"
            case Reason.UNTOUCHED:
                return "it is in commits that were made meanwhile"
            case _:
                assert_never(reason)

    def _merges_on(self, commit_id: CommitId) -> Iterator[str]:
        for (one, ours), (other, theirs) in combinations(self.needs.tips.items(), 2):
            if commit_id in find_merge_bases(self.commits, [ours, theirs]):
                yield f"{one} and {other}"

    def _end(self, reason: Reason, commits: Iterable[CommitId]) -> datetime | None:
        match reason, self.rules.older_than:
            case Reason.GRACE, _:
                superseded = find_superseded(self.commits, self.needs)
                return max(superseded[commit_id] for commit_id in commits) + self.rules.grace
            case Reason.YOUNG, age if age is not None:
                return max(self.commits[commit_id].created_at for commit_id in commits) + age
            case _:
                return None


_WAYS: Final[Mapping[Reason, str]] = {
    Reason.TIP: "drop it there, too, or delete the branch",
    Reason.TAG: "delete the tag",
    Reason.MERGE_BASE: "merge one of the branches into the other, and delete it",
    Reason.WRITE: "try again when it has ended; 'omnigraph recovery list' shows it",
    Reason.NEWEST: "give a smaller --keep-commits, such as 1, or purge after further commits",
    Reason.YOUNG: "give a shorter --older-than, or purge later",
    Reason.GRACE: "purge again after that; --grace shortens it",
    Reason.DELETED_BRANCH: "let those go with 'omnigraph cleanup'",
    Reason.UNPLACED: "export the graph, and load it into a new one",
    Reason.UNTOUCHED: "purge again",
}
_NO_RULE: Final = "say with --keep-commits or --older-than which commits may expire"


def _join(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))


def require_unneeded(what: str, needs: Collection[Need]) -> None:
    """Refuse a purge of data that is still needed."""
    lasting = [need for need in needs if not need.is_passing]
    if lasting:
        lines = [
            f"what is needed cannot be purged: {what}",
            *(f"  {need}" for need in lasting),
        ]
        raise NotAllowedError(
            "\n".join(lines),
            hint="nothing was changed; what is needed stays readable at those commits",
            code=ErrorCode.PURGE_REFUSED,
            needs=[
                {**asdict(need), "until": need.until and format_instant(need.until)}
                for need in lasting
            ],
        )
