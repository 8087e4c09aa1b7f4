"""Updates: which rows they find, what they leave alone, and what earlier statements left them."""

from datetime import date
from pathlib import Path

import pytest

from omnigraph.errors import ErrorCode, InvalidInputError, StorageError
from omnigraph.limits import KEYS_PER_LOOKUP_MAX
from tests.contract.mutation.builders import Mutated, mutated
from tests.contract.mutation.conftest import Make


def test_only_rows_that_pass_every_test_change(people: Mutated):
    update = 'update Person set { mail: "new" } where age = 36 and name != "cy"'
    assert people.counts(update) == {"Person": (0, 1, 0)}
    mails = {"ada": "new", "bob": None, "cy": None, "dee": None}
    assert people.column("Person", "mail") == mails
    assert people.rows("Person")["ada"] == {"name": "ada", "age": 36, "mail": "new"}


@pytest.mark.parametrize(
    ("tests", "changed"),
    [
        ('name = "ada"', {"ada"}),
        ('name = "nobody"', set()),
        ('name = "ada" and age = 36', {"ada"}),
        ('name = "ada" and age = 35', set()),
        ('name = "ada" and name = "bob"', set()),
        ('id = "ada"', {"ada"}),
        ('id = "nobody"', set()),
        ('id = "ada" and age > 40', set()),
        ('id != "ada"', {"bob", "cy", "dee"}),
        ('mail = "a@x"', {"ada"}),
        ("age > 36", {"bob"}),
        ("age >= 36.5", {"bob"}),
        ("age = 36.5", set()),
        ("age != 36", {"bob"}),
        ("age is null", {"dee"}),
        ("age is not null and mail is null", {"bob", "cy"}),
        ('name > "b" and name < "d"', {"bob", "cy"}),
        ('name = "ada" or age > 36', {"ada", "bob"}),
        ('not (name in ["ada", "bob"] or age = 1)', {"cy"}),
        ('length(name) = 2 or mail starts_with "a"', {"ada", "cy"}),
        ("coalesce(age, 0) < 1", {"dee"}),
    ],
)
def test_tests_find_what_queries_find(people: Mutated, tests: str, changed: set[str]):
    before = people.head()
    result = people.run(f"update Person set {{ age: 99 }} where {tests}")

    ages = people.column("Person", "age")
    assert {name for name, age in ages.items() if age == 99} == changed
    assert (result.inserted, result.updated) == (0, len(changed))
    assert (result.commit_id is None) == (not changed)
    assert (people.head() == before) == (not changed)


def test_a_value_is_computed_from_the_row_as_it_was(people: Mutated):
    before = people.column("Person", "age")
    update = 'update Person set { age: age + $n, mail: concat(name, "@x") } where age is not null'
    people.run(f"{update} {update}", "$n: I64", n=2)
    after = people.column("Person", "age")
    assert after == {name: None if age is None else age + 4 for name, age in before.items()}
    assert people.column("Person", "mail")["bob"] == "bob@x"


def test_a_number_that_does_not_fit_its_property_changes_nothing(people: Mutated):
    before = people.head()
    with pytest.raises(InvalidInputError) as caught:
        people.run("update Person set { age: age * 9223372036854775807 } where age > 1")
    assert caught.value.code is ErrorCode.VALUE_OUT_OF_RANGE
    assert people.head() == before


def test_null_equals_nothing(people: Mutated):
    update = "update Person set { age: 1 } where mail = $m"
    assert people.counts(update, "$m: String?") == {}
    assert people.counts(update, "$m: String?", m=None) == {}
    assert people.counts("update Person set { age: 1 } where name = $n", "$n: String?") == {}


def test_a_value_can_be_taken_away(people: Mutated):
    assert people.counts("update Person set { age: null, mail: null } where age = 36") == {
        "Person": (0, 2, 0)
    }
    assert people.column("Person", "age") == {"ada": None, "bob": 40, "cy": None, "dee": None}


@pytest.mark.parametrize(
    ("tests", "changed"),
    [
        ('from = "ada"', {"k1", "k2", "k3"}),
        ('to = "ada"', {"k3", "k5"}),
        ('from = "ada" and to = "bob"', {"k1", "k2"}),
        ('from = "ada" and to = "bob" and since is not null', {"k2"}),
        ('id = "k4"', {"k4"}),
        ('from = "dee"', set()),
    ],
)
def test_edges_are_found_by_their_ends(people: Mutated, tests: str, changed: set[str]):
    before = people.rows("Knows")
    people.run(f"update Knows set {{ weight: 7.5 }} where {tests}")

    expected = {
        id_: {**row, "weight": 7.5 if id_ in changed else row["weight"]}
        for id_, row in before.items()
    }
    assert people.rows("Knows") == expected


def test_an_edge_is_found_by_its_key(make: Make):
    made = make(
        """
        node P { name: String @key }
        edge K: P -> P { n: I32?  kind: String  @key(src, kind, dst) }
        """,
        P=[{"name": "a"}, {"name": "b"}],
        K=[{"src": "a", "dst": "b", "kind": "x"}, {"src": "a", "dst": "b", "kind": "y"}],
    )
    update = 'update K set { n: 1 } where kind = "y" and to = "b" and from = "a"'
    assert made.counts(update) == {"K": (0, 1, 0)}
    assert made.column("K", "n") == {'["a","x","b"]': None, '["a","y","b"]': 1}


def test_a_later_statement_sees_what_an_earlier_one_wrote(people: Mutated):
    updated = people.counts("""
        update Person set { age: 50 } where age = 36
        update Person set { mail: "fifty" } where age = 50 and name = "cy"
        update Person set { age: 51 } where mail = "fifty"
        update Person set { mail: "old" } where age = 36
    """)

    assert updated == {"Person": (0, 2, 0)}
    assert people.column("Person", "age") == {"ada": 50, "bob": 40, "cy": 51, "dee": None}
    assert people.column("Person", "mail")["cy"] == "fifty"


def test_an_update_reaches_rows_that_the_query_inserted(people: Mutated):
    changed = people.counts("""
        insert Person { name: "eve", age: 36 }
        insert Person { name: "bob", age: 36, mail: "b@x" }
        update Person set { age: 1 } where age = 36
        update Person set { age: 2 } where name = "eve"
        update Person set { age: 3 } where id = "bob"
    """)

    assert changed == {"Person": (1, 3, 0)}
    ages = {"ada": 1, "bob": 3, "cy": 1, "dee": None, "eve": 2}
    assert people.column("Person", "age") == ages
    assert people.column("Person", "mail")["bob"] == "b@x"


def test_an_update_reaches_rows_with_ids_made_by_the_query(people: Mutated):
    changed = people.counts("""
        insert Note { text: "a" }
        insert Note { text: "b" }
        update Note set { text: "c" } where text = "a"
    """)
    assert changed == {"Note": (2, 0, 0)}
    assert sorted(people.column("Note", "text").values()) == ["b", "c"]


def test_an_insert_after_an_update_is_the_whole_row(people: Mutated):
    people.run("""
        update Person set { age: 1 } where name = "ada"
        insert Person { name: "ada" }
    """)
    assert people.rows("Person")["ada"] == {"name": "ada", "age": None, "mail": None}


def test_what_is_not_assigned_survives(make: Make):
    row = {
        "name": "x",
        "n": 1,
        "body": bytes(range(256)) * 1000,
        "parts": [b"", b"abc"],
        "place": [0.5, -1.0],
        "words": ["a", "", "é"],
        "day": date(2024, 2, 29),
        "huge": 2**64 - 1,
    }
    empty = {**dict.fromkeys(row), "name": "y", "n": 2, "parts": [b"z"]}
    made = make(
        """node N {
          name: String @key  n: I32  body: Blob?  parts: [Blob]?  place: Vector(2)?
          words: [String]?  day: Date?  huge: U64?
        }""",
        N=[row, empty],
    )
    for number in (5, 6):
        changed = made.counts("update N set { n: $n } where n > 0", "$n: I32", n=number)
        assert changed == {"N": (0, 2, 0)}
    assert made.rows("N") == {"x": {**row, "n": 6}, "y": {**empty, "n": 6}}

    made.run('update N set { body: $b } where name = "y"', "$b: Blob", b=b"new")
    assert made.column("N", "body") == {"x": row["body"], "y": b"new"}
    made.run(
        "update N set { place: $v, words: $w } where body is not null and huge is null",
        "$v: Vector(2), $w: [String]",
        v=[1, 2],
        w=[],
    )
    found = made.rows("N")
    assert (found["y"]["place"], found["y"]["words"]) == ([1.0, 2.0], [])
    assert (found["x"]["place"], found["x"]["words"]) == (row["place"], row["words"])


@pytest.mark.xfail(
    raises=StorageError,
    reason="upstream: Lance cannot read rows whose lists of blobs are all empty, beside others",
)
def test_an_empty_list_of_blobs_survives(make: Make):
    rows = [{"name": "x", "parts": [b"a"]}, {"name": "y", "parts": []}]
    made = make("node N { name: String @key  n: I32?  parts: [Blob]? }", N=rows)
    made.run('update N set { n: 1 } where name = "y"')
    assert made.column("N", "parts") == {"x": [b"a"], "y": []}


def test_unsigned_numbers_and_instants_can_be_tested(make: Make):
    made = make(
        "node N { name: String @key  huge: U64?  at: DateTime?  n: I32? }",
        N=[{"name": "a", "huge": 2**64 - 1}, {"name": "b", "huge": 1, "at": "2024-01-01T00:00Z"}],
    )
    made.run("update N set { n: 1 } where huge > 2")
    made.run('update N set { n: 2 } where at >= datetime("2024-01-01T00:00:00Z")')
    assert made.column("N", "n") == {"a": 1, "b": 2}


@pytest.mark.parametrize("indexed", [False, True])
def test_more_rows_than_are_looked_up_at_once(tmp_path: Path, indexed: bool):  # noqa: FBT001
    many = KEYS_PER_LOOKUP_MAX + 2000
    rows = [{"name": f"n{number}", "n": number, "body": b"x"} for number in range(many)]
    schema = "node N { name: String @key  n: I32  body: Blob? }"
    made = mutated(tmp_path / "graph", schema, {"N": rows}, indexed=indexed)
    changed = made.counts("""
        insert N { name: "n0", n: 0 }
        update N set { n: -1 } where n < 11999
        update N set { n: -2 } where n = -1
    """)

    assert changed == {"N": (0, many - 1, 0)}
    found = made.rows("N")
    assert [id_ for id_, row in found.items() if row["n"] != -2] == ["n11999"]
    assert [id_ for id_, row in found.items() if row["body"] != b"x"] == ["n0"]
    assert made.counts("delete N where n = -2") == {"N": (0, 0, many - 1)}
    assert list(made.rows("N")) == ["n11999"]


def test_text_with_quotes_is_only_text(make: Make):
    nasty = ["it's", 'a"b', "a\\b", "x' OR '1'='1", "%", "é\u0301", "\U0001f600", "a\nb", "$p", ""]
    made = make("node N { name: String @key  n: I32? }", N=[{"name": each} for each in nasty])
    for number, name in enumerate(nasty):
        update = "update N set { n: $n } where name = $name and n is null"
        assert made.counts(update, "$name: String, $n: I32", name=name, n=number) == {
            "N": (0, 1, 0)
        }
    assert made.column("N", "n") == {name: number for number, name in enumerate(nasty)}
