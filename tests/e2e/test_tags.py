"""`omnigraph tag` as a person meets it, and the commands that take a tag for a commit."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

import omnigraph
from omnigraph.cli.exits import Exit
from tests.support.commands import Answer

SCHEMA: Final = "node Person { name: String @key }"
ADD: Final = "query add($name: String) { insert Person { name: $name } }"
NAMES: Final = "query names() { match { $p: Person } return { $p.name as name } order { name } }"

Run = Callable[..., Answer]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "graph.omni"
    graph = omnigraph.init(path, SCHEMA)
    graph.mutate(ADD, {"name": "Ada"})
    graph.tags.create("v1", actor="ada", message="the first")
    graph.mutate(ADD, {"name": "Bob"})
    return path


@pytest.fixture
def run(here: Run, store: Path) -> Run:
    return lambda *arguments: here(*arguments, "--store", str(store))


def test_a_tag_is_created_listed_shown_and_deleted(run: Run) -> None:
    told = run("tag", "create", "release/1", "--commit", "v1", "-m", "again", "--actor", "eva")
    assert told.code == Exit.DONE, told.err
    commit = run("tag", "show", "v1", "--json").json["commit_id"]
    shown = run("tag", "show", "release/1", "--json").json
    created_at = shown.pop("created_at")
    assert shown == {
        "tag": "release/1",
        "commit_id": commit,
        "branch": "main",
        "actor": "eva",
        "message": "again",
    }
    assert f"commit   {commit}" in run("tag", "show", "release/1").out
    listed = run("tag", "list").out.splitlines()
    assert listed[0].split() == ["tag", "commit", "created", "actor", "message"]
    assert [line.split()[:2] for line in listed[1:]] == [["release/1", commit], ["v1", commit]]
    assert [each["tag"] for each in run("tag", "list", "--json").json] == ["release/1", "v1"]
    assert run("tag", "list", "--json").json[0]["created_at"] == created_at

    told = run("tag", "delete", "release/1")
    assert (told.code, told.err) == (
        Exit.DONE,
        "nothing was deleted: give --confirm to delete it\n",
    )
    assert len(run("tag", "list", "--json").json) == 2
    told = run("tag", "delete", "release/1", "--confirm", "--json")
    assert told.json == {"tag": "release/1", "deleted": True, "commit_id": commit}
    assert run("tag", "show", "release/1").code == Exit.NOT_FOUND


def test_entity_is_shown_at_any_point(run: Run) -> None:
    assert run("entity", "Person", "Bob").out.split() == ["id", "Bob", "name", "Bob"]
    assert run("entity", "Person", "Ada", "--at", "v1", "--json").json == {
        "id": "Ada",
        "name": "Ada",
    }
    missing = run("entity", "Person", "Bob", "--at", "v1")
    assert missing.code == Exit.NOT_FOUND
    assert "Person 'Bob' does not exist at v1" in missing.err
    assert run("entity", "Persn", "Bob").code == Exit.NOT_FOUND
    assert run("entity", "Person", "Bob", "--at", "v2").code == Exit.NOT_FOUND


def test_a_new_tag_names_the_tip_of_a_branch(run: Run) -> None:
    run("branch", "create", "review")
    tip = run("mutate", "-e", ADD, "-p", "name=Cy", "--branch", "review", "--json").json
    told = run("tag", "create", "reviewed", "--branch", "review", "--json")
    assert told.json["commit_id"] == tip["commit_id"]
    main = run("commit", "list", "--json").json[0]["commit_id"]
    assert run("tag", "create", "newest", "--json").json["commit_id"] == main


def test_a_tag_stands_for_its_commit_in_every_command(run: Run, tmp_path: Path) -> None:
    commit = run("tag", "show", "v1", "--json").json["commit_id"]

    def names(*place: str) -> list[str]:
        return [each["name"] for each in run("query", "-e", NAMES, "--json", *place).json]

    assert (names("--commit", "v1"), names()) == (["Ada"], ["Ada", "Bob"])
    assert run("commit", "show", "v1", "--json").json["commit_id"] == commit
    assert run("commit", "changes", "v1", "--json").code == Exit.DONE
    assert run("snapshot", "--commit", "v1", "--json").json["commit"]["commit_id"] == commit
    assert run("schema", "show", "--commit", "v1").out.strip() == SCHEMA
    assert run("schema", "diff", "v1", "main").code == Exit.DONE
    told = run("diff", "v1", "main")
    assert told.err.startswith(f"from commit {commit} to commit ")
    out = tmp_path / "out.jsonl"
    assert run("export", str(out), "--commit", "v1").code == Exit.DONE
    assert len(out.read_text().splitlines()) == 1
    assert run("branch", "create", "again", "--commit", "v1", "--json").json["commit_id"] == commit
    add = ("mutate", "-e", ADD, "-p", "name=Cy", "--expect-head", "v1")
    assert run(*add).code == Exit.CONFLICT
    assert run(*add, "--branch", "again").code == Exit.DONE


def test_the_log_shows_tags(run: Run) -> None:
    commit = run("tag", "show", "v1", "--json").json["commit_id"]
    tags = {each["commit_id"]: each["tags"] for each in run("log", "--json").json}
    assert tags.pop(commit) == ["v1"]
    assert set(map(tuple, tags.values())) == {()}
    lines = run("log").out.splitlines()
    assert lines[0].split()[:3] == ["commit", "branches", "tags"]
    assert lines[2].split()[:2] == [commit, "v1"]
    assert f"{commit} (tag v1) " in run("log", "--graph").out


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["tag", "create", "v1"], Exit.CONFLICT, "already has a tag v1"),
        (["tag", "create", "main"], Exit.INVALID, "every graph has a branch of that name"),
        (["tag", "create", "a b"], Exit.INVALID, "'a b' is not a tag name"),
        (["tag", "create", "x", "--commit", "v2"], Exit.NOT_FOUND, "omnigraph tag list"),
        (["tag", "create", "x", "--commit", "v1", "--branch", "main"], Exit.INVALID, "a commit"),
        (["tag", "show", "v2"], Exit.NOT_FOUND, "it has v1"),
        (["tag", "delete", "v2"], Exit.NOT_FOUND, "it has v1"),
        (["tag", "delete", "v2", "--confirm"], Exit.NOT_FOUND, "it has v1"),
        (["branch", "create", "v1"], Exit.CONFLICT, "has a tag v1"),
        (["commit", "show", "v2"], Exit.NOT_FOUND, "omnigraph commit list"),
        (["query", "-e", NAMES, "--commit", "main"], Exit.INVALID, "main is a branch"),
        (["diff", "v2", "main"], Exit.NOT_FOUND, "it has main, v1"),
    ],
)
def test_a_mistake_is_named_with_the_way_out(
    run: Run, arguments: list[str], code: Exit, said: str
) -> None:
    told = run(*arguments)
    assert (told.code, told.out) == (code, "")
    assert said in told.err


def test_a_tag_that_cannot_be_read_can_be_deleted(run: Run, store: Path) -> None:
    (store / "__tags" / "v1.json").write_text("{")
    assert run("tag", "list").code == Exit.FAILED
    told = run("tag", "delete", "v1")
    assert told.code == Exit.FAILED
    assert "omnigraph tag delete v1 --confirm" in told.err
    assert run("tag", "delete", "v1", "--confirm", "--json").json["deleted"] is True
    assert run("tag", "list", "--json").json == []
