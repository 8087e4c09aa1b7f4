"""`omnigraph algorithm`: degrees, ranks, components, communities, distances and triangles."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.choices import EdgeDirection
from omnigraph.cli import graphs, options, render
from omnigraph.cli.formats import write_result
from omnigraph.cli.spark import quick_spark
from omnigraph.wording import count_of

if TYPE_CHECKING:
    from omnigraph.accessors.algorithms import Algorithms
    from omnigraph.algorithms.results import AlgorithmResult
    from omnigraph.cli.formats import Format
    from omnigraph.remote.graph import RemoteAlgorithms

group = typer.Typer(
    help="Compute values of nodes from the edges of a commit.", no_args_is_help=True
)

Edges = Annotated[
    list[str] | None,
    typer.Option("--edge", metavar="TYPE", help="Follow edges of this type; repeatable. All else."),
]
Limit = Annotated[
    int, typer.Option("--limit", "-n", min=1, help="Print so many nodes, the largest values first.")
]
Rounds = Annotated[int, typer.Option("--rounds", help="End after so many rounds at the latest.")]


@group.command("degrees")
def degrees(
    *,
    store: options.Store = None,
    edges: Edges = None,
    branch: options.AtBranch = None,
    commit: options.AtCommit = None,
    version: options.AtVersion = None,
    engine: options.OnEngine = None,
    limit: Limit = 20,
    format_: options.ResultFormat = None,
    json: options.Json = False,
) -> None:
    """Count the edges that lead to each node, and from it."""
    wanted = options.choose_format(format_, json=json)
    algorithms = _open(store, branch, commit, version)
    _show(lambda: algorithms.degrees(edges=edges, engine=engine), limit, wanted)


@group.command("pagerank")
def pagerank(
    *,
    store: options.Store = None,
    edges: Edges = None,
    branch: options.AtBranch = None,
    commit: options.AtCommit = None,
    version: options.AtVersion = None,
    damping: Annotated[
        float, typer.Option("--damping", help="How likely a random walk follows an edge.")
    ] = 0.85,
    tolerance: Annotated[
        float, typer.Option("--tolerance", help="End when all ranks change by less than that.")
    ] = 1e-6,
    rounds: Rounds = 100,
    undirected: Annotated[
        bool, typer.Option("--undirected", help="Follow edges both ways.")
    ] = False,
    engine: options.OnEngine = None,
    limit: Limit = 20,
    format_: options.ResultFormat = None,
    json: options.Json = False,
) -> None:
    """Rank nodes by how much time a random walk along edges spends at each."""
    wanted = options.choose_format(format_, json=json)
    algorithms = _open(store, branch, commit, version)
    _show(
        lambda: algorithms.pagerank(
            edges=edges,
            damping=damping,
            tolerance=tolerance,
            rounds=rounds,
            undirected=undirected,
            engine=engine,
        ),
        limit,
        wanted,
    )


@group.command("components")
def components(
    *,
    store: options.Store = None,
    edges: Edges = None,
    branch: options.AtBranch = None,
    commit: options.AtCommit = None,
    version: options.AtVersion = None,
    engine: options.OnEngine = None,
    limit: Limit = 20,
    format_: options.ResultFormat = None,
    json: options.Json = False,
) -> None:
    """Find the nodes that are connected, by edges in whichever direction."""
    wanted = options.choose_format(format_, json=json)
    algorithms = _open(store, branch, commit, version)
    _show(lambda: algorithms.components(edges=edges, engine=engine), limit, wanted)


@group.command("label-propagation")
def label_propagation(
    *,
    store: options.Store = None,
    edges: Edges = None,
    branch: options.AtBranch = None,
    commit: options.AtCommit = None,
    version: options.AtVersion = None,
    rounds: Rounds = 10,
    engine: options.OnEngine = None,
    limit: Limit = 20,
    format_: options.ResultFormat = None,
    json: options.Json = False,
) -> None:
    """Find communities: every node joins the one that most of its neighbours are in."""
    wanted = options.choose_format(format_, json=json)
    algorithms = _open(store, branch, commit, version)
    _show(
        lambda: algorithms.label_propagation(edges=edges, rounds=rounds, engine=engine),
        limit,
        wanted,
    )


@group.command("shortest-paths")
def shortest_paths(
    *,
    sources: Annotated[
        list[str],
        typer.Option("--from", metavar="TYPE/ID", help="Start at this node; repeatable."),
    ],
    store: options.Store = None,
    edges: Edges = None,
    branch: options.AtBranch = None,
    commit: options.AtCommit = None,
    version: options.AtVersion = None,
    direction: Annotated[
        EdgeDirection, typer.Option("--direction", help="Which way edges are followed.")
    ] = EdgeDirection.OUT,
    max_hops: Annotated[
        int | None, typer.Option("--max-hops", help="Go no further than that.")
    ] = None,
    engine: options.OnEngine = None,
    limit: Limit = 20,
    format_: options.ResultFormat = None,
    json: options.Json = False,
) -> None:
    """Count the fewest edges from any of some nodes to each; the nearest nodes first."""
    wanted = options.choose_format(format_, json=json)
    algorithms = _open(store, branch, commit, version)
    _show(
        lambda: algorithms.shortest_paths(
            sources, edges=edges, direction=direction, max_hops=max_hops, engine=engine
        ),
        limit,
        wanted,
    )


@group.command("triangles")
def triangles(
    *,
    store: options.Store = None,
    edges: Edges = None,
    branch: options.AtBranch = None,
    commit: options.AtCommit = None,
    version: options.AtVersion = None,
    engine: options.OnEngine = None,
    limit: Limit = 20,
    format_: options.ResultFormat = None,
    json: options.Json = False,
) -> None:
    """Count the triangles that each node is in."""
    wanted = options.choose_format(format_, json=json)
    algorithms = _open(store, branch, commit, version)
    _show(lambda: algorithms.triangles(edges=edges, engine=engine), limit, wanted)


def _open(
    store: str | None, branch: str | None, commit: str | None, version: int | None
) -> Algorithms | RemoteAlgorithms:
    handle = graphs.open_graph(store, read_only=True)
    return handle.at(branch=branch, commit=commit, version=version).algorithms


def _show(run: Callable[[], AlgorithmResult], limit: int, wanted: Format) -> None:
    with quick_spark():
        result = run()
        rows = result.first(limit)
    write_result(rows, wanted)
    rounds = result.rounds
    if rounds is not None:
        ending = "" if rounds.converged else ", and it would have gone on"
        render.say(f"{count_of(rounds.count, 'round')}{ending}")
    render.say_engine(result.engine, result.why)
