"""A graph with secrets, and a policy that keeps them."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

import omnigraph
from omnigraph.errors import ErrorCode, NotAllowedError, NotFoundError

SCHEMA: Final = """
node Person { name: String @key }
node Salary { key: String @key  amount: I64 }
edge Earns: Person -> Salary
"""
RULES: Final = """
@id("readers") permit(
  principal in Group::"staff", action == Action::"read", resource in Graph::"world"
);
@id("secret") forbid(principal, action, resource) when {
  (resource is Branch && resource.name like "secret/*") ||
  (resource is Type && resource.branch like "secret/*")
} unless { principal == Actor::"hal" };
@id("salaries") forbid(principal, action, resource == Type::"Salary")
unless { principal in Group::"hr" };
@id("drafts") permit(
  principal in Group::"editors",
  action in [Action::"mutate", Action::"load", Action::"branch_create", Action::"branch_delete"],
  resource
) when {
  (resource is Branch && resource.name like "draft/*") ||
  (resource is Type && resource.branch like "draft/*")
};
@id("reviews") permit(
  principal == Actor::"rex", action == Action::"merge", resource in Branch::"main"
) when { context has source && context.source like "draft/*" };
@id("all") permit(principal == Actor::"hal", action, resource);
"""
POLICY: Final = """
rules = "rules.cedar"
[groups]
staff = ["ada", "rex", "hal"]
editors = ["ada"]
hr = ["hal"]
"""
OK, NO, ABSENT = "ok", "no", "absent"


def make_world(folder: Path) -> None:
    """Make the graph `world.omni` and its `policy.toml` in a folder."""
    (folder / "rules.cedar").write_text(RULES)
    (folder / "policy.toml").write_text(POLICY)
    graph = omnigraph.init(folder / "world.omni", SCHEMA)
    graph.mutate(
        'query q() { insert Person { name: "ada" } insert Salary { key: "s" amount: 5 } '
        'insert Earns { from: "ada" to: "s" } }'
    )
    for branch in ("draft/1", "secret/1"):
        graph.branches.create(branch).mutate(
            f'query q() {{ insert Person {{ name: "{branch}" }} }}'
        )
    graph.tags.create("hidden", branch="secret/1")


def outcome(operation: Callable[[], object]) -> str:
    """How an operation ends: `OK`, refused as `NO` or `ABSENT`, or another refusal's text."""
    try:
        operation()
    except NotAllowedError as error:
        return NO if error.code is ErrorCode.FORBIDDEN else str(error)
    except NotFoundError as error:
        return ABSENT if error.hint == "it does not exist, or you may not read it" else str(error)
    return OK
