"""Lineage walks, compared with brute force over random histories."""

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.clock import encode_ulid
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


def history(*commits: Commit) -> History:
    return {each.commit_id: each for each in commits}


@st.composite
def histories(draw: st.DrawFn) -> History:
    size = draw(st.integers(1, 14))
    commits = [commit(0)]
    for number in range(1, size):
        parent = draw(st.integers(0, number - 1))
        merged = draw(st.none() | st.integers(0, number - 1))
        commits.append(commit(number, parent, None if merged == parent else merged))
    return history(*commits)


def distances(head: CommitId, known: History) -> dict[CommitId, int]:
    """The shortest distance to every ancestor, by trying every path."""
    best: dict[CommitId, int] = {}

    def walk(at: CommitId, so_far: int) -> None:
        if so_far < best.get(at, len(known) + 1):
            best[at] = so_far
            for parent in known[at].parents:
                walk(parent, so_far + 1)

    walk(head, 0)
    return best


@given(histories(), st.data())
def test_the_merge_base_is_the_common_ancestor_nearest_to_both(
    known: History, data: st.DataObject
) -> None:
    ours, theirs = (data.draw(st.sampled_from(sorted(known))) for _ in range(2))
    from_ours, from_theirs = distances(ours, known), distances(theirs, known)
    common = from_ours.keys() & from_theirs.keys()
    expected = min(
        common,
        key=lambda each: (
            from_ours[each] + from_theirs[each],
            -known[each].manifest_version,
        ),
    )

    found = lineage.merge_base(ours, theirs, known.__getitem__)

    assert found == known[expected]
    assert found == lineage.merge_base(theirs, ours, known.__getitem__)


@given(histories())
def test_ancestors_come_once_each_with_their_shortest_distance(known: History) -> None:
    head = max(known)
    walked = [(each.commit_id, far) for each, far in lineage.ancestors(head, known.__getitem__)]

    assert dict(walked) == distances(head, known)
    assert len(walked) == len(dict(walked))
    assert [far for _, far in walked] == sorted(far for _, far in walked)


def test_histories_that_share_nothing_have_no_base() -> None:
    known = history(commit(0), commit(1), commit(2, parent=0))
    assert lineage.merge_base(name(1), name(2), known.__getitem__) is None


def test_criss_cross_merges_prefer_the_younger_of_equal_bases() -> None:
    known = history(
        commit(0),
        commit(1, parent=0),
        commit(2, parent=0),
        commit(3, parent=1, merged=2),
        commit(4, parent=2, merged=1),
    )
    assert lineage.merge_base(name(3), name(4), known.__getitem__) == known[name(2)]


def test_a_merge_base_near_the_tips_reads_no_old_history() -> None:
    known = history(commit(0), *(commit(n, parent=n - 1) for n in range(1, 1000)))
    known |= history(commit(1000, parent=998))
    looked_up: list[CommitId] = []

    def find(commit_id: CommitId) -> Commit:
        looked_up.append(commit_id)
        return known[commit_id]

    assert lineage.merge_base(name(999), name(1000), find) == known[name(998)]
    assert len(looked_up) < 12


def test_the_first_parent_walk_leaves_merged_branches_out() -> None:
    known = history(
        commit(0), commit(1, parent=0), commit(2, parent=0), commit(3, parent=1, merged=2)
    )
    walk = lineage.first_parents(name(3), known.__getitem__)
    assert [each.commit_id for each in walk] == [name(3), name(1), name(0)]


@pytest.mark.parametrize(
    ("candidate", "head", "expected"), [(0, 3, True), (2, 3, True), (3, 2, False)]
)
def test_is_ancestor_follows_both_parents(candidate: int, head: int, *, expected: bool) -> None:
    known = history(
        commit(0), commit(1, parent=0), commit(2, parent=0), commit(3, parent=1, merged=2)
    )
    assert lineage.is_ancestor(name(candidate), name(head), known.__getitem__) is expected


def test_a_walk_stops_when_its_reader_stops() -> None:
    known = history(commit(0), *(commit(n, parent=n - 1) for n in range(1, 50)))
    looked_up: list[CommitId] = []

    def find(commit_id: CommitId) -> Commit:
        looked_up.append(commit_id)
        return known[commit_id]

    walk: Iterator[Commit] = lineage.first_parents(name(49), find)
    assert [next(walk).commit_id for _ in range(3)] == [name(49), name(48), name(47)]
    assert len(looked_up) == 3
