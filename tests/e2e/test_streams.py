"""`omnigraph stream` as a person meets it."""

from collections.abc import Callable
from pathlib import Path

import pytest

import omnigraph
from omnigraph.cli.exits import Exit
from tests.support.commands import Answer
from tests.support.streams import CHECKPOINT, write_people

Run = Callable[..., Answer]


@pytest.fixture
def run(here: Run, tmp_path: Path) -> Run:
    graph = omnigraph.init(tmp_path / "graph.omni", "node Person { name: String @key }")
    write_people(graph, 0, "ada")
    write_people(graph, 1, "bob")
    return lambda *arguments: here(*arguments, "--store", str(tmp_path / "graph.omni"))


def test_streams_are_listed_and_forgotten(run: Run) -> None:
    [listed] = run("stream", "list", "--json").json
    newest = run("commit", "list", "--json").json[0]
    assert listed["commit_id"] == newest["commit_id"]
    assert (listed["stream"], listed["batch"], listed["checkpoint"]) == ("people", 1, CHECKPOINT)
    assert run("stream", "list").out.splitlines()[1].split()[:2] == ["people", "1"]
    assert "people, batch 1" in run("commit", "show", newest["commit_id"]).out
    answer = run("stream", "forget", "people")
    assert (answer.code, "forgotten" in answer.err) == (Exit.DONE, True)
    assert run("stream", "list", "--json").json == []
    missing = run("stream", "forget", "people")
    assert missing.code == Exit.NOT_FOUND
    assert "branch main has no stream people" in missing.err
