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


Test = Condition | Either


@dataclass(frozen=True)
class Plus:
    """A new value that is computed from the row: `n + 1`."""

    column: str
    added: int

    def value(self, row: Row) -> int | None:
        return None if row[self.column] is None else row[self.column] + self.added


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
        return f"update {self.type} set {{ {assignments(self.values)} }} where {where(self.tests)}"


@dataclass(frozen=True)
class Delete:
    type: str
    tests: Sequence[Test]

    def text(self) -> str:
        return f"delete {self.type} where {where(self.tests)}"


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
                for id_ in matching(after.state[name], tests):
                    row = after.state[name][id_]
                    row.update(
                        {k: v.value(row) if isinstance(v, Plus) else v for k, v in values.items()}
                    )
                    after.written[name].add(id_)
            case Delete(name, tests):
                for id_ in matching(after.state[name], tests):
                    del after.state[name][id_]
                    if name == "P":
                        edges = after.state["K"]
                        for edge in [e for e, r in edges.items() if id_ in (r["src"], r["dst"])]:
                            del edges[edge]
    for row in after.state["K"].values():
        if not {row["src"], row["dst"]} <= after.state["P"].keys():
            return None
    return after


def matching(rows: dict[str, Row], tests: Sequence[Test]) -> list[str]:
    return [i for i, row in rows.items() if all(each.passes({"id": i, **row}) for each in tests)]


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
    return f'"{value}"' if isinstance(value, str) else str(value)
