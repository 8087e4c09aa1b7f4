"""What `invoke` alone lets an actor run: the texts of main, put there by who may read as much."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

import omnigraph
from omnigraph.engine.query_results import QueryResult
from omnigraph.errors import InvalidInputError, NotAllowedError
from omnigraph.graph import Graph
from omnigraph.schema.stored_queries import DECLARATION

SCHEMA: Final = """
node Person { name: String @key }
node Salary { of: String @key  amount: I64 }
node Note { name: String @key  text: String }
"""
RULES: Final = """
permit(principal in Group::"staff", action, resource);
forbid(principal, action, resource == Type::"Salary") unless { principal == Actor::"hal" };
permit(principal == Actor::"agent", action == Action::"read", resource) when { resource is Branch };
permit(principal == Actor::"agent", action == Action::"invoke", resource);
"""
POLICY: Final = 'rules = "rules.cedar"\n[groups]\nstaff = ["eve", "hal"]\n'
PEOPLE: Final = "query people() { match { $p: Person } return { $p.name } }"
PAID: Final = "query paid() { match { $s: Salary } return { $s.amount } }"
TOTAL: Final = "query paid() { match { $s: Salary } return { sum($s.amount) as amount } }"
INSERT: Final = (
    "query q($name: String, $text: String) { insert StoredQuery { name: $name text: $text } }"
)
ROW: Final = {"name": "paid", "text": PAID}


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    """The graph without its policy: with a query that only hal may have stored."""
    (tmp_path / "rules.cedar").write_text(RULES)
    (tmp_path / "policy.toml").write_text(POLICY)
    made = omnigraph.init(tmp_path / "world.omni", SCHEMA)
    made.mutate(
        'query q() { insert Person { name: "Bob" } insert Salary { of: "Bob" amount: 9 } '
        f'insert Note {{ name: "paid" text: "{PAID}" }} }}'
    )
    made.queries.put(PEOPLE)
    return made


def opened(graph: Graph, actor: str) -> Graph:
    return omnigraph.open(graph.uri, actor=actor, policy=Path(graph.uri).with_name("policy.toml"))


def rows(graph: Graph, name: str, **place: Any) -> list[dict[str, object]]:
    found = graph.queries.run(name, **place)
    assert isinstance(found, QueryResult)
    return found.rows()


def merge_a_draft(eve: Graph) -> object:
    eve.branches.create("draft").queries.put(PAID)
    return eve.merge("draft")


def merge_a_proposal(eve: Graph) -> object:
    eve.branches.create("draft").queries.put(PAID)
    return eve.proposals.merge(eve.proposals.create("draft", "More").number)


def rename_a_type(eve: Graph) -> object:
    # The rows of another type become stored queries.
    other = "".join(line for line in SCHEMA.splitlines(keepends=True) if "Note" not in line)
    text = DECLARATION.replace("StoredQuery {", 'StoredQuery @rename_from("Note") {')
    return eve.schema.apply(other + text)


WAYS: Final[dict[str, Callable[[Graph], object]]] = {
    "put": lambda g: g.queries.put(PAID),
    "put among others": lambda g: g.queries.put(f"{PEOPLE}\n{PAID}"),
    "put over another": lambda g: g.queries.put(PAID.replace("paid", "people")),
    "a mutation": lambda g: g.mutate(INSERT, ROW),
    "an update": lambda g: g.mutate(
        'query q($t: String) { update StoredQuery set { text: $t } where name = "people" }',
        {"t": PAID.replace("paid", "people")},
    ),
    "an insert of what is found": lambda g: g.mutate(
        "query q() { insert StoredQuery { name: $n.name text: $n.text } from match { $n: Note } }"
    ),
    "a load": lambda g: g.load({"StoredQuery": [ROW]}),
    "a load that replaces": lambda g: g.load({"StoredQuery": [ROW]}, mode="overwrite"),
    "a text that fits no schema yet": lambda g: g.mutate(
        INSERT, {"name": "paid", "text": PAID.replace("Salary", "Bonus")}
    ),
    "a subquery": lambda g: g.queries.put(
        "query paid() { match { $p: Person } return { $p.name, count { $s: Salary } as n } }"
    ),
    "a merge": merge_a_draft,
    "a proposal": merge_a_proposal,
}


@pytest.mark.parametrize("way", WAYS)
def test_a_query_reaches_main_only_by_who_may_read_what_it_reads(graph: Graph, way: str) -> None:
    before = graph.query("query q() { match { $s: StoredQuery } return { $s.name, $s.text } }")
    eve, hal = opened(graph, "eve"), opened(graph, "hal")

    with pytest.raises(NotAllowedError, match="the stored query"):
        WAYS[way](eve)
    after = graph.query("query q() { match { $s: StoredQuery } return { $s.name, $s.text } }")
    assert after.rows() == before.rows()
    if "fits no schema" not in way:
        for branch in set(graph.branches.list()) - {"main"}:
            graph.branches.delete(branch)
        WAYS[way](hal)


def test_a_type_does_not_become_that_of_stored_queries_by_who_may_not_read_theirs(tmp_path):
    (tmp_path / "rules.cedar").write_text(RULES)
    (tmp_path / "policy.toml").write_text(POLICY)
    graph = omnigraph.init(tmp_path / "world.omni", SCHEMA)
    graph.mutate(f'query q() {{ insert Note {{ name: "paid" text: "{PAID}" }} }}')

    with pytest.raises(
        NotAllowedError, match="the stored query paid reads what its writer may not"
    ):
        rename_a_type(opened(graph, "eve"))
    rename_a_type(opened(graph, "hal"))
    assert rows(opened(graph, "agent"), "paid") == []


def test_a_change_of_the_schema_makes_no_query_read_more_than_who_made_it_may(graph):
    bonus = f"{SCHEMA}\nnode Bonus {{ amount: I64 }}"
    graph.mutate(
        INSERT, {"name": "late", "text": PAID.replace("Salary", "Bonus").replace("paid", "late")}
    )
    policy = Path(graph.uri).with_name("rules.cedar")
    policy.write_text(
        RULES.replace('== Type::"Salary"', '== Type::"Bonus"').replace(
            "forbid(principal, action,", 'forbid(principal, action == Action::"read",'
        )
    )

    with pytest.raises(NotAllowedError, match="the stored query late reads what"):
        opened(graph, "eve").schema.apply(bonus)
    opened(graph, "hal").schema.apply(bonus)


def test_who_may_invoke_a_query_of_main_runs_it_on_every_branch(graph):
    opened(graph, "hal").queries.put(PAID)
    graph.branches.create("draft")
    agent = opened(graph, "agent")

    assert rows(agent, "paid") == [{"s.amount": 9}]
    assert rows(agent, "paid", branch="draft") == [{"s.amount": 9}]
    assert rows(agent, "paid", commit=graph.baseline()) == [{"s.amount": 9}]
    assert rows(agent.at(branch="draft"), "paid") == [{"s.amount": 9}]
    with pytest.raises(NotAllowedError, match="cannot read type Salary"):
        agent.query(PAID)


def test_a_text_that_main_does_not_have_runs_with_the_rights_of_who_runs_it(graph):
    eve = opened(graph, "eve")
    draft = eve.branches.create("draft")
    draft.queries.put(PAID)
    draft.queries.put(PEOPLE.replace("people", "names"))

    for actor in ("eve", "agent"):
        with pytest.raises(NotAllowedError, match="cannot read type Salary") as caught:
            opened(graph, actor).queries.run("paid", branch="draft")
        assert "with the text that it has on main" in caught.value.__notes__[0]
    assert rows(draft, "names") == [{"p.name": "Bob"}]
    assert rows(opened(graph, "hal"), "paid", branch="draft") == [{"s.amount": 9}]
    # Nor does a branch of that branch, or a name that main has for another text.
    eve.branches.create("other", branch="draft")
    opened(graph, "hal").queries.put(TOTAL)
    for branch in ("draft", "other"):
        with pytest.raises(NotAllowedError):
            opened(graph, "agent").queries.run("paid", branch=branch)


def test_a_text_that_was_replaced_on_main_is_not_invoked_at_an_earlier_commit(graph):
    hal, agent = opened(graph, "hal"), opened(graph, "agent")
    hal.queries.put(PAID)
    before = graph.baseline()
    graph.branches.create("old")
    hal.queries.put(TOTAL)

    assert rows(agent, "paid") == [{"amount": 9}]
    for run in (
        lambda: agent.queries.run("paid", commit=before),
        lambda: agent.at(commit=before).queries.run("paid"),
        lambda: agent.queries.run("paid", branch="old"),
    ):
        with pytest.raises(NotAllowedError):
            run()
    assert rows(hal, "paid", commit=before) == [{"s.amount": 9}]
    hal.queries.delete("paid")
    with pytest.raises(NotAllowedError):
        agent.queries.run("paid", branch="old")


def test_a_stored_query_that_writes_needs_the_rights_of_its_statements(graph):
    derive = 'query copy() { insert Note { name: $s.of text: "x" } from match { $s: Salary } }'
    opened(graph, "eve").queries.put(derive)
    for actor in ("eve", "agent"):
        with pytest.raises(NotAllowedError):
            opened(graph, actor).queries.run("copy")
    assert opened(graph, "hal").queries.run("copy").commit_id is not None


def test_without_a_policy_everything_can_be_stored(graph):
    graph.queries.put(PAID)
    graph.mutate(INSERT, {"name": "odd", "text": "no query"})
    with pytest.raises(InvalidInputError, match="does not fit"):
        graph.queries.run("odd")
