"""Random histories of branches, writes and merges, against a model of every commit."""

import random
import tempfile
from collections.abc import Callable, Collection
from itertools import count, islice
from pathlib import Path
from random import Random
from typing import Any, Final

import pytest

from omnigraph.errors import CommitNotFoundError
from omnigraph.graph import Graph
from omnigraph.merge.outcomes import MergeOutcome
from tests.contract.merge.history import History
from tests.contract.merge.oracle import Base, Gap, Row
from tests.contract.merge.subjects import EngineGraph, ModelGraph, Subject
from tests.contract.merge.worlds import node
from tests.property.histories import Create, Merge, SchemaStep, Walk, Write
from tests.property.history_draws import Draws

GATE: Final = range(10)
STEPS: Final = 60


def check(subject: Subject, seed: int, *, steps: int = STEPS, optimizing: bool = False) -> None:
    """Take random steps on a graph; a failure names the seed and all steps up to it."""
    walk = Walk(subject)
    taken: list[SchemaStep] = []
    try:
        draws = Draws(Random(seed), walk, optimizing=optimizing)
        for step in islice(draws.steps(), steps):
            taken.append(step)
            walk.take(step)
        walk.check_all()
    except BaseException as failure:
        failure.add_note(f"in the history of seed {seed}, after")
        for number, step in enumerate(taken):
            failure.add_note(f"{number:3} {step}")
        raise


@pytest.mark.parametrize("seed", GATE)
def test_a_graph_is_what_its_history_says(tmp_path: Path, seed: int) -> None:
    check(EngineGraph(tmp_path / "graph.omni"), seed, optimizing=seed % 2 == 0)


@pytest.mark.soak
@pytest.mark.timeout(0)
def test_a_graph_is_what_a_long_history_says() -> None:
    for _ in range(500):
        with tempfile.TemporaryDirectory() as folder:
            subject = EngineGraph(Path(folder) / "graph.omni")
            check(subject, random.getrandbits(32), steps=120, optimizing=True)


class NearestBase(History):
    """If there is one base, replace it by the commit with the least summed distance.

    An old branch that is merged late is a short cut to a commit that is too old.
    """

    def bases(self, some: Collection[int], other: int) -> list[int]:
        bases = super().bases(some, other)
        if len(bases) > 1:
            return bases
        one, two = self._distances(some), self._distances([other])
        return [min(one.keys() & two, key=lambda each: one[each] + two[each])]

    def _distances(self, heads: Collection[int]) -> dict[int, int]:
        distances: dict[int, int] = {}
        level, distance = list(heads), 0
        while level:
            distances |= dict.fromkeys(level, distance)
            parents = {parent for each in level for parent in self.commits[each].parents}
            level, distance = sorted(parents - distances.keys()), distance + 1
        return distances


class OneBase(History):
    """Use only the newest of several bases."""

    def bases(self, some: Collection[int], other: int) -> list[int]:
        return super().bases(some, other)[-1:]


class ShallowBase(History):
    """Use all bases of a merge, but only the newest base of those."""

    _is_inside = False

    def base(self, some: Collection[int], other: int) -> Base:
        if self._is_inside:
            return self.rows(self.bases(some, other)[-1])
        self._is_inside = True
        rows = super().base(some, other)
        self._is_inside = False
        return rows


class DecidedBases(History):
    """Bases whose disagreements are decided for the second of them."""

    def virtual_merge(self, base: Base, left: Base, right: Base) -> Base:
        merged = super().virtual_merge(base, left, right)
        return {
            name: {
                id_: right[name].get(id_, left[name].get(id_, row)) if _has_gap(row) else row
                for id_, row in rows.items()
            }
            for name, rows in merged.items()
        }


def _has_gap(row: Row | Gap) -> bool:
    return isinstance(row, Gap) or Gap.UNKNOWN in row.values()


DEFECTS: Final[dict[str, Callable[[], Subject]]] = {
    "the nearest common commit is the base": lambda: ModelGraph(NearestBase()),
    "one of several bases is the base": lambda: ModelGraph(OneBase()),
    "bases have one base each": lambda: ModelGraph(ShallowBase()),
    "bases never disagree": lambda: ModelGraph(DecidedBases()),
    "commits go with their branch": lambda: ModelGraph(keeps_deleted=False),
}


@pytest.mark.parametrize("defect", DEFECTS)
def test_a_defect_is_reported(defect: str) -> None:
    with pytest.raises((AssertionError, CommitNotFoundError)):
        check_every_seed(DEFECTS[defect])


def test_a_row_version_that_is_too_low_is_reported(tmp_path: Path) -> None:
    # What was written since a fork then counts as carried over: edits are lost, and not shown.
    places = (tmp_path / str(number) for number in count())
    with pytest.raises(AssertionError):
        check_every_seed(lambda: EngineGraph(next(places), row_version=1), optimizing=True)


def test_a_graph_without_a_defect_passes() -> None:
    check_every_seed(ModelGraph)


def check_every_seed(make: Callable[[], Subject], *, optimizing: bool = False) -> None:
    for seed in GATE:
        check(make(), seed, optimizing=optimizing)


def test_a_conflict_that_nobody_decided_is_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    merge = Graph.merge

    def decide(self: Graph, source: str, *, resolve: str | None = None, **how: Any) -> MergeOutcome:
        return merge(self, source, resolve=resolve or "ours", **how)

    monkeypatch.setattr(Graph, "merge", decide)
    walk = Walk(EngineGraph(tmp_path / "graph.omni"))
    for step in (
        Create("q", branch="main"),
        Write("q", {"P": {"a": node("a", a=2)}}),
        Write("main", {"P": {"a": node("a", a=3)}}),
    ):
        walk.take(step)
    with pytest.raises(AssertionError, match="divergent_update"):
        walk.take(Merge("q", "main"))


def test_the_model_merges_both_ways_alike_and_makes_nothing_up() -> None:
    for seed in GATE:
        walk = Walk(ModelGraph())
        for step in islice(Draws(Random(seed), walk).steps(), STEPS):
            if isinstance(step, Merge):
                _require_laws(walk, step.source, step.into)
            walk.take(step)


def _require_laws(walk: Walk, source: str, into: str) -> None:
    _, one = walk.expected(source, into, None)
    _, other = walk.expected(into, source, None)
    assert bool(one.conflicts) == bool(other.conflicts)
    if not one.conflicts:
        assert one.rows == other.rows
    for name, rows in one.rows.items():
        for id_, row in rows.items():
            sides = [walk.rows(branch)[name].get(id_, {}) for branch in (source, into)]
            assert all(value in [side.get(key) for side in sides] for key, value in row.items())
