"""Tools: what an agent can ask of a workspace, each with the shape of its arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from omnigraph.accessors.stored_queries import StoredParameter, StoredQuery
from omnigraph.agents.workspace import Workspace
from omnigraph.errors import InvalidParameterError

STORED_PREFIX: Final = "stored_"
WRITING_TOOLS: Final = frozenset({"mutate", "propose"})
"""The fixed tools that write."""
_LIMIT: Final = 10

_TEXT: Final = {"type": "string"}
_PARAMS: Final = {"type": "object", "description": "The query's parameters by name, without $."}
_AT: Final = {
    "type": "string",
    "description": "A branch, a commit id or a tag; your own branch, or its base, by default.",
}
_QUERY: Final = {
    "type": "string",
    "description": "One query in the .gq language: query q($n: I64) { match { … } return { … } }",
}
_JSON_TYPES: Final = {"String": "string", "Bool": "boolean", "F32": "number", "F64": "number"}


@dataclass(frozen=True, slots=True)
class AgentTool:
    """A tool.

    Attributes:
        properties: The shape of each argument, as JSON Schema has it.
        run: Answers a call with these arguments; it validates their values.
    """

    name: str
    description: str
    properties: Mapping[str, Mapping[str, Any]]
    required: tuple[str, ...]
    run: Callable[[Mapping[str, Any]], dict[str, Any]]
    writes: bool = False

    @property
    def input_schema(self) -> dict[str, Any]:
        """The shape of all arguments. No others are accepted."""
        return {
            "type": "object",
            "properties": dict(self.properties),
            "required": list(self.required),
            "additionalProperties": False,
        }

    def call(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Answer a call."""
        for name in self.required:
            if name not in arguments:
                message = f"{self.name}: the argument {name} is missing"
                raise InvalidParameterError(message, name=name)
        for name in arguments:
            if name not in self.properties:
                message = f"{self.name}: unknown argument {name[:100]!r}"
                hint = f"it takes {', '.join(self.properties) or 'none'}"
                raise InvalidParameterError(message, hint=hint, name=name[:100])
        return self.run(arguments)


def list_tools(workspace: Workspace) -> tuple[AgentTool, ...]:
    """The tools of a workspace: the fixed ones, and one for each stored query."""
    tools = (*_reading(workspace), *(_writing(workspace) if workspace.writes else ()))
    return (*tools, *(_stored_tool(workspace, query) for query in workspace.stored()))


def find_tool(workspace: Workspace, name: str) -> AgentTool:
    """The tool of a name."""
    for tool in list_tools(workspace):
        if tool.name == name:
            return tool
    message = f"tool {name[:100]!r} does not exist"
    raise InvalidParameterError(message, hint="list the tools", name="tool")


def _reading(workspace: Workspace) -> tuple[AgentTool, ...]:
    limit = {"type": "integer", "minimum": 1, "description": f"How many; {_LIMIT} by default."}
    return (
        AgentTool(
            "schema",
            "The node and edge types with their properties, and how many rows each has.",
            {"at": _AT},
            (),
            lambda given: workspace.schema(given.get("at")),
        ),
        AgentTool(
            "query",
            "Run a read query and get its rows.",
            {"query": _QUERY, "params": _PARAMS, "at": _AT},
            ("query",),
            lambda given: workspace.query(given["query"], given.get("params"), given.get("at")),
        ),
        AgentTool(
            "explain",
            "How a query would run, without running it.",
            {"query": _QUERY, "params": _PARAMS, "at": _AT},
            ("query",),
            lambda given: workspace.explain(given["query"], given.get("params"), given.get("at")),
        ),
        AgentTool(
            "search",
            "Rows of a node type by the words of a text property, or by the meaning of a vector.",
            {"type": _TEXT, "property": _TEXT, "text": _TEXT, "limit": limit, "at": _AT},
            ("type", "property", "text"),
            lambda given: workspace.search(
                given["type"],
                given["property"],
                given["text"],
                given.get("limit", _LIMIT),
                given.get("at"),
            ),
        ),
        AgentTool(
            "entity",
            "One node or edge by its type and id.",
            {"type": _TEXT, "id": _TEXT, "at": _AT},
            ("type", "id"),
            lambda given: workspace.entity(given["type"], given["id"], given.get("at")),
        ),
        AgentTool(
            "history",
            "The newest commits: who changed what, when and why.",
            {"limit": limit, "at": _AT},
            (),
            lambda given: workspace.history(given.get("limit", _LIMIT), given.get("at")),
        ),
        AgentTool(
            "diff",
            "The rows that differ between two branches, commits or tags.",
            {"before": _TEXT, "after": _TEXT},
            ("before", "after"),
            lambda given: workspace.diff(given["before"], given["after"]),
        ),
        AgentTool(
            "branches",
            "The branches, and the one that you write to.",
            {},
            (),
            lambda _: workspace.branches(),
        ),
    )


def _writing(workspace: Workspace) -> tuple[AgentTool, ...]:
    message = {"type": "string", "description": "Why: it is kept in the history."}
    return (
        AgentTool(
            "mutate",
            "Insert, update or delete on your branch, in one commit. Other branches do not change.",
            {"query": _QUERY, "params": _PARAMS, "message": message},
            ("query",),
            lambda given: workspace.mutate(
                given["query"], given.get("params"), given.get("message")
            ),
            writes=True,
        ),
        AgentTool(
            "review",
            "What your branch changes, for the person who decides whether to merge it.",
            {},
            (),
            lambda _: workspace.review(),
        ),
        AgentTool(
            "propose",
            "Ask people to review your branch and to merge it.",
            {
                "title": {"type": "string", "description": "One line that says what changes."},
                "description": {"type": "string", "description": "Why, for the reviewers."},
            },
            ("title",),
            lambda given: workspace.propose(given["title"], given.get("description", "")),
            writes=True,
        ),
    )


def _stored_tool(workspace: Workspace, query: StoredQuery) -> AgentTool:
    texts = (query.description or f"The stored query {query.name}.", query.instruction)
    return AgentTool(
        f"{STORED_PREFIX}{query.name}",
        " ".join(text for text in texts if text),
        {each.name: _json_shape(each) for each in query.parameters},
        tuple(each.name for each in query.parameters if not each.nullable),
        partial(workspace.run, query),
        writes=bool(query.changes),
    )


def _json_shape(parameter: StoredParameter) -> dict[str, Any]:
    """The shape of a stored query's parameter.

    >>> _json_shape(StoredParameter("n", "I64", nullable=False))
    {'type': 'integer', 'description': 'I64'}
    >>> _json_shape(StoredParameter("when", "Date", nullable=True))
    {'type': 'string', 'description': 'Date'}
    """
    name = parameter.type
    if name.startswith(("[", "Vector")):
        kind = "array"
    elif name[0] in "IU" and name[1:].isdecimal():
        kind = "integer"
    else:
        kind = _JSON_TYPES.get(name, "string")
    return {"type": kind, "description": name}
