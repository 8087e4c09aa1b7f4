"""`omnigraph index` and `omnigraph index list` as an operator meets them."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

import omnigraph
from omnigraph.cli.exits import Exit
from tests.support.commands import Answer

SCHEMA: Final = """
node Person {
  name: String @key  age: I32? @index  mood: enum(good, bad)? @index
  bio: String? @index(positions=true)  face: Vector(2)? @index
}
"""

HEADER: Final = "type column kind options for rows covered segments bytes age state"

Run = Callable[..., Answer]


@pytest.fixture
def store(tmp_path: Path) -> str:
    graph = omnigraph.init(tmp_path / "graph.omni", SCHEMA)
    graph.load({"Person": [{"name": "ada", "age": 36}]}, index=False, engine="local")
    return graph.uri


def test_the_list_shows_every_index_before_and_after_it_is_built(here: Run, store: str) -> None:
    told = here("index", "list", "--store", store)
    lines = [line.split() for line in told.out.splitlines()]
    assert told.code == Exit.DONE
    assert " ".join(lines[0]) == HEADER
    assert lines[2] == ["Person", "name", "BTREE", "key", "1", "missing"]
    assert lines[-2:] == [
        ["Person", "bio", "INVERTED", "english,", "positions", "@index", "1", "missing"],
        ["Person", "face", "VECTOR", "cosine", "@index", "1", "scanned"],
    ]

    built = here("index", "--store", store)
    assert built.out.splitlines()[1].split() == ["Person", "id,", "name,", "age,", "mood,", "bio"]
    assert "not built, because a scan of so few vectors is as fast: Person (face)" in built.err
    _, name, age, mood, bio, face = here("index", "list", "--store", store, "--json").json
    assert (name["sources"], name["state"]) == (["key"], "complete")
    assert (age["type"], age["column"], age["kind"]) == ("Person", "age", "BTREE")
    assert (age["rows"], age["rows_covered"], age["segments"]) == (1, 1, 1)
    assert age["bytes"] > 0
    assert 0 <= age["age"] < 300
    assert age["built_at"].startswith("20")
    assert (mood["kind"], bio["state"], mood["options"]) == ("BTREE", "complete", None)
    assert bio["options"] == {"analyzer": "english", "positions": True}
    assert (face["state"], face["age"]) == ("scanned", None)


def test_a_commit_of_the_past_has_the_indexes_that_it_had(here: Run, store: str) -> None:
    before = omnigraph.open(store, read_only=True).snapshot().head.commit_id
    here("index", "--store", store)

    past = here("index", "list", "--store", store, "--commit", before, "--json").json
    assert {each["state"] for each in past} == {"missing", "scanned"}
    wrong = here("index", "list", "--store", store, "--branch", "nope")
    assert (wrong.code, "branch_not_found" in wrong.err) == (Exit.NOT_FOUND, True)


def test_options_of_the_list_stand_after_it(here: Run, store: str) -> None:
    told = here("index", "--store", store, "list")
    assert told.code == Exit.USAGE
    assert "index list --store" in told.err


def test_indexes_are_built_anew_when_that_is_asked_for(here: Run, store: str) -> None:
    here("index", "--store", store)
    told = here("index", "--store", store, "--rebuild", "--json").json
    assert told["built"] == {"Person": ["id", "name", "age", "mood", "bio"]}
    assert (told["removed"], told["waiting"]) == ({}, {"Person": ["face"]})
