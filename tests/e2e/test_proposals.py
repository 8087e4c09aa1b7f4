"""`omnigraph proposal` as people meet it."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

import omnigraph
from omnigraph.cli.exits import Exit
from tests.support.commands import Answer

Run = Callable[..., Answer]
ADD: Final = 'query q() { insert Person { name: "Bob" } }'


@pytest.fixture
def run(here: Run, tmp_path: Path) -> Run:
    graph = omnigraph.init(tmp_path / "graph.omni", "node Person { name: String @key }")
    graph.branches.create("draft").mutate(ADD)
    return lambda *arguments: here(*arguments, "--store", graph.uri)


def test_a_branch_is_proposed_reviewed_and_merged(run: Run) -> None:
    made = run("proposal", "create", "draft", "--title", "Add Bob", "--actor", "ada", "--json")
    assert (made.code, made.json["number"]) == (Exit.DONE, 1), made.err
    assert run("proposal", "approve", "1", "--actor", "ada").code == Exit.FAILED
    assert run("proposal", "approve", "1", "--actor", "grace").code == Exit.DONE
    remark = ("is he real?", "--type", "Person", "--id", "Bob")
    assert run("proposal", "comment", "1", *remark, "--actor", "grace").code == Exit.DONE
    shown = run("proposal", "show", "1").out
    assert "approved by  grace" in shown
    assert "1. grace on Person Bob: is he real?" in shown
    assert (
        run("proposal", "show", "1", "--json").json["merge"]["changes"]["Person"]["inserted"] == 1
    )
    assert [each["number"] for each in run("proposal", "list", "--json").json] == [1]
    merged = run("proposal", "merge", "1", "--delete-branch", "--actor", "grace")
    assert (merged.code, "deleted branch draft" in merged.err) == (Exit.DONE, True)
    assert run("proposal", "list", "--json").json == []
    assert run("proposal", "merge", "1", "--actor", "grace").code == Exit.INVALID
    assert run("proposal", "show", "2").code == Exit.NOT_FOUND


def test_an_approval_is_taken_back_and_a_proposal_closed(run: Run) -> None:
    run("proposal", "create", "draft", "--title", "Add Bob", "--actor", "ada")
    run("proposal", "approve", "1", "--actor", "grace")
    both = ("--withdraw", "--commit", "x", "--actor", "grace")
    assert run("proposal", "approve", "1", *both).code == Exit.USAGE
    assert run("proposal", "approve", "1", "--withdraw", "--actor", "grace").code == Exit.DONE
    assert run("proposal", "show", "1", "--json").json["approved_by"] == []
    assert run("proposal", "close", "1", "--actor", "ada").code == Exit.DONE
    assert run("proposal", "list", "--state", "closed").out.splitlines()[1].split()[:2] == [
        "1",
        "closed",
    ]
