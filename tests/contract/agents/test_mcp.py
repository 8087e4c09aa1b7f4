"""An agent's session: a real client of the protocol's SDK, against a real process or a server."""

import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import anyio
import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS, TextResourceContents

import omnigraph
from omnigraph.agents.protocol import make_server
from omnigraph.agents.workspace import Workspace
from omnigraph.errors import ErrorCode, LimitExceededError, NotAllowedError
from omnigraph.graph import Graph
from omnigraph.model.names import BranchName
from omnigraph.server.routes.agents import branch_of
from tests.support.commands import command
from tests.support.served import Served, serving, settings_for

SCHEMA: Final = """
node Person { name: String @key  note: String? @index }
node Secret { name: String @key }
edge Knows: Person -> Person
"""
PEOPLE: Final = "query q() { match { $p: Person } return { $p.name } order { $p.name } }"
STORED: Final = """
query known($name: String) @description("Whom somebody knows.") @instruction("By name.") {
  match { $p knows $q  $p.name = $name } return { $q.name }
}
query befriend($a: String, $b: String) { insert Knows { from: $a  to: $b } }
"""
BRANCH: Final = "agent/1"


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    made = omnigraph.init(tmp_path / "world.omni", SCHEMA, actor="agent")
    made.mutate(
        'query q() { insert Person { name: "ada" note: "likes engines" } '
        'insert Person { name: "bob" note: "likes tea" } insert Secret { name: "x" } }'
    )
    made.queries.put(STORED)
    made.branches.create("other")
    return made


def session(
    server: Any, story: Callable[[Callable[..., Awaitable[Any]], Client], Awaitable[None]]
) -> None:
    """Let a client tell a story; `ask` returns what a tool answers, and fails if it refuses."""

    async def run() -> None:
        async with Client(server) as client:

            async def ask(tool: str, **arguments: Any) -> Any:
                result = await client.call_tool(tool, arguments)
                assert not result.is_error, result.content
                return result.structured_content

            await story(ask, client)

    anyio.run(run)


def refusal(graph: Graph, tool: str, **arguments: Any) -> str:
    """The code with which a tool refuses a call."""
    codes: list[str] = []

    async def story(_: Any, client: Client) -> None:
        result = await client.call_tool(tool, arguments)
        assert result.is_error, result.structured_content
        codes.append(result.structured_content["code"])

    session(make_server(Workspace(graph, BranchName(BRANCH))), story)
    return codes[0]


async def whole_story(ask: Callable[..., Awaitable[Any]], client: Client) -> None:
    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert {"schema", "query", "search", "diff", "mutate", "stored_known"} <= tools.keys()
    assert tools["stored_known"].description == "Whom somebody knows. By name."
    assert tools["stored_known"].input_schema["required"] == ["name"]

    schema = await ask("schema")
    assert "node Person" in schema["schema"]
    assert schema["rows"]["Person"] == 2
    found = await ask("search", type="Person", property="note", text="engines")
    assert [row["x.name"] for row in found["rows"]] == ["ada"]
    changed = await ask("stored_befriend", a="ada", b="bob")
    assert (changed["branch"], changed["changes"]["Knows"]["inserted"]) == (BRANCH, 1)
    await ask("mutate", query='query q() { insert Person { name: "cy" } }', message="a third")
    assert (await ask("stored_known", name="ada"))["rows"] == [{"q.name": "bob"}]
    assert len((await ask("query", query=PEOPLE))["rows"]) == 3
    assert len((await ask("query", query=PEOPLE, at="main"))["rows"]) == 2
    assert (await ask("history", limit=1))["commits"][0]["message"] == "a third"
    review = await ask("review")
    assert (review["into"], review["conflicts"]) == ("main", 0)
    assert review["counts"]["Person"]["inserted"] == 1
    assert (await ask("propose", title="A third person"))["proposal"] == 1
    texts = [
        content.text
        for resource in (await client.list_resources()).resources
        for content in (await client.read_resource(resource.uri)).contents
        if isinstance(content, TextResourceContents)
    ]
    assert "node Person" in texts[0]
    assert json.loads(texts[1])["writes_to"] == BRANCH


def test_an_agent_reads_writes_on_its_branch_and_shows_it_for_review(graph):
    session(make_server(Workspace(graph, BranchName(BRANCH))), whole_story)

    assert len(graph.query(PEOPLE)) == 2
    assert graph.branches.list() == ("main", BRANCH, "other")
    assert [proposal.source for proposal in graph.proposals.list()] == [BRANCH]
    graph.proposals.merge(1, actor="reviewer")
    assert len(graph.query(PEOPLE)) == 3


def test_the_command_serves_an_agent_on_its_standard_streams(graph):
    program, *arguments = command(
        *("mcp", "--store", graph.uri, "--branch", BRANCH, "--actor", "agent")
    )
    server = StdioServerParameters(command=program, args=arguments, env=dict(os.environ))
    session(server, whole_story)

    assert graph.at(branch=BRANCH).commits.list(limit=1)[0].actor == "agent"


@pytest.fixture
def served(graph, tmp_path):
    with serving(settings_for(tmp_path, {"world": graph.uri})) as running:
        yield running


@asynccontextmanager
async def over_http(served: Served, query: str = "") -> AsyncIterator[Any]:
    """A transport to the server's route, as the actor of its token."""
    url = f"{served.url}/graphs/world/mcp{query}"
    headers = {"Authorization": f"Bearer {served.token}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60) as http,
        streamable_http_client(url, http_client=http) as streams,
    ):
        yield streams


def test_the_server_serves_agents_over_http(graph, served):
    session(over_http(served, f"?branch={BRANCH}"), whole_story)

    assert graph.at(branch=BRANCH).commits.list(limit=1)[0].actor == "ada"
    assert len(graph.query(PEOPLE)) == 2

    async def own_branch(ask: Callable[..., Awaitable[Any]], _: Client) -> None:
        changed = await ask("mutate", query='query q() { insert Person { name: "di" } }')
        assert changed["branch"] == "agent/ada"

    session(over_http(served), own_branch)


def test_no_two_actors_have_the_same_branch():
    names = [
        None, "anonymous", "ada", "Ada", "ada@example.com", "ada-example.com", "ada.example.com",
        "ada/example.com", "ada--example.com", "-ada", "ada-", ".ada", "a..b", "a.b", "..", "@",
        "ä", "ö", "a" * 80, "a" * 81, "a" * 200, "anonymous-", "b5fc85e503f9a4cc",
    ]  # fmt: skip
    own = {branch_of(name): name for name in names}
    assert len(own) == len(names)
    for branch in own:
        assert BranchName.parse(branch) == branch
        # Nor has an actor whose name is the rest of somebody else's branch.
        rest = branch.removeprefix("agent/")
        assert rest in names or branch_of(rest) not in own, rest


def test_an_agent_never_writes_to_main(graph):
    other = graph.at(branch="other")
    for handle, branch in ((graph, "main"), (other, "main"), (other, "other")):
        with pytest.raises(NotAllowedError, match=f"agents cannot write to branch {branch}"):
            Workspace.open(handle, branch)


def test_an_agent_uses_a_graph_that_a_server_has(graph, served):
    with omnigraph.connect(f"{served.url}/graphs/world", served.token) as remote:
        session(make_server(Workspace.open(remote, BRANCH)), whole_story)

    assert graph.at(branch=BRANCH).commits.list(limit=1)[0].actor == "ada"
    assert len(graph.query(PEOPLE)) == 2


def test_an_agent_over_http_leaves_neither_its_branch_nor_its_graph(graph, served):
    before = graph.commits.every()

    async def story(_: Any, client: Client) -> None:
        for tool, arguments in (
            ("mutate", {"query": 'query q() { insert Person { name: "x" } }', "branch": "main"}),
            ("query", {"query": PEOPLE, "at": "../other.omni"}),
            ("stored_known", {"name": "ada", "branch": "other"}),
            ("stored_nothing", {}),
        ):
            assert (await client.call_tool(tool, arguments)).is_error, tool

    session(over_http(served), story)
    assert graph.commits.every() == before
    with served.client() as client:
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        accept = {"Accept": "application/json, text/event-stream"}
        for query in ("?branch=main", "?branch=main&base=other", "?branch=../x", "?base=nothing"):
            refused = client.post(f"/graphs/world/mcp{query}", json=body, headers=accept)
            assert refused.status_code in (400, 403, 404), refused.text
    with served.client(None) as stranger:
        assert stranger.post("/graphs/world/mcp", json=body, headers=accept).status_code == 401


@pytest.mark.parametrize(
    ("tool", "arguments", "code"),
    [
        ("mutate", {"query": 'query q() { insert Person { name: "x" } }', "branch": "main"}, "p"),
        ("mutate", {"query": PEOPLE}, "invalid_input"),
        ("query", {"query": 'query q() { delete Person where name = "ada" }'}, "invalid_input"),
        ("query", {"query": "../../etc/passwd.gq"}, "p"),
        ("query", {}, "p"),
        ("query", {"query": PEOPLE, "at": "../other.omni"}, "invalid_name"),
        ("query", {"query": PEOPLE, "params": [1]}, "p"),
        ("search", {"type": "Person } return { $x.id } //", "property": "n", "text": "x"}, "t"),
        ("search", {"type": "Person", "property": "note }", "text": "x"}, "p"),
        ("search", {"type": "Person", "property": "note", "text": "x", "limit": 10**9}, "p"),
        ("entity", {"type": ["Person"], "id": "ada"}, "p"),
        ("stored_known", {"name": 3}, "p"),
        ("stored_known", {"name": "ada", "branch": "other"}, "p"),
        ("stored_nothing", {}, "p"),
    ],
)
def test_a_malicious_argument_is_refused_and_changes_nothing(graph, tool, arguments, code):
    before = graph.commits.every()
    expected = {"p": "invalid_parameter", "t": "type_not_found"}.get(code, code)

    assert refusal(graph, tool, **arguments) == expected
    assert [commit for commit in graph.commits.every() if commit not in before] == []


@pytest.mark.parametrize("uri", ["omnigraph://nothing", "file:///etc/passwd", "schema"])
def test_unknown_resource_is_an_error_of_the_request(graph, uri):
    async def story(_: Any, client: Client) -> None:
        with pytest.raises(MCPError, match="resource") as refused:
            await client.read_resource(uri)
        assert refused.value.code == INVALID_PARAMS
        assert refused.value.data["code"] == "not_found"

    session(make_server(Workspace(graph, BranchName(BRANCH))), story)


def test_bug_is_logged_and_tells_the_agent_nothing(graph, monkeypatch, caplog):
    def fail(self: Workspace, *_: Any, **__: Any) -> Any:
        raise KeyError(self.graph.uri)

    monkeypatch.setattr(Workspace, "schema", fail)

    async def story(_: Any, client: Client) -> None:
        for ask in (
            lambda: client.call_tool("schema", {}),
            lambda: client.read_resource("omnigraph://schema"),
        ):
            with pytest.raises(MCPError, match="this is a bug") as failed:
                await ask()
            assert failed.value.code == INTERNAL_ERROR
            assert graph.uri not in f"{failed.value} {failed.value.data}"

    session(make_server(Workspace(graph, BranchName(BRANCH))), story)
    assert caplog.text.count("KeyError: ") == 2


def test_busy_server_tells_an_agent_so(graph):
    """Also where a tool does not even begin."""

    async def refuse(call: Callable[[], Any], *, writes: bool) -> Any:
        del call, writes
        message = "the server is busy"
        raise LimitExceededError(message, code=ErrorCode.TOO_BUSY)

    async def story(_: Any, client: Client) -> None:
        result = await client.call_tool("schema", {})
        assert result.is_error
        assert result.structured_content["code"] == "too_busy"
        with pytest.raises(MCPError, match="the server is busy"):
            await client.list_tools()

    session(make_server(Workspace(graph, BranchName(BRANCH)), refuse), story)


def test_a_server_that_only_reads_offers_no_writes(graph):
    async def story(_: Any, client: Client) -> None:
        tools = {tool.name for tool in (await client.list_tools()).tools}
        assert not {"mutate", "review", "propose", "stored_befriend"} & tools
        assert (await client.call_tool("mutate", {"query": PEOPLE})).is_error

    session(make_server(Workspace(graph, BranchName(BRANCH), writes=False)), story)


def test_an_agent_is_bound_by_the_policy(graph, tmp_path):
    (tmp_path / "rules.cedar").write_text(
        'permit(principal, action == Action::"read", resource);'
        'forbid(principal, action, resource == Type::"Secret");'
        'permit(principal, action in [Action::"mutate", Action::"branch_create"], resource)'
        ' when { resource has branch || resource has graph && resource.name like "agent/*" };'
    )
    bound = omnigraph.open(graph.uri, actor="agent", policy=tmp_path / "rules.cedar")

    assert refusal(bound, "entity", type="Secret", id="x") == "forbidden"
    assert (
        refusal(bound, "query", query="query q() { match { $s: Secret } return { $s.name } }")
        == "forbidden"
    )
    delete = 'query q() { delete Secret where name = "x" }'
    assert refusal(bound, "mutate", query=delete) == "forbidden"


def test_an_agent_runs_no_query_of_its_own_that_reads_what_it_may_not(graph, tmp_path):
    (tmp_path / "rules.cedar").write_text(
        'permit(principal, action, resource);forbid(principal, action, resource == Type::"Secret");'
    )
    graph.queries.put("query secrets() { match { $s: Secret } return { count($s) as n } }")
    bound = omnigraph.open(graph.uri, actor="agent", policy=tmp_path / "rules.cedar")
    text = "query {} () {{ match {{ $s: Secret }} return {{ $s.name }} }}"

    async def story(ask: Callable[..., Awaitable[Any]], client: Client) -> None:
        # What main has is the agent's to invoke, also where it writes.
        await ask("mutate", query='query q() { insert Person { name: "eve" } }')
        assert (await ask("stored_secrets"))["rows"] == [{"n": 1}]
        for name in ("mine", "secrets"):
            bound.at(branch=BRANCH).queries.put(text.format(name))
            result = await client.call_tool(f"stored_{name}", {})
            assert result.is_error, result.structured_content
            assert result.structured_content["code"] == "forbidden"

    session(make_server(Workspace(bound, BranchName(BRANCH))), story)
