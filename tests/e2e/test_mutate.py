"""`omnigraph mutate` and `omnigraph index` as a person meets them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

import omnigraph
from omnigraph.cli.exits import Exit
from tests.support.commands import Answer
from tests.support.commands import omnigraph as command

SCHEMA: Final = """
node Person {
  name: String @key
  email: String? @unique
  born: Date?
  age: I32?
  mood: enum(sunny, cloudy)?
  @range(age, 0..150)
  @check(email, "^[^@ ]+@[^@ ]+$")
}
node City { name: String @key }
node Note { text: String }
edge LivesIn: Person -> City @card(0..1)
edge Knows: Person -> Person { since: Date? }
"""
FURNISH: Final = """
query furnish() {
  insert Person { name: "Ada"  email: "ada@example.org"  age: 36 }
  insert Person { name: "Bob"  age: 20 }
  insert City { name: "Oslo" }
  insert City { name: "Rome" }
  insert LivesIn { from: "Ada"  to: "Oslo" }
  insert Knows { from: "Ada"  to: "Bob" }
}
"""
PEOPLE: Final = """
query people() {
  match { $p: Person }
  return { $p.name as name, $p.age as age, $p.mood as mood }
  order { name }
}
"""
ADD: Final = "query add($name: String, $age: I32?) { insert Person { name: $name  age: $age } }"

Run = Callable[..., Answer]


def made(place: Path) -> str:
    graph = omnigraph.init(place / "graph.omni", SCHEMA, actor="ada")
    graph.mutate(FURNISH)
    return graph.uri


@pytest.fixture
def store(tmp_path: Path) -> str:
    return made(tmp_path)


@pytest.fixture(scope="module")
def untouched(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A graph for requests that must leave it as it is."""
    return made(tmp_path_factory.mktemp("untouched"))


def people(store: str) -> list[dict[str, object]]:
    return omnigraph.open(store, read_only=True).query(PEOPLE).rows()


def test_rows_that_are_inserted_are_there_and_are_counted(here: Run, store: str) -> None:
    told = here("mutate", "--store", store, "-e", ADD, "-p", "name=Cy", "-p", "age=7")
    assert told.code == Exit.DONE
    assert told.out.split() == ["type", "inserted", "updated", "deleted", "Person", "1", "0", "0"]
    head = omnigraph.open(store, read_only=True).snapshot().head.commit_id
    assert told.err == f"commit {head} on branch main\n"
    assert people(store)[-1] == {"name": "Cy", "age": 7, "mood": None}


def test_a_key_that_exists_is_written_again_and_counts_as_updated(here: Run, store: str) -> None:
    told = here("mutate", "--store", store, "-e", ADD, "-p", "name=Bob", "--json").json
    assert told["changes"] == {"Person": {"inserted": 0, "updated": 1, "deleted": 0}}
    assert people(store)[1] == {"name": "Bob", "age": None, "mood": None}


def test_an_update_changes_what_matches_and_nothing_else(here: Run, store: str) -> None:
    text = 'query q($age: I32) { update Person set { mood: "sunny" } where age > $age }'
    told = here("mutate", "--store", store, "-e", text, "--params", '{"age": 30}', "--json").json
    assert told["changes"]["Person"]["updated"] == 1
    assert [each["mood"] for each in people(store)] == ["sunny", None]


def test_a_node_that_goes_takes_its_edges_along(here: Run, store: str) -> None:
    text = 'query q() { delete Person where name = "Ada" }'
    told = here("mutate", "--store", store, "-e", text, "--json").json
    gone = {name: each["deleted"] for name, each in told["changes"].items()}
    assert gone == {"Person": 1, "LivesIn": 1, "Knows": 1}
    assert [each["name"] for each in people(store)] == ["Bob"]


def test_what_matches_nothing_says_so_and_makes_no_commit(here: Run, untouched: str) -> None:
    before = omnigraph.open(untouched, read_only=True).commits.list()
    text = 'query q() { delete Person where name = "Zed" }'
    told = here("mutate", "--store", untouched, "-e", text)
    assert (told.code, told.out) == (Exit.DONE, "")
    assert "nothing matched" in told.err
    told = here("mutate", "--store", untouched, "-e", text, "--json")
    nothing = {"embedded": 0, "reused": 0, "waiting": 0}
    expected: dict[str, object] = {"commit_id": None, "branch": "main", "changes": {}}
    assert told.json == {**expected, "unchanged": {}, "embedding": nothing, "warnings": []}
    assert omnigraph.open(untouched, read_only=True).commits.list() == before


def test_history_keeps_who_and_why(here: Run, store: str) -> None:
    why = ["--actor", "grace", "-m", "a guest"]
    here("mutate", "--store", store, "-e", ADD, "-p", "name=Cy", *why)
    listed = here("commit", "list", "--store", store, "--filter", "actor=grace", "--json").json
    assert [(each["operation"], each["message"]) for each in listed] == [("mutation", "a guest")]


def test_a_mutation_is_read_from_a_file_and_by_its_name(
    here: Run, store: str, tmp_path: Path
) -> None:
    path = tmp_path / "both.gq"
    path.write_text(f"{PEOPLE}\n{ADD}")
    told = here("mutate", "add", "--store", store, "--query", str(path), "-p", "name=Cy", "--json")
    assert told.json["changes"]["Person"]["inserted"] == 1


def test_a_mutation_is_read_from_standard_input(store: str) -> None:
    told = command(
        "mutate", "--store", store, "-q", "-", "-p", "name=Cy", "--json", given=ADD.encode()
    )
    assert told.json["changes"]["Person"]["inserted"] == 1


def test_a_write_under_a_condition_happens_only_there(here: Run, store: str) -> None:
    first = omnigraph.open(store, read_only=True).snapshot().head.commit_id
    arguments = ["mutate", "--store", store, "-e", ADD, "--expect-head", first]
    assert here(*arguments, "-p", "name=Cy").code == Exit.DONE
    refused = here(*arguments, "-p", "name=Dee", "--json")
    assert refused.code == Exit.CONFLICT
    assert json.loads(refused.err)["code"] == "stale_head"
    assert [each["name"] for each in people(store)] == ["Ada", "Bob", "Cy"]


def test_indexes_are_built_once_and_then_extended(here: Run, store: str) -> None:
    told = here("index", "--store", store, "--json").json
    assert told["built"]["Person"] == ["id", "name", "email"]
    assert told["built"]["LivesIn"] == ["id", "src", "dst"]
    again = here("index", "--store", store, "--json").json
    assert (again["commit_id"], again["built"], again["engine"]) == (None, {}, "local")
    here("mutate", "--store", store, "-e", ADD, "-p", "name=Cy")
    assert set(here("index", "--store", store, "--json").json["built"]) == {"Person"}
    again = here("index", "--store", store)
    assert (again.code, again.out) == (Exit.DONE, "")
    assert "every index exists" in again.err


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ('insert Persn { name: "x" }', "did you mean Person?"),
        ('insert Person { name: "x"  agee: 1 }', "did you mean age?"),
        ('insert Person { name: "x"  age: "old" }', "age"),
        ('insert Person { name: "x"  age: 99999999999 }', "T12"),
        ("insert Person { age: 1 }", "T23"),
        ('insert Person { name: "x"  name: "y" }', "T18"),
        ('insert Person { name: "x"  mood: "wet" }', "T11"),
        ("insert Person { name: null }", "T15"),
        ('insert LivesIn { from: "Ada" }', "to"),
        ('update Person set { name: "x" } where age = 1', "T22"),
        ('update Person set { age: 1 } where nme = "x"', "did you mean name?"),
        ('update LivesIn set { from: "Bob" } where from = "Ada"', "T22"),
        ('delete Prson where name = "x"', "did you mean Person?"),
        ('insert City { name: "x" }  delete Person where name = "Bob"', "T24"),
    ],
)
def test_a_mutation_that_cannot_be_right_is_refused_with_its_place(
    here: Run, untouched: str, statement: str, said: str
) -> None:
    before = omnigraph.open(untouched, read_only=True).snapshot()
    refused = here("mutate", "--store", untouched, "-e", f"query q() {{ {statement} }}")
    assert (refused.code, refused.out) == (Exit.INVALID, ""), refused.err
    assert said in refused.said, refused.err
    assert " --> query:1:" in refused.err
    assert omnigraph.open(untouched, read_only=True).snapshot() == before


@pytest.mark.parametrize(
    ("statements", "rule", "said"),
    [
        ('insert Person { name: "x"  age: 151 }', "range", "151 is not in 0..150"),
        ('update Person set { age: -1 } where name = "Ada"', "range", "-1 is not in 0..150"),
        ('insert Person { name: "x"  email: "nowhere" }', "check", "nowhere"),
        ('insert Person { name: "x"  email: "ada@example.org" }', "unique", "ada@example.org"),
        ('insert LivesIn { from: "Ada"  to: "Rome" }', "cardinality", "at most 1"),
        ('insert LivesIn { from: "Nobody"  to: "Rome" }', "endpoint", "'Nobody'"),
        ('insert LivesIn { from: "Bob"  to: "Nowhere" }', "endpoint", "'Nowhere'"),
    ],
)
def test_a_change_that_breaks_a_rule_is_refused_and_nothing_of_it_is_done(
    here: Run, untouched: str, statements: str, rule: str, said: str
) -> None:
    before = omnigraph.open(untouched, read_only=True).snapshot()
    text = f'query q() {{ insert City {{ name: "New" }} {statements} }}'
    refused = here("mutate", "--store", untouched, "-e", text)
    assert (refused.code, refused.out) == (Exit.INVALID, "")
    assert refused.err.startswith("error[integrity]: the data breaks the schema: 1 violation")
    assert said in refused.err
    told = json.loads(here("mutate", "--store", untouched, "-e", text, "--json").err)
    assert [each["rule"] for each in told["details"]["violations"]] == [rule]
    assert told["details"]["violations"][0]["origin"] == "statement 2"
    assert omnigraph.open(untouched, read_only=True).snapshot() == before


def test_two_rows_of_one_mutation_may_not_share_what_is_unique(here: Run, untouched: str) -> None:
    text = """
        query q() {
          insert Person { name: "x"  email: "x@example.org" }
          insert Person { name: "y"  email: "x@example.org" }
        }
    """
    refused = here("mutate", "--store", untouched, "-e", text)
    assert refused.code == Exit.INVALID
    assert "unique Person(email)" in refused.err


GIVEN: Final = (
    'query q($mood: String, $age: I32) { insert Person { name: "x" mood: $mood age: $age } }'
)


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["-e", ADD], Exit.INVALID, "$name: String is missing"),
        (["-e", ADD, "--params", "{name: 1}"], Exit.INVALID, "--params is not JSON"),
        (["-e", ADD, "--params", '["x"]'], Exit.INVALID, "not an object"),
        (["-e", ADD, "--params", '{"name": 7}'], Exit.INVALID, "7 is not of type String"),
        (["-e", ADD, "--params", '{"name": null}'], Exit.INVALID, "name"),
        (["-e", ADD, "-p", "name=x", "-p", "age=old"], Exit.INVALID, "old is not of type I32"),
        (["-e", ADD, "-p", "name=x", "-p", "age=3000000000"], Exit.INVALID, "fit in I32"),
        (["-e", ADD, "-p", "nme=x"], Exit.INVALID, "did you mean name?"),
        (["-e", GIVEN, "-p", "mood=wet", "-p", "age=1"], Exit.INVALID, "wet"),
        (["-e", PEOPLE], Exit.INVALID, "changes nothing"),
        (["-e", f"{PEOPLE} {ADD}", "-p", "name=x"], Exit.INVALID, "name one of them"),
        (["nope", "-e", ADD, "-p", "name=x"], Exit.INVALID, "the text has no query"),
        (["-e", ""], Exit.INVALID, "no query"),
        (["-e", "query"], Exit.INVALID, "Q000"),
        ([], Exit.USAGE, "either by --query FILE or by -e"),
        (["-e", ADD, "-q", "x.gq"], Exit.USAGE, "either by --query FILE or by -e"),
        (["-q", "none.gq"], Exit.NOT_FOUND, "none.gq"),
        (["-e", ADD, "-p", "name=x", "--branch", "mian"], Exit.NOT_FOUND, "main?"),
        (["-e", ADD, "-p", "name=x", "--branch", "a b"], Exit.INVALID, "a b"),
        (["-e", ADD, "-p", "name=x", "--expect-head", "0" * 26], Exit.CONFLICT, "0" * 26),
        (["-e", ADD, "-p", "name=x", "--expect-head", "nope"], Exit.NOT_FOUND, "nope"),
        (["-e", ADD, "-p", "name=x", "--actor", "omnigraph:x"], Exit.INVALID, "reserved"),
        (["-e", ADD, "-p", "name=x", "--actor", ""], Exit.INVALID, "actor"),
        (["-e", ADD, "-p", "name=x", "-m", "m" * 70_000], Exit.INVALID, "message"),
    ],
)
def test_a_mistake_gets_one_clear_message_and_its_exit_code(
    here: Run, untouched: str, arguments: list[str], code: Exit, said: str
) -> None:
    before = omnigraph.open(untouched, read_only=True).snapshot()
    refused = here("mutate", "--store", untouched, *arguments)
    assert (refused.code, refused.out) == (code, ""), refused.err
    assert said in refused.said, refused.err
    assert omnigraph.open(untouched, read_only=True).snapshot() == before


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["index", "--branch", "mian"], Exit.NOT_FOUND, "main?"),
        (["index", "--store", "/nowhere/at/all"], Exit.NOT_FOUND, "/nowhere/at/all"),
        (["commit", "list", "--filter", "operation=inti"], Exit.INVALID, "did you mean init?"),
        (["commit", "list", "--filter", "operation=zzz"], Exit.INVALID, "one of init, mutation"),
        (["commit", "list", "--filter", "branch=a b"], Exit.INVALID, "a b"),
        (
            ["commit", "list", "--filter", "actor=a", "--filter", "actor=b"],
            Exit.INVALID,
            "given twice",
        ),
    ],
)
def test_other_mistakes_too(
    here: Run, untouched: str, arguments: list[str], code: Exit, said: str
) -> None:
    store = [] if "--store" in arguments else ["--store", untouched]
    refused = here(*arguments, *store)
    assert (refused.code, refused.out) == (code, "")
    assert said in refused.said


def test_the_errors_of_a_mutation_can_be_caught_by_their_plain_names(untouched: str) -> None:
    graph = omnigraph.open(untouched)
    with pytest.raises(omnigraph.IntegrityError) as broken:
        graph.mutate('query q() { insert Person { name: "x"  age: 151 } }')
    assert [each.rule for each in broken.value.violations] == ["range"]
    with pytest.raises(omnigraph.DiagnosticsError):
        graph.mutate("query q() { insert Persn { age: 1 } }")
    with pytest.raises(omnigraph.errors.ConflictError):
        graph.mutate(ADD, {"name": "x"}, expect_head="0" * 26)


def test_nothing_is_written_through_a_handle_that_only_reads(untouched: str) -> None:
    with pytest.raises(omnigraph.errors.NotAllowedError, match="read-only"):
        omnigraph.open(untouched, read_only=True).mutate(ADD, {"name": "x"})
