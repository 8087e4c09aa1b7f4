"""Rules: a mutation that would break one is refused whole, and says which and where."""

from typing import Final

import pytest

from omnigraph.integrity.violations import IntegrityError
from tests.contract.mutation.builders import Mutated
from tests.contract.mutation.conftest import Make

RULES: Final = """
node Thing {
  name: String @key
  kind: enum(a, b)?
  size: I32?
  ratio: F64?
  code: String?
  mail: String? @unique
  badge: I64? @unique
  place: Vector(2)?
  @range(size, 0..10)  @range(ratio, 0.0..)  @check(code, "^[A-Z]+$")
  @length(code, ..3)
}
node Other { name: String @key }
edge Part: Thing -> Thing @card(0..2) { n: I32?  @unique(src, n) }
edge Needs: Thing -> Other @card(1..)
"""
ROWS: Final[dict[str, list[dict[str, object]]]] = {
    "Thing": [
        {"name": "x", "mail": "x@", "badge": 1},
        {"name": "y", "mail": "y@", "badge": 2},
        {"name": "z"},
    ],
    "Other": [{"name": "o"}, {"name": "p"}],
    "Part": [
        {"id": "p1", "src": "x", "dst": "y", "n": 1},
        {"id": "p2", "src": "x", "dst": "z", "n": 2},
    ],
    "Needs": [
        {"id": "n1", "src": "x", "dst": "o"},
        {"id": "n2", "src": "y", "dst": "o"},
        {"id": "n3", "src": "z", "dst": "p"},
    ],
}
NEW: Final = 'insert Needs { from: "new", to: "o" }'
"""What a new thing needs."""

BROKEN: Final[dict[str, tuple[str, list[tuple[str, str, str, str]]]]] = {
    "an enum": (
        f'insert Thing {{ name: "new", kind: $text }} {NEW}',
        [("enum", "Thing", "new", "statement 1")],
    ),
    "a range": (
        'update Thing set { size: 11 } where name = "x"',
        [("range", "Thing", "x", "statement 1")],
    ),
    "a range of floats": (
        'update Thing set { ratio: -0.5 } where mail = "x@"',
        [("range", "Thing", "x", "statement 1")],
    ),
    "a length": (
        'update Thing set { code: "ABCD" } where name = "x"',
        [("length", "Thing", "x", "statement 1")],
    ),
    "a check, found in the last statement that wrote the row": (
        """
        update Thing set { size: 1 } where name = "x"
        update Thing set { code: "a" } where size = 1
        """,
        [("check", "Thing", "x", "statement 2")],
    ),
    "a unique text of another row": (
        f'insert Thing {{ name: "new", mail: "x@" }} {NEW}',
        [("unique", "Thing", "new", "statement 1")],
    ),
    "a unique number of another row": (
        f'insert Thing {{ name: "new", badge: 2 }} {NEW}',
        [("unique", "Thing", "new", "statement 1")],
    ),
    "one value for many rows": (
        "update Thing set { mail: $text } where mail is not null",
        [("unique", "Thing", "x", "statement 1")],
    ),
    "a unique pair of an edge": (
        'update Part set { n: 1 } where id = "p2"',
        [("unique", "Part", "p2", "statement 1")],
    ),
    "an end that does not exist": (
        'insert Part { from: "y", to: "nobody" }',
        [("endpoint", "Part", "", "statement 1")],
    ),
    "a start that does not exist": (
        'insert Needs { from: "nobody", to: "o" }',
        [("endpoint", "Needs", "", "statement 1")],
    ),
    "too many edges": (
        'insert Part { from: "x", to: "x", n: 3 }',
        [("cardinality", "Part", "x", "statement 1")],
    ),
    "too many edges, all of them new": (
        'insert Part { from: "y", to: "x" }' * 3,
        [("cardinality", "Part", "y", "statement 1")],
    ),
    "too few edges of a new node": (
        'insert Thing { name: "new" }',
        [("cardinality", "Needs", "new", "statement 1")],
    ),
    "the last edge that a node needs": (
        'delete Needs where from = "x"',
        [("cardinality", "Needs", "x", "")],
    ),
    "a node whose edge others need": (
        'delete Other where name = "p"',
        [("cardinality", "Needs", "z", "")],
    ),
}


@pytest.fixture
def things(make: Make) -> Mutated:
    return make(RULES, **ROWS)


@pytest.mark.parametrize(("body", "broken"), BROKEN.values(), ids=BROKEN.keys())
def test_what_breaks_a_rule_is_refused(
    things: Mutated, body: str, broken: list[tuple[str, str, str, str]]
):
    before = things.head()
    declared = "$text: String" if "$text" in body else ""
    parameters = {"text": "text"} if declared else {}
    with pytest.raises(IntegrityError) as caught:
        things.run(body, declared, **parameters)

    found = [
        (str(each.rule), each.type_name, str(each.id), each.origin)
        for each in caught.value.violations
    ]
    # An edge without a key has an id that was made for it.
    wanted = [(*each[:2], each[2] or found[0][2], each[3]) for each in broken]
    assert found == wanted
    assert things.head() == before
    assert {name: len(things.rows(name)) for name in ROWS} == {
        name: len(rows) for name, rows in ROWS.items()
    }


KEPT: Final = {
    "the bounds themselves": "update Thing set { size: 10, ratio: 0 } where size is null",
    "a unique value that is freed by the same query": """
        update Thing set { mail: null } where name = "x"
        update Thing set { mail: "x@" } where name = "y"
    """,
    "unique values that change hands": """
        update Thing set { mail: null, badge: 3 } where name = "x"
        update Thing set { mail: "x@", badge: 1 } where name = "y"
        update Thing set { mail: "y@", badge: 2 } where name = "x"
    """,
    "a unique value again in its own row": """
        update Thing set { mail: "x@", size: 2 } where name = "x"
    """,
    "nulls, which are not unique": """
        update Thing set { mail: null, badge: null } where size is null
    """,
    "a value that a later statement mends": """
        update Thing set { size: 11 } where name = "x"
        update Thing set { size: 1 } where size = 11
    """,
    "an edge between nodes of the same query": f"""
        {NEW}
        insert Part {{ from: "new", to: "new" }}
        insert Thing {{ name: "new" }}
    """,
    "a node with the edges that it needs": """
        delete Needs where from = "x"
        delete Thing where name = "x"
    """,
    "the end of an edge, with all that need it": """
        delete Other where name = "p"
        delete Thing where name = "z"
    """,
    "an edge that stays within bounds": 'update Part set { n: 5 } where from = "x" and n = 1',
}


@pytest.mark.parametrize("body", KEPT.values(), ids=KEPT.keys())
def test_what_breaks_no_rule_lands(things: Mutated, body: str):
    before = things.head()
    assert things.run(body).commit_id == things.head() != before


def test_a_valid_statement_does_not_land_beside_one_that_is_not(things: Mutated):
    before = things.head()
    with pytest.raises(IntegrityError):
        things.run(f"""
            insert Thing {{ name: "new" }} {NEW}
            insert Part {{ from: "new", to: "nobody" }}
        """)
    assert things.head() == before
    assert "new" not in things.rows("Thing")


def test_a_deleted_value_is_free_for_the_next_query(things: Mutated):
    things.run('delete Thing where name = "x"')
    things.run(f'insert Thing {{ name: "new", mail: "x@", badge: 1 }} {NEW}')
    assert things.column("Thing", "mail")["new"] == "x@"
