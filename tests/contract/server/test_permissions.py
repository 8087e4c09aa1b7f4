"""Permissions over HTTP: they say what the server then does, and nothing about what is hidden."""

from collections.abc import Iterator
from typing import Any, Final

import httpx
import pytest

import omnigraph
from omnigraph.server.settings import read_settings
from tests.contract.server.test_http import problem
from tests.support.served import Served, serving, settings_for

SCHEMA: Final = "node Person { name: String @key }\nnode Salary { of: String @key }"
RULES: Final = """
@id("all read") permit(principal, action == Action::"read", resource)
unless { (resource is Branch && resource.name == "secret") };
@id("all draft") permit(
  principal, action in [Action::"mutate", Action::"branch_create", Action::"branch_delete"],
  resource
) when {
  (resource is Branch && resource.name like "draft/*") ||
  (resource is Type && resource.branch like "draft/*")
};
@id("ada") permit(principal == Actor::"ada", action, resource)
unless { (resource is Branch && resource.name == "secret") };
@id("salaries") forbid(principal, action == Action::"mutate", resource == Type::"Salary")
unless { principal == Actor::"ada" };
@id("the secret plan") forbid(
  principal, action == Action::"branch_delete", resource == Branch::"secret"
);
"""
BRANCHES: Final = ("main", "draft/1", "draft/2", "other")
PERSON: Final = 'query q() { insert Person { name: "x" } }'
SALARY: Final = 'query q() { insert Salary { of: "x" } }'


@pytest.fixture(scope="module")
def served(tmp_path_factory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("permissions")
    (folder / "rules.cedar").write_text(RULES)
    graph = omnigraph.init(folder / "world", SCHEMA, actor="ada")
    for name in (*BRANCHES[1:], "secret"):
        graph.branches.create(name)
    graph.branches.create("draft/child", branch="draft/1")
    settings = settings_for(folder, {"world": str(folder / "world")}, policy=folder / "rules.cedar")
    with serving(settings) as running:
        yield running


@pytest.fixture
def eve(served: Served) -> Iterator[httpx.Client]:
    with served.client(served.tokens().create("eve")[0]) as client:
        yield client


def ask(client: httpx.Client, action: str, *branches: str, **more: str) -> dict[str, Any]:
    params = {"action": action, "branch": list(branches), **more}
    answer = client.get("/graphs/world/permissions", params=params)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    assert {name for name, may in found["may"].items() if not may} == found["refusals"].keys()
    return found


@pytest.mark.parametrize("actor", ["ada", "eve"])
def test_permissions_say_what_the_server_does(served, actor):
    with served.client(served.tokens().create(actor)[0]) as client:
        for branch in BRANCHES:
            for name, text in (("Person", PERSON), ("Salary", SALARY)):
                body = {"query": text, "branch": branch}
                done = client.post("/graphs/world/mutate", json=body)
                may = ask(client, "mutate", branch, type=name)["may"][branch]
                assert may == (done.status_code == 200), (branch, name, done.text)
            address = f"/graphs/world/branches/{branch}"
            tried = client.delete(address, params={"dry_run": "true"})
            may = ask(client, "branch_delete", branch)["may"][branch]
            assert may == (tried.status_code == 200), (branch, tried.text)
        for name, source in (("draft/new", "main"), ("new", "main"), ("draft/of", "secret")):
            body = {"name": f"{name}-{actor}", "branch": source}
            may = ask(client, "branch_create", body["name"], source=source)["may"]
            made = client.post("/graphs/world/branches", json=body)
            assert may == {body["name"]: made.status_code == 201}, (body, made.text)


def test_a_refusal_is_that_of_the_action(eve):
    found = ask(eve, "mutate", "main", "draft/1")
    done = eve.post("/graphs/world/mutate", json={"query": PERSON, "branch": "main"})

    assert (found["actor"], found["action"]) == ("eve", "mutate")
    assert found["may"] == {"main": False, "draft/1": True}
    assert found["refusals"] == {"main": problem(done, 403, "forbidden")["detail"]}
    assert ask(eve, "mutate")["may"] == {"main": False}


def test_a_branch_in_use_cannot_be_deleted(served):
    with served.client() as ada:
        found = ask(ada, "branch_delete", *BRANCHES)
    assert found["may"] == {"main": False, "draft/1": False, "draft/2": True, "other": True}
    assert "draft/child builds on it" in found["refusals"]["draft/1"]


@pytest.mark.parametrize("action", ["mutate", "branch_delete", "propose"])
def test_a_hidden_branch_is_like_one_that_does_not_exist(eve, action):
    hidden, missing = (ask(eve, action, name)["refusals"][name] for name in ("secret", "nobody"))

    assert hidden.replace("secret", "nobody") == missing


def test_requests_that_name_no_branch_or_action_are_refused(eve):
    for params in ({"action": "merge"}, {"action": "mutate", "branch": "a b"}, {}):
        answer = eve.get("/graphs/world/permissions", params=params)
        assert answer.status_code == 400, params


def test_a_read_only_graph_refuses_everything_and_hides_its_place(tmp_path):
    omnigraph.init(tmp_path / "world", SCHEMA).branches.create("draft")
    section = {"uri": str(tmp_path / "world"), "read_only": True}
    settings = read_settings(None, state=tmp_path / "state", graphs={"world": section})
    with serving(settings) as served, served.client() as ada:
        for action in ("mutate", "branch_create", "branch_delete", "propose"):
            found = ask(ada, action, "draft")
            assert found["refusals"] == {"draft": "the graph world was opened read-only"}


def test_a_proposal_needs_an_author(tmp_path):
    omnigraph.init(tmp_path / "world", SCHEMA)
    settings = settings_for(tmp_path, {"world": str(tmp_path / "world")}, allow_anonymous=True)
    with serving(settings) as served, served.client(None) as nobody, served.client() as ada:
        assert ask(nobody, "mutate")["may"] == {"main": True}
        assert "author" in ask(nobody, "propose")["refusals"]["main"]
        assert ask(ada, "propose")["may"] == {"main": True}
