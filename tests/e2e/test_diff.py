"""`omnigraph diff` and `omnigraph commit changes` as a person meets them."""

import csv
import io
import json
from collections.abc import Callable
from typing import Final

import pyarrow as pa
import pytest

import omnigraph
from omnigraph.cli.exits import Exit
from tests.support.commands import Answer

SCHEMA: Final = """
node Person { name: String @key  born: Date?  weight: F32? }
node City { name: String @key }
edge Knows: Person -> Person
"""

Run = Callable[..., Answer]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    """On the draft Ada is changed, Bob goes with what he knows, and Cy comes."""
    graph = omnigraph.init(tmp_path_factory.mktemp("graph") / "graph.omni", SCHEMA)
    people = [{"name": "Ada"}, {"name": "Bob"}]
    graph.load({"Person": people, "Knows": [{"from": "Ada", "to": "Bob"}]}, index=False)
    draft = graph.branches.create("draft")
    draft.mutate('query q() { update Person set { born: date("1815-12-10") } where name = "Ada" }')
    draft.mutate('query q() { delete Person where name = "Bob" }')
    draft.mutate('query q() { insert Person { name: "Cy"  weight: 0.1 } }')
    return graph.uri


@pytest.fixture
def diff(here: Run, store: str) -> Run:
    return lambda *arguments: here("diff", *arguments, "--store", store)


def heads(store: str) -> tuple[str, str]:
    graph = omnigraph.open(store, read_only=True)
    first, second = (graph.snapshot(branch=each).head.commit_id for each in ("main", "draft"))
    return first, second


def test_counts_by_type_are_shown_by_default(diff: Run, store: str) -> None:
    told = diff("main", "draft")
    assert told.code == Exit.DONE
    assert [each.split() for each in told.out.splitlines()] == [
        ["type", "inserted", "updated", "deleted"],
        ["Person", "1", "1", "1"],
        ["Knows", "0", "0", "1"],
    ]
    before, after = heads(store)
    first, second = told.err.splitlines()
    assert first == f"from commit {before} to commit {after}"
    assert second.startswith("engine: local (about ")
    facts = diff("main", "draft", "--json").json
    assert (facts["before"], facts["after"], facts["engine"]) == (before, after, "local")
    assert facts["changes"]["Person"] == {"inserted": 1, "updated": 1, "deleted": 1}


def test_the_other_way_around_is_the_opposite(diff: Run) -> None:
    facts = diff("draft", "main", "--json").json["changes"]
    assert facts["Knows"] == {"inserted": 1, "updated": 0, "deleted": 0}


def test_a_point_and_itself_do_not_differ(diff: Run, store: str) -> None:
    assert diff("main", heads(store)[0], "--json").json["changes"] == {}
    for options in ((), ("--rows",)):
        told = diff("main", "main", *options)
        assert (told.out, told.err.splitlines()[-1]) == ("", "nothing differs")
    assert diff("main", "main", "--format", "csv").out.split() == ["type,inserted,updated,deleted"]
    assert diff("main", "main", "--rows", "--json").json == []


def test_rows_have_what_was_and_what_is(diff: Run) -> None:
    rows = diff("main", "draft", "--rows", "--json").json
    people = [each for each in rows if each["type"] == "Person"]
    assert [(each["op"], each["id"]) for each in people] == [
        *(("insert", "Cy"), ("update", "Ada"), ("delete", "Bob"))
    ]
    cy, ada, bob = people
    assert (cy["before"], cy["after"]["weight"]) == (None, 0.1)
    assert (ada["before"]["born"], ada["after"]["born"]) == (None, "1815-12-10")
    assert (bob["before"]["name"], bob["after"]) == ("Bob", None)
    assert {each["kind"] for each in rows} == {"node", "edge"}


def test_rows_are_a_table_of_what_differs(diff: Run) -> None:
    header, *rows = diff("main", "draft", "--rows", "--op", "update").out.splitlines()
    assert header.split() == ["type", "op", "id", "before", "after"]
    assert rows == ['Person  update  Ada  {"born": null}  {"born": "1815-12-10"}']


def test_rows_come_in_every_format(diff: Run) -> None:
    asked = ["main", "draft", "--rows", "--format"]
    lines = [json.loads(each) for each in diff(*asked, "jsonl").out.splitlines()]
    assert lines == diff(*asked, "json").json
    table = list(csv.DictReader(io.StringIO(diff(*asked, "csv").out)))
    assert [(each["type"], each["op"], each["id"]) for each in table] == [
        (each["type"], each["op"], each["id"]) for each in lines
    ]
    assert json.loads(table[0]["after"]) == lines[0]["after"]
    assert pa.ipc.open_stream(diff(*asked, "arrow").data).read_all().column("id").to_pylist() == [
        each["id"] for each in lines
    ]


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        (["--kind", "edge"], {"Knows": [0, 0, 1]}),
        (["--type", "Person"], {"Person": [1, 1, 1]}),
        (["--op", "insert"], {"Person": [1, 0, 0]}),
        (["--op", "delete", "--op", "update"], {"Person": [0, 1, 1], "Knows": [0, 0, 1]}),
        (["--type", "City"], {}),
        (["--kind", "node", "--type", "Knows"], {}),
    ],
)
def test_changes_can_be_chosen(diff: Run, arguments: list[str], found: object) -> None:
    told = diff("main", "draft", *arguments, "--json").json["changes"]
    assert {name: list(each.values()) for name, each in told.items()} == found


def test_one_commit_shows_what_it_changed(here: Run, store: str) -> None:
    _, head = heads(store)
    told = here("commit", "changes", head, "--store", store, "--json").json
    assert told["changes"] == {"Person": {"inserted": 1, "updated": 0, "deleted": 0}}
    rows = here("commit", "changes", head, "--store", store, "--rows", "--format", "jsonl")
    assert json.loads(rows.out)["id"] == "Cy"
    first = omnigraph.open(store, read_only=True).commits.list()[-1].commit_id
    assert here("commit", "changes", first, "--store", store, "--json").json["changes"] == {}


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["diff", "main", "darft"], Exit.NOT_FOUND, "did you mean draft?"),
        (["diff", "mian", "draft"], Exit.NOT_FOUND, "did you mean main?"),
        (["diff", "main", "0" * 26], Exit.NOT_FOUND, "0" * 26),
        (["diff", "main", "a b"], Exit.INVALID, "a b"),
        (["diff", "main"], Exit.USAGE, "AFTER"),
        (["diff", "main", "draft", "--type", "Persn"], Exit.NOT_FOUND, "did you mean Person?"),
        (["diff", "main", "draft", "--kind", "row"], Exit.USAGE, "row"),
        (["diff", "main", "draft", "--op", "upsert"], Exit.USAGE, "upsert"),
        (
            ["diff", "main", "draft", "--json", "--format", "csv"],
            Exit.USAGE,
            "--json cannot be used with",
        ),
        (["commit", "changes", "0" * 26], Exit.NOT_FOUND, "0" * 26),
        (["commit", "changes", "nope"], Exit.NOT_FOUND, "nope"),
    ],
)
def test_a_mistake_gets_one_clear_message_and_its_exit_code(
    here: Run, store: str, arguments: list[str], code: Exit, said: str
) -> None:
    refused = here(*arguments, "--store", store)
    assert (refused.code, refused.out) == (code, ""), refused.err
    assert said in refused.said, refused.err
