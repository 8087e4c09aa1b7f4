"""Mutations of dictionaries: what statements do, by the plainest means."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

Row = dict[str, Any]
State = dict[str, dict[str, Row]]
"""Rows by type and id."""

KEY = {"P": "name", "K": "id"}


@dataclass(frozen=True)
class Condition:
    column: str
    operator: str
    value: Any = None

    def text(self) -> str:
        name = {"src": "from", "dst": "to"}.get(self.column, self.column)
        return " ".join([name, self.operator, *([] if "null" in self.operator else [spelt(self)])])

    def passes(self, row: Row) -> bool | None:
        """Whether it is true or false; None if a null leaves it unknown."""
        found = row[self.column]
        match self.operator:
            case "is null":
                return found is None
            case "is not null":
                return found is not None
            case _ if found is None:
                return None
            case "=":
                return bool(found == self.value)
            case "!=":
                return bool(found != self.value)
            case "<":
                return bool(found < self.value)
            case _:
                return bool(found >= self.value)


@dataclass(frozen=True)
class Either:
    """One of two conditions, or not: `not (a or b)`."""

    parts: tuple[Condition, Condition]
    negated: bool

    def text(self) -> str:
        return f"{'not ' * self.negated}({self.parts[0].text()} or {self.parts[1].text()})"

    def passes(self, row: Row) -> bool | None:
        found = {part.passes(row) for part in self.parts}
        truth = True if True in found else None if None in found else False
        return truth if truth is None else truth is not self.negated


@dataclass(frozen=True)
class Neighbours:
    """How many edges lead from a person to others with a number, which may be their own."""

    operator: str
    value: int
    numbered: bool

    def text(self) -> str:
        return f"{counted(self.numbered)} {self.operator} {self.value}"

    def passes(self, row: Row, state: State) -> bool:
        found = neighbours(row["id"], state, numbered=self.numbered)
        return found >= self.value if self.operator == ">=" else found == self.value


@dataclass(frozen=True)
class Alone:
    """Nobody has an edge to this person; or somebody has."""

    negated: bool

    def text(self) -> str:
        return f"{'not ' * self.negated}exists {{ $_ k $x }}"

    def passes(self, row: Row, state: State) -> bool:
        is_known = any(edge["dst"] == row["id"] for edge in state["K"].values())
        return is_known is not self.negated


def counted(numbered: bool) -> str:  # noqa: FBT001
    return f"count {{ $x k $y{'  $y.n is not null' * numbered} }}"


def neighbours(id_: str, state: State, *, numbered: bool) -> int:
    """Pairs, so that parallel edges are one."""
    ends = {edge["dst"] for edge in state["K"].values() if edge["src"] == id_}
    known = [end for end in ends if end in state["P"]]
    return sum(not numbered or state["P"][end]["n"] is not None for end in known)


Test = Condition | Either | Neighbours | Alone


@dataclass(frozen=True)
class Plus:
    """A new value that is computed from the row: `n + 1`."""

    column: str
    added: int

    def value(self, row: Row) -> int | None:
        return None if row[self.column] is None else row[self.column] + self.added


@dataclass(frozen=True)
class Degree:
    """A new value that other rows decide: how many a person is connected with."""

    numbered: bool


@dataclass(frozen=True)
class Insert:
    type: str
    row: Row

    def text(self) -> str:
        return f"insert {self.type} {{ {assignments(self.row)} }}"


@dataclass(frozen=True)
class Update:
    type: str
    values: Row
    tests: Sequence[Test]

    def text(self) -> str:
        row = f"$x: {self.type}"
        return f"update {row} set {{ {assignments(self.values)} }} where {where(self.tests)}"


@dataclass(frozen=True)
class Delete:
    type: str
    tests: Sequence[Test]

    def text(self) -> str:
        return f"delete $x: {self.type} where {where(self.tests)}"


@dataclass(frozen=True)
class Derive:
    """Edges between people that a match finds: who are connected, or have the same number."""

    walks: bool
    tests: Sequence[Condition]
    added: int

    def text(self) -> str:
        found = "$a k $b" if self.walks else "$a: P  $b: P  $a.n = $b.n"
        tested = "  ".join(f"$a.{test.text()}" for test in self.tests)
        values = f"id: concat($a.name, $b.name)  from: $a  to: $b  w: $a.n + {self.added}"
        return f"insert K {{ {values} }} from match {{ {found}  {tested} }}"

    def rows(self, state: State) -> dict[str, Row]:
        people = state["P"]
        joined = {(edge["src"], edge["dst"]) for edge in state["K"].values()}
        found = {}
        for a, row in people.items():
            if not all(test.passes({"id": a, **row}) for test in self.tests):
                continue
            for b, other in people.items():
                same = row["n"] is not None and row["n"] == other["n"]
                if ((a, b) in joined) if self.walks else same:
                    w = None if row["n"] is None else row["n"] + self.added
                    found[f"{a}{b}"] = {"src": a, "dst": b, "w": w}
        return found


Statement = Insert | Update | Delete | Derive


@dataclass
class Outcome:
    state: State
    written: dict[str, set[str]] = field(default_factory=lambda: {"P": set(), "K": set()})

    def counts(self, before: State) -> dict[str, tuple[int, int, int]]:
        found = {}
        for name, rows in self.state.items():
            new, kept = (
                self.written[name] - before[name].keys(),
                self.written[name] & before[name].keys(),
            )
            gone = before[name].keys() - rows.keys()
            if new or kept or gone:
                found[name] = (len(new), len(kept), len(gone))
        return found


def carried_out(before: State, statements: Sequence[Statement]) -> Outcome | None:
    """What the statements make of a graph; None if an edge would lead to nowhere."""
    after = Outcome(copy.deepcopy(before))
    for each in statements:
        match each:
            case Insert(name, row):
                id_ = row[KEY[name]]
                after.state[name][id_] = {k: v for k, v in row.items() if k != "id"}
                after.written[name].add(id_)
            case Derive():
                for id_, row in each.rows(after.state).items():
                    after.state["K"][id_] = row
                    after.written["K"].add(id_)
            case Update(name, values, tests):
                found = {
                    id_: {k: new_value(v, id_, after.state) for k, v in values.items()}
                    for id_ in matching(name, after.state, tests)
                }
                for id_, new in found.items():
                    after.state[name][id_].update(new)
                    after.written[name].add(id_)
            case Delete(name, tests):
                for id_ in matching(name, after.state, tests):
                    del after.state[name][id_]
                    if name == "P":
                        edges = after.state["K"]
                        for edge in [e for e, r in edges.items() if id_ in (r["src"], r["dst"])]:
                            del edges[edge]
    for row in after.state["K"].values():
        if not {row["src"], row["dst"]} <= after.state["P"].keys():
            return None
    return after


def matching(name: str, state: State, tests: Sequence[Test]) -> list[str]:
    """The rows that pass all tests, before any of them is changed."""

    def passes(test: Test, row: Row) -> bool | None:
        if isinstance(test, Neighbours | Alone):
            return test.passes(row, state)
        return test.passes(row)

    return [
        id_
        for id_, row in state[name].items()
        if all(passes(each, {**row, "id": id_}) for each in tests)
    ]


def new_value(value: Any, id_: str, state: State) -> Any:
    match value:
        case Plus():
            return value.value(state["P"][id_])
        case Degree(numbered):
            return neighbours(id_, state, numbered=numbered)
        case _:
            return value


def where(tests: Sequence[Test]) -> str:
    return " and ".join(each.text() for each in tests)


def assignments(row: Row) -> str:
    names = {"src": "from", "dst": "to"}
    return ", ".join(f"{names.get(name, name)}: {literal(value)}" for name, value in row.items())


def spelt(test: Condition) -> str:
    return literal(test.value)


def literal(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, Plus):
        return f"{value.column} + {value.added}"
    if isinstance(value, Degree):
        return counted(value.numbered)
    return f'"{value}"' if isinstance(value, str) else str(value)
