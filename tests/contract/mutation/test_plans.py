"""Plans: what else they rely on, what may be planned again, and what they do not read."""

from typing import Final, NoReturn

import pytest

from omnigraph.engine.protocol import Data
from omnigraph.model.tables import TableKey
from omnigraph.relational.plans import Plan
from tests.contract.mutation.builders import Mutated
from tests.contract.mutation.conftest import Make

PERSON, CITY, NOTE, KNOWS, LIVES_IN, LIKES = map(
    TableKey.parse,
    ["node:Person", "node:City", "node:Note", "edge:Knows", "edge:LivesIn", "edge:Likes"],
)

RELIES: Final[dict[str, tuple[str, set[TableKey], set[TableKey], set[TableKey], bool]]] = {
    #                  statements, changes, reads, guards, replans
    "a node": ('insert Note { text: "x" }', {NOTE}, set(), set(), True),
    "an edge": ('insert Knows { from: "ada", to: "bob" }', {KNOWS}, {PERSON}, set(), True),
    "an edge to elsewhere": (
        'insert LivesIn { from: "bob", to: "Oslo" }',
        {LIVES_IN},
        {PERSON, CITY},
        set(),
        True,
    ),
    "an edge with its node": (
        'insert Person { name: "eve" } insert LivesIn { from: "eve", to: "Oslo" }',
        {PERSON, LIVES_IN},
        {CITY},
        set(),
        True,
    ),
    "an update": ('update Person set { age: 1 } where name = "ada"', {PERSON}, set(), set(), False),
    "an update of edges": (
        'update Knows set { weight: 1 } where from = "ada"',
        {KNOWS},
        set(),
        set(),
        False,
    ),
    "an insert and an update": (
        'insert Person { name: "eve" } update Person set { age: 1 } where name = "eve"',
        {PERSON},
        set(),
        set(),
        False,
    ),
    "a node that goes": (
        'delete Person where name = "cy"',
        {PERSON, KNOWS},
        set(),
        {LIVES_IN, LIKES},
        False,
    ),
    "a node without edges": (
        'delete Person where name = "dee"',
        {PERSON},
        set(),
        {KNOWS, LIVES_IN, LIKES},
        False,
    ),
    "edges that go": ('delete Knows where from = "ada"', {KNOWS}, set(), set(), False),
    "nothing": ('delete Person where name = "nobody"', set(), set(), set(), False),
}


@pytest.mark.parametrize(
    ("body", "changes", "reads", "guards", "replans"), RELIES.values(), ids=RELIES.keys()
)
def test_a_plan_says_what_it_relies_on(
    people: Mutated,
    body: str,
    changes: set[TableKey],
    reads: set[TableKey],
    guards: set[TableKey],
    *,
    replans: bool,
):
    work = people.plan(body)

    assert set(work.changes) == changes
    assert (set(work.reads), set(work.locks), work.can_replan) == (reads, guards, replans)


def test_a_plan_writes_nothing_and_can_be_made_again(people: Mutated):
    mutation = people.prepared("""
        insert Person { name: "eve", age: 40 }
        update Person set { mail: null } where age = 40
    """)
    before = {name: people.rows(name) for name in people.row_counts()}
    first = mutation.plan(people.view())
    assert {name: people.rows(name) for name in before} == before

    people.run('insert Person { name: "fay", age: 40 }')
    again = mutation.plan(people.view())
    assert first.report.written == {PERSON: 2}
    assert again.report.written == {PERSON: 3}


@pytest.mark.parametrize(
    "body",
    [
        'insert Person { name: "eve", age: 1, mail: "e@x" }',
        'insert Person { name: "ada", age: 1, mail: "a@x" }',
        'insert Knows { from: "ada", to: "bob" }',
        'insert Likes { from: "Oslo", to: "ada" }',
        'update Person set { age: 1 } where name = "ada"',
        'update Person set { age: 1 } where id = "ada"',
        'delete Knows where id = "k1"',
        'delete Person where name = "ada"',
    ],
)
def test_a_small_change_by_key_asks_no_engine(
    people: Mutated, body: str, monkeypatch: pytest.MonkeyPatch
):
    def refuse(plan: Plan, data: Data) -> NoReturn:  # noqa: ARG001  # an engine's
        message = f"the engine was asked {plan.tree.sql()}"
        raise AssertionError(message)

    monkeypatch.setattr(people.graph._queries.local, "run", refuse)
    assert people.plan(body).changes


def test_another_schema_is_compiled_for_itself(people: Mutated, make: Make):
    other = make("node Person { name: String @key  age: I64 }")
    text = 'insert Person { name: "x", age: 5000000000 }'
    assert other.counts(text) == {"Person": (1, 0, 0)}
    assert people.counts('insert Person { name: "x", age: 5 }') == {"Person": (1, 0, 0)}
