"""Derived rows: what a match finds is inserted, once for each distinct row, in one commit."""

from typing import Final

import pytest

from omnigraph.clock import is_ulid
from omnigraph.errors import InvalidInputError
from omnigraph.integrity.violations import IntegrityError
from tests.contract.mutation.builders import Mutated
from tests.contract.mutation.conftest import Make

SCHEMA: Final = """
node Person { name: String @key  age: I64?  small: I32?  tags: [String]? }
node Team { name: String @key  size: I64?  at: Date? }
node Note { text: String?  n: I32? }
edge Knows: Person -> Person { since: I64?  kind: enum(friend, colleague)? }
edge In: Person -> Team @card(0..2)
edge Rated: Person -> Team { stars: I64?  @key(src, dst) }
"""


@pytest.fixture
def graph(make: Make) -> Mutated:
    names = ["ada", "bob", "cy", "dee"]
    return make(
        SCHEMA,
        Person=[{"name": name, "age": 30 + place} for place, name in enumerate(names[:3])]
        + [{"name": "dee"}],
        Team=[{"name": "red"}, {"name": "blue"}],
        In=[
            {"id": "i1", "src": "ada", "dst": "red"},
            {"id": "i2", "src": "bob", "dst": "red"},
            {"id": "i3", "src": "ada", "dst": "blue"},
            {"id": "i4", "src": "bob", "dst": "blue"},
            {"id": "i5", "src": "cy", "dst": "blue"},
        ],
    )


def pairs(graph: Mutated, edge: str) -> list[tuple[object, object]]:
    return sorted((row["src"], row["dst"]) for row in graph.rows(edge).values())


COLLEAGUES: Final = "match { $a in $t  $b in $t  $a != $b }"


def test_each_distinct_row_is_one_edge_in_one_commit(graph: Mutated):
    before = len(graph.graph.commits.list())
    body = f"insert Knows {{ from: $a  to: $b  since: $a.age + 1  kind: $kind }} from {COLLEAGUES}"
    assert graph.counts(body, "$kind: String", kind="colleague") == {"Knows": (6, 0, 0)}

    # ada and bob share two teams, and know each other once.
    names = ("ada", "bob", "cy")
    assert pairs(graph, "Knows") == [(a, b) for a in names for b in names if a != b]
    found = graph.rows("Knows")
    assert all(map(is_ulid, found))
    assert {row["since"] for row in found.values() if row["src"] == "ada"} == {31}
    assert {row["kind"] for row in found.values()} == {"colleague"}
    assert len(graph.graph.commits.list()) == before + 1
    assert not graph.graph.check().findings


def test_rows_without_a_key_are_inserted_again_unless_the_match_excludes_them(graph: Mutated):
    again = f"insert Knows {{ from: $a  to: $b }} from {COLLEAGUES}"
    graph.run(again)
    assert graph.counts(again) == {"Knows": (6, 0, 0)}
    only_new = again.replace("$a != $b", "$a != $b  not { $a knows $b }")
    assert graph.run(only_new).commit_id is None


def test_equal_rows_are_not_written_again_and_two_rows_of_one_key_are_refused(graph: Mutated):
    rate = "insert Rated { from: $p  to: $t  stars: $p.age % 5 } from match { $p in $t }"
    assert graph.counts(rate) == {"Rated": (5, 0, 0)}
    assert graph.counts(rate) == {}
    with pytest.raises(IntegrityError) as caught:
        graph.run(
            "insert Rated { from: $p  to: $t  stars: $q.age } from match { $p in $t  $q in $t }"
        )
    assert {str(each.rule) for each in caught.value.violations} == {"key"}
    assert set(graph.column("Rated", "stars").values()) == {0, 1, 2}


def test_nodes_are_derived_with_values_of_subqueries(graph: Mutated):
    counted = """
        insert Team { name: concat("of ", $p.name)  size: count { $p in $_ } }
        from match { $p: Person  exists { $p in $_ } or $p.age is null }
    """
    assert graph.counts(counted) == {"Team": (4, 0, 0)}
    sizes = {name: size for name, size in graph.column("Team", "size").items() if " " in name}
    assert sizes == {"of ada": 2, "of bob": 2, "of cy": 1, "of dee": 0}


def test_a_match_of_nothing_changes_nothing(graph: Mutated):
    nothing = 'insert Knows { from: $a  to: $a } from match { $a: Person {name: "x"} }'
    assert graph.run(nothing).commit_id is None


def test_values_that_depend_on_no_row_are_one_row_if_there_is_a_match(graph: Mutated):
    once = 'insert Note { text: "some" } from match { $p: Person  $p.age > $least }'
    assert graph.counts(once, "$least: I64", least=30) == {"Note": (1, 0, 0)}
    assert graph.run(once, "$least: I64", least=99).commit_id is None


def test_all_rules_hold(graph: Mutated):
    with pytest.raises(IntegrityError) as caught:
        graph.run("insert In { from: $p  to: $t } from match { $p: Person  $t: Team }")
    assert {str(each.rule) for each in caught.value.violations} == {"cardinality"}
    assert caught.value.violations[0].origin == "statement 1"
    with pytest.raises(IntegrityError) as caught:
        graph.run('insert Knows { from: $p  to: "nobody" } from match { $p: Person }')
    assert {str(each.rule) for each in caught.value.violations} == {"endpoint"}
    assert not graph.rows("Knows")


def test_a_number_has_to_fit_its_property(graph: Mutated):
    graph.run('update Person set { age: 3000000000 } where name = "ada"')
    with pytest.raises(InvalidInputError, match="does not fit"):
        graph.run("insert Note { n: $p.age } from match { $p: Person }")
    assert graph.counts("insert Note { n: $p.age % 1000 } from match { $p in $_ }") == {
        "Note": (3, 0, 0)
    }


def test_several_statements_land_together(graph: Mutated):
    both = """
        insert Team { name: "green" }
        insert Knows { from: $p  to: $p } from match { $p: Person  $p.age > 30 }
        update Knows set { since: 1 } where from = "bob"
    """
    assert graph.counts(both) == {"Team": (1, 0, 0), "Knows": (2, 0, 0)}
    assert sorted(graph.column("Knows", "since").values(), key=str) == [1, None]


def test_a_match_sees_what_earlier_statements_wrote(graph: Mutated):
    body = """
        insert Person { name: "eve"  age: 40 }
        update Person set { age: age + 10 } where name = "cy"
        insert Knows { from: $p  to: $p  since: $p.age } from match { $p: Person  $p.age >= 40 }
    """
    assert graph.counts(body) == {"Person": (1, 1, 0), "Knows": (2, 0, 0)}
    assert {row["src"]: row["since"] for row in graph.rows("Knows").values()} == {
        "eve": 40, "cy": 42
    }  # fmt: skip


def test_what_the_match_read_must_not_have_moved(graph: Mutated):
    work = graph.plan(f"insert Knows {{ from: $a  to: $b }} from {COLLEAGUES}")
    assert {key.type_name for key in work.reads} >= {"In", "Person"}
    assert not work.can_replan


def test_many_rows_are_planned_at_once(make: Make):
    count = 3000
    graph = make(
        SCHEMA,
        Person=[{"name": f"p{place}", "age": place} for place in range(count)],
        Team=[{"name": "red"}],
    )
    inserted = graph.counts('insert In { from: $p  to: "red" } from match { $p: Person }')
    assert inserted == {"In": (count, 0, 0)}
    assert len({row["src"] for row in graph.rows("In").values()}) == count
