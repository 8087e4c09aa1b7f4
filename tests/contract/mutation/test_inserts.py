"""Inserts: whole rows by key, new rows without one, values in their types."""

import struct
from datetime import UTC, date, datetime, timedelta, timezone

import pytest

from omnigraph.clock import is_ulid
from omnigraph.errors import InvalidInputError, InvalidParameterError
from omnigraph.lang.diagnostics import DiagnosticsError
from tests.contract.mutation.builders import Mutated
from tests.contract.mutation.conftest import Make


def test_a_new_key_is_a_new_row(people: Mutated):
    before = people.head()
    result = people.run('insert Person { name: "eve", age: 9 }')

    assert people.rows("Person")["eve"] == {"name": "eve", "age": 9, "mail": None}
    assert (result.inserted, result.updated, result.deleted) == (1, 0, 0)
    assert result.commit_id == people.head() != before
    assert people.row_counts()["Person"] == 5


def test_an_existing_key_is_the_whole_row_replaced(people: Mutated):
    assert people.counts('insert Person { name: "ada", age: 37 }') == {"Person": (0, 1, 0)}
    assert people.rows("Person")["ada"] == {"name": "ada", "age": 37, "mail": None}
    assert len(people.rows("Person")) == 4


def test_the_last_insert_of_a_key_wins_and_counts_once(people: Mutated):
    inserted = people.counts("""
        insert Person { name: "eve", age: 1, mail: "e@x" }
        insert Person { name: "fay", age: 2 }
        insert Person { name: "eve", age: 3 }
        insert Person { name: "ada", age: 4 }
        insert Person { name: "ada", age: 5 }
    """)

    assert inserted == {"Person": (2, 1, 0)}
    found = people.rows("Person")
    assert found["eve"] == {"name": "eve", "age": 3, "mail": None}
    assert (found["fay"]["age"], found["ada"]["age"]) == (2, 5)


def test_rows_without_a_key_are_always_new(people: Mutated):
    twice = 'insert Note { text: "x" } insert Note { text: "x" }'
    assert people.counts(twice) == {"Note": (2, 0, 0)}
    assert people.counts(twice) == {"Note": (2, 0, 0)}
    found = people.rows("Note")
    assert len(found) == 4
    assert all(map(is_ulid, found))


def test_an_id_that_is_given_is_taken_and_replaced(people: Mutated):
    assert people.counts('insert Note { id: "n1", text: "x" }') == {"Note": (1, 0, 0)}
    assert people.counts('insert Note { id: "n1" }') == {"Note": (0, 1, 0)}
    again = 'insert Note { text: "new" } insert Note { id: "n1", text: "z" }'
    assert people.counts(again) == {"Note": (1, 1, 0)}
    assert people.column("Note", "text")["n1"] == "z"
    assert len(people.rows("Note")) == 2


def test_a_node_and_an_edge_to_it_land_in_one_commit(people: Mutated):
    before = len(people.graph.commits.list())
    inserted = people.counts("""
        insert Person { name: "eve" }
        insert Knows { from: "eve", to: "ada", since: date("2024-02-29"), weight: 2 }
    """)

    assert inserted == {"Person": (1, 0, 0), "Knows": (1, 0, 0)}
    edges = [row for row in people.rows("Knows").values() if row["src"] == "eve"]
    since = date(2024, 2, 29)
    assert edges == [{"src": "eve", "dst": "ada", "since": since, "weight": 2.0}]
    assert len(people.graph.commits.list()) == before + 1


def test_an_edge_with_a_key_does_not_double(people: Mutated):
    both = 'insert Likes { from: "Oslo", to: "ada" } insert Likes { from: "Rome", to: "ada" }'
    assert people.counts(both) == {"Likes": (1, 0, 0)}
    assert people.rows("Likes")['["Rome","ada"]'] == {"src": "Rome", "dst": "ada"}
    assert len(people.rows("Likes")) == 3


def test_parallel_edges_without_a_key_stand_side_by_side(people: Mutated):
    edge = 'insert Knows { from: "bob", to: "cy" }'
    assert people.counts(edge + edge) == {"Knows": (2, 0, 0)}
    assert sum(row["src"] == "bob" for row in people.rows("Knows").values()) == 3


def test_defaults_fill_in_what_is_left_out(make: Make):
    made = make('node N { name: String @key  kind: enum(a, b) @default("b")  n: I64? }')
    made.run('insert N { name: "x" } insert N { name: "y", kind: "a", n: 7 }')
    assert made.rows("N") == {
        "x": {"name": "x", "kind": "b", "n": None},
        "y": {"name": "y", "kind": "a", "n": 7},
    }


def test_values_of_every_type_arrive_as_they_were_given(make: Make):
    made = make("""node N {
      name: String @key
      flag: Bool  small: I32  big: I64  count: U32  huge: U64  short: F32  wide: F64
      day: Date  at: DateTime  kind: enum(a, b)  body: Blob  place: Vector(2)
      words: [String]  days: [Date]  parts: [Blob]  numbers: [F32]
    }""")
    declared = (
        "$name: String, $flag: Bool, $small: I32, $big: I64, $count: U32, $huge: U64, $short: F32,"
        "$wide: F64, $day: Date, $at: DateTime, $kind: String, $body: Blob, $place: Vector(2),"
        "$words: [String], $days: [Date], $parts: [Blob], $numbers: [F32]"
    )
    row = {
        "flag": True,
        "small": -(2**31),
        "big": 2**63 - 1,
        "count": 2**32 - 1,
        "huge": 2**64 - 1,
        "short": 0.1,
        "wide": 0.1,
        "day": date(1, 1, 1),
        "at": datetime(2024, 2, 29, 1, 2, 3, 456789, timezone(timedelta(hours=2))),
        "kind": "b",
        "body": bytes(range(256)),
        "place": [0.1, -1.0],
        "words": ["", "é", "it's"],
        "days": [date(2024, 1, 1)],
        "parts": [b"", b"\x00"],
        "numbers": [],
    }
    names = ", ".join(f"{name}: ${name}" for name in ["name", *row])
    made.run(f"insert N {{ {names} }}", declared, name="n", **row)

    (f32,) = struct.unpack("f", struct.pack("f", 0.1))
    expected = {**row, "name": "n", "short": f32, "place": [f32, -1.0]}
    expected["at"] = datetime(2024, 2, 28, 23, 2, 3, 456789, UTC)
    assert made.rows("N") == {"n": expected}


@pytest.mark.parametrize(
    ("type_", "value", "id_"),
    [
        ("String", 'it\'s "q" \\ é \U0001f600\n', 'it\'s "q" \\ é \U0001f600\n'),
        ("String", "", ""),
        ("Bool", False, "false"),
        ("I32", -7, "-7"),
        ("I64", 2**63 - 1, str(2**63 - 1)),
        ("U32", 2**32 - 1, str(2**32 - 1)),
        ("U64", 2**64 - 1, str(2**64 - 1)),
        ("F32", 0.1, "0.1"),
        ("F64", -0.0, "0"),
        ("F64", 1e300, "1e+300"),
        ("Date", date(2024, 2, 29), "2024-02-29"),
        ("DateTime", datetime(2024, 1, 1, 12, tzinfo=UTC), "2024-01-01T12:00:00Z"),
    ],
)
def test_a_key_of_any_type_finds_its_row_again(make: Make, type_: str, value: object, id_: str):
    made = make(f"node N {{ k: {type_} @key  n: I32? }}")
    declared = f"$k: {type_}, $n: I32"
    assert made.counts("insert N { k: $k, n: $n }", declared, k=value, n=1) == {"N": (1, 0, 0)}
    assert made.counts("insert N { k: $k, n: $n }", declared, k=value, n=2) == {"N": (0, 1, 0)}
    assert made.column("N", "n") == {id_: 2}
    update = "update N set { n: $n } where k = $k"
    assert made.counts(update, declared, k=value, n=3) == {"N": (0, 1, 0)}
    assert made.column("N", "n") == {id_: 3}
    assert made.counts("delete N where k = $k", f"$k: {type_}", k=value) == {"N": (0, 0, 1)}
    assert made.rows("N") == {}


def test_a_key_of_an_enum_and_a_number_is_spelt_as_an_array(make: Make):
    made = make("node N { kind: enum(a, b)  n: I64  text: String?  @key(kind, n) }")
    insert = 'insert N { kind: "a", n: 1 } insert N { kind: "a", n: 2 }'
    assert made.counts(insert) == {"N": (2, 0, 0)}
    update = 'update N set { text: "x" } where n = 2 and kind = "a"'
    assert made.counts(update) == {"N": (0, 1, 0)}
    assert made.column("N", "text") == {'["a","1"]': None, '["a","2"]': "x"}


def test_now_is_one_instant_for_the_whole_query(make: Make):
    made = make("node N { name: String @key  at: DateTime  then: DateTime? }")
    made.run('insert N { name: "x", at: now(), then: now() } insert N { name: "y", at: now() }')
    made.run('insert N { name: "z", at: now() } update N set { then: now() } where at is not null')
    x, y, z = (made.rows("N")[name] for name in "xyz")

    assert x["at"] == y["at"] < z["at"] == z["then"] == x["then"]
    assert abs(datetime.now(UTC) - x["at"]) < timedelta(minutes=5)  # noqa: TID251


def test_a_long_text_is_written_whole(make: Make):
    made = make("node N { name: String @key  text: String? }")
    text = "é" * (10 << 20)
    made.run("insert N { name: $n, text: $t }", "$n: String, $t: String", n="n", t=text)
    assert made.rows("N")["n"]["text"] == text


def test_a_query_that_reads_is_refused(people: Mutated):
    with pytest.raises(InvalidInputError, match="changes nothing"):
        people.run("match { $p: Person } return { $p.name }")


def test_what_is_not_asked_rightly_changes_nothing(people: Mutated):
    before = people.head()
    with pytest.raises(InvalidParameterError):
        people.run("insert Person { name: $n }", "$n: String")
    with pytest.raises(DiagnosticsError):
        people.run('insert Person { nme: "x" }')
    with pytest.raises(DiagnosticsError):
        people.run('insert Person { name: "x" } delete Person where name = "x"')
    assert people.head() == before
