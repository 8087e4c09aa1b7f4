"""What only theirs has, compared with brute force over random histories."""

from hypothesis import given
from hypothesis import strategies as st

from omnigraph.errors import CommitNotFoundError
from omnigraph.manifest import lineage
from omnigraph.model.commits import Commit
from omnigraph.model.ids import CommitId
from tests.unit.manifest.test_lineage import History, commit, distances, histories, history, name


@given(histories(), st.data())
def test_all_that_only_theirs_has_is_met(known: History, data: st.DataObject) -> None:
    ours, theirs = (data.draw(st.sampled_from(sorted(known))) for _ in range(2))
    parted = lineage.divergence(ours, theirs, known.__getitem__)

    alone = distances(theirs, known).keys() - distances(ours, known).keys()
    found = {each.commit_id for each in parted.theirs}
    # One that ours has too may come along where histories cross; none may be missing.
    assert found >= alone
    assert name(0) not in found
    assert list(parted.theirs) == sorted(parted.theirs, key=lambda each: each.commit_id)


@given(histories(), st.data())
def test_a_base_that_cannot_be_read_gives_way_to_the_next_best(
    known: History, data: st.DataObject
) -> None:
    ours, theirs = (data.draw(st.sampled_from(sorted(known))) for _ in range(2))
    lost = data.draw(st.sets(st.sampled_from(sorted(known))))
    parted = lineage.divergence(
        ours, theirs, known.__getitem__, is_readable=lambda each: each.commit_id not in lost
    )

    from_ours, from_theirs = distances(ours, known), distances(theirs, known)
    left = (from_ours.keys() & from_theirs.keys()) - lost
    best = min(
        left,
        key=lambda each: (from_ours[each] + from_theirs[each], -known[each].manifest_version),
        default=None,
    )
    assert parted.base == (None if best is None else known[best])


def test_a_straight_history_is_carried_on_exactly() -> None:
    known = history(commit(0), *(commit(n, parent=n - 1) for n in range(1, 20)))
    known |= history(commit(100, parent=4), *(commit(n, parent=n - 1) for n in range(101, 105)))
    parted = lineage.divergence(name(19), name(104), known.__getitem__)
    assert [each.commit_id for each in parted.theirs] == [name(n) for n in range(100, 105)]
    assert parted.base == known[name(4)]


def test_commits_that_are_lost_end_a_walk_and_no_more() -> None:
    known = history(
        commit(0), commit(1, parent=0), commit(2, parent=1, merged=50), commit(3, parent=1)
    )

    def find(commit_id: CommitId) -> Commit:
        if commit_id not in known:
            raise CommitNotFoundError(commit_id)
        return known[commit_id]

    parted = lineage.divergence(name(2), name(3), find)
    assert parted.base == known[name(1)]
    assert [each.commit_id for each in parted.theirs] == [name(3)]
