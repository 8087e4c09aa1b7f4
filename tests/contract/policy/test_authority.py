"""What a policy lets each actor do, through the facade. The tables are written by hand."""

import json
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from shutil import copytree
from typing import Final

import pytest

import omnigraph
from omnigraph.errors import (
    FeedGapError,
    IntegrityError,
    InvalidInputError,
    NotAllowedError,
    NotFoundError,
)
from omnigraph.graph import Graph
from tests.contract.policy.worlds import ABSENT, NO, OK, RULES, SCHEMA, outcome

PEOPLE: Final = "query q() { match { $p: Person } return { $p.name } }"
SALARIES: Final = "query q() { match { $p earns $s } return { $p.name, $s.amount } }"
ADD: Final = 'query q() { insert Person { name: "new" } }'
RAISE: Final = 'query q() { update Salary set { amount: 9 } where key = "s" }'


def opened(place: Path, actor: str | None) -> Graph:
    return omnigraph.open(place / "world.omni", actor=actor, policy=place / "policy.toml")


Operation = Callable[[Graph], object]
OPERATIONS: Final[dict[str, Operation]] = {
    "query": lambda g: g.query(PEOPLE),
    "query a type": lambda g: g.query(SALARIES),
    "explain a type": lambda g: g.explain(SALARIES),
    "an entity of a type": lambda g: g.entity("Salary", "s"),
    "query a branch": lambda g: g.query(PEOPLE, branch="secret/1"),
    "a handle on a branch": lambda g: g.at(branch="secret/1"),
    "query by a tag": lambda g: g.query(PEOPLE, commit="hidden"),
    "a tag": lambda g: g.tags.show("hidden"),
    "diff with a branch": lambda g: g.diff("main", "secret/1"),
    "changes of a branch": lambda g: g.changes(branch="secret/1"),
    "mutate main": lambda g: g.mutate(ADD),
    "mutate a draft": lambda g: g.mutate(ADD, branch="draft/1"),
    "mutate a type": lambda g: g.mutate(RAISE, branch="draft/1"),
    "load main": lambda g: g.load({"Person": [{"name": "x"}]}, index=False),
    "load a draft": lambda g: g.load({"Person": [{"name": "x"}]}, branch="draft/1"),
    "load to a new branch": lambda g: g.load(
        {"Person": [{"name": "x"}]}, branch="new", start="main"
    ),
    "create a draft": lambda g: g.branches.create("draft/2"),
    "create another": lambda g: g.branches.create("mine"),
    "delete a draft": lambda g: g.branches.delete("draft/1"),
    "delete a hidden branch": lambda g: g.branches.delete("secret/1", dry_run=True),
    "merge a draft": lambda g: g.merge("draft/1"),
    "preview a merge": lambda g: g.merge("draft/1", dry_run=True),
    "merge a hidden branch": lambda g: g.merge("secret/1"),
    "change the schema": lambda g: g.schema.apply(f"{SCHEMA} node City {{ name: String @key }}"),
    "tag": lambda g: g.tags.create("v1"),
    "export": lambda g: g.export(Path(g.uri).parent / "people.jsonl", types=["Person"]),
    "optimize": lambda g: g.optimize(),
    "index": lambda g: g.ensure_indices(),
    "cleanup": lambda g: g.cleanup(dry_run=True),
    "check": lambda g: g.check(rows=False),
    "repair": lambda g: g.repair(dry_run=True),
    "recoveries": lambda g: g.recoveries.list(),
    "purge": lambda g: g.schema.purge(dry_run=True),
    "a setting": lambda g: g.settings.set("query.timeout", "5s"),
    "all settings": lambda g: g.settings.list(),
    "one setting": lambda g: g.settings.get("query.timeout"),
    "recover": lambda g: g.refresh(),
}
# fmt: off
EXPECTED: Final[dict[str, tuple[str, str, str, str]]] = {
    #                          ada      rex      hal   nobody
    "query":                  (OK,      OK,      OK,   ABSENT),
    "query a type":           (NO,      NO,      OK,   ABSENT),
    "explain a type":         (NO,      NO,      OK,   ABSENT),
    "an entity of a type":    (NO,      NO,      OK,   ABSENT),
    "query a branch":         (ABSENT,  ABSENT,  OK,   ABSENT),
    "a handle on a branch":   (ABSENT,  ABSENT,  OK,   ABSENT),
    "query by a tag":         (ABSENT,  ABSENT,  OK,   ABSENT),
    "a tag":                  (ABSENT,  ABSENT,  OK,   ABSENT),
    "diff with a branch":     (ABSENT,  ABSENT,  OK,   ABSENT),
    "changes of a branch":    (ABSENT,  ABSENT,  OK,   ABSENT),
    "mutate main":            (NO,      NO,      OK,   NO),
    "mutate a draft":         (OK,      NO,      OK,   NO),
    "mutate a type":          (NO,      NO,      OK,   NO),
    "load main":              (NO,      NO,      OK,   NO),
    "load a draft":           (OK,      NO,      OK,   NO),
    "load to a new branch":   (NO,      NO,      OK,   ABSENT),
    "create a draft":         (OK,      NO,      OK,   ABSENT),
    "create another":         (NO,      NO,      OK,   ABSENT),
    "delete a draft":         (OK,      NO,      OK,   ABSENT),
    "delete a hidden branch": (ABSENT,  ABSENT,  OK,   ABSENT),
    "merge a draft":          (NO,      OK,      OK,   ABSENT),
    "preview a merge":        (OK,      OK,      OK,   ABSENT),
    "merge a hidden branch":  (ABSENT,  ABSENT,  OK,   ABSENT),
    "change the schema":      (NO,      NO,      OK,   NO),
    "tag":                    (NO,      NO,      OK,   ABSENT),
    "export":                 (NO,      NO,      OK,   ABSENT),
    "optimize":               (NO,      NO,      OK,   NO),
    "index":                  (NO,      NO,      OK,   NO),
    "cleanup":                (NO,      NO,      OK,   NO),
    "check":                  (NO,      NO,      OK,   NO),
    "repair":                 (NO,      NO,      OK,   NO),
    "recoveries":             (NO,      NO,      OK,   NO),
    "purge":                  (NO,      NO,      OK,   NO),
    "a setting":              (NO,      NO,      OK,   NO),
    "all settings":           (OK,      OK,      OK,   NO),
    "one setting":            (OK,      OK,      OK,   NO),
    "recover":                (NO,      NO,      OK,   NO),
}
# fmt: on
ACTORS: Final = ("ada", "rex", "hal", None)


@pytest.mark.parametrize("actor", ACTORS)
def test_each_actor_may_do_what_the_table_says(place: Path, actor: str | None) -> None:
    assert EXPECTED.keys() == OPERATIONS.keys()
    expected = {name: row[ACTORS.index(actor)] for name, row in EXPECTED.items()}
    before = omnigraph.open(place / "world.omni").commits.every()
    answers = {}
    for name, operation in OPERATIONS.items():
        # What is allowed changes the graph; what is refused must not, and shares one.
        where = place
        if expected[name] == OK:
            where = place.with_name(name)
            copytree(place, where)
        answers[name] = outcome(partial(operation, opened(where, actor)))
    assert answers == expected
    assert omnigraph.open(place / "world.omni").commits.every() == before


def test_what_is_hidden_looks_like_what_does_not_exist(place):
    graph = opened(place, "ada")
    errors = []
    for name in ("secret/1", "secret/2"):
        with pytest.raises(NotFoundError) as caught:
            graph.at(branch=name)
        errors.append((type(caught.value), caught.value.message.replace(name, "…")))
    assert errors[0] == errors[1]


@pytest.mark.parametrize(
    "deed",
    [
        # None of these branches exists; hints name what is there, to who may know it.
        lambda g, name: g.mutate(ADD, branch=f"draft/{name}"),
        lambda g, name: g.load({"Person": [{"name": "x"}]}, branch=f"draft/{name}"),
        lambda g, name: g.mutate(ADD, branch=f"draft/{name}", key="k"),
        lambda g, name: g.load({"Person": [{"name": "x"}]}, branch=f"draft/{name}", key="k"),
        lambda g, name: g.ensure_indices(branch=f"draft/{name}"),
        # Tags of hidden branches, whole and in part, as what a branch is expected to be at.
        lambda g, name: g.mutate(ADD, branch="draft/1", expect_head=name),
        lambda g, name: g.load({"Person": []}, branch="draft/1", expect_head=name),
        lambda g, name: g.merge("draft/1", expect_source=name),
        lambda g, name: g.merge("draft/1", expect_head=name),
        lambda g, name: g.schema.apply(SCHEMA, branch="draft/1", expect_head=name),
        # Branches that a load would create if they were not there.
        lambda g, name: g.load({"Person": []}, branch=name, start="main"),
        lambda g, name: g.load({"Person": []}, branch="draft/1", start=name),
    ],
)
def test_no_error_tells_hidden_names_from_others(place, deed):
    errors = set()
    opened(place, "hal").branches.create("hidden-branch", branch="secret/1")
    (place / "rules.cedar").write_text(
        f"{RULES} forbid(principal, action, resource) when {{ resource is Branch && "
        'resource.name like "hidden*" } unless { principal == Actor::"hal" };'
    )
    ada = opened(place, "ada")
    for name in ("hidden", "hidde", "nothing", "hidden-branch", "secret/1"):
        with pytest.raises((NotFoundError, NotAllowedError)) as caught:
            deed(ada, name)
        told = f"{type(caught.value)} {caught.value} {caught.value.details}"
        # Rules are no secret, and other ones forbid other names.
        errors.add(re.sub(r": [^:]* (permits|forbids) it ", ": … ", told).replace(name, "…"))
    assert len(errors) == 1, errors


def test_a_graph_is_opened_by_who_may_not_maintain_it(place):
    assert len(opened(place, "ada").query(PEOPLE)) == 1


def test_lists_leave_out_what_is_hidden(place):
    ada, hal = opened(place, "ada"), opened(place, "hal")

    assert ada.branches.list() == ("main", "draft/1")
    assert hal.branches.list() == ("main", "draft/1", "secret/1")
    assert ada.tags.list() == ()
    assert [tag.name for tag in hal.tags.list()] == ["hidden"]
    assert {commit.branch for commit in ada.commits.every()} == {"main", "draft/1"}


def test_a_commit_of_a_hidden_branch_is_absent_by_its_id(place):
    hidden = opened(place, "hal").commits.list(branch="secret/1", limit=1)[0].commit_id
    ada = opened(place, "ada")

    for read in (
        lambda: ada.query(PEOPLE, commit=hidden),
        lambda: ada.commits.show(hidden),
        lambda: ada.commits.changes(hidden),
        lambda: ada.diff("main", hidden),
    ):
        with pytest.raises(NotFoundError, match=r"branch, commit or tag .* does not exist"):
            read()


def test_a_branch_does_not_show_the_commits_of_the_hidden_one_that_it_came_from(place):
    graph = omnigraph.open(place / "world.omni")
    secret = graph.at(branch="secret/1")
    secret.mutate('query q() { insert Person { name: "x" } }', message="why they left")
    opened_up = secret.branches.create("draft/2")
    own = opened_up.mutate(ADD).commit_id
    ada = opened(place, "ada")

    shown = ada.commits.list(branch="draft/2")
    assert [commit.branch for commit in shown] == ["draft/2", "main", "main"]
    assert ada.commits.list(branch="draft/2", limit=2) == shown[:2]
    # What the branch itself changed is its readers' business, from where it was created.
    fork = secret.baseline()
    [change] = ada.changes(branch="draft/2", after=fork).commits
    assert change.commit.commit_id == own
    assert ada.commits.changes(own).counts["Person"].inserted == 1
    with pytest.raises(FeedGapError) as gap:
        ada.changes(branch="draft/2", types="Person")
    assert "secret" not in f"{gap.value} {gap.value.details}"
    assert outcome(lambda: ada.changes(after="hidden")) == ABSENT


def test_a_type_is_not_renamed_by_who_may_not_read_it(place):
    (place / "rules.cedar").write_text(
        "permit(principal, action, resource);"
        'forbid(principal, action == Action::"read", resource == Type::"Salary")'
        ' unless { principal == Actor::"hal" };'
    )
    ada, hal = opened(place, "ada"), opened(place, "hal")
    renamed = SCHEMA.replace("node Salary {", 'node Pay @rename_from("Salary") {')
    renamed = renamed.replace("-> Salary", "-> Pay")
    with pytest.raises(NotAllowedError, match="ada cannot read type Salary on branch draft/1"):
        ada.schema.apply(renamed, branch="draft/1")
    # Other changes of the type are allowed, and so is a rename of what she may read.
    ada.schema.apply(SCHEMA.replace("amount: I64", "amount: I64  note: String?"), branch="draft/1")
    person = SCHEMA.replace("node Person {", 'node Human @rename_from("Person") {')
    ada.branches.create("draft/3")
    ada.schema.apply(person.replace("Earns: Person", "Earns: Human"), branch="draft/3")
    # Nor does she bring in what somebody else has renamed.
    hal.branches.create("draft/2").schema.apply(renamed)
    with pytest.raises(NotAllowedError, match="ada cannot read type Salary on branch main"):
        ada.merge("draft/2")
    hal.merge("draft/2")


def test_the_actor_of_a_write_counts_and_not_that_of_the_handle(place):
    with pytest.raises(NotAllowedError, match="ada cannot mutate branch main"):
        opened(place, "hal").mutate(ADD, actor="ada")


def test_inserting_what_a_match_finds_needs_the_right_to_read_it(place):
    derive = "query q() {{ insert Person {{ name: $x.{} }} from match {{ $x: {} }} }}"
    ada, hal = opened(place, "ada"), opened(place, "hal")
    ada.mutate(derive.format("name", "Person"), branch="draft/1")
    with pytest.raises(NotAllowedError):
        ada.mutate(derive.format("key", "Salary"), branch="draft/1")
    with pytest.raises(NotAllowedError):
        hal.mutate(derive.format("key", "Salary"), branch="draft/1", actor="ada")
    hal.mutate(derive.format("key", "Salary"), branch="draft/1")


def test_deleting_a_node_needs_the_right_to_delete_its_edges(place):
    opened(place, "hal").mutate(
        'query q() { insert Earns { from: "ada" to: "s" } }', branch="draft/1"
    )
    # Earns is no secret; Salary is, and stays.
    deleted = opened(place, "ada").mutate(
        'query q() { delete Person where name = "ada" }', branch="draft/1"
    )
    assert deleted.commit_id is not None
    with pytest.raises(NotAllowedError, match=r"mutate type Salary.*salaries \(line \d+\) forbids"):
        opened(place, "ada").mutate(
            "query q() { delete Salary where amount > 0 }", branch="draft/1"
        )


def test_who_may_not_write_a_type_does_not_learn_which_rows_it_has(place):
    graph = opened(place, "ada")
    row = {"key": "s", "amount": 1}
    (place / "rows.jsonl").write_text(json.dumps({"type": "Salary", "data": row}))
    with pytest.raises(IntegrityError):
        opened(place, "hal").load({"Salary": [row]}, branch="draft/1")
    for source in ({"Salary": [row]}, place / "rows.jsonl"):
        with pytest.raises(NotAllowedError, match="ada cannot load type Salary"):
            graph.load(source, branch="draft/1")
    with pytest.raises(NotAllowedError, match="ada cannot load type Salary"):
        graph.load(
            {"Salary": [row]}, branch="draft/1", on_error="quarantine", rejects=place / "rejects"
        )
    with pytest.raises(NotAllowedError, match="ada cannot mutate type Salary"):
        graph.mutate('query q() { insert Salary { key: "s" amount: 1 } }', branch="draft/1")
    assert not (place / "rejects").exists()


def test_maintenance_that_follows_a_write_is_not_refused(place):
    graph = opened(place, "ada").at(branch="draft/1")
    for number in range(40):
        graph.mutate(f'query q() {{ insert Person {{ name: "n{number}" }} }}')
    kinds = [commit.operation for commit in graph.commits.list()]
    assert "optimize" in kinds


def test_a_policy_of_the_environment_holds_too(place, monkeypatch):
    monkeypatch.setenv("OMNIGRAPH_POLICY", str(place / "policy.toml"))
    monkeypatch.setenv("OMNIGRAPH_ACTOR", "ada")

    reader = omnigraph.open(place / "world.omni", read_only=True)
    assert len(reader.query(PEOPLE)) == 1
    with pytest.raises(NotAllowedError, match="ada cannot read type Salary on branch main"):
        reader.query(SALARIES)


@pytest.mark.parametrize(
    ("rules", "fault"),
    [
        ('permit(principal, action == Action::"reed", resource);', "rule 1 is not valid: unrec"),
        ("\n\npermit(principal action, resource);", r"rules.cedar:3: rule 1 is not valid: unexp"),
        ('permit(principal, action, resource == Table::"x");', "rule 1 is not valid: unrecognized"),
        ("permit(principal, action, resource) when { resource.size > 3 };", "attribute `size`"),
    ],
)
def test_a_rule_that_is_not_valid_is_refused_where_it_is(place, rules, fault):
    (place / "rules.cedar").write_text(rules)
    with pytest.raises(InvalidInputError, match=fault):
        opened(place, "ada")


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("rules = 3", "rules is no text"),
        ("", "rules is missing"),
        ('rules = "rules.cedar"\nrule = 1', "unknown key 'rule'"),
        ('rules = "rules.cedar"\n[groups]\na = "b"', "groups.a is not a list of actors"),
        ('rules = "rules.cedar"\n[[tests]]\nactor = "a"', "test 1: expect is neither"),
        (
            'rules = "rules.cedar"\n[[tests]]\nexpect = "deny"\naction = "reed"',
            "'reed' is not a valid action",
        ),
        ("rules = ", "is not TOML"),
    ],
)
def test_a_policy_that_is_not_valid_is_refused_by_key(place, text, fault):
    (place / "policy.toml").write_text(text)
    with pytest.raises(InvalidInputError, match=fault):
        opened(place, "ada")


def test_a_policy_that_is_missing_is_refused(place):
    with pytest.raises(NotFoundError, match=r"policy .* does not exist"):
        omnigraph.open(place / "world.omni", policy=place / "nothing.toml")
