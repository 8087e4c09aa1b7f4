"""What an actor may do, and is told, where some types of a graph are hidden."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.agents.workspace import Workspace
from omnigraph.errors import IntegrityError, MergeConflictError, NotAllowedError
from omnigraph.evolution.checks import RuleChecks
from omnigraph.graph import Graph
from omnigraph.merge.graphs import Merge
from omnigraph.merge.outcomes import Outcome
from omnigraph.policy.policies import AccessPolicy
from omnigraph.schema.steps import StepKind
from tests.contract.policy.hidden_worlds import (
    AMOUNT,
    HIDDEN,
    KEEPER,
    PAID_TO_CARA,
    SALARIES,
    SCHEMA,
    STEPS,
    HiddenWorld,
    changed_schema,
    leaks,
    make_hidden_world,
)

OF_VISIBLE_TYPES = {StepKind.ADD_INTERFACE, StepKind.CHANGE_INTERFACE, StepKind.DROP_INTERFACE}
SENT_TO_OTHERS = {StepKind.ADD_EMBED, StepKind.CHANGE_EMBED, StepKind.RENAME_TYPE}
READ = {
    *SENT_TO_OTHERS, StepKind.CHANGE_ENDS, StepKind.CHANGE_TYPE, StepKind.NARROW_ENUM,
    StepKind.REQUIRE_VALUE, StepKind.ADD_KEY, StepKind.CHANGE_KEY, StepKind.DROP_KEY,
    StepKind.ADD_UNIQUE, StepKind.ADD_RANGE, StepKind.TIGHTEN_RANGE, StepKind.ADD_CHECK,
    StepKind.ADD_LENGTH, StepKind.TIGHTEN_LENGTH, StepKind.TIGHTEN_CARDINALITY,
}  # fmt: skip
"""Kinds of steps whose result depends on rows, or that let others read them."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("hidden")
    make_hidden_world(made)
    return made


@pytest.fixture(scope="module")
def world(folder: Path) -> HiddenWorld:
    return HiddenWorld(omnigraph.open(folder / "world.omni", actor=KEEPER))


@pytest.fixture(scope="module")
def as_actor(folder: Path, world: HiddenWorld) -> Callable[[str], Graph]:
    policy = AccessPolicy.read(folder / "policy.toml")
    return lambda actor: world.graph.acting_as(actor, policy, "world")


@pytest.fixture
def no_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail a schema change or a merge that gets as far as rows."""

    def refuse(*_: Any, **__: Any) -> None:
        message = "rows were read"
        raise AssertionError(message)

    monkeypatch.setattr(RuleChecks, "run", refuse)
    monkeypatch.setattr(Merge, "decide", refuse)


EDITS = [(kind, edit) for kind, edits in STEPS.items() for edit in edits]
EDITS_OF_HIDDEN_TYPES = [
    (kind, edit) for kind, edit in EDITS if kind not in OF_VISIBLE_TYPES and "New {}" not in edit[1]
]


@pytest.mark.usefixtures("no_reading")
@pytest.mark.parametrize(("kind", "edit"), EDITS_OF_HIDDEN_TYPES)
def test_every_step_of_a_hidden_type_needs_the_right_to_change_it(world, as_actor, kind, edit):
    branch = world.branch()
    wanted = "read type Salary" if kind is StepKind.ADD_TYPE else r"schema_apply type \w+"
    with pytest.raises(NotAllowedError, match=f"ada cannot {wanted} on branch {branch}"):
        as_actor("ada").schema.apply(changed_schema(edit), branch=branch)


@pytest.mark.parametrize(("kind", "edit"), EDITS)
def test_steps_that_depend_on_hidden_rows_need_the_right_to_read_them(world, as_actor, kind, edit):
    wes, branch = as_actor("wes"), world.branch()
    is_read = kind in READ or "more: I32" in edit[1].partition("?")[2].rstrip("?")
    is_read = is_read or (kind is StepKind.ADD_TYPE and "edge New" in edit[1])
    apply = partial(wes.schema.apply, changed_schema(edit), branch=branch)
    if "more: I32?" in edit[1]:
        is_read = False
    if not is_read:
        assert apply().commit_id is not None
        return
    with pytest.raises(NotAllowedError, match="wes cannot read type"):
        apply()


def test_keeper_is_told_which_rows_break_a_new_rule(world):
    with pytest.raises(IntegrityError) as caught:
        world.graph.schema.apply(
            changed_schema(STEPS[StepKind.ADD_RANGE][1]), branch=world.branch()
        )
    assert caught.value.report.total == SALARIES
    assert leaks(str(caught.value))


def test_plan_does_not_depend_on_whether_a_hidden_type_has_rows(world, as_actor):
    edit = STEPS[StepKind.ADD_PROPERTY][1]
    empty = world.branch()
    world.graph.mutate("query q() { delete Salary where grade >= 0 }", branch=empty)

    plans = [
        as_actor("wes").schema.plan(changed_schema(edit), branch=name).to_json()
        for name in ("main", empty)
    ]
    assert plans[0] == plans[1]
    assert plans[0]["hidden"] == list(HIDDEN)
    [step] = plans[0]["steps"]
    assert (step["cost"], step["rows"]) == ("refused", 0)
    assert "2,237" in str(world.graph.schema.plan(changed_schema(edit)).refusals)


def test_merge_shows_conflicts_of_visible_types_without_hidden_edges(world, as_actor):
    for dry_run in (True, False):
        told = []
        for graph in (world.graph, as_actor("wes")):
            merge = partial(graph.merge, "draft/hidden", into=world.branch())
            if dry_run:
                told.append(merge(dry_run=True))
                continue
            with pytest.raises(MergeConflictError) as caught:
                merge()
            told.append(caught.value)
        full, shown = told
        cara = next(each for each in full.conflicts if each.type_name == "Person")
        assert cara.edge_counts == {"Earns": PAID_TO_CARA}
        [only] = shown.conflicts
        assert (only.id, only.edges, only.edge_counts) == ("cara", 0, {})
        assert shown.conflict_count == 1 < full.conflict_count
        assert not leaks(str(shown))
    assert "3 types are hidden" in str(shown)
    assert shown.details["hidden"] == list(HIDDEN)


def test_conflicts_of_schemas_do_not_count_hidden_rows(world, as_actor):
    told = [graph.merge("draft/empty", dry_run=True) for graph in (world.graph, as_actor("wes"))]
    assert [each.conflict_count for each in told] == [1, 1]
    assert "2,237 rows" in str(told[0].conflicts[0])
    assert not leaks(str(told[1]))
    assert told[1].conflicts[0].type_name == "Salary"


@pytest.mark.usefixtures("no_reading")
def test_merge_of_a_hidden_declaration_is_refused_before_rows_are_read(world, as_actor):
    branch = world.branch()
    with pytest.raises(NotAllowedError, match=f"ada cannot merge type Salary on branch {branch}"):
        as_actor("ada").merge("draft/empty", into=branch)


@pytest.mark.usefixtures("no_reading")
def test_merge_of_hidden_changes_is_refused_before_rows_are_read(world, as_actor):
    branch = world.branch()
    with pytest.raises(NotAllowedError, match=f"ada cannot merge type .* on branch {branch}"):
        as_actor("ada").merge("draft/hidden", into=branch)


@pytest.mark.parametrize("dry_run", [True, False])
def test_decisions_about_hidden_rows_are_refused(world, as_actor, dry_run):
    decision = '[{"type": "Salary", "id": "x", "take": "ours"}]'
    with pytest.raises(NotAllowedError, match="wes cannot read type Salary"):
        as_actor("wes").merge(
            "draft/hidden", into=world.branch(), resolve=decision, dry_run=dry_run
        )


def test_author_previews_a_branch_that_changes_visible_types_only(as_actor):
    rob = as_actor("rob")
    shown = rob.proposals.preview(2)
    assert (shown.outcome, shown.conflict_count) == (Outcome.MERGED, 0)
    assert shown.changes.keys() == {"Person"}
    assert shown.hidden == HIDDEN
    with pytest.raises(NotAllowedError, match="rob cannot read type Earns on branch draft/hidden"):
        rob.proposals.preview(1)


def test_branch_that_was_only_indexed_can_be_previewed(world, as_actor):
    branch = world.branch("draft/visible")
    world.graph.ensure_indices(branch=branch, rebuild=True)
    assert as_actor("rob").merge(branch, dry_run=True).changes.keys() == {"Person"}


def test_counts_of_hidden_types_are_left_out(world, as_actor):
    ada = as_actor("ada")
    shown = ada.snapshot()
    assert {str(key.type_name) for key in shown.pins} == {"Person", "Knows", "StoredQuery"}
    assert shown.hidden == HIDDEN
    assert ada.point("main") == shown
    assert ada.embeddings.status() == ()
    assert {each.type_name for each in ada.indexes.list()} == {"Person", "Knows", "StoredQuery"}
    with pytest.raises(NotAllowedError):
        ada.embeddings.status(types="Salary")
    told = Workspace.open(ada, "draft/agent").schema()
    assert (told["rows"]["Person"], told["hidden"]) == (3, list(HIDDEN))
    [full] = world.graph.embeddings.status()
    assert full.current + full.pending == SALARIES


def test_export_leaves_hidden_types_out_and_says_so(as_actor, tmp_path):
    done = as_actor("ada").export(tmp_path / "all.jsonl")
    assert done.rows == {"Person": 3, "StoredQuery": 1, "Knows": 1}
    assert done.hidden == HIDDEN
    for types in ("Salary", ["Person", "Salary"]):
        with pytest.raises(NotAllowedError):
            as_actor("ada").export(tmp_path / "some.jsonl", types=types)
    assert not (tmp_path / "some.jsonl").exists()


def test_feed_and_diffs_leave_hidden_types_out_and_say_so(as_actor):
    ada = as_actor("ada")
    batch = ada.changes()
    assert {name for each in batch.commits for name in each.diff.counts} == {
        "Person", "Knows", "StoredQuery",
    }  # fmt: skip
    assert batch.hidden == HIDDEN
    diff = ada.diff("v1", "draft/hidden")
    assert (diff.counts.keys(), diff.hidden) == ({"Person"}, HIDDEN)
    for named in (
        lambda: ada.diff("v1", "main", types="Salary"),
        lambda: ada.changes(types="Earns"),
    ):
        with pytest.raises(NotAllowedError):
            named()


def test_check_leaves_hidden_types_out_and_says_so(world, as_actor):
    shown, full = as_actor("wes").check(branch="main"), world.graph.check(branch="main")
    assert (shown.hidden, full.hidden) == (HIDDEN, ())
    rows = [report.checked[max(report.checked, key=report.checked.get)] for report in (shown, full)]
    assert rows[0] < 100 < SALARIES < rows[1]


def test_cleanup_does_not_tell_how_much_was_stored_of_hidden_types(world, as_actor):
    # Making the world leaves versions that no commit reads.
    full = world.graph.cleanup(dry_run=True)
    shown = as_actor("wes").cleanup(dry_run=True)
    names = [{each.name for each in result.versions} for result in (full, shown)]
    assert names[0] & {"node:Salary", "edge:Earns", "node:Bonus"}
    assert names[1] == names[0] - {"node:Salary", "edge:Earns", "node:Bonus"}
    assert (shown.hidden, full.hidden) == (HIDDEN, ())
    assert shown.is_empty == full.is_empty


def test_rows_of_a_hidden_type_are_not_found_by_writes(world, as_actor):
    wes = as_actor("wes")
    for text in (
        f"update Salary set {{ maybe: 1 }} where amount > {AMOUNT}",
        "delete Salary where grade = 1",
        "delete Bonus where amount > 0",
    ):
        with pytest.raises(NotAllowedError, match="wes cannot read type"):
            wes.mutate(f"query q() {{ {text} }}", branch=world.branch())
    done = wes.mutate('query q() { insert Bonus { amount: 1 text: "x" } }', branch=world.branch())
    assert (done.commit_id is not None, done.changes, done.hidden) == (True, {}, ("Bonus",))


def test_delete_names_the_edges_that_may_go_with_a_node(world, as_actor):
    # Nobody earns from bob: whether one has such edges is not said.
    for name in ("bob", "cara"):
        with pytest.raises(NotAllowedError, match="ada cannot mutate type Earns"):
            as_actor("ada").mutate(
                f'query q() {{ delete Person where name = "{name}" }}', branch=world.branch()
            )


def test_violations_of_a_hidden_type_have_no_values(world, as_actor):
    row = {"key": "mine", "amount": 1, "grade": 1, "badge": "b5", "note": "x", "state": "open"}
    rows = [{**row, "tags": [1]}]
    for mode in ("append", "overwrite"):
        with pytest.raises(IntegrityError) as caught:
            as_actor("wes").load({"Salary": rows}, mode=mode, branch=world.branch())
        [violation] = caught.value.violations
        assert (violation.id, violation.value) == (None, None)
        assert caught.value.report.total == 1
    with pytest.raises(IntegrityError, match="zqx-5"):
        world.graph.load({"Salary": rows}, branch=world.branch())


def test_comments_on_hidden_rows_are_left_out(world, as_actor):
    assert [each.row.type_name for each in world.graph.proposals.show(1).proposal.comments]
    for actor in ("ada", "wes", "rob"):
        proposals = as_actor(actor).proposals
        assert proposals.show(2).proposal.comments == ()
        assert all(each.comments == () for each in proposals.list())


def test_schema_is_no_secret(as_actor):
    assert "node Salary" in as_actor("rob").schema.show().text
    assert "node Salary" in SCHEMA
