"""`omnigraph queries`: store queries in the graph, and list, show, run and delete them."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.cli import graphs, options, queries, render
from omnigraph.cli.formats import write_result
from omnigraph.cli.parameters import read_parameters

if TYPE_CHECKING:
    from omnigraph.accessors.stored_queries import StoredQuery

group = typer.Typer(help="Store queries in the graph, and run them by name.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(metavar="NAME", help="The name of the stored query.")]


@group.command("put")
def put_queries(
    *,
    store: options.Store = None,
    file: queries.File = None,
    text: queries.Text = None,
    branch: options.OnBranch = None,
    actor: options.Actor = None,
    message: options.Message = None,
    json: options.Json = False,
) -> None:
    """Store the queries of a text by their names; one of the same name is replaced."""
    source = queries.Source.read(file, text)
    handle = graphs.open_graph(store, actor=actor)
    with source.name_diagnostics():
        stored = handle.queries.put(source.text, branch=branch, message=message)
    with render.report_of("the queries were stored"):
        _show_list(stored, json=json)


@group.command("list")
def list_queries(
    *,
    store: options.Store = None,
    branch: options.AtBranch = None,
    commit: options.AtCommit = None,
    version: options.AtVersion = None,
    json: options.Json = False,
) -> None:
    """List the stored queries, with their parameters."""
    handle = graphs.open_graph(store, read_only=True)
    _show_list(handle.queries.list(branch=branch, commit=commit, version=version), json=json)


@group.command("show")
def show_query(
    name: Name,
    *,
    store: options.Store = None,
    branch: options.AtBranch = None,
    commit: options.AtCommit = None,
    version: options.AtVersion = None,
    json: options.Json = False,
) -> None:
    """Print the text of a stored query."""
    handle = graphs.open_graph(store, read_only=True)
    found = handle.queries.show(name, branch=branch, commit=commit, version=version)
    if json:
        render.show_json(asdict(found))
        return
    render.show_text(found.text)
    if found.fault is not None:
        render.say(f"it no longer fits the schema: {found.fault}")


@group.command("run")
def run_query(
    name: Name,
    *,
    store: options.Store = None,
    document: queries.Document = None,
    pairs: queries.Pairs = None,
    branch: options.AtBranch = None,
    commit: options.AtCommit = None,
    version: options.AtVersion = None,
    engine: options.OnEngine = None,
    timeout: options.Timeout = None,
    actor: options.Actor = None,
    message: options.Message = None,
    format_: options.ResultFormat = None,
    json: options.Json = False,
) -> None:
    """Run a stored query: print its rows, or make its changes in one commit."""
    from omnigraph.cli.commands.mutate import show_mutation
    from omnigraph.mutation.results import MutationResult

    wanted = options.choose_format(format_, json=json)
    handle = graphs.open_graph(store, actor=actor)
    found = handle.queries.show(name, branch=branch, commit=commit, version=version)
    declared = {parameter.name: parameter.type for parameter in found.parameters}
    result = handle.queries.run(
        name,
        read_parameters(document, pairs or (), types=declared),
        branch=branch,
        commit=commit,
        version=version,
        engine=engine,
        timeout=timeout,
        message=message,
    )
    if isinstance(result, MutationResult):
        show_mutation(result, json=json)
    else:
        write_result(result.arrow(), wanted)


@group.command("delete")
def delete_query(
    name: Name,
    *,
    store: options.Store = None,
    branch: options.OnBranch = None,
    actor: options.Actor = None,
    message: options.Message = None,
    confirm: options.Confirm = False,
    yes: options.Yes = False,
    json: options.Json = False,
) -> None:
    """Delete a stored query from a branch. Without --confirm, show which."""
    handle = graphs.open_graph(store, actor=actor)
    found = handle.queries.show(name, branch=branch)
    if confirm:
        graphs.ask_first(handle, f"delete query {name}", yes=yes)
        handle.queries.delete(name, branch=branch, message=message)
    with render.report_of(f"query {name} was deleted" if confirm else None):
        if json:
            render.show_json({"query": name, "deleted": confirm})
            return
        render.show_facts({"query": name, "parameters": _parameters(found)})
        render.say("deleted" if confirm else "nothing was deleted: give --confirm to delete it")


def _show_list(stored: tuple[StoredQuery, ...], *, json: bool) -> None:
    if json:
        render.show_json([asdict(query) for query in stored])
        return
    render.show_table(
        ["query", "kind", "parameters", "description"],
        [
            (query.name, _kind(query), _parameters(query), query.description or query.fault)
            for query in stored
        ],
    )


def _kind(query: StoredQuery) -> str:
    if query.fault is not None:
        return "broken"
    return "mutation" if query.changes else "read"


def _parameters(query: StoredQuery) -> str:
    return ", ".join(
        f"${each.name}: {each.type}{'?' if each.nullable else ''}" for each in query.parameters
    )
