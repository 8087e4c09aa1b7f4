"""Which commits are kept: one line for each rule and each need, and brute force over merges."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.errors import InvalidParameterError
from omnigraph.maintenance.retention import (
    Needs,
    PurgeRule,
    Reason,
    RetentionRules,
    find_kept,
    find_merge_bases,
)
from omnigraph.model.commits import Commit
from omnigraph.model.durations import require_duration
from omnigraph.model.ids import CommitId
from omnigraph.model.names import MAIN, BranchName
from tests.unit.manifest.test_lineage import History, commit, histories, history, name

NOW = datetime(2026, 6, 1, tzinfo=UTC)
DRAFT = BranchName("draft")
HOUR = timedelta(hours=1)


def aged(known: History, hours: Mapping[int, float]) -> dict[CommitId, Commit]:
    """Commits that were made so many hours ago."""
    return {
        id_: replace(each, created_at=NOW - HOUR * hours[each.manifest_version])
        for id_, each in known.items()
    }


LINE = aged(
    history(commit(1), *(commit(each, parent=each - 1) for each in range(2, 7))),
    {1: 60, 2: 50, 3: 40, 4: 3, 5: 2, 6: 0.5},
)
"""One branch: 5 was the newest until half an hour ago, 4 until two hours ago."""

FORKED = aged(
    history(commit(1), commit(2, parent=1), commit(3, parent=2), commit(4, parent=1)),
    dict.fromkeys(range(1, 5), 100),
)
"""main has 1, 2 and 3; draft was made at 1, and has 4."""

CROSSED = aged(
    history(
        commit(1),
        commit(2, parent=1),
        commit(3, parent=1),
        commit(4, parent=2, merged=3),
        commit(5, parent=3, merged=2),
        commit(6, parent=4),
        commit(7, parent=5),
    ),
    dict.fromkeys(range(1, 8), 100),
)
"""Each of two branches merged the other: both 2 and 3 are bases, and 1 is the base of those."""


def kept(
    commits: Mapping[CommitId, Commit],
    rules: RetentionRules,
    tips: Mapping[BranchName, int],
    *,
    tags: tuple[int, ...] = (),
    writes: tuple[int, ...] = (),
    ended: Mapping[int, float] | None = None,
) -> dict[int, Reason]:
    needs = Needs(
        {branch: name(tip) for branch, tip in tips.items()},
        tags=[name(each) for each in tags],
        writes=[name(each) for each in writes],
        ended={name(each): NOW - HOUR * ago for each, ago in (ended or {}).items()},
    )
    found = find_kept(commits, needs, rules, NOW)
    return {commits[id_].manifest_version: reason for id_, reason in found.items()}


TIP, TAG, BASE, WRITE = Reason.TIP, Reason.TAG, Reason.MERGE_BASE, Reason.WRITE
NEWEST, YOUNG, GRACE = Reason.NEWEST, Reason.YOUNG, Reason.GRACE
BRIEF = timedelta(minutes=5)


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        (RetentionRules(), dict.fromkeys(range(1, 6), YOUNG) | {6: TIP}),
        (RetentionRules(keep_commits=1), {6: TIP, 5: GRACE}),
        (RetentionRules(keep_commits=1, grace=BRIEF), {6: TIP}),
        (RetentionRules(keep_commits=1, grace=3 * HOUR), {6: TIP, 5: GRACE, 4: GRACE}),
        (RetentionRules(keep_commits=3), {6: TIP, 5: NEWEST, 4: NEWEST}),
        (RetentionRules(keep_commits=99), dict.fromkeys(range(1, 6), NEWEST) | {6: TIP}),
        (RetentionRules(older_than=45 * HOUR, grace=BRIEF), {6: TIP, 5: YOUNG, 4: YOUNG, 3: YOUNG}),
        (RetentionRules(older_than=timedelta(0), grace=BRIEF), {6: TIP}),
        (RetentionRules(2, 45 * HOUR), {6: TIP, 5: NEWEST, 4: YOUNG, 3: YOUNG}),
        (RetentionRules(5, timedelta(0)), dict.fromkeys(range(2, 6), NEWEST) | {6: TIP}),
    ],
    ids=str,
)
def test_a_rule_keeps_what_it_says(rules: RetentionRules, expected: dict[int, Reason]) -> None:
    assert kept(LINE, rules, {MAIN: 6}) == expected


def test_a_purge_lets_go_its_own_commits_and_only_if_no_rule_keeps_them() -> None:
    purge = PurgeRule(frozenset(map(name, (2, 4, 5, 6))), "Person.email")
    rules = replace(RetentionRules(keep_commits=1), purge=purge)
    untouched = Reason.UNTOUCHED
    assert kept(LINE, rules, {MAIN: 6}) == {6: TIP, 5: GRACE, 3: untouched, 1: untouched}
    assert str(rules) == "purge of Person.email"
    without = RetentionRules(purge=purge)
    assert kept(LINE, without, {MAIN: 6}) == dict.fromkeys(range(1, 6), YOUNG) | {6: TIP}


STRICT = RetentionRules(keep_commits=1)


@pytest.mark.parametrize(
    ("tips", "more", "expected"),
    [
        ({MAIN: 3}, {}, {3: TIP}),
        ({MAIN: 3}, {"tags": (2,)}, {3: TIP, 2: TAG}),
        ({MAIN: 3}, {"writes": (2,)}, {3: TIP, 2: WRITE}),
        ({MAIN: 3}, {"tags": (99,), "writes": (98,)}, {3: TIP}),
        ({MAIN: 3}, {"ended": {4: 0.5}}, {3: TIP, 4: GRACE}),
        ({MAIN: 3}, {"ended": {4: 2}}, {3: TIP}),
        ({MAIN: 3, DRAFT: 4}, {}, {3: TIP, 4: TIP, 1: BASE}),
        ({MAIN: 3, DRAFT: 2}, {}, {3: TIP, 2: TIP}),
    ],
    ids=str,
)
def test_what_is_needed_is_kept_whatever_the_rules_say(
    tips: dict[BranchName, int], more: dict[str, object], expected: dict[int, Reason]
) -> None:
    assert kept(FORKED, STRICT, tips, **more) == expected  # type: ignore[arg-type]


def test_the_newest_of_a_branch_are_counted_along_its_first_parents() -> None:
    assert kept(FORKED, RetentionRules(keep_commits=2), {MAIN: 3, DRAFT: 4}) == {
        3: TIP,
        4: TIP,
        2: NEWEST,
        1: BASE,
    }
    assert kept(CROSSED, RetentionRules(keep_commits=3), {MAIN: 6}) == {
        6: TIP,
        4: NEWEST,
        2: NEWEST,
    }


def test_all_bases_of_a_merge_are_kept_and_those_that_fold_them() -> None:
    assert kept(CROSSED, STRICT, {MAIN: 6, DRAFT: 7}) == {
        6: TIP,
        7: TIP,
        1: BASE,
        2: BASE,
        3: BASE,
    }


def test_a_commit_of_an_earlier_release_whose_place_is_unknown_is_kept() -> None:
    old = {id_: replace(each, branch=DRAFT) for id_, each in FORKED.items()}
    assert kept(old, STRICT, {MAIN: 3})[1] is Reason.UNPLACED


def test_a_commit_was_the_newest_of_the_branch_that_left_it_last() -> None:
    late = FORKED | {name(4): replace(FORKED[name(4)], created_at=NOW - HOUR / 2)}
    assert kept(late, STRICT, {MAIN: 3}) == {3: TIP, 1: GRACE}


@given(histories(), st.data())
def test_merge_bases_are_the_best_common_ancestors_of_each_two_tips(
    known: History, data: st.DataObject
) -> None:
    tips = data.draw(st.lists(st.sampled_from(sorted(known)), max_size=4, unique=True))
    found = find_merge_bases(known, tips)
    for one, other in combinations(tips, 2):
        common = _ancestors(known, one) & _ancestors(known, other)
        best = {id_ for id_ in common if not any(id_ in _below(known, each) for each in common)}
        assert best <= found


def _ancestors(known: History, head: CommitId) -> set[CommitId]:
    found, ahead = set(), [head]
    while ahead:
        id_ = ahead.pop()
        if id_ not in found:
            found.add(id_)
            ahead += known[id_].parents
    return found


def _below(known: History, head: CommitId) -> set[CommitId]:
    return _ancestors(known, head) - {head}


@pytest.mark.parametrize(
    "given",
    [
        {"keep_commits": 0},
        {"keep_commits": -3},
        {"keep_commits": True},
        {"keep_commits": "7"},
        {"keep_commits": 1.5},
        {"older_than": "30"},
        {"older_than": "thirty days"},
        {"older_than": "-3d"},
        {"older_than": "1.5d"},
        {"older_than": "999999999d"},
        {"older_than": ""},
        {"older_than": 30},
        {"older_than": timedelta(-1)},
        {"grace": "1m"},
        {"grace": timedelta(0)},
        {"grace": "1w"},
    ],
    ids=str,
)
def test_rules_that_make_no_sense_are_refused_by_name(given: dict[str, object]) -> None:
    arguments = {"keep_commits": None, "older_than": None, "grace": None} | given
    (which,) = given
    with pytest.raises(InvalidParameterError, match=which) as refused:
        RetentionRules.parse(**arguments)  # type: ignore[arg-type]
    assert refused.value.details["name"] == which


def test_rules_are_read_as_they_are_written() -> None:
    rules = RetentionRules.parse(100, "30d", "90m")
    assert rules == RetentionRules(100, timedelta(days=30), timedelta(minutes=90))
    assert str(rules) == "keep_commits=100, older_than=30d"
    assert RetentionRules.parse(None, None) == RetentionRules()
    assert not RetentionRules().lets_go
    assert RetentionRules.parse(None, "12h").lets_go
    assert require_duration(HOUR, "grace") == HOUR
