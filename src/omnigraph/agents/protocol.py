"""The Model Context Protocol: a workspace as a server of tools and resources."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib import metadata
from typing import Any, Final, Protocol, TypeVar

import anyio
import mcp_types as types
from anyio import to_thread
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError

from omnigraph.agents.tools import (
    STORED_PREFIX,
    WRITING_TOOLS,
    AgentTool,
    find_tool,
    list_tools,
)
from omnigraph.agents.workspace import Workspace
from omnigraph.errors import NotFoundError, OmnigraphError

_log: Final = logging.getLogger("omnigraph.agents")

_T = TypeVar("_T")
Facts = dict[str, Any]


class CallRunner(Protocol):
    """Runs a call that reads, or may write, beside the event loop."""

    async def __call__(self, call: Callable[[], _T], *, writes: bool) -> _T:
        """What the call returns; it raises what the call raises."""
        ...


_SCHEMA: Final = "omnigraph://schema"
_BRANCHES: Final = "omnigraph://branches"
_INSTRUCTIONS: Final = """A typed property graph with branches.
Ask `schema` first: queries name its types.
Whatever you write goes to a branch of your own, which a person reviews and merges."""


def make_server(
    workspace: Workspace,
    run: CallRunner | None = None,
    shown: Callable[[Facts], Facts] = lambda facts: facts,
) -> Server[Any]:
    """A server of a workspace, to be run over any transport.

    Args:
        run: Runs what reads or writes the graph; in a thread when None.
        shown: An error as the agent may see it.
    """
    beside = run or _in_thread

    async def on_list_tools(
        _: ServerRequestContext[Any], __: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        with _translate_errors(shown):
            tools = await beside(lambda: list_tools(workspace), writes=False)
        return types.ListToolsResult(tools=[_describe(tool) for tool in tools])

    async def on_call_tool(
        _: ServerRequestContext[Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        try:
            with _report_bugs():
                call = partial(_call, workspace, params)
                return await beside(call, writes=_may_write(params.name))
        except OmnigraphError as error:
            # The agent reads the refusal and may correct the call; the protocol has not failed.
            return _result(shown(_refusal(error)), is_error=True)

    async def on_list_resources(
        _: ServerRequestContext[Any], __: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        return types.ListResourcesResult(
            resources=[
                types.Resource(uri=_SCHEMA, name="schema", mime_type="text/plain"),
                types.Resource(uri=_BRANCHES, name="branches", mime_type="application/json"),
            ]
        )

    async def on_read_resource(
        _: ServerRequestContext[Any], params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        with _translate_errors(shown):
            text = await beside(lambda: _read_resource(workspace, str(params.uri)), writes=False)
        contents = types.TextResourceContents(uri=str(params.uri), text=text)
        return types.ReadResourceResult(contents=[contents])

    return Server(
        "omnigraph",
        version=metadata.version("omnigraph"),
        instructions=_INSTRUCTIONS,
        on_list_tools=on_list_tools,
        on_call_tool=on_call_tool,
        on_list_resources=on_list_resources,
        on_read_resource=on_read_resource,
    )


def serve_stdio(workspace: Workspace) -> None:
    """Serve one client on standard input and output, until it closes them."""

    async def serve() -> None:
        server = make_server(workspace)
        async with stdio_server() as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())

    anyio.run(serve)


async def serve_request(
    workspace: Workspace,
    run: CallRunner,
    shown: Callable[[Facts], Facts],
    *,
    scope: Any,
    receive: Any,
    send: Any,
    bytes_max: int,
) -> None:
    """Answer one request of streamable HTTP. Nothing is kept from one request to the next.

    Args:
        shown: An error as the agent may see it.
        scope: The request as ASGI has it, with `receive` and `send`.
        bytes_max: How large its body may be.
    """
    manager = StreamableHTTPSessionManager(
        make_server(workspace, run, shown),
        json_response=True,
        stateless=True,
        max_request_body_size=bytes_max,
    )
    async with manager.run():
        await manager.handle_request(scope, receive, send)


def _may_write(tool: str) -> bool:
    """Whether a tool may write: those of stored queries do so by what is stored."""
    return tool in WRITING_TOOLS or tool.startswith(STORED_PREFIX)


async def _in_thread(call: Callable[[], _T], *, writes: bool) -> _T:
    """Run what reads and writes the graph, which is synchronous, beside the protocol."""
    del writes
    return await to_thread.run_sync(call)


def _call(workspace: Workspace, params: types.CallToolRequestParams) -> types.CallToolResult:
    answer = find_tool(workspace, params.name).call(params.arguments or {})
    return _result(answer, is_error=False)


@contextmanager
def _translate_errors(shown: Callable[[Facts], Facts]) -> Iterator[None]:
    """Re-raise our errors as those of the protocol."""
    try:
        with _report_bugs():
            yield
    except OmnigraphError as error:
        facts = shown(_refusal(error))
        raise MCPError(types.INVALID_PARAMS, str(facts["error"]), facts) from error


@contextmanager
def _report_bugs() -> Iterator[None]:
    """Log errors that are not ours, and tell the agent nothing of them: they may have any value."""
    try:
        yield
    except (OmnigraphError, MCPError):
        raise
    except Exception as bug:
        _log.exception("a request of an agent failed")
        message = "the request failed: this is a bug of Omnigraph"
        raise MCPError(types.INTERNAL_ERROR, message) from bug


def _refusal(error: OmnigraphError) -> Facts:
    return {"code": str(error.code), "error": error.message, "hint": error.hint}


def _result(facts: Facts, *, is_error: bool) -> types.CallToolResult:
    text = json.dumps(facts, ensure_ascii=False, default=str)
    return types.CallToolResult(
        content=[types.TextContent(text=text)], structured_content=facts, is_error=is_error
    )


def _describe(tool: AgentTool) -> types.Tool:
    return types.Tool(
        name=tool.name,
        description=tool.description,
        input_schema=tool.input_schema,
        annotations=types.ToolAnnotations(read_only_hint=not tool.writes, destructive_hint=False),
    )


def _read_resource(workspace: Workspace, uri: str) -> str:
    match uri:
        case "omnigraph://schema":
            return str(workspace.schema()["schema"])
        case "omnigraph://branches":
            return json.dumps(workspace.branches())
        case _:
            message = f"resource {uri[:200]!r} does not exist"
            raise NotFoundError(message, hint=f"there are {_SCHEMA} and {_BRANCHES}")
