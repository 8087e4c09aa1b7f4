"""A graph with planted values in types that most actors may not read, and what counts as a leak."""

# ruff: noqa: E501  # the table has one line for each kind of step

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Final

import omnigraph
from omnigraph.graph import Graph
from omnigraph.schema.steps import StepKind

MARK: Final = "zqx"
"""In every id and every text of a hidden row."""
AMOUNT: Final = 7_700_000
"""The smallest amount of a hidden row; no other number is as large."""
SALARIES, EARNINGS, RAISED, PAID_TO_CARA = 2237, 1613, 1091, 1009
"""How many rows there are, change, and go with one node: numbers that nothing else has."""

SCHEMA: Final = """
interface Named { label: String? }
interface Graded { grade: I32 }
interface Unused {}
node Person implements Named { name: String @key  note: String? @index  rank: I32? }
node Salary @owner("hr") implements Named {
  key: String @key
  amount: I64
  grade: I32
  badge: String @unique
  note: String @index
  maybe: I32?
  level: I32 @default(1)
  state: enum(open, shut)
  vec: Vector(8)? @embed("note", model="mock")
  raw: Vector(8)?
  tags: [I32]
  @range(grade, 0..9000)
  @check(badge, "^b")
  @length(tags, 1..9)
}
node Bonus { amount: I64  text: String }
edge Knows: Person -> Person
edge Earns: Person -> Salary @card(0..5000) { share: I64 }
"""
HIDDEN: Final = ("Bonus", "Earns", "Salary")

RULES: Final = """
permit(principal == Actor::"hal", action, resource);
permit(principal in Group::"staff", action, resource) unless { action == Action::"invoke" };
permit(principal == Actor::"rob", action == Action::"read", resource);
@id("all of it") forbid(principal, action, resource) when {
  resource is Type && ["Salary", "Bonus", "Earns"].contains(resource.name)
} unless { principal == Actor::"hal" || principal == Actor::"wes" };
@id("reading") forbid(principal == Actor::"wes", action == Action::"read", resource) when {
  resource is Type && ["Salary", "Bonus", "Earns"].contains(resource.name)
};
"""
POLICY: Final = 'rules = "rules.cedar"\n[groups]\nstaff = ["ada", "wes"]\n'
KEEPER: Final = "hal"
ACTORS: Final = ("ada", "wes", "rob", "eve")
"""May do everything but to hidden types; everything but to read them; only read; nothing."""


def make_hidden_world(folder: Path) -> None:
    """Make the graph `world.omni` and its `policy.toml` in a folder."""
    (folder / "rules.cedar").write_text(RULES)
    (folder / "policy.toml").write_text(POLICY)
    graph = omnigraph.init(folder / "world.omni", SCHEMA, actor=KEEPER)
    # What only a type without rows may lose.
    empty = graph.branches.create("draft/empty")
    empty.schema.apply(changed_schema(STEPS[StepKind.DROP_KEY][0]))
    people = [{"name": name, "note": f"about {name}"} for name in ("ada", "bob", "cara")]
    graph.load({"Person": people, "Knows": [{"src": "ada", "dst": "bob"}]})
    salaries = [_salary(number) for number in range(SALARIES)]
    earnings = [_earning(number) for number in range(EARNINGS)]
    bonus = [{"amount": AMOUNT + 1, "text": f"{MARK} bonus"}]
    graph.load({"Salary": salaries, "Earns": earnings, "Bonus": bonus}, embed="later")
    graph.queries.put("query paid() { match { $s: Salary } return { $s.key, $s.amount } }")
    hidden = graph.branches.create("draft/hidden")
    hidden.mutate(f"query q() {{ update Salary set {{ maybe: 1 }} where grade < {RAISED} }}")
    hidden.mutate('query q() { delete Person where name = "cara" }')
    visible = graph.branches.create("draft/visible")
    visible.mutate('query q() { update Person set { note: "theirs" } where name = "ada" }')
    graph.mutate(f"query q() {{ update Salary set {{ maybe: 2 }} where grade < {RAISED} }}")
    graph.mutate('query q() { update Person set { note: "ours" } where name = "cara" }')
    row = {"type_name": "Salary", "id": f"{MARK}-5"}
    for source in ("draft/hidden", "draft/visible"):
        number = graph.proposals.create(source, f"merge {source}").number
        graph.proposals.comment(number, f"look at {MARK}", **row)
    graph.tags.create("v1")


def _salary(number: int) -> dict[str, object]:
    return {
        "key": f"{MARK}-{number}",
        "amount": AMOUNT + number,
        "grade": number,
        "badge": f"b{number}",
        "note": f"{MARK} note {number}",
        "state": "open",
        "tags": [AMOUNT],
    }


def _earning(number: int) -> dict[str, object]:
    who = "cara" if number < PAID_TO_CARA else "ada"
    return {"src": who, "dst": f"{MARK}-{number % SALARIES}", "share": AMOUNT + number}


_WAITING: Final = SALARIES - RAISED
"""How many rows still wait for a vector: to change a row embeds it."""
_COUNTS: Final = (SALARIES, EARNINGS, RAISED, PAID_TO_CARA, SALARIES + EARNINGS, _WAITING)
_NUMBERS: Final = "|".join(f"{each:,}".replace(",", ",?") for each in _COUNTS)
_LEAK: Final = re.compile(rf"{MARK}|(?<![\w.:-])(?:77\d{{5}}|7,7\d\d,\d{{3}}|{_NUMBERS})(?![\w:-])")


def leaks(text: str | bytes) -> list[str]:
    """Every planted value, id and count in a text, with what is around it."""
    shown = text.decode("latin-1") if isinstance(text, bytes) else text
    return [shown[max(0, found.start() - 60) : found.end() + 20] for found in _LEAK.finditer(shown)]


@dataclass(slots=True)
class HiddenWorld:
    """The graph as its keeper changes it, so that each call finds what it needs."""

    graph: Graph
    numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def branch(self, start: str = "main") -> str:
        """A new branch."""
        name = f"draft/t{next(self.numbers)}"
        self.graph.branches.create(name, branch=start)
        return name

    def name(self) -> str:
        """A name that nothing has."""
        return f"draft/n{next(self.numbers)}"

    def proposal(self, source: str) -> int:
        """A new proposal to merge a copy of a branch into a copy of main."""
        into = self.branch()
        return self.graph.proposals.create(self.branch(source), "new", into=into).number

    def tag(self) -> str:
        """A new tag."""
        return str(self.graph.tags.create(f"t{next(self.numbers)}").name)

    def head(self, branch: str = "main") -> str:
        """The newest commit of a branch."""
        return self.graph.snapshot(branch=branch).head.commit_id

    def query(self) -> str:
        """A new stored query of hidden rows."""
        name = f"q{next(self.numbers)}"
        self.graph.queries.put(f"query {name}() {{ match {{ $s: Salary }} return {{ $s.key }} }}")
        return name


# fmt: off
STEPS: Final[dict[StepKind, tuple[tuple[str, str], ...]]] = {
    StepKind.ADD_INTERFACE: (("interface Unused", "interface New {} interface Unused"),),
    StepKind.CHANGE_INTERFACE: (("interface Graded { grade: I32 }", "interface Graded { grade: I32? }"),),
    StepKind.DROP_INTERFACE: (("interface Unused {}", ""),),
    StepKind.ADD_TYPE: (("node Bonus", "node New {} node Bonus"),
                        ("edge Knows", "edge New: Salary -> Person @card(1..) edge Knows")),
    StepKind.RENAME_TYPE: (("node Bonus {", 'node Extra @rename_from("Bonus") {'),),
    StepKind.DROP_TYPE: (("node Bonus { amount: I64  text: String }", ""),),
    StepKind.CHANGE_ENDS: (("edge Earns: Person -> Salary", "edge Earns: Salary -> Person"),),
    StepKind.ADD_PROPERTY: (("maybe: I32?", "maybe: I32?  more: I32?"), ("maybe: I32?", "maybe: I32?  more: I32"),
                            ("maybe: I32?", "maybe: I32?  more: I32 @default(3)")),
    StepKind.RENAME_PROPERTY: (("maybe: I32?", 'perhaps: I32? @rename_from("maybe")'),),
    StepKind.DROP_PROPERTY: (("maybe: I32?", ""),),
    StepKind.REORDER_PROPERTIES: (("amount: I64  text: String", "text: String  amount: I64"),),
    StepKind.CHANGE_TYPE: (("amount: I64\n", "amount: F64\n"), ("amount: I64  text", "amount: I32  text"),
                           ("text: String }", "text: I64 }")),
    StepKind.WIDEN_ENUM: (("enum(open, shut)", "enum(open, shut, lost)"),),
    StepKind.NARROW_ENUM: (("enum(open, shut)", "enum(open)"), ("enum(open, shut)", "enum(shut)")),
    StepKind.REORDER_ENUM: (("enum(open, shut)", "enum(shut, open)"),),
    StepKind.REQUIRE_VALUE: (("maybe: I32?", "maybe: I32"),),
    StepKind.ALLOW_NULL: (("state: enum(open, shut)", "state: enum(open, shut)?"),),
    StepKind.ADD_DEFAULT: (("maybe: I32?", "maybe: I32? @default(3)"),),
    StepKind.CHANGE_DEFAULT: (("@default(1)", "@default(2)"),),
    StepKind.DROP_DEFAULT: (("@default(1)", ""),),
    StepKind.ADD_EMBED: (("raw: Vector(8)?", 'raw: Vector(8)? @embed("note", model="mock")'),),
    StepKind.CHANGE_EMBED: (('model="mock"', 'model="mock:2"'),),
    StepKind.DROP_EMBED: ((' @embed("note", model="mock")', ""),),
    StepKind.ADD_KEY: (("text: String }", "text: String @key }"),),
    StepKind.CHANGE_KEY: (("key: String @key\n  amount: I64", "key: String\n  amount: I64 @key"),),
    StepKind.DROP_KEY: (("key: String @key", "key: String"),),
    StepKind.ADD_UNIQUE: (("amount: I64\n", "amount: I64 @unique\n"), ("level: I32", "level: I32 @unique")),
    StepKind.DROP_UNIQUE: (("badge: String @unique", "badge: String"),),
    StepKind.ADD_INDEX: (("amount: I64\n", "amount: I64 @index\n"),),
    StepKind.CHANGE_INDEX: (("note: String @index\n", "note: String @index(positions=true)\n"),),
    StepKind.DROP_INDEX: (("note: String @index\n", "note: String\n"),),
    StepKind.ADD_RANGE: (("@range(grade, 0..9000)", "@range(grade, 0..9000) @range(amount, 0..)"),
                         ("@range(grade, 0..9000)", "@range(grade, 0..9000) @range(amount, ..9)")),
    StepKind.TIGHTEN_RANGE: (("0..9000", "0..8000"), ("0..9000", "0..7")),
    StepKind.LOOSEN_RANGE: (("0..9000", "0..9500"),),
    StepKind.DROP_RANGE: (("@range(grade, 0..9000)", ""),),
    StepKind.ADD_CHECK: (('@check(badge, "^b")', '@check(badge, "^b") @check(note, "note")'),
                         ('@check(badge, "^b")', '@check(badge, "^b") @check(note, "^x")')),
    StepKind.DROP_CHECK: (('@check(badge, "^b")', ""),),
    StepKind.ADD_LENGTH: (("@length(tags, 1..9)", "@length(tags, 1..9) @length(note, 1..)"),
                          ("@length(tags, 1..9)", "@length(tags, 1..9) @length(note, 99..)")),
    StepKind.TIGHTEN_LENGTH: (("@length(tags, 1..9)", "@length(tags, 1..8)"),
                              ("@length(tags, 1..9)", "@length(tags, 5..9)")),
    StepKind.LOOSEN_LENGTH: (("@length(tags, 1..9)", "@length(tags, 0..9)"),),
    StepKind.DROP_LENGTH: (("@length(tags, 1..9)", ""),),
    StepKind.TIGHTEN_CARDINALITY: (("@card(0..5000)", "@card(0..4000)"), ("@card(0..5000)", "@card(0..1)"),
                                   ("@card(0..5000)", "@card(1..5000)")),
    StepKind.LOOSEN_CARDINALITY: (("@card(0..5000)", "@card(0..6000)"),),
    StepKind.ADD_IMPLEMENTS: (('node Salary @owner("hr") implements Named', 'node Salary @owner("hr") implements Named, Graded'),),
    StepKind.DROP_IMPLEMENTS: (('node Salary @owner("hr") implements Named {', 'node Salary @owner("hr") { label: String?'),),
    StepKind.CHANGE_DESCRIPTION: (("node Bonus", 'node Bonus @description("extra")'),),
    StepKind.CHANGE_ANNOTATION: (('@owner("hr")', '@owner("it")'),),
}
# fmt: on
"""By kind of step, edits of the schema that take it, some of which rows do not allow."""


def changed_schema(edit: tuple[str, str]) -> str:
    """The schema with an edit."""
    before, after = edit
    assert before in SCHEMA, before
    return SCHEMA.replace(before, after)
