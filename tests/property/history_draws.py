"""Draws random steps that are possible at the current state of a history.

A wrong base is detected where both sides changed the same rows and undid changes, in histories with
many paths between commits; so few rows and values are drawn, and merges in every direction.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import permutations
from random import Random
from typing import Final, TypeVar

from omnigraph.failpoints import Failpoint
from omnigraph.model.names import MAIN
from tests.contract.merge import oracle
from tests.contract.merge.oracle import Row, Rows
from tests.contract.merge.worlds import Changes, edge, node
from tests.property.histories import (
    Create,
    Delete,
    Merge,
    Optimize,
    Read,
    Reopen,
    SchemaStep,
    Walk,
    Write,
)

NODES: Final = ("a", "b", "c", "d")
EDGES: Final = ("e", "f", "g")
NAMES: Final = ("q", "r", "s", "t", "u", "v")
BRANCHES_MAX: Final = 6
VALUES: Final = (None, 0, 1, 2)
CRASHES: Final = tuple(
    point
    for point in Failpoint
    if point.partition(".")[0] in ("write", "claim", "apply", "publish", "recovery")
)

Item = TypeVar("Item")


class Draws:
    """Steps for one walk, from one source of randomness.

    Args:
        optimizing: Whether tables are compacted in between.
    """

    def __init__(self, random: Random, walk: Walk, *, optimizing: bool = False) -> None:
        self._random = random
        self._walk = walk
        self._kinds: dict[Callable[[], Iterator[SchemaStep]], int] = {
            self._write: 30,
            self._merge: 26,
            self._cross: 10,
            self._create: 14,
            self._delete: 10,
            self._read: 8,
            self._optimize: 12 if optimizing else 0,
            self._reopen: 2,
        }

    def steps(self) -> Iterator[SchemaStep]:
        """An endless stream of steps; each must be taken before the next is drawn."""
        for name in NAMES[:2]:
            yield Create(name, branch=MAIN)
        while True:
            (kind,) = self._random.choices(tuple(self._kinds), tuple(self._kinds.values()))
            yield from kind()

    def _is(self, chance: float) -> bool:
        return self._random.random() < chance

    def _one(self, some: Sequence[Item]) -> Item:
        return self._random.choice(some)

    def _branches(self) -> list[str]:
        return list(self._walk.heads)

    def _free_names(self) -> list[str]:
        if len(self._walk.heads) >= BRANCHES_MAX:
            return []
        return [name for name in NAMES if name not in self._walk.heads]

    def _crash(self) -> Failpoint | None:
        return self._one(CRASHES) if self._is(0.05) else None

    def _write(self) -> Iterator[SchemaStep]:
        yield from self._writes(self._one(self._branches()))

    def _writes(self, branch: str) -> Iterator[SchemaStep]:
        draw = self._one([self._undo, self._undo, self._put_cells, self._put_cells, self._turn])
        if changes := draw(branch, self._walk.rows(branch)):
            yield Write(branch, changes, self._crash())

    def _put_cells(self, _branch: str, rows: Rows) -> Changes:
        """New values in rows that exist."""
        changes: dict[str, dict[str, Row]] = {}
        places = [(name, id_) for name in rows for id_ in rows[name]]
        for name, id_ in self._random.sample(places, min(len(places), self._one([1, 1, 2]))):
            cell = self._one(["a", "b"]) if name == "P" else "w"
            changes.setdefault(name, {})[id_] = rows[name][id_] | {cell: self._one(VALUES)}
        return changes

    def _turn(self, _branch: str, rows: Rows) -> Changes:
        """Insert a row that does not exist, or delete one that does."""
        name = self._one(["P", "K"])
        id_ = self._one(NODES if name == "P" else EDGES)
        if id_ in rows[name]:
            return _without(rows, name, id_)
        if name == "P":
            return {"P": {id_: node(id_, self._one(VALUES), self._one(VALUES))}}
        if not rows["P"]:
            return {}
        source, target = (self._one(list(rows["P"])) for _ in ("src", "dst"))
        return {"K": {id_: edge(id_, source, target, self._one(VALUES))}}

    def _undo(self, branch: str, rows: Rows) -> Changes:
        """A row as it was at an earlier commit."""
        earlier = sorted(self._walk.history.ancestors([self._walk.heads[branch]]))
        before = self._walk.history.rows(self._one(earlier))
        differing = sorted(oracle.difference(rows, before))
        if not differing:
            return {}
        op, name, id_ = self._one(differing)
        if op == "delete":
            return _without(rows, name, id_)
        row = before[name][id_]
        if name == "K" and not {row["src"], row["dst"]} <= rows["P"].keys():
            return {}
        return {name: {id_: row}}

    def _merge(self) -> Iterator[SchemaStep]:
        """Two branches, mostly such that there is something to merge."""
        pairs = list(permutations(self._branches(), 2))
        apart = [pair for pair in pairs if self._is_apart(*pair)]
        if some := pairs if self._is(0.1) else apart:
            source, into = self._one(some)
            if self._is(0.5):
                # Most merges have no conflicts unless both sides have just changed.
                yield from self._writes(source)
                yield from self._writes(into)
            yield from self._merges(source, into)

    def _is_apart(self, source: str, into: str) -> bool:
        history, heads = self._walk.history, self._walk.heads
        return heads[source] not in history.ancestors([heads[into]])

    def _merges(self, source: str, into: str) -> Iterator[SchemaStep]:
        """One merge; if it conflicts without a decision, one more with a decision."""
        resolve = None if self._is(0.6) else self._decision()
        _, expected = self._walk.expected(source, into, resolve)
        delete = source in self._removable() and self._is(0.1)
        crash = None if delete else self._crash()
        yield Merge(source, into, resolve, crash, preview=self._is(0.15), delete=delete)
        if expected.conflicts:
            yield Merge(source, into, self._decision())

    def _decision(self) -> str:
        return self._one(["ours", "theirs"])

    def _cross(self) -> Iterator[SchemaStep]:
        """Merge two branches into each other as both were before; sometimes a third into both."""
        names, branches = self._free_names(), self._branches()
        if not names or len(branches) < 3:
            return
        one, other, third = self._random.sample(branches, 3)
        for branch in (one, other, third):
            yield from self._writes(branch)
        aside = self._one(names)
        yield Create(aside, branch=one)
        yield Merge(other, one, self._decision())
        yield Merge(aside, other, self._decision())
        if self._is(0.3):
            yield Merge(third, one, self._decision())
            yield Merge(third, other, self._decision())
        if self._is(0.5):
            yield Delete(aside)

    def _create(self) -> Iterator[SchemaStep]:
        """A branch at another one, or at any commit that can be read."""
        if names := self._free_names():
            name = self._one(names)
            if self._is(0.4):
                yield Create(name, commit=self._one(self._walk.reachable()))
            else:
                yield Create(name, branch=self._one([MAIN, *self._branches()]))

    def _delete(self) -> Iterator[SchemaStep]:
        """Delete a branch that may be deleted, or one that others may build on."""
        if some := self._removable() if self._is(0.9) else self._needed():
            yield Delete(self._one(some))

    def _removable(self) -> list[str]:
        needed = [MAIN, *self._needed()]
        return [name for name in self._branches() if name not in needed]

    def _needed(self) -> list[str]:
        return [name for name in self._branches() if name != MAIN and self._walk.is_needed(name)]

    def _read(self) -> Iterator[SchemaStep]:
        commits = self._walk.reachable()
        yield Read(self._one(commits), self._one(commits))

    def _optimize(self) -> Iterator[SchemaStep]:
        yield Optimize(self._one(self._branches()))

    def _reopen(self) -> Iterator[SchemaStep]:
        yield Reopen()


def _without(rows: Rows, name: str, id_: str) -> Changes:
    """Delete a row, and the edges of a node with it."""
    if name == "K":
        return {"K": {id_: None}}
    edges = [key for key, row in rows["K"].items() if id_ in (row["src"], row["dst"])]
    gone = {"P": {id_: None}}
    return gone | {"K": dict.fromkeys(edges)} if edges else gone
