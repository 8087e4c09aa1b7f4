"""Updates and deletes by a match: what other rows decide, on what earlier statements left."""

from typing import Final

import pytest

from omnigraph.errors import InvalidInputError
from omnigraph.integrity.violations import IntegrityError
from tests.contract.mutation.builders import Mutated
from tests.contract.mutation.conftest import Make

SCHEMA: Final = """
node Person { name: String @key  n: I32?  m: I64? @unique  t: String?  tags: [String]? }
node Team { name: String @key  size: I64? }
edge Knows: Person -> Person { w: I64? }
edge In: Person -> Team
"""


@pytest.fixture
def graph(make: Make) -> Mutated:
    return make(
        SCHEMA,
        Person=[{"name": name, "n": n} for name, n in [("a", 1), ("b", 2), ("c", None), ("d", 4)]],
        Team=[{"name": "red"}, {"name": "blue"}],
        Knows=[
            {"id": "k1", "src": "a", "dst": "b", "w": 1},
            {"id": "k2", "src": "a", "dst": "c", "w": 2},
            {"id": "k3", "src": "b", "dst": "c"},
        ],
        In=[{"id": "i1", "src": "a", "dst": "red"}, {"id": "i2", "src": "b", "dst": "red"}],
    )


def test_values_of_other_rows_are_set(graph: Mutated):
    counted = """update $p: Person
        set { n: count { $p knows $_ }  t: max { $p knows $q  $q.name }  tags: ["x"] }
        where exists { $p knows $_ } or n = $least"""
    assert graph.counts(counted, "$least: I64", least=4) == {"Person": (0, 3, 0)}
    assert graph.column("Person", "n") == {"a": 2, "b": 1, "c": None, "d": 0}
    assert graph.column("Person", "t") == {"a": "c", "b": "c", "c": None, "d": None}
    assert graph.column("Person", "tags") == {"a": ["x"], "b": ["x"], "c": None, "d": ["x"]}


def test_the_row_and_its_bare_words_are_the_same(graph: Mutated):
    older = "update $p: Person set { m: $p.n + n } where count { $q: Person  $q.n > n } = 1"
    assert graph.counts(older) == {"Person": (0, 1, 0)}
    assert graph.column("Person", "m")["b"] == 4
    assert graph.counts(
        "update $p: Person set { m: 9 } where $p.n = 1 and $p = 'a'".replace("'", '"')
    )
    assert graph.column("Person", "m")["a"] == 9


def test_a_block_may_be_the_same_for_all_rows(graph: Mutated):
    most = 'update Person set { n: max { $q: Person  $q.n } + 1 } where name in ["a", "c"]'
    assert graph.counts(most) == {"Person": (0, 2, 0)}
    assert graph.column("Person", "n") == {"a": 5, "b": 2, "c": 5, "d": 4}


def test_edges_have_rows_too(graph: Mutated):
    rated = 'update $k: Knows set { w: sum { $p: Person  $p.id = $k.dst  $p.n } } where from = "a"'
    assert graph.counts(rated) == {"Knows": (0, 2, 0)}
    assert graph.column("Knows", "w") == {"k1": 2, "k2": None, "k3": None}
    gone = "delete $k: Knows where count { $x: Person  $x.id = to  $x.n is null } > 0"
    assert graph.counts(gone) == {"Knows": (0, 0, 2)}
    assert set(graph.rows("Knows")) == {"k1"}


def test_what_has_no_neighbours_is_deleted_with_its_edges(graph: Mutated):
    lonely = "delete $p: Person where not { $p in $_ } and not { $p knows $_ }"
    assert graph.counts(lonely) == {"Person": (0, 0, 2), "Knows": (0, 0, 2)}
    assert set(graph.rows("Person")) == {"a", "b"}
    assert graph.run(lonely).commit_id is None
    assert not graph.graph.check().findings


def test_later_statements_see_what_earlier_ones_wrote(graph: Mutated):
    body = """
        insert Person { name: "e"  n: 7 }
        insert Knows { from: "e"  to: "a" }
        insert In { from: $p  to: "blue" } from match { $p: Person  $p.n > 3 }
        update $t: Team set { size: count { $p in $t  $p.n > 3 } } where exists { $_ in $t }
        update $p: Person set { n: count { $p in $t  $t.size = 2 }  t: t } where exists { $p in $_ }
        update $p: Person set { t: "seen" } where n = 1 and exists { $p knows $_ }
    """
    assert graph.counts(body) == {
        "Person": (1, 3, 0), "Team": (0, 2, 0), "Knows": (1, 0, 0), "In": (2, 0, 0)
    }  # fmt: skip
    assert graph.column("Team", "size") == {"red": 0, "blue": 2}
    assert graph.column("Person", "n") == {"a": 0, "b": 0, "c": None, "d": 1, "e": 1}
    assert graph.column("Person", "t")["e"] == "seen"
    assert graph.column("Person", "t")["d"] is None


def test_later_deletes_see_what_earlier_ones_deleted(graph: Mutated):
    body = """
        delete Person where name = "a"
        delete $t: Team where count { $_ in $t } = 1
        delete $p: Person where not { $p knows $_ } and not { $_ knows $p }
    """
    assert graph.counts(body) == {
        "Person": (0, 0, 2), "Team": (0, 0, 1), "Knows": (0, 0, 2), "In": (0, 0, 2)
    }  # fmt: skip
    assert set(graph.rows("Person")) == {"b", "c"}


def test_numbers_have_to_fit_and_rules_have_to_hold(graph: Mutated):
    with pytest.raises(InvalidInputError, match="does not fit"):
        graph.run("update $p: Person set { n: count { $p knows $_ } + 3000000000 } where n = 1")
    with pytest.raises(IntegrityError) as caught:
        graph.run("update $p: Person set { m: count { $p in $_ } } where exists { $p in $_ }")
    assert {str(each.rule) for each in caught.value.violations} == {"unique"}


def test_what_a_block_read_must_not_have_moved(graph: Mutated):
    work = graph.plan('update $t: Team set { size: count { $_ in $t } } where name = "red"')
    assert {key.type_name for key in work.reads} >= {"In", "Team"}
    assert not work.can_replan
