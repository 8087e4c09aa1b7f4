"""Questions to a policy: may this actor do this, here? And the answers, with the rules behind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from omnigraph.policy.actions import Action

ANONYMOUS: Final = "omnigraph:anonymous"
"""Who acts without a name; no caller may use a name of this form."""

VOCABULARY: Final = f"""
entity Group;
entity Actor in [Group];
entity Graph {{ name: String }};
entity Branch in [Graph] {{ name: String, graph: String }};
entity Type in [Branch] {{ name: String, branch: String, graph: String }};
entity Query in [Branch] {{ name: String, branch: String, graph: String }};
action {", ".join(f'"{action}"' for action in Action)} appliesTo {{
  principal: [Actor],
  resource: [Graph, Branch, Type, Query],
  context: {{ source?: String, approvals?: Long }}
}};
"""
"""What rules can name, as a schema of Cedar."""


@dataclass(frozen=True, slots=True)
class Resource:
    """What an action is done to: a graph, a branch of it, or a type or stored query on that."""

    graph: str
    branch: str | None = None
    type_name: str | None = None
    query_name: str | None = None

    def __str__(self) -> str:
        if self.branch is None:
            return f"graph {self.graph}"
        if self._part is None:
            return f"branch {self.branch}"
        kind, name = self._part
        return f"{kind.lower()} {name} on branch {self.branch}"

    @property
    def _part(self) -> tuple[str, str] | None:
        """The kind and the name of what it is on the branch; None for the branch itself."""
        if self.type_name is not None:
            return "Type", self.type_name
        return None if self.query_name is None else ("Query", self.query_name)

    @property
    def reference(self) -> dict[str, str]:
        """The name of its entity."""
        if self.branch is None:
            return _reference("Graph", self.graph)
        return _reference(*(self._part or ("Branch", self.branch)))

    def entities(self) -> Iterator[dict[str, Any]]:
        """It and everything that it is part of: a type is in a branch, which is in a graph."""
        graph = _reference("Graph", self.graph)
        yield {"uid": graph, "attrs": {"name": self.graph}, "parents": []}
        if self.branch is None:
            return
        branch = _reference("Branch", self.branch)
        attributes = {"name": self.branch, "graph": self.graph}
        yield {"uid": branch, "attrs": attributes, "parents": [graph]}
        if self._part is not None:
            attributes = {"name": self._part[1], "branch": self.branch, "graph": self.graph}
            yield {"uid": self.reference, "attrs": attributes, "parents": [branch]}


@dataclass(frozen=True, slots=True)
class AccessQuestion:
    """May this actor do this, here?

    Attributes:
        actor: None for an actor without a name.
        source: The branch that a merge brings in, or that a new branch starts at.
        approvals: How many reviewers approved what a merge brings in.
    """

    actor: str | None
    action: Action
    resource: Resource
    source: str | None = None
    approvals: int = 0

    @property
    def principal(self) -> str:
        """The actor as rules name it."""
        return ANONYMOUS if self.actor is None else self.actor

    def request(self) -> dict[str, Any]:
        """The question as Cedar takes it."""
        return {
            "principal": _reference("Actor", self.principal),
            "action": _reference("Action", self.action),
            "resource": self.resource.reference,
            "context": {
                **({} if self.source is None else {"source": self.source}),
                **({"approvals": self.approvals} if self.action is Action.MERGE else {}),
            },
        }

    def entities(self, groups: Mapping[str, tuple[str, ...]]) -> list[dict[str, Any]]:
        """Everything that the rules may ask about, given the groups and their members."""
        parents = [_reference("Group", name) for name in groups if self.principal in groups[name]]
        actor = {"uid": _reference("Actor", self.principal), "attrs": {}, "parents": parents}
        return [actor, *self.resource.entities()]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a policy says to a question.

    Attributes:
        rules: The rules that decided it, by name; none where no rule allows it.
        faults: Rules that could not be evaluated, and why. They allow and forbid nothing.
        protection: Why the protection of a branch forbids it; None if it does not.
    """

    is_allowed: bool
    rules: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()
    protection: str | None = None

    @property
    def why(self) -> str:
        """The rules behind the answer, as a sentence without its beginning.

        >>> Answer(is_allowed=False).why
        'no rule permits it'
        >>> Answer(is_allowed=False, rules=("rule 2 (line 4)",)).why
        'rule 2 (line 4) forbids it'
        """
        if self.protection is not None:
            return self.protection
        if not self.rules:
            return "no rule permits it"
        verb = "permits" if self.is_allowed else "forbids"
        if len(self.rules) > 1:
            verb = verb.removesuffix("s")
        return f"{' and '.join(self.rules)} {verb} it"


def _reference(kind: str, name: str) -> dict[str, str]:
    return {"type": kind, "id": str(name)}
