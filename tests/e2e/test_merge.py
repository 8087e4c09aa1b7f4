"""`omnigraph branch merge` as a person meets it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.cli.exits import Exit
from omnigraph.failpoints import Failpoint, arm
from tests.support.commands import Answer

SCHEMA: Final = """
node Person { name: String @key  age: I32?  mood: enum(sunny, cloudy)? }
node Team { name: String @key }
edge Leads: Person -> Team @card(0..1)
"""
PEOPLE: Final = """
query people() {
  match { $p: Person }
  return { $p.name as name, $p.age as age, $p.mood as mood }
  order { name }
}
"""

Run = Callable[..., Answer]


def change(graph: Graph, name: str, changes: str) -> None:
    graph.mutate(f'query q() {{ update Person set {{ {changes} }} where name = "{name}" }}')


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    graph = omnigraph.init(tmp_path / "graph.omni", SCHEMA, actor="ada")
    people = [{"name": "Ada", "age": 1}, {"name": "Bob", "age": 2}]
    graph.load({"Person": people, "Team": [{"name": "A"}, {"name": "B"}]}, index=False)
    graph.branches.create("draft")
    return graph


@pytest.fixture
def merge(here: Run, graph: Graph) -> Run:
    return lambda *arguments: here("branch", "merge", *arguments, "--store", graph.uri)


@pytest.fixture
def conflicted(graph: Graph) -> Graph:
    """Both changed Ada's age; the draft deleted Bob, whom main changed; and more that is fine."""
    draft = graph.at(branch="draft")
    change(draft, "Ada", 'age: 10  mood: "sunny"')
    draft.mutate('query q() { delete Person where name = "Bob" }')
    change(graph, "Ada", "age: 11")
    change(graph, "Bob", 'mood: "cloudy"')
    return graph


def people(graph: Graph) -> list[tuple[object, ...]]:
    return [tuple(each.values()) for each in graph.query(PEOPLE).rows()]


def head(graph: Graph, branch: str = "main") -> str:
    return str(graph.snapshot(branch=branch).head.commit_id)


def test_changes_of_both_sides_come_together(merge: Run, graph: Graph) -> None:
    change(graph.at(branch="draft"), "Ada", 'mood: "sunny"')
    change(graph, "Ada", "age: 7")
    source = head(graph, "draft")
    told = merge("draft", "-m", "reviewed", "--actor", "grace")
    assert told.code == Exit.DONE, told.err
    commit = graph.commits.list()[0]
    assert told.err.splitlines() == [
        f"merged branch draft, at {source}, into main as commit {commit.commit_id} (merged)",
        "engine: local (about 4 changed rows; Spark is used above 1,000,000)",
    ]
    assert told.out.split()[4:] == ["Person", "0", "1", "0"]
    assert (commit.actor, commit.message) == ("grace", "reviewed")
    assert people(graph) == [("Ada", 7, "sunny"), ("Bob", 2, None)]


def test_a_merge_into_another_branch_is_told_as_json_and_deletes_its_source(
    merge: Run, graph: Graph
) -> None:
    graph.branches.create("other")
    change(graph.at(branch="draft"), "Ada", "age: 7")
    source = head(graph, "draft")
    told = merge("draft", "--into", "other", "--delete-branch", "--json").json
    assert told == {
        "outcome": "fast-forward",
        "source": "draft",
        "target": "other",
        "source_commit": source,
        "commit_id": head(graph, "other"),
        "engine": "local",
        "why": "about 2 changed rows; Spark is used above 1,000,000",
        "changes": {"Person": {"inserted": 0, "updated": 1, "deleted": 0}},
        "conflict_count": 0,
        "merge_conflicts": [],
        "deleted_source": True,
        "warnings": [],
        "dry_run": False,
    }
    assert graph.branches.list() == ("main", "other")
    assert people(graph)[0] == ("Ada", 1, None)


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_a_merge_whose_source_cannot_be_deleted_is_done_and_warns(
    merge: Run, graph: Graph, form: tuple[str, ...]
) -> None:
    change(graph.at(branch="draft"), "Ada", "age: 7")
    rival = omnigraph.open(graph.uri)

    def build_on_it() -> None:
        rival.branches.create("child", branch="draft")

    with arm(Failpoint.WRITE_AFTER_SETTLE, build_on_it):
        told = merge("draft", "--delete-branch", *form)
    assert told.code == Exit.DONE
    assert people(graph)[0] == ("Ada", 7, None)
    message = "branch draft was not deleted: branch draft cannot be deleted: child builds on it"
    hint = (
        "delete child first; then run 'omnigraph branch delete draft --confirm', "
        'or graph.branches.delete("draft") in Python'
    )
    assert told.err.splitlines()[-2:] == [f"warning: {message}", f"  hint: {hint}"]
    if form:
        assert (told.json["commit_id"], told.json["deleted_source"]) == (head(graph), False)
        assert told.json["warnings"] == [
            {"step": "delete_branch", "code": "branch_in_use", "message": message, "hint": hint}
        ]


def test_an_interrupt_while_the_source_is_deleted_says_that_the_merge_is_done(
    merge: Run, graph: Graph
) -> None:
    change(graph.at(branch="draft"), "Ada", "age: 7")

    def interrupt() -> None:
        raise KeyboardInterrupt

    with arm(Failpoint.BRANCH_AFTER_MARK, interrupt):
        told = merge("draft", "--delete-branch")
    assert told.code == Exit.INTERRUPTED
    assert told.err == (
        f"the merge landed as commit {head(graph)}; "
        "run 'omnigraph branch delete draft --confirm', "
        'or graph.branches.delete("draft") in Python\n'
    )


def test_what_is_merged_already_says_so_and_makes_no_commit(merge: Run, graph: Graph) -> None:
    before = head(graph)
    told = merge("draft")
    assert (told.code, told.out) == (Exit.DONE, "")
    assert told.err == "already up to date: main has all of draft\n"
    assert merge("draft", "--json").json["commit_id"] is None
    assert head(graph) == before


def test_conflicts_are_a_table_and_nothing_is_written(merge: Run, conflicted: Graph) -> None:
    before = head(conflicted)
    refused = merge("draft")
    assert (refused.code, refused.out) == (Exit.CONFLICT, "")
    first, names, ada, bob, *rest = refused.err.splitlines()
    assert first == "error[merge_conflicts]: merging draft into main has 2 conflicts"
    assert names.split() == ["kind", "type", "id", "property", "base", "ours", "theirs"]
    assert ada.split() == ["divergent_update", "Person", "Ada", "age", "1", "11", "10"]
    assert bob.startswith("delete_vs_update  Person  Bob ")
    assert bob.endswith('{"mood": null}  {"mood": "cloudy"}  no row')
    assert json.loads(rest[1]) == [
        {"type": "Person", "id": "Ada", "property": "age", "take": "theirs"}
    ]
    assert "--resolve ours|theirs" in rest[2]
    assert head(conflicted) == before


def test_conflicts_name_the_edges_that_were_deleted_with_a_node(merge: Run, graph: Graph) -> None:
    graph.load({"Leads": [{"from": "Bob", "to": "A"}]})
    graph.branches.create("late")
    graph.mutate('query q() { delete Person where name = "Bob" }', branch="late")
    change(graph, "Bob", 'mood: "cloudy"')
    [bob] = json.loads(merge("late", "--json").err)["merge_conflicts"]
    assert (bob["edges"], bob["edge_counts"]) == (1, {"Leads": 1})
    # The table for people says it as well.
    row = next(line for line in merge("late").err.splitlines() if "Bob" in line)
    assert row.endswith("1 edge was deleted along with the node")
    assert merge("late", "--resolve", "ours").code == Exit.DONE


def test_conflicts_are_json_for_programs(merge: Run, conflicted: Graph) -> None:
    refused = merge("draft", "--json")
    assert (refused.code, refused.out) == (Exit.CONFLICT, "")
    told = json.loads(refused.err)
    assert told["code"] == "merge_conflicts"
    ada, bob = told["merge_conflicts"]
    assert ada.pop("message")
    assert ada == {
        "kind": "divergent_update",
        "type": "Person",
        "id": "Ada",
        "property": "age",
        "base": 1,
        "ours": 11,
        "theirs": 10,
    }
    assert (bob["ours"]["mood"], bob["theirs"], bob["property"]) == ("cloudy", None, None)
    assert conflicted.branches.list() == ("main", "draft")


@pytest.mark.parametrize(
    ("side", "found"),
    [
        ("ours", [("Ada", 11, "sunny"), ("Bob", 2, "cloudy")]),
        ("theirs", [("Ada", 10, "sunny")]),
    ],
)
def test_a_side_decides_all_conflicts(
    merge: Run, conflicted: Graph, side: str, found: object
) -> None:
    assert merge("draft", "--resolve", side).code == Exit.DONE
    assert people(conflicted) == found


def test_a_file_decides_one_by_one(merge: Run, conflicted: Graph, tmp_path: Path) -> None:
    path = tmp_path / "decisions.json"
    ada = {"type": "Person", "id": "Ada", "property": "age", "value": 42}
    bob = {"type": "Person", "id": "Bob", "take": "theirs"}
    path.write_text(json.dumps([ada]))
    refused = merge("draft", "--resolve", str(path))
    assert refused.code == Exit.CONFLICT
    assert "has 1 conflict\n" in refused.err
    path.write_text(json.dumps([ada, bob]))
    assert merge("draft", "--resolve", str(path)).code == Exit.DONE
    assert people(conflicted) == [("Ada", 42, "sunny")]


@pytest.mark.parametrize("options", [(), ("--dry-run",), ("--resolve", "theirs", "--dry-run")])
def test_the_example_for_a_rule_that_both_sides_break_works(
    merge: Run, graph: Graph, tmp_path: Path, options: tuple[str, ...]
) -> None:
    lead = 'query q() {{ insert Leads {{ from: "Ada"  to: "{}" }} }}'
    graph.mutate(lead.format("A"))
    graph.at(branch="draft").mutate(lead.format("B"))

    told = merge("draft", *options).err.splitlines()
    assert told[told.index("to decide one by one, give a file to --resolve, such as") + 2].endswith(
        "where rows of both sides break a rule together, take ours or give a value"
    )
    [example] = [line for line in told if '"take"' in line]
    path = tmp_path / "decisions.json"
    path.write_text(example)
    assert merge("draft", "--resolve", str(path)).code == Exit.DONE
    assert graph.query("query q() { match { $p leads $t } return { $t.name } }").rows() == [
        {"t.name": "A"}
    ]


def test_a_dry_run_shows_what_would_happen(merge: Run, conflicted: Graph) -> None:
    before = head(conflicted)
    shown = merge("draft", "--dry-run")
    assert shown.code == Exit.CONFLICT
    assert "has 2 conflicts" in shown.err
    assert "nothing was written" in shown.err
    told = merge("draft", "--dry-run", "--json")
    assert (told.code, told.err) == (Exit.CONFLICT, "")
    assert (told.json["dry_run"], len(told.json["merge_conflicts"])) == (True, 2)
    assert told.json["outcome"] == "conflicted"
    clean = merge("draft", "--dry-run", "--resolve", "ours")
    assert clean.code == Exit.DONE
    assert clean.out.split()[4:] == ["Person", "0", "1", "0"]
    assert head(conflicted) == before
    assert conflicted.branches.list() == ("main", "draft")


@pytest.mark.usefixtures("conflicted")
def test_a_dry_run_with_conflicts_of_hidden_types_alone_fails(
    merge: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "rules.cedar").write_text(
        "permit(principal, action, resource);"
        'forbid(principal == Actor::"wes", action == Action::"read", resource == Type::"Person");'
    )
    monkeypatch.setenv("OMNIGRAPH_POLICY", str(tmp_path / "rules.cedar"))
    shown = merge("draft", "--dry-run", "--actor", "wes")
    assert shown.code == Exit.CONFLICT
    assert "has conflicts of hidden types" in shown.err
    assert "1 type is hidden" in shown.err
    assert "Ada" not in shown.err + shown.out
    told = merge("draft", "--dry-run", "--actor", "wes", "--json")
    assert (told.code, told.json["outcome"]) == (Exit.CONFLICT, "conflicted")
    assert (told.json["conflict_count"], told.json["hidden"]) == (0, ["Person"])


def test_rows_that_both_changed_can_be_conflicts_in_any_case(merge: Run, graph: Graph) -> None:
    change(graph.at(branch="draft"), "Ada", 'mood: "sunny"')
    change(graph, "Ada", "age: 7")
    assert merge("draft", "--strict-rows").code == Exit.CONFLICT


def test_a_rule_that_only_both_together_break_is_a_conflict_that_says_so(
    merge: Run, graph: Graph
) -> None:
    leads = 'query q() {{ insert Leads {{ from: "Ada"  to: "{}" }} }}'
    graph.at(branch="draft").mutate(leads.format("A"))
    graph.mutate(leads.format("B"))
    refused = merge("draft")
    assert refused.code == Exit.CONFLICT
    assert "cardinality_violation" in refused.err
    assert "Person 'Ada' would have 2 Leads, but must have at most 1" in refused.said


def test_decisions_are_read_where_there_is_nothing_to_decide(merge: Run, tmp_path: Path) -> None:
    assert merge("draft").code == Exit.DONE
    (tmp_path / "bad.json").write_text("{}")
    refused = merge("draft", "--resolve", str(tmp_path / "bad.json"))
    assert (refused.code, "not a list" in refused.said) == (Exit.INVALID, True)


def test_decisions_that_meet_no_conflict_are_told_beside_those_that_are_left(
    merge: Run, graph: Graph, tmp_path: Path
) -> None:
    change(graph.at(branch="draft"), "Ada", "age: 7")
    change(graph, "Ada", "age: 8")
    slip = '[{"type": "Person", "id": "Ada", "property": "aeg", "take": "ours"}]'
    (tmp_path / "slip.json").write_text(slip)
    refused = merge("draft", "--resolve", str(tmp_path / "slip.json"))
    assert refused.code == Exit.CONFLICT
    assert "name what does not conflict so far: Person 'Ada' aeg" in refused.said


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["darft"], Exit.NOT_FOUND, "did you mean draft?"),
        (["draft", "--into", "mian"], Exit.NOT_FOUND, "did you mean main?"),
        (["main"], Exit.INVALID, "which branch is to change: --into BRANCH"),
        (["draft", "--into", "draft"], Exit.INVALID, "into itself"),
        (["draft", "--into", "draft", "--dry-run"], Exit.INVALID, "into itself"),
        (["main", "--into", "draft", "--delete-branch"], Exit.USAGE, "main cannot be deleted"),
        (["a b"], Exit.INVALID, "a b"),
        (["draft", "--resolve", "{tmp}/no.json"], Exit.NOT_FOUND, "no.json"),
        (["draft", "--resolve", "our"], Exit.NOT_FOUND, "did you mean ours?"),
        (["draft", "--resolve", "{tmp}/bad.json"], Exit.INVALID, "not a list"),
        (["draft", "--resolve", "{tmp}/idle.json"], Exit.INVALID, "does not conflict"),
        ([], Exit.USAGE, "SOURCE"),
    ],
)
def test_a_mistake_gets_one_clear_message_and_its_exit_code(
    merge: Run, graph: Graph, tmp_path: Path, arguments: list[str], code: Exit, said: str
) -> None:
    change(graph.at(branch="draft"), "Ada", "age: 7")
    change(graph, "Bob", "age: 7")
    before = head(graph)
    (tmp_path / "bad.json").write_text("{}")
    (tmp_path / "idle.json").write_text('[{"type": "Person", "id": "Ada", "take": "ours"}]')
    refused = merge(*(each.format(tmp=tmp_path) for each in arguments))
    assert (refused.code, refused.out) == (code, ""), refused.err
    assert said in refused.said, refused.err
    assert (head(graph), graph.branches.list()) == (before, ("main", "draft"))
