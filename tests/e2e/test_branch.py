"""`omnigraph branch` as a person meets it, and reading and writing what it makes."""

import shutil
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
def run(here: Run, tmp_path: Path) -> Run:
    """One command on a graph of one person; options may come after the names."""
    store = tmp_path / "graph.omni"
    omnigraph.init(store, SCHEMA).mutate(ADD, {"name": "Ada"}, message="first")
    return lambda *arguments: here(*arguments, "--store", str(store))


@pytest.fixture
def names(run: Run) -> Callable[..., list[str]]:
    def read(*place: str) -> list[str]:
        return [each["name"] for each in run("query", "-e", NAMES, "--json", *place).json]

    return read


def add(run: Run, name: str, *place: str) -> str:
    told = run("mutate", "-e", ADD, "-p", f"name={name}", "--json", *place)
    assert told.code == Exit.DONE, told.err
    commit_id = told.json["commit_id"]
    assert isinstance(commit_id, str)
    return commit_id


def test_a_branch_starts_where_main_is_and_goes_its_own_way(
    run: Run, names: Callable[..., list[str]]
) -> None:
    head = run("commit", "list", "--json").json[0]["commit_id"]
    told = run("branch", "create", "review/1", "--json")
    assert told.json == {"branch": "review/1", "commit_id": head}

    there = add(run, "Bob", "--branch", "review/1")
    here = add(run, "Cy")

    assert (names(), names("--branch", "review/1")) == (["Ada", "Cy"], ["Ada", "Bob"])
    assert names("--commit", there) == ["Ada", "Bob"]
    listed = run("commit", "list", "--branch", "review/1", "--json").json
    assert [each["commit_id"] for each in listed[:2]] == [there, head]
    assert run("snapshot", "--branch", "review/1", "--json").json["commit"]["commit_id"] == there
    heads = {each["branch"]: each["commit_id"] for each in run("branch", "list", "--json").json}
    assert heads == {"main": here, "review/1": there}
    assert run("index", "--branch", "review/1", "--json").json["built"] == {
        "Person": ["id", "name"]
    }
    assert run("schema", "show", "--branch", "review/1").out.strip() == SCHEMA


def test_a_branch_starts_at_another_or_at_a_point_of_the_past(
    run: Run, names: Callable[..., list[str]]
) -> None:
    past = run("snapshot", "--json").json
    add(run, "Bob")
    assert run("branch", "create", "a").code == Exit.DONE
    add(run, "Cy", "--branch", "a")
    past_commit, past_version = past["commit"]["commit_id"], str(past["manifest_version"])
    assert run("branch", "create", "b", "--from", "a").code == Exit.DONE
    assert run("branch", "create", "c", "--commit", past_commit).code == Exit.DONE
    assert run("branch", "create", "d", "--version", past_version).code == Exit.DONE

    assert [names("--branch", each) for each in "abcd"] == [
        ["Ada", "Bob", "Cy"],
        ["Ada", "Bob", "Cy"],
        ["Ada"],
        ["Ada"],
    ]
    add(run, "Dee", "--branch", "c")
    assert names("--branch", "c") == ["Ada", "Dee"]


def test_a_branch_is_deleted_only_when_that_is_confirmed(run: Run) -> None:
    run("branch", "create", "draft")
    add(run, "Bob", "--branch", "draft")
    preview = run("branch", "delete", "draft")
    assert preview.code == Exit.DONE
    assert "commits of its own  1" in preview.out
    assert "nothing was deleted" in preview.err
    assert len(run("branch", "list", "--json").json) == 2

    told = run("branch", "delete", "draft", "--confirm", "--json").json
    assert (told["deleted"], len(told["commits"])) == (True, 1)
    assert [each["branch"] for each in run("branch", "list", "--json").json] == ["main"]
    assert run("snapshot", "--branch", "draft").code == Exit.NOT_FOUND
    assert run("branch", "create", "draft").code == Exit.DONE


def test_branches_that_cannot_be_read_are_listed_with_why(here: Run, tmp_path: Path) -> None:
    made = omnigraph.init(tmp_path / "graph.omni", SCHEMA)
    made.branches.create("draft").mutate(ADD, {"name": "Bob"})
    made.branches.create("below", branch="draft").mutate(ADD, {"name": "Cy"})
    ref = made.snapshot(branch="draft").ref
    assert ref is not None
    shutil.rmtree(Path(made.uri) / "__manifest" / "tree" / ref / "_versions")

    told = here("branch", "list", "--store", made.uri)
    assert told.code == Exit.FAILED
    assert [line.split()[0] for line in told.out.splitlines()] == [
        "branch",
        "main",
        "below",
        "draft",
    ]
    why = f"branch draft names the ref {ref} of the manifest, which does not exist"
    assert f"branch draft cannot be read: {why}" in told.err
    main, below, draft = here("branch", "list", "--store", made.uri, "--json").json
    assert (main["operation"], below["operation"]) == ("init", "mutation")
    assert draft["error"] == why
    assert "backup" in draft["hint"]


def test_branches_are_listed_as_a_table(run: Run) -> None:
    run("branch", "create", "draft")
    header, *rows = run("branch", "list").out.splitlines()
    assert header.split() == ["branch", "commit", "created", "operation", "actor", "message"]
    assert [each.split()[0] for each in rows] == ["main", "draft"]
    assert all("first" in each for each in rows)


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["create", "draft"], Exit.CONFLICT, "already has a branch draft"),
        (["create", "main"], Exit.CONFLICT, "a branch main already"),
        (["create", "draft/x"], Exit.INVALID, "draft"),
        (["create", "a b"], Exit.INVALID, "a b"),
        (["create", ""], Exit.INVALID, "empty"),
        (["create", "__x"], Exit.INVALID, "internal"),
        (["create", "x", "--from", "darft"], Exit.NOT_FOUND, "draft?"),
        (["create", "x", "--commit", "0" * 26], Exit.NOT_FOUND, "0" * 26),
        (["create", "x", "--commit", "nope"], Exit.NOT_FOUND, "nope"),
        (["create", "x", "--version", "99"], Exit.NOT_FOUND, "99"),
        (["create", "x", "--from", "main", "--commit", "0" * 26], Exit.INVALID, "commit"),
        (["create"], Exit.USAGE, "NAME"),
        (["delete", "main"], Exit.FAILED, "main cannot be deleted"),
        (["delete", "main", "--confirm"], Exit.FAILED, "main cannot be deleted"),
        (["delete", "darft"], Exit.NOT_FOUND, "draft?"),
        (["delete", "darft", "--confirm"], Exit.NOT_FOUND, "draft?"),
        (["delete", "draft"], Exit.FAILED, "on_top builds on it"),
        (["delete", "draft", "--confirm"], Exit.FAILED, "on_top builds on it"),
        (["merge", "draft", "--delete-branch"], Exit.FAILED, "nothing was merged"),
    ],
)
def test_a_mistake_gets_one_clear_message_and_its_exit_code(
    run: Run, arguments: list[str], code: Exit, said: str
) -> None:
    run("branch", "create", "draft")
    run("branch", "create", "on_top", "--from", "draft")
    before = run("branch", "list", "--json").json
    refused = run("branch", *arguments)
    assert (refused.code, refused.out) == (code, ""), refused.err
    assert said in refused.said, refused.err
    assert run("branch", "list", "--json").json == before
