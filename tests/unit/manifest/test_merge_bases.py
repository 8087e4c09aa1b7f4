"""What a merge comes from: one commit, or folds of several."""

from collections.abc import Callable

import pytest

from omnigraph.manifest import merge_bases
from omnigraph.manifest.lineage import Ancestry, History
from omnigraph.manifest.merge_bases import Base, Fold, find_base
from omnigraph.model.ids import CommitId
from tests.unit.manifest.test_lineage import History as Commits
from tests.unit.manifest.test_lineage import commit, history, name

CROSSED = history(
    commit(0),
    commit(1, parent=0),
    commit(2, parent=0),
    commit(3, parent=1, merged=2),
    commit(4, parent=2, merged=1),
)
"""Each of two branches merged the other."""

CROSSED_TWICE = history(commit(5, parent=3, merged=4), commit(6, parent=4, merged=3), known=CROSSED)


def base_of(known: Commits, ours: int, theirs: int) -> Base:
    ancestry = Ancestry(History(list(known.values()), iter(())))
    return find_base(ancestry.divergence([name(ours)], name(theirs)).bases, ancestry)


def test_one_best_ancestor_is_the_base() -> None:
    base = base_of(CROSSED, 1, 2)
    assert base == Base((name(0),))
    assert base.commit == base.anchor == name(0)
    assert list(base.pairs()) == []


def test_several_are_folded_on_what_they_come_from() -> None:
    base = base_of(CROSSED, 3, 4)
    assert base.commit is None
    assert base.anchor == name(1)
    assert base.commits == (name(1), name(0), name(2))
    assert base.steps == (name(1), name(0), Fold(0, name(2), 1))
    assert list(base.pairs()) == [(name(0), name(1)), (name(0), name(2))]


def test_folds_lie_on_folds_where_histories_crossed_again() -> None:
    base = base_of(CROSSED_TWICE, 5, 6)
    *_, below, last = base.steps
    assert isinstance(below, Fold)
    assert last == Fold(base.steps.index(name(3)), name(4), base.steps.index(below))


def test_a_base_below_too_many_folds_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merge_bases, "MERGE_BASE_DEPTH_MAX", 1)
    folds = [each for each in base_of(CROSSED_TWICE, 5, 6).steps if isinstance(each, Fold)]
    assert [each.base is None for each in folds] == [True, False]


def by(**versions: str) -> Callable[[CommitId], str]:
    return {name(int(number[1:])): version for number, version in versions.items()}.__getitem__


@pytest.mark.parametrize(
    ("version", "steps"),
    [
        (by(c0="a", c1="a", c2="a"), (name(1),)),
        (by(c0="a", c1="b", c2="a"), (name(1),)),
        (by(c0="a", c1="a", c2="b"), (name(2),)),
        (by(c0="a", c1="b", c2="b"), (name(1),)),
        (by(c0="a", c1="b", c2="c"), (name(1), name(0), Fold(0, name(2), 1))),
    ],
    ids=["nobody", "the first", "the second", "both alike", "both"],
)
def test_a_table_is_folded_only_where_both_bases_changed_it(
    version: Callable[[CommitId], str], steps: tuple[merge_bases.Step, ...]
) -> None:
    assert base_of(CROSSED, 3, 4).for_table(version).steps == steps
