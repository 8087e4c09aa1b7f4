"""Retention: which commits are kept, by rules and by need (docs/decisions/0014).

Nothing here reads or removes anything: `maintenance.cleanup` does.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from functools import partial
from itertools import combinations, islice
from typing import Final

from omnigraph.errors import CommitNotFoundError, InvalidParameterError
from omnigraph.limits import GRACE_SECONDS_MIN
from omnigraph.manifest.lineage import Ancestry, History, first_parents
from omnigraph.manifest.merge_bases import find_base
from omnigraph.model.arguments import require_number
from omnigraph.model.commits import Commit
from omnigraph.model.durations import format_duration, require_duration
from omnigraph.model.ids import CommitId
from omnigraph.model.names import BranchName
from omnigraph.model.settings import SettingKey, Settings

GRACE_SECONDS: Final = 3_600.0
"""How long a commit stays readable after it stopped being the newest of its branch."""


class Reason(StrEnum):
    """Why a commit is kept: the first of these that holds."""

    TIP = "tip"
    TAG = "tag"
    MERGE_BASE = "merge base"
    WRITE = "write in progress"
    NEWEST = "newest"
    YOUNG = "young"
    GRACE = "grace"
    DELETED_BRANCH = "deleted branch"
    """The newest commit of a deleted branch of which another commit is kept."""
    UNPLACED = "unplaced"
    """An earlier release made it on another branch than main, and did not record where."""
    UNTOUCHED = "untouched"
    """A purge lets other commits go."""


@dataclass(frozen=True, slots=True)
class PurgeRule:
    """What a purge expires.

    Attributes:
        what: What is purged, for those who ask why a commit is gone.
    """

    commits: frozenset[CommitId]
    what: str


@dataclass(frozen=True, slots=True)
class RetentionRules:
    """What a caller wants to keep; a commit expires if neither these nor a need keep it.

    Attributes:
        keep_commits: Keep this many of the newest commits of each branch.
        older_than: Keep the commits that are younger.
        grace: Keep a commit for this long after it stopped being the newest of its branch.
        purge: Keep all commits but those of a purge, which the other rules keep as well.
    """

    keep_commits: int | None = None
    older_than: timedelta | None = None
    grace: timedelta = timedelta(seconds=GRACE_SECONDS)
    purge: PurgeRule | None = None

    @classmethod
    def parse(
        cls, keep_commits: int | None, older_than: str | timedelta | None, grace: object = None
    ) -> RetentionRules:
        """Validate what a caller asked for."""
        if keep_commits is not None and require_number(keep_commits, "keep_commits") < 1:
            message = f"keep_commits must be at least 1, not {keep_commits}"
            hint = "the newest commit of a branch is always kept"
            raise InvalidParameterError(message, hint=hint, name="keep_commits")
        rules = cls(
            keep_commits, None if older_than is None else require_duration(older_than, "older_than")
        )
        if grace is None:
            return rules
        rules = replace(rules, grace=require_duration(grace, "grace"))
        least = timedelta(seconds=GRACE_SECONDS_MIN)
        if rules.grace < least:
            given = format_duration(rules.grace)
            message = f"grace must be at least {format_duration(least)}, not {given}"
            hint = "writes in progress need what was the newest commit when they began"
            raise InvalidParameterError(message, hint=hint, name="grace")
        return rules

    @property
    def lets_go(self) -> bool:
        """Whether they let any commit go; without a rule, every commit is kept."""
        return self.keep_commits is not None or self.older_than is not None

    def __str__(self) -> str:
        if self.purge is not None:
            return f"purge of {self.purge.what}"
        given = {"keep_commits": self.keep_commits, "older_than": self.older_than}
        texts = {name: value for name, value in given.items() if value is not None}
        return ", ".join(f"{name}={_format(value)}" for name, value in texts.items())


def _format(value: int | timedelta) -> str:
    return format_duration(value) if isinstance(value, timedelta) else str(value)


def choose_rules(
    keep_commits: int | None,
    older_than: str | timedelta | None,
    grace: str | timedelta | None,
    *,
    stored: Mapping[str, object],
    keep_all: bool,
) -> RetentionRules:
    """The rules that a caller asked for, or those that the graph's settings were set to.

    Args:
        stored: The settings that were set. Defaults alone let no commit go.
        keep_all: Whether all commits are kept.
    """
    rules = RetentionRules.parse(keep_commits, older_than, grace)
    if rules.lets_go and keep_all:
        message = "keep_all keeps every commit, so it cannot be combined with another rule"
        raise InvalidParameterError(message, hint="give one of the two", name="keep_all")
    if rules.lets_go or keep_all or not {*stored} & {SettingKey.KEEP_COMMITS, SettingKey.KEEP_DAYS}:
        return rules
    chosen = Settings.of(stored).maintenance
    return replace(
        rules, keep_commits=chosen.keep_commits, older_than=timedelta(days=chosen.keep_days)
    )


@dataclass(frozen=True, slots=True)
class Needs:
    """The commits that are needed, whatever the rules say.

    Attributes:
        tips: By branch, its newest commit.
        tags: The commits that tags name.
        writes: The commits that writes in progress, or interrupted ones, refer to.
        ended: The newest commits of deleted branches, and when those were deleted.
        unnamed: The commits that only branches have which were deleted a moment ago.
        left: The newest commits of branches that were deleted a moment ago, and when: not
            necessarily their own, where a branch was created and never written to.
    """

    tips: Mapping[BranchName, CommitId]
    tags: Collection[CommitId] = ()
    writes: Collection[CommitId] = ()
    ended: Mapping[CommitId, datetime] = field(default_factory=dict)
    unnamed: Collection[CommitId] = ()
    left: Mapping[CommitId, datetime] = field(default_factory=dict)


def find_kept(
    commits: Mapping[CommitId, Commit], needs: Needs, rules: RetentionRules, now: datetime
) -> dict[CommitId, Reason]:
    """Which of the commits of a graph are kept, and why.

    Args:
        commits: Every commit in the history of a branch, deleted ones included.
    """
    kept: dict[CommitId, Reason] = {}
    for reason, some in _reasons(commits, needs, rules, now):
        for commit_id in some:
            if commit_id in commits:
                kept.setdefault(commit_id, reason)
    places = {(commits[commit_id].branch, commits[commit_id].ref) for commit_id in kept}
    for commit_id in needs.ended:
        commit = commits.get(commit_id)
        # Main is never deleted, and commits whose ref is unknown are kept anyway.
        if commit is None or commit.ref is None:
            continue
        if (commit.branch, commit.ref) in places:
            kept.setdefault(commit_id, Reason.DELETED_BRANCH)
    return kept


def _reasons(
    commits: Mapping[CommitId, Commit], needs: Needs, rules: RetentionRules, now: datetime
) -> Iterator[tuple[Reason, Collection[CommitId]]]:
    yield Reason.TIP, needs.tips.values()
    yield Reason.TAG, needs.tags
    yield Reason.MERGE_BASE, find_merge_bases(commits, needs.tips.values())
    yield Reason.WRITE, needs.writes
    if rules.keep_commits is not None:
        yield Reason.NEWEST, _newest(commits, needs.tips.values(), rules.keep_commits)
    if not rules.lets_go:
        yield Reason.YOUNG, commits.keys()
    if rules.older_than is not None:
        since = now - rules.older_than
        yield Reason.YOUNG, {id_ for id_, each in commits.items() if each.created_at > since}
    superseded = find_superseded(commits, needs)
    since = now - rules.grace
    yield Reason.GRACE, {id_ for id_, until in superseded.items() if until > since}
    yield Reason.GRACE, needs.unnamed
    yield Reason.UNPLACED, {id_ for id_, each in commits.items() if not each.has_known_ref}
    if rules.purge is not None:
        yield Reason.UNTOUCHED, commits.keys() - rules.purge.commits


def find_merge_bases(
    commits: Mapping[CommitId, Commit], tips: Collection[CommitId]
) -> set[CommitId]:
    """The commits that a merge between any two of these tips needs as its base."""
    ancestry = Ancestry(History(tuple(commits.values()), iter(())))
    bases: set[CommitId] = set()
    for ours, theirs in combinations(dict.fromkeys(tips), 2):
        # Commits that earlier releases removed: then the two cannot be merged in any case.
        with suppress(CommitNotFoundError):
            best = ancestry.divergence([ours], theirs).bases
            if best:
                bases |= set(find_base(best, ancestry).commits)
    return bases


def _find(commits: Mapping[CommitId, Commit], commit_id: CommitId) -> Commit:
    commit = commits.get(commit_id)
    if commit is None:
        message = f"commit {commit_id} does not exist in these histories"
        raise CommitNotFoundError(message, hint="see 'omnigraph commit list'")
    return commit


def _newest(
    commits: Mapping[CommitId, Commit], tips: Collection[CommitId], count: int
) -> set[CommitId]:
    find = partial(_find, commits)
    walks = (islice(first_parents(tip, find), count) for tip in tips)
    return {commit.commit_id for walk in walks for commit in walk}


def find_superseded(commits: Mapping[CommitId, Commit], needs: Needs) -> dict[CommitId, datetime]:
    """When each commit stopped being the newest of the last branch that had it as its newest."""
    until = dict(needs.ended)
    for commit_id, at in needs.left.items():
        until[commit_id] = max(until.get(commit_id, at), at)
    for commit in commits.values():
        if commit.parent is not None:
            last = until.get(commit.parent, commit.created_at)
            until[commit.parent] = max(last, commit.created_at)
    return until
