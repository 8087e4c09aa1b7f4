"""`omnigraph log` and `omnigraph schema show`: lines for people, JSON for programs."""

import pytest

from omnigraph.cli.exits import Exit
from omnigraph.schema import codec
from omnigraph.schema.parser import parse_schema
from tests.support.publishing import SCHEMA
from tests.support.writers import furnished, insert


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Main and a branch that was merged into it, and one that was not."""
    graph = furnished(str(tmp_path_factory.mktemp("log") / "graph.omni"))
    graph.branches.create("review/1")
    graph.branches.create("draft")
    graph.mutate(
        'query add() { insert Person { name: "mina" } }',
        branch="review/1",
        actor="ada",
        message="add Mina\nand more",
    )
    insert(graph, "max")
    insert(graph, "kim", branch="draft")
    graph.merge("review/1", into="main", message="bring the review in")
    return graph.uri


def test_the_history_of_all_branches_is_a_table(here, store):
    told = here("log", "--store", store)

    header, *lines = told.out.splitlines()
    assert header.split() == [
        "commit",
        "branches",
        "tags",
        "created",
        "operation",
        "actor",
        "message",
    ]
    assert len(lines) == 6
    assert lines[0].split()[1] == "main"
    assert [line.split()[1] for line in lines[1:4]].count("review/1") == 1


def test_the_graph_is_drawn_with_branches_and_merges(here, store):
    told = here("log", "--store", store, "--graph")

    lines = told.out.splitlines()
    assert [line[:5].rstrip() for line in lines] == [
        "●", "├─╮", "│ │ ●", "● │ │", "│ ● │", "├─┴─╯", "●", "●",
    ]  # fmt: skip
    assert "(main)" in lines[0]
    assert lines[0].endswith("merge: bring the review in")
    assert "(draft)" in lines[2]
    assert "(review/1)" in lines[4]
    assert lines[4].endswith("mutation by ada: add Mina")


def test_one_branch_and_so_many_commits(here, store):
    alone = here("log", "--store", store, "--branch", "draft", "--json").json
    assert [each["operation"] for each in alone] == ["mutation", "load", "init"]
    assert alone[0]["branches"] == ["draft"]
    assert len(here("log", "--store", store, "-n", "2", "--json").json) == 2
    assert here("log", "--store", store, "-n", "0").out.count("\n") == 1
    missing = here("log", "--store", store, "--branch", "drft")
    assert (missing.code, "did you mean draft?" in missing.err) == (Exit.NOT_FOUND, True)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["log", "--json", "--format", "table"], "cannot be used with --format table"),
        (["log", "--json", "--graph"], "each commit names its parents"),
        (["log", "--format", "svg"], "table"),
        (["schema", "show", "--json", "--format", "pg"], "cannot be used with --format pg"),
        (["schema", "show", "--format", "svg"], "mermaid"),
    ],
)
def test_what_does_not_go_together_is_refused(here, store, arguments, said):
    refused = here(*arguments, "--store", store)
    assert (refused.code, refused.out) == (Exit.USAGE, "")
    assert said in refused.said


def test_a_schema_is_shown_in_three_ways(here, store):
    shown = {
        each: here("schema", "show", "--store", store, "--format", each).out
        for each in ("pg", "json", "mermaid")
    }
    assert shown["pg"] == SCHEMA
    assert codec.decode(shown["json"]) == parse_schema(SCHEMA)
    assert shown["json"] == here("schema", "show", "--store", store, "--json").out
    assert shown["mermaid"].startswith("erDiagram\n")
