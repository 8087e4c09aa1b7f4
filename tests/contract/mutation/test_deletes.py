"""Deletes: nodes go with every edge that touches them, and each row is counted once."""

import pytest

from tests.contract.mutation.builders import Mutated
from tests.contract.mutation.conftest import Make


def test_a_node_goes_with_all_its_edges(people: Mutated):
    deleted = people.counts('delete Person where name = "ada"')

    # k3 is a loop: both of its ends go, and it goes once.
    assert deleted == {
        "Person": (0, 0, 1),
        "Knows": (0, 0, 4),
        "LivesIn": (0, 0, 1),
        "Likes": (0, 0, 1),
    }
    assert set(people.rows("Person")) == {"bob", "cy", "dee"}
    assert set(people.rows("Knows")) == {"k4"}
    assert set(people.rows("LivesIn")) == set()
    assert set(people.rows("Likes")) == {'["Oslo","bob"]'}
    counts = {"Person": 3, "Knows": 1, "LivesIn": 0, "Likes": 1, "City": 2, "Note": 0}
    assert people.row_counts() == counts


def test_overlapping_deletes_are_counted_once(people: Mutated):
    deleted = people.counts("""
        delete Knows where from = "ada"
        delete Person where age = 36
        delete Person where name = "ada"
        delete Person where id = "cy"
        delete Knows where to = "bob"
        delete Knows where from = "bob"
    """)

    assert deleted == {
        "Person": (0, 0, 2),
        "Knows": (0, 0, 5),
        "LivesIn": (0, 0, 1),
        "Likes": (0, 0, 1),
    }
    assert set(people.rows("Person")) == {"bob", "dee"}
    assert people.rows("Knows") == {}


def test_an_edge_between_two_nodes_that_go_is_counted_once(people: Mutated):
    deleted = people.counts('delete Person where name != "dee"')
    assert (deleted["Person"], deleted["Knows"]) == ((0, 0, 3), (0, 0, 5))
    assert set(people.rows("Person")) == {"dee"}


@pytest.mark.parametrize(
    ("tests", "left"),
    [
        ('from = "ada"', {"k4", "k5"}),
        ('to = "ada"', {"k1", "k2", "k4"}),
        ('from = "ada" and to = "bob"', {"k3", "k4", "k5"}),
        ('from = "ada" and since is null', {"k2", "k4", "k5"}),
        ('id = "k1"', {"k2", "k3", "k4", "k5"}),
        ("weight > 0.25", {"k2", "k3", "k4", "k5"}),
    ],
)
def test_edges_alone_leave_their_nodes(people: Mutated, tests: str, left: set[str]):
    deleted = people.counts(f"delete Knows where {tests}")
    assert deleted == {"Knows": (0, 0, 5 - len(left))}
    assert set(people.rows("Knows")) == left
    assert len(people.rows("Person")) == 4


@pytest.mark.parametrize(
    "body",
    [
        'delete Person where name = "nobody"',
        'delete Person where id = "nobody"',
        'delete Person where name = "ada" and age = 1',
        'delete Person where age > 100 delete Knows where from = "dee"',
    ],
)
def test_a_predicate_that_matches_nothing_makes_no_commit(people: Mutated, body: str):
    before, work = people.head(), people.plan(body)
    assert work.changes == {}
    assert (work.report.written, work.report.deleted) == ({}, {})
    result = people.run(body)
    assert (result.commit_id, result.branch, dict(result.changes)) == (None, "main", {})
    assert (result.inserted, result.updated, result.deleted) == (0, 0, 0)
    assert people.head() == before


def test_a_node_that_comes_back_has_no_edges(people: Mutated):
    people.run('delete Person where name = "ada"')
    assert people.counts('insert Person { name: "ada" }') == {"Person": (1, 0, 0)}
    assert people.column("Person", "mail")["ada"] is None
    assert set(people.rows("Knows")) == {"k4"}


def test_ids_with_quotes_take_their_edges_along(make: Make):
    nasty = ["it's", 'a"b', "x') OR ('1'='1", "é"]
    made = make(
        "node P { name: String @key } edge K: P -> P",
        P=[{"name": each} for each in [*nasty, "plain"]],
        K=[{"id": each, "src": each, "dst": "plain"} for each in nasty],
    )
    for number, name in enumerate(nasty, start=1):
        deleted = made.counts("delete P where name = $n", "$n: String", n=name)
        assert deleted == {"P": (0, 0, 1), "K": (0, 0, 1)}
        assert set(made.rows("K")) == set(nasty[number:])
