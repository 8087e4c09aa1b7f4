"""Lineage walks, compared with brute force over random histories."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.clock import encode_ulid
from omnigraph.errors import CommitNotFoundError
from omnigraph.manifest import lineage
from omnigraph.model.commits import Commit, OperationKind
from omnigraph.model.ids import CommitId
from omnigraph.model.names import MAIN

History = dict[CommitId, Commit]


def name(number: int) -> CommitId:
    return CommitId(encode_ulid(number))


def commit(number: int, parent: int | None = None, merged: int | None = None) -> Commit:
    return Commit(
        commit_id=name(number),
        branch=MAIN,
        manifest_version=number,
        parent=None if parent is None else name(parent),
        merged_parent=None if merged is None else name(merged),
        actor=None,
        created_at=datetime(2026, 1, 1, tzinfo=UTC),
        operation=OperationKind.LOAD,
        message=None,
        schema_digest="",
    )


def history(*commits: Commit, known: History | None = None) -> History:
    """Commits by their ids, each after its parents, with their generations."""
    found: History = dict(known or {})
    for each in commits:
        below = [found[parent].generation or 0 for parent in each.parents if parent in found]
        found[each.commit_id] = replace(each, generation=1 + max(below, default=0))
    return found


@st.composite
def histories(draw: st.DrawFn) -> History:
    size = draw(st.integers(1, 14))
    commits = [commit(0)]
    for number in range(1, size):
        parent = draw(st.integers(0, number - 1))
        merged = draw(st.none() | st.integers(0, number - 1))
        commits.append(commit(number, parent, None if merged == parent else merged))
    return history(*commits)


def ancestors(head: CommitId, known: History) -> set[CommitId]:
    """The commit and all that lies below it, by trying every path."""
    return {head}.union(*(ancestors(each, known) for each in known[head].parents))


def best_common(ours: set[CommitId], theirs: set[CommitId], known: History) -> set[CommitId]:
    """The common ancestors that lie below no other one."""
    common = ours & theirs
    below = set[CommitId]().union(*(ancestors(each, known) - {each} for each in common))
    return common - below


@given(histories(), st.data())
def test_commits_are_listed_before_their_parents_and_younger_ones_first(
    known: History, data: st.DataObject
) -> None:
    """Clocks of writers disagree, so that a commit may be older than its parent."""
    minutes = data.draw(st.lists(st.integers(0, 5), min_size=len(known), max_size=len(known)))
    known = {
        commit_id: replace(each, created_at=each.created_at + timedelta(minutes=minute))
        for (commit_id, each), minute in zip(known.items(), minutes, strict=True)
    }
    heads = data.draw(st.lists(st.sampled_from(sorted(known)), min_size=1, max_size=3))
    left = set[CommitId]().union(*(ancestors(each, known) for each in heads))
    expected = []
    while left:
        parents = {parent for each in left for parent in known[each].parents}
        newest = max(left - parents, key=lambda each: (known[each].created_at, each))
        expected.append(newest)
        left.remove(newest)

    walk = lineage.newest_first(heads, known.__getitem__)
    assert [each.commit_id for each in walk] == expected


def test_a_listing_finds_no_more_commits_than_it_needs() -> None:
    commits = [commit(0), *(commit(each, each - 1) for each in range(1, 1_000))]
    known = history(*commits, commit(1_000, 990))
    found: list[CommitId] = []

    def find(commit_id: CommitId) -> Commit:
        found.append(commit_id)
        return known[commit_id]

    walk = lineage.newest_first([name(1_000), name(999), name(3)], find)
    assert [each.commit_id for each in islice(walk, 20)] == [name(1_000 - n) for n in range(20)]
    assert len(found) < 30


@given(histories(), st.data())
def test_the_bases_are_the_common_ancestors_that_are_below_no_other(
    known: History, data: st.DataObject
) -> None:
    several = st.lists(st.sampled_from(sorted(known)), min_size=1, max_size=3)
    ours, theirs = data.draw(several), data.draw(st.sampled_from(sorted(known)))
    reached = set[CommitId]().union(*(ancestors(each, known) for each in ours))
    parted = lineage.divergence(ours, theirs, known.__getitem__)

    expected = best_common(reached, ancestors(theirs, known), known)
    assert [each.commit_id for each in parted.bases] == sorted(expected)


@given(histories(), st.data())
def test_theirs_is_all_that_only_theirs_has_with_parents_first(
    known: History, data: st.DataObject
) -> None:
    ours, theirs = (data.draw(st.sampled_from(sorted(known))) for _ in range(2))
    parted = lineage.divergence([ours], theirs, known.__getitem__)

    alone = ancestors(theirs, known) - ancestors(ours, known)
    found = [each.commit_id for each in parted.theirs]
    assert set(found) == alone
    assert len(found) == len(alone)
    for place, each in enumerate(parted.theirs):
        assert alone.intersection(each.parents) <= set(found[:place])


def test_an_old_branch_that_lands_is_no_short_cut_to_an_old_base() -> None:
    main = [commit(3, parent=1), *(commit(number, parent=number - 1) for number in range(4, 8))]
    merged_main_and_went_on = [commit(2, parent=0, merged=1), commit(10, parent=2)]
    landed = [commit(8, parent=0), commit(9, parent=7, merged=8)]
    known = history(commit(0), commit(1, parent=0), *merged_main_and_went_on, *main, *landed)
    parted = lineage.divergence([name(9)], name(10), known.__getitem__)
    assert [each.commit_id for each in parted.bases] == [name(1)]


def test_histories_that_share_nothing_have_no_base() -> None:
    known = history(commit(0), commit(1), commit(2, parent=0))
    assert lineage.divergence([name(1)], name(2), known.__getitem__).bases == ()


def looking_up(known: History) -> tuple[lineage.Lookup, list[CommitId]]:
    looked_up: list[CommitId] = []

    def find(commit_id: CommitId) -> Commit:
        looked_up.append(commit_id)
        if commit_id not in known:
            raise CommitNotFoundError(commit_id)
        return known[commit_id]

    return find, looked_up


def test_a_base_near_the_tips_reads_no_old_history() -> None:
    known = history(commit(0), *(commit(n, parent=n - 1) for n in range(1, 1000)))
    # An old branch landed on the one side just now.
    known = history(commit(1000, parent=5), commit(1001, parent=999, merged=1000), known=known)
    known = history(commit(1002, parent=998), known=known)
    find, looked_up = looking_up(known)

    parted = lineage.divergence([name(1001)], name(1002), find)
    assert [each.commit_id for each in parted.bases] == [name(998)]
    assert len(looked_up) < 12


def test_commits_that_are_lost_end_a_walk_and_no_more() -> None:
    known = history(
        commit(0), commit(1, parent=0), commit(2, parent=1, merged=50), commit(3, parent=1)
    )
    parted = lineage.divergence([name(2)], name(3), looking_up(known)[0])
    assert [each.commit_id for each in parted.bases] == [name(1)]
    assert [each.commit_id for each in parted.theirs] == [name(3)]


def test_a_lost_commit_that_both_sides_have_is_never_stepped_over() -> None:
    known = history(commit(0), commit(1, parent=0, merged=50), commit(2, parent=0, merged=50))
    with pytest.raises(CommitNotFoundError, match=name(50)):
        lineage.divergence([name(1)], name(2), looking_up(known)[0])


@given(histories(), st.data())
def test_commits_of_earlier_releases_are_numbered_when_a_walk_meets_them(
    known: History, data: st.DataObject
) -> None:
    recorded = data.draw(st.integers(0, len(known)))
    older = [
        each if place >= recorded else replace(each, generation=None)
        for place, each in enumerate(known.values())
    ]
    pages = iter([older[start : start + 3] for start in range(0, len(older), 3)])
    ancestry = lineage.Ancestry(lineage.History([], pages))
    for commit_id in data.draw(st.permutations(sorted(known))):
        assert ancestry.find(commit_id) == known[commit_id]


def test_the_first_parent_walk_leaves_merged_branches_out() -> None:
    known = history(
        commit(0), commit(1, parent=0), commit(2, parent=0), commit(3, parent=1, merged=2)
    )
    walk = lineage.first_parents(name(3), known.__getitem__)
    assert [each.commit_id for each in walk] == [name(3), name(1), name(0)]


def test_a_walk_stops_when_its_reader_stops() -> None:
    known = history(commit(0), *(commit(n, parent=n - 1) for n in range(1, 50)))
    find, looked_up = looking_up(known)
    walk: Iterator[Commit] = lineage.first_parents(name(49), find)
    assert [next(walk).commit_id for _ in range(3)] == [name(49), name(48), name(47)]
    assert len(looked_up) == 3
