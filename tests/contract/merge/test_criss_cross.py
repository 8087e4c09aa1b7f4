"""Branches that took in each other: merges with several bases, row by row, in both directions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Final

import pytest

from omnigraph.backends.protocol import Backend
from omnigraph.choices import EngineName
from omnigraph.merge.outcomes import Outcome
from tests.contract.merge.oracle import Row
from tests.contract.merge.subjects import EngineGraph, ModelGraph, Subject
from tests.contract.merge.worlds import node

State = tuple[int, int] | None
"""The values `a` and `b` of a row; None where it does not exist."""

DECIDED: Final = -1
"""In place of a value: that of the side which a decision is for."""

FIRST: Final = (1, 1)
A_VALUE: Final = frozenset({("divergent_update", "a")})
A_ROW: Final = frozenset({("delete_vs_update", None)})


@dataclass(frozen=True)
class Life:
    """What happens to one row, and what a merge must make of it.

    Attributes:
        rounds: What it is on every branch, each time before the branches take in each other.
        sides: What it is on left and on right before they are merged.
        merged: What it is afterwards. It is the same in both directions.
        conflicts: Kind and property.
    """

    start: State
    rounds: Sequence[Sequence[State]]
    sides: tuple[State, State]
    merged: State
    conflicts: frozenset[tuple[str, str | None]] = frozenset()

    def mirrored(self) -> "Life":
        """With left and right changed for each other."""
        rounds = [(right, left, *more) for left, right, *more in self.rounds]
        return Life(self.start, rounds, self.sides[::-1], self.merged, self.conflicts)

    def decided(self, winner: State) -> State:
        """What it is after a decision for one side, whose row this is."""
        if self.conflicts == A_ROW or winner is None or self.merged is None:
            return winner if self.conflicts else self.merged
        a, b = (w if m == DECIDED else m for m, w in zip(self.merged, winner, strict=True))
        return a, b


CRISS_CROSS: Final[Mapping[str, Life]] = {
    "the bases disagree about a value": Life(
        FIRST, [((2, 1), (3, 1))], ((2, 1), (3, 1)), (DECIDED, 1), A_VALUE
    ),
    "the bases disagree, and a side took the value there was": Life(
        FIRST, [((2, 1), (3, 1))], ((1, 1), (3, 1)), (DECIDED, 1), A_VALUE
    ),
    "the bases disagree, and the sides agree": Life(
        FIRST, [((2, 1), (3, 1))], ((4, 1), (4, 1)), (4, 1)
    ),
    "the bases disagree about another value": Life(
        FIRST, [((2, 1), (3, 1))], ((4, 5), (4, 1)), (4, 5)
    ),
    "a base changed it, and a side undid that": Life(
        FIRST, [((2, 1), (1, 1))], ((1, 1), (2, 1)), (1, 1)
    ),
    "a base changed it, and the side that took it over undid that": Life(
        FIRST, [((2, 1), (1, 1))], ((2, 1), (1, 1)), (1, 1)
    ),
    "both bases changed it alike, and a side undid that": Life(
        FIRST, [((2, 1), (2, 1))], ((2, 1), (1, 1)), (1, 1)
    ),
    "the bases changed different values, and a side undid one": Life(
        FIRST, [((2, 1), (1, 2))], ((2, 2), (1, 2)), (1, 2)
    ),
    "a base deleted what the other updated": Life(
        FIRST, [(None, (3, 1))], (None, (3, 1)), None, A_ROW
    ),
    "a base deleted what the other updated, and the sides have it alike": Life(
        FIRST, [(None, (3, 1))], ((3, 1), (3, 1)), (3, 1)
    ),
    "a base deleted what the other updated, and no side has it": Life(
        FIRST, [(None, (3, 1))], (None, None), None
    ),
    "a base deleted what the other updated, and the sides differ": Life(
        FIRST,
        [(None, (3, 1))],
        ((3, 5), (4, 1)),
        (DECIDED, DECIDED),
        frozenset({("divergent_insert", "a"), ("divergent_insert", "b")}),
    ),
    "a base deleted it, and a side inserted it again": Life(
        FIRST, [(None, (1, 1))], ((1, 1), None), (1, 1)
    ),
    "a base deleted it, and the side that took that over inserted it again": Life(
        FIRST, [(None, (1, 1))], (None, (1, 1)), (1, 1)
    ),
    "both bases deleted it, and a side inserted it again": Life(
        FIRST, [(None, None)], ((1, 1), None), (1, 1)
    ),
    "the bases inserted it with different values": Life(
        None, [((2, 1), (3, 1))], ((2, 1), (3, 1)), (DECIDED, 1), A_VALUE
    ),
    "the bases inserted it with different values, and a side deleted it": Life(
        None, [((2, 1), (3, 1))], (None, (3, 1)), None, A_ROW
    ),
    "a base inserted it, and a side deleted it": Life(None, [((2, 1), None)], (None, (2, 1)), None),
    "a base inserted it, and the side that took it over deleted it": Life(
        None, [((2, 1), None)], ((2, 1), None), None
    ),
    "a base inserted it, and a side updated it": Life(
        None, [((2, 1), None)], ((2, 1), (2, 5)), (2, 5)
    ),
}

TWICE: Final[Mapping[str, Life]] = {
    "the bases disagree twice about a value": Life(
        FIRST, [((2, 1), (3, 1)), ((2, 1), (3, 1))], ((2, 1), (3, 1)), (DECIDED, 1), A_VALUE
    ),
    "one base changed what the bases before disagree about": Life(
        FIRST, [((2, 1), (3, 1)), ((4, 1), (3, 1))], ((4, 1), (3, 1)), (DECIDED, 1), A_VALUE
    ),
    "the bases agree about what those before disagree about": Life(
        FIRST, [((2, 1), (3, 1)), ((4, 1), (4, 1))], ((5, 1), (4, 1)), (5, 1)
    ),
    "a base undid what one before changed, and a side did it again": Life(
        FIRST, [((2, 1), (1, 1)), ((2, 1), (1, 1))], ((1, 1), (2, 1)), (2, 1)
    ),
    "a base deleted twice what the other updated": Life(
        FIRST, [(None, (3, 1)), (None, (3, 1))], (None, (3, 1)), None, A_ROW
    ),
    "the bases have what one before deleted, and a side deleted it": Life(
        FIRST, [(None, (3, 1)), ((3, 1), (3, 1))], (None, (3, 1)), None
    ),
    "the bases disagree about what one before deleted": Life(
        FIRST, [(None, (3, 1)), ((4, 1), (3, 1))], ((4, 1), (3, 1)), (DECIDED, 1), A_VALUE
    ),
    "a base deleted what those before inserted with different values": Life(
        None, [((2, 1), (3, 1)), (None, (3, 1))], (None, (3, 1)), None, A_ROW
    ),
}

THREE_BASES: Final[Mapping[str, Life]] = {
    "all bases disagree about a value": Life(
        FIRST, [((2, 1), (3, 1), (4, 1))], ((2, 1), (3, 1)), (DECIDED, 1), A_VALUE
    ),
    "two bases agree, and one does not": Life(
        FIRST, [((2, 1), (3, 1), (3, 1))], ((2, 1), (3, 1)), (DECIDED, 1), A_VALUE
    ),
    "two bases changed different values, and a side undid one": Life(
        FIRST, [((2, 1), (1, 2), (1, 1))], ((1, 2), (2, 2)), (1, 2)
    ),
    "the third base inserted it, and a side deleted it": Life(
        None, [(None, None, (2, 1))], (None, (2, 1)), None
    ),
    "the third base deleted it, and a side inserted it again": Life(
        FIRST, [((1, 1), (1, 1), None)], ((1, 1), None), (1, 1)
    ),
    "the third base deleted what another updated": Life(
        FIRST, [((2, 1), (1, 1), None)], ((2, 1), None), None, A_ROW
    ),
}

SHAPES: Final = {
    shape: lives | {f"{name} (mirrored)": life.mirrored() for name, life in lives.items()}
    for shape, lives in {
        "criss-cross": dict(CRISS_CROSS),
        "criss-cross twice": dict(TWICE),
        "three bases": dict(THREE_BASES),
    }.items()
}


class Crossed:
    """A graph whose branches `left` and `right` lived all lives of one shape, up to their merge."""

    def __init__(self, subject: Subject, lives: Mapping[str, Life]) -> None:
        self.subject = subject
        self._lives = lives
        self._merges = 0
        rounds = next(iter(lives.values())).rounds
        branches = ("left", "right", "third")[: len(rounds[0])]
        for branch in branches:
            subject.create(branch, branch="main")
        for number, _ in enumerate(rounds):
            for place, branch in enumerate(branches):
                self._write(
                    branch, {id_: life.rounds[number][place] for id_, life in lives.items()}
                )
                # A commit in any case, so that every branch is a base.
                subject.write(branch, {"P": {branch: node(branch, a=number)}})
            self._cross(branches, aside=f"aside/{number}")
        for place, branch in enumerate(branches[:2]):
            self._write(branch, {id_: life.sides[place] for id_, life in lives.items()})

    def _write(self, branch: str, states: Mapping[str, State]) -> None:
        now = self.subject.branch_rows(branch)["P"]
        rows = {id_: None if state is None else node(id_, *state) for id_, state in states.items()}
        gone: dict[str, Row | None] = {
            id_: None for id_, row in rows.items() if row is None and id_ in now
        }
        put = {id_: row for id_, row in rows.items() if row is not None and row != now.get(id_)}
        for changes in (gone, put):
            if changes:
                self.subject.write(branch, {"P": changes})

    def _cross(self, branches: Sequence[str], *, aside: str) -> None:
        """Left and right take in what all others were before."""
        left, right, *third = branches
        self.subject.create(aside, branch=left)
        for into, sources in ((left, [right, *third]), (right, [aside, *third])):
            for source in sources:
                self.subject.merge(source, into, "ours")

    def conflicts(self, source: str, into: str) -> dict[str, set[tuple[str, str | None]]]:
        found: dict[str, set[tuple[str, str | None]]] = {id_: set() for id_ in self._lives}
        for kind, _, id_, where in self.subject.preview(source, into, None).conflicts:
            found.setdefault(id_, set()).add((kind, where))
        return found

    def merge(self, source: str, into: str, resolve: str) -> dict[str, State]:
        """The rows after a merge into a copy of the target."""
        self._merges += 1
        branch = f"merged/{self._merges}"
        self.subject.create(branch, branch=into)
        result = self.subject.merge(source, branch, resolve)
        assert result is not None
        assert result.outcome is Outcome.MERGED
        rows = self.subject.branch_rows(branch)["P"]
        return {
            id_: (rows[id_]["a"], rows[id_]["b"]) if id_ in rows else None for id_ in self._lives
        }

    def check(self, source: str, into: str, resolve: str | None) -> None:
        lives = self._lives.items()
        if resolve is None:
            expected = {id_: set(life.conflicts) for id_, life in lives}
            assert self.conflicts(source, into) == expected
        else:
            side = ("left", "right").index(into if resolve == "ours" else source)
            rows = {id_: life.decided(life.sides[side]) for id_, life in lives}
            assert self.merge(source, into, resolve) == rows


def start_of(lives: Mapping[str, Life]) -> dict[str, dict[str, Row]]:
    rows = {id_: node(id_, *life.start) for id_, life in lives.items() if life.start is not None}
    return {"P": rows, "K": {}}


class Graphs:
    """One graph per shape, built when it is first needed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._built: dict[str, tuple[EngineGraph, Crossed]] = {}

    def crossed(self, shape: str, engine: Backend) -> Crossed:
        if shape not in self._built:
            graph = EngineGraph(self._folder / shape.replace(" ", "-"), start_of(SHAPES[shape]))
            self._built[shape] = graph, Crossed(graph, SHAPES[shape])
        graph, crossed = self._built[shape]
        graph.use(engine)
        return crossed


@pytest.fixture(scope="module")
def graphs(tmp_path_factory: pytest.TempPathFactory) -> Graphs:
    return Graphs(tmp_path_factory.mktemp("crossed"))


WAYS: Final = (("left", "right"), ("right", "left"))
RESOLVE: Final = (None, "ours", "theirs")
ON_SPARK: Final = (("criss-cross", "left", None), ("criss-cross", "left", "theirs"))
"""What the gate tries on Spark, where a merge of a few rows takes seconds."""


def cells() -> list[object]:
    """Every shape on every engine, in both directions, undecided and decided for either side."""
    found: list[object] = []
    for engine, shape, (source, into), resolve in product(EngineName, SHAPES, WAYS, RESOLVE):
        is_long = engine is EngineName.SPARK and (shape, source, resolve) not in ON_SPARK
        marks = [pytest.mark.soak] if is_long else []
        name = f"{engine}-{shape}-{source} into {into}-{resolve or 'undecided'}"
        found.append(pytest.param(engine, shape, source, into, resolve, marks=marks, id=name))
    return found


@pytest.mark.parametrize(
    ("engine", "shape", "source", "into", "resolve"), cells(), indirect=["engine"]
)
def test_several_bases_are_merged_with_each_other_first(
    graphs: Graphs, engine: Backend, shape: str, source: str, into: str, resolve: str | None
) -> None:
    graphs.crossed(shape, engine).check(source, into, resolve)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_model_knows_what_several_bases_mean(shape: str) -> None:
    crossed = Crossed(ModelGraph(rows=start_of(SHAPES[shape])), SHAPES[shape])
    for (source, into), resolve in product(WAYS, RESOLVE):
        crossed.check(source, into, resolve)
