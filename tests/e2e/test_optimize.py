"""`omnigraph optimize` as an operator meets it, and the folds that a writer does by itself."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

import omnigraph
from omnigraph.cli.exits import Exit
from omnigraph.limits import FOLD_FRAGMENTS_MIN
from omnigraph.maintenance.groups import SMALL_FRAGMENTS_MAX
from tests.support.commands import Answer

SCHEMA: Final = """
node Person { name: String @key  age: I32? }
node Dog { name: String @key }
edge Knows: Person -> Person
"""
INSERT: Final = "query q($n: String) { insert Person { name: $n } }"
ADOPT: Final = "query q($n: String) { insert Dog { name: $n } }"

Run = Callable[..., Answer]


@pytest.fixture
def graph(tmp_path: Path) -> omnigraph.Graph:
    """A graph in which people are in three fragments, and dogs in two."""
    graph = omnigraph.init(tmp_path / "graph.omni", SCHEMA)
    graph.settings.set("maintenance.optimize", "off")
    for name in ("ada", "bob", "eva"):
        graph.mutate(INSERT, {"n": name})
    for name in ("rex", "fido"):
        graph.mutate(ADOPT, {"n": name})
    return graph


def test_it_says_what_it_did_to_each_table_and_nothing_more_the_next_time(
    here: Run, graph: omnigraph.Graph
) -> None:
    told = here("optimize", "--store", graph.uri, "--actor", "ada", "--message", "tidy up")

    newest, *_ = graph.commits.list()
    assert told.code == Exit.DONE
    assert [line.split() for line in told.out.splitlines()] == [
        ["type", "fragments", "before", "after", "rows", "rewritten", "indexed"],
        ["Dog", "2", "1", "2", "id,", "name"],
        ["Person", "3", "1", "3", "id,", "name"],
    ]
    assert told.err.splitlines() == [
        f"commit {newest.commit_id} on branch main",
        "engine: local (5 rows to rewrite; Spark is used above 16,000,000)",
    ]
    assert (newest.operation, newest.actor, newest.message) == ("optimize", "ada", "tidy up")

    again = here("optimize", "--store", graph.uri)
    assert (again.code, again.out, again.err) == (Exit.DONE, "", "nothing to do\n")
    assert graph.commits.list()[0] == newest


def test_json_has_every_number(here: Run, graph: omnigraph.Graph) -> None:
    told = here("optimize", "--store", graph.uri, "--json")

    answer = told.json
    assert (told.code, told.err) == (Exit.DONE, "")
    assert answer.pop("commit_id") == graph.commits.list()[0].commit_id
    sizes = [table.pop("bytes_rewritten") for table in answer["tables"].values()]
    assert all(size > 100 for size in sizes)
    assert answer == {
        "engine": "local",
        "why": "5 rows to rewrite; Spark is used above 16,000,000",
        "shared": [],
        "tables": {
            name: {
                "fragments_before": count,
                "fragments_after": 1,
                "rows_rewritten": count,
                "indexed": ["id", "name"],
            }
            for name, count in (("Dog", 2), ("Person", 3))
        },
    }
    again = here("optimize", "--store", graph.uri, "--json").json
    assert (again["commit_id"], again["tables"]) == (None, {})


def test_only_the_named_types_are_optimized(here: Run, graph: omnigraph.Graph) -> None:
    told = here("optimize", "--store", graph.uri, "--type", "Dog", "--type", "Knows", "--json")
    assert [*told.json["tables"]] == ["Dog"]
    told = here("optimize", "--store", graph.uri, "--type", "Dog", "--type", "Dog")
    assert told.err == "nothing to do\n"


def test_few_small_fragments_need_no_work(here: Run, graph: omnigraph.Graph) -> None:
    told = here("optimize", "--store", graph.uri, "--if-needed")
    assert (told.code, told.out, told.err) == (Exit.DONE, "", "nothing to do\n")

    for number in range(SMALL_FRAGMENTS_MAX):
        graph.mutate(INSERT, {"n": f"p{number}"})
    told = here("optimize", "--store", graph.uri, "--if-needed", "--json")
    assert [*told.json["tables"]] == ["Person"]
    assert told.json["tables"]["Person"]["fragments_after"] == 1


def test_a_branch_leaves_what_it_shares_to_its_owner(here: Run, graph: omnigraph.Graph) -> None:
    draft = graph.branches.create("draft")
    told = here("optimize", "--store", graph.uri, "--branch", "draft")
    assert (told.code, told.out) == (Exit.DONE, "")
    assert told.err.splitlines() == [
        "not optimized, because another branch wrote them: Dog, Person, Knows",
        "nothing to do",
    ]

    draft.mutate(INSERT, {"n": "leo"})
    told = here("optimize", "--store", graph.uri, "--branch", "draft")
    assert told.out.splitlines()[1].split() == ["Person", "4", "1", "4", "id,", "name"]
    assert "not optimized, because another branch wrote them: Dog, Knows" in told.err
    assert " on branch draft" in told.err
    assert graph.commits.list()[0].operation == "mutation"


# fmt: off
MISTAKES: Final = {
    "a type that is not there":   (["--type", "Persn"], Exit.NOT_FOUND, "did you mean Person?"),
    "a branch that is not there": (["--branch", "drat"], Exit.NOT_FOUND, "it has main"),
    "no engine of this name":     (["--engine", "duck"], Exit.USAGE, "'auto', 'local', 'spark'"),
    "an actor of our own":        (["--actor", "omnigraph:x"], Exit.INVALID, "is reserved"),
    "an argument":                (["Person"], Exit.USAGE, "unexpected extra argument"),
    "a number for a type":        (["--type", "7"], Exit.NOT_FOUND, "no type 7"),
    "no type after --type":       (["--type"], Exit.USAGE, "'--type' requires an argument"),
}
# fmt: on


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_answered_and_changes_nothing(
    here: Run, graph: omnigraph.Graph, mistake: str
) -> None:
    arguments, code, words = MISTAKES[mistake]
    before = graph.snapshot()

    told = here("optimize", "--store", graph.uri, *arguments)

    assert (told.code, told.out) == (code, "")
    assert words in told.said
    assert graph.snapshot() == before


def test_the_log_shows_optimizes_and_by_whom(here: Run, graph: omnigraph.Graph) -> None:
    here("optimize", "--store", graph.uri, "--type", "Dog", "--actor", "ada")
    graph.settings.set("maintenance.optimize", "auto")
    statement = 'query q() { insert Person { name: "p%d" } }'
    for number in range(FOLD_FRAGMENTS_MIN - 3):
        told = here("mutate", "--store", graph.uri, "-e", statement % number, "--actor", "bob")
        assert (told.code, "warning" in told.err) == (Exit.DONE, False)

    listed = here("commit", "list", "--store", graph.uri, "--json").json
    kinds = [(each["operation"], each["actor"]) for each in listed]
    assert kinds[:2] == [("optimize", "omnigraph:maintenance"), ("mutation", "bob")]
    assert kinds.count(("optimize", "ada")) == 1
    assert kinds.count(("optimize", "omnigraph:maintenance")) == 1
    first = here("log", "--store", graph.uri).out.splitlines()[1].split()
    assert first[-2:] == ["optimize", "omnigraph:maintenance"]
    poll = here("changes", "poll", "--store", graph.uri, "--json")
    assert "optimize" not in poll.out


def test_nothing_is_folded_where_that_is_switched_off(here: Run, graph: omnigraph.Graph) -> None:
    told = here("settings", "get", "--store", graph.uri, "maintenance.optimize")
    assert told.out == "off\n"
    for number in range(FOLD_FRAGMENTS_MIN):
        graph.mutate(INSERT, {"n": f"p{number}"})
    kinds = {commit.operation.value for commit in graph.commits.list()}
    assert kinds == {"init", "mutation"}
