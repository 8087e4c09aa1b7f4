"""`omnigraph changes` as a person meets it."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.cli.exits import Exit
from tests.support.commands import Answer

SCHEMA: Final = "node Person { name: String @key  age: I32? }  edge Knows: Person -> Person"
ADD: Final = "query add($name: String) { insert Person { name: $name } }"

Run = Callable[..., Answer]


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    graph = omnigraph.init(tmp_path / "graph.omni", SCHEMA, actor="ada")
    for name in ("Ada", "Bob"):
        graph.mutate(ADD, {"name": name})
    return graph


@pytest.fixture
def changes(here: Run, graph: Graph) -> Run:
    return lambda *arguments: here("changes", *arguments, "--store", graph.uri)


def test_a_feed_is_followed_by_its_cursor_without_gap_or_repeat(changes: Run, graph: Graph) -> None:
    commits = [each.commit_id for each in reversed(graph.commits.list())]
    first = changes("poll", "--limit", "2", "--json").json
    assert [each["commit"]["commit_id"] for each in first["commits"]] == commits[:2]
    assert [each["changes"] for each in first["commits"]] == [
        {},
        {"Person": {"inserted": 1, "updated": 0, "deleted": 0}},
    ]
    assert (first["is_newest"], first["cursor"]) == (False, commits[1])
    rest = changes("poll", "--after", first["cursor"], "--rows", "--json").json
    assert [each["id"] for each in rest["commits"][0]["rows"]] == ["Bob"]
    assert (rest["is_newest"], len(rest["commits"])) == (True, 1)
    end = changes("poll", "--after", rest["cursor"], "--json").json
    assert end == {"commits": [], "cursor": commits[-1], "is_newest": True}


def test_a_baseline_is_the_cursor_of_now(changes: Run, graph: Graph) -> None:
    cursor = changes("baseline").out.strip()
    assert changes("baseline", "--json").json == {"branch": "main", "cursor": cursor}
    assert cursor == graph.snapshot().head.commit_id
    graph.mutate('query q() { update Person set { age: 7 } where name = "Ada" }')
    told = changes("poll", "--after", cursor)
    assert told.out.splitlines()[1].endswith("mutation   ada    Person ~1")
    assert told.err == f"that is all for now; go on with --after {changes('baseline').out}"
    rows = changes("poll", "--after", cursor, "--rows").out.splitlines()
    assert rows[0].split() == ["commit", "type", "op", "id", "before", "after"]
    assert rows[1].endswith('Person  update  Ada  {"age": null}  {"age": 7}')


def test_a_branch_has_a_feed_of_its_own_and_changes_can_be_chosen(
    changes: Run, graph: Graph
) -> None:
    cursor = graph.baseline()
    graph.branches.create("draft").mutate(ADD, {"name": "Cy"})
    place = ["--after", cursor, "--branch", "draft", "--json"]
    assert len(changes("poll", *place).json["commits"]) == 1
    assert changes("poll", *place, "--op", "delete").json["commits"][0]["changes"] == {}
    assert changes("poll", *place, "--kind", "edge").json["commits"][0]["changes"] == {}
    assert changes("poll", *place, "--type", "Person").json["commits"][0]["changes"]
    assert changes("poll", "--after", cursor, "--json").json["commits"] == []


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["poll", "--after", "0" * 26], Exit.NOT_FOUND, "take a new baseline"),
        (["poll", "--after", "nope"], Exit.NOT_FOUND, "nope"),
        (["poll", "--limit", "0"], Exit.USAGE, "--limit"),
        (["poll", "--branch", "mian"], Exit.NOT_FOUND, "did you mean main?"),
        (["poll", "--type", "Persn"], Exit.NOT_FOUND, "did you mean Person?"),
        (["poll", "--op", "upsert"], Exit.USAGE, "upsert"),
        (["baseline", "--branch", "mian"], Exit.NOT_FOUND, "did you mean main?"),
    ],
)
def test_a_mistake_gets_one_clear_message_and_its_exit_code(
    changes: Run, arguments: list[str], code: Exit, said: str
) -> None:
    refused = changes(*arguments)
    assert (refused.code, refused.out) == (code, ""), refused.err
    assert said in refused.said, refused.err
