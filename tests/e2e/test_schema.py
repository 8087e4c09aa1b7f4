"""`omnigraph schema plan|apply|diff|history` as a person meets them: whole stories."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

import omnigraph
from omnigraph.cli.exits import Exit
from tests.support.clocks import LaterClock
from tests.support.commands import Answer

SCHEMA: Final = """
node Person { name: String @key  age: String?  city: String }
node Draft { title: String @key }
edge Knows: Person -> Person
"""
PEOPLE_COUNT: Final = 25

Run = Callable[..., Answer]
Schema = Callable[..., Answer]


@pytest.fixture
def store(tmp_path: Path) -> str:
    """25 people, of whom only the last has an age that is a number."""
    graph = omnigraph.init(tmp_path / "graph.omni", SCHEMA, actor="ada")
    people = [
        {"name": f"p{number:02}", "age": f"x{number}", "city": "Rome"}
        for number in range(PEOPLE_COUNT)
    ]
    people[-1]["age"] = "24"
    graph.load({"Person": people, "Knows": [{"from": "p00", "to": "p01"}]}, index=False)
    return graph.uri


@pytest.fixture
def schema(here: Run, store: str, tmp_path: Path) -> Schema:
    """Runs `schema plan` or `schema apply` with a text, on the graph of 25 people."""

    def run(word: str, text: str, *arguments: str) -> Answer:
        (tmp_path / "new.pg").write_text(text)
        path = str(tmp_path / "new.pg")
        return here("schema", word, "--schema", path, "--store", store, *arguments)

    return run


def test_a_refused_plan_becomes_a_commit_once_its_values_are_given(
    here: Run, schema: Schema, store: str
) -> None:
    text = SCHEMA.replace("Person", "Human").replace(
        "node Human {", 'node Human @rename_from("Person") { home: String '
    )
    refused = schema("plan", text)
    assert refused.code == Exit.INVALID
    assert refused.out.splitlines() == [
        "rename type Human: Person -> Human  [metadata]",
        "add property Human.home: String  [refused, 25 rows]",
        "  OG-MF-01: Human.home is required, and the 25 rows of Human have no value; give it a "
        "@default, or pass --fill Human.home=<expression>, or make it String?",
    ]
    assert schema("apply", text).code == Exit.INVALID

    fill = ("--fill", "Human.home=concat(upper(city), ' ', name)")
    assert schema("plan", text, *fill).out.splitlines()[1] == (
        "add property Human.home: String  [rewritten, 25 rows, under a second]"
    )
    applied = schema("apply", text, *fill, "-m", "homes")
    assert applied.code == Exit.DONE
    head = here("changes", "baseline", "--store", store).out.strip()
    assert applied.err.splitlines() == [f"commit {head} on branch main"]

    asked = 'query q() { match { $p: Human { name: "p07" } } return { $p.home } }'
    answer = here("query", "-e", asked, "--store", store, "--json")
    assert answer.json == [{"p.home": "ROME p07"}]
    lines = here("schema", "history", "--store", store).out.splitlines()
    assert lines[0].split()[0] == head
    assert lines[0].endswith("  homes")
    assert lines[1:] == [
        "  rename type Human: Person -> Human",
        "  add property Human.home: String",
    ]
    assert here("log", "-n", "1", "--store", store).out.rstrip().endswith("  homes")
    assert "filled Human.home with" in here("commit", "show", head, "--store", store).out
    again = schema("apply", text)
    assert again.code == Exit.DONE
    assert "branch main has this schema already" in again.err


def test_rows_that_do_not_convert_are_listed_as_those_of_a_load(schema: Schema) -> None:
    text = SCHEMA.replace("age: String?", "age: I32?")
    assert "pass --convert Person.age" in schema("plan", text).out
    refused = schema("apply", text, "--convert", "Person.age")
    assert refused.code == Exit.INVALID
    lines = refused.err.splitlines()
    assert lines[0] == "error[integrity]: the data breaks the schema: 24 violations"
    assert [line.split() for line in lines[1:3]] == [
        ["rule", "type", "property", "violations"],
        ["type", "Person", "age", "24"],
    ]
    assert lines[4].split() == ["rule", "what"], "rows of the graph are in no file"
    offenders = [line for line in lines if "is not of type I32" in line]
    assert len(offenders) == 20
    shown = " ".join(offenders[0].split())
    assert shown == "type Person 'p00': age: x0 is not of type I32 (write a whole number)"
    assert lines[-2:] == [
        "and 4 more like these",
        "  hint: fix the rows, or the new schema, and apply it again; nothing was changed",
    ]
    facts = json.loads(schema("apply", text, "--convert", "Person.age", "--json").err)
    assert facts["code"] == "integrity"
    assert facts["details"]["total"] == 24


@pytest.mark.parametrize(
    ("type_name", "expression", "said"),
    [
        ("Person", "upper(city", "the fill of Person.home is not an expression: upper(city"),
        ("Person", "random()", "the fill of Person.home may not use RANDOM()"),
        ("Person", "upper(ctiy)", "did you mean city?"),
        ("Draft", "upper(title", "the fill of Draft.home is not an expression: upper(title"),
    ],
)
def test_a_wrong_fill_is_refused_by_the_plan_already(
    schema: Schema, type_name: str, expression: str, said: str
) -> None:
    text = SCHEMA.replace(f"node {type_name} {{", f"node {type_name} {{ home: String ")
    planned = schema("plan", text, "--fill", f"{type_name}.home={expression}")
    assert planned.code == Exit.INVALID
    assert said in planned.err
    assert planned.out == ""


def test_programs_get_the_steps_as_data(here: Run, schema: Schema, store: str) -> None:
    text = SCHEMA.replace("city: String", "city: String @unique  points: U32 @default(0)")
    planned = schema("plan", text, "--json").json
    assert planned["allowed"] is True
    assert [(step["step"], step["cost"], step["rows"]) for step in planned["steps"]] == [
        ("add_property", "rewritten", 25),
        ("add_unique", "validated", 25),
    ]
    wrong = schema("plan", text, "--fill", "Person.pionts=1", "--json")
    assert wrong.code == Exit.INVALID
    [finding] = wrong.json["findings"]
    assert (finding["code"], finding["hint"]) == ("OG-RQ-01", "did you mean points?")

    text = text.replace(" @unique", "")
    applied = schema("apply", text, "--json").json
    assert (applied["engine"], applied["warnings"]) == ("local", [])
    [revision] = here("schema", "history", "--store", store, "--json").json
    assert revision["commit_id"] == applied["commit_id"]
    assert [step["property"] for step in revision["steps"]] == ["points"]
    first = omnigraph.open(store, read_only=True).commits.list()[-1].commit_id
    steps = here("schema", "diff", first, "main", "--store", store, "--json").json
    assert [step["after"] for step in steps] == ["points: U32 @default(0)"]


def test_a_branch_has_its_own_schema(here: Run, schema: Schema, store: str) -> None:
    here("branch", "create", "trial", "--store", store)
    text = SCHEMA.replace("city: String", 'town: String @rename_from("city")')
    assert schema("apply", text, "--branch", "trial").code == Exit.DONE
    told = here("schema", "diff", "main", "trial", "--store", store)
    assert told.out.splitlines() == ["rename property Person.town: city -> town"]
    nothing = here("schema", "history", "--store", store)
    assert nothing.err.splitlines() == ["the schema is the one that the graph was made with"]
    former = "query q() { match { $p: Person } return { $p.city } }"
    assert here("query", "-e", former, "--store", store).code == Exit.DONE
    refused = here("query", "-e", former, "--branch", "trial", "--store", store)
    assert refused.code == Exit.INVALID
    assert "Person has no property city" in refused.err


def test_two_files_are_compared_without_a_graph(here: Run, tmp_path: Path) -> None:
    (tmp_path / "a.pg").write_text("node A { n: I32 }")
    (tmp_path / "b.pg").write_text('node A { m: I64 @rename_from("n") }')
    files = [str(tmp_path / name) for name in ("a.pg", "b.pg")]
    assert here("schema", "diff", *files).out.splitlines() == [
        "rename property A.m: n -> m",
        "change type A.m: I32 -> I64",
    ]
    missing = here("schema", "diff", files[0], str(tmp_path / "c.pg"))
    assert missing.code == Exit.NOT_FOUND


DROPPED: Final = """
node Person { name: String @key  city: String }
edge Knows: Person -> Person
"""


def test_a_purge_is_refused_shown_and_begun(here: Run, schema: Schema, store: str) -> None:
    graph = omnigraph.open(store)
    graph.tags.create("release")
    refused = schema("apply", DROPPED, "--purge", "--keep-commits", "1")
    assert refused.code == Exit.FAILED
    assert "tag release names a commit that has it" in refused.err
    assert "delete the tag" in refused.err
    assert len(graph.schema.history()) == 0
    graph.tags.delete("release")

    preview = schema("apply", DROPPED, "--purge", "--keep-commits", "1")
    assert preview.code == Exit.DONE
    assert "would be purged: Person.age" in preview.err
    assert "25 rows of Person on branch main would be rewritten without it" in preview.err
    assert graph.commits.list()[0].commit_id in preview.err
    assert len(graph.schema.history()) == 0

    begun = schema("apply", DROPPED, "--purge", "--keep-commits", "1", "--confirm")
    assert begun.code == Exit.CONFLICT
    assert "not purged yet: Person.age" in begun.err
    assert "it waits until " in begun.err
    again = here("schema", "purge", "--store", store, "--keep-commits", "1", "--json")
    assert again.json["purge"]["dropped"] == ["Person.age"]
    assert again.json["purge"]["waits"][0]["reason"] == "grace"

    alone = schema("apply", DROPPED, "--confirm")
    assert alone.code == Exit.USAGE
    assert "it belongs to a purge" in alone.err


def test_a_purge_of_what_was_dropped_long_ago_is_done_at_once(here: Run, tmp_path: Path) -> None:
    uri = str(tmp_path / "old.omni")
    yesterday = LaterClock(-86_400.0)
    graph = omnigraph.init(uri, SCHEMA, clock=yesterday)
    graph.load({"Person": [{"name": "ada", "age": "secret", "city": "Rome"}]}, index=False)
    graph.schema.apply(DROPPED)
    graph.schema.purge(keep_commits=1)
    arguments = ("schema", "purge", "--store", uri, "--keep-commits", "1")
    preview = here(*arguments)
    assert preview.code == Exit.DONE
    assert "nothing was removed: give --confirm" in preview.err
    done = here(*arguments, "--confirm")
    assert done.code == Exit.DONE
    assert "purged: Person.age" in done.err.splitlines()
    again = here(*arguments, "--confirm", "--json")
    assert (again.code, again.json["is_done"], again.json["held"]) == (Exit.DONE, True, [])
    assert here(*arguments).err.splitlines() == ["nothing is left to purge"]
