"""Runs of algorithms: the selection, the choice of an engine, and the result."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final, Protocol

from omnigraph.algorithms.requests import Algorithm, ShortestPaths
from omnigraph.algorithms.results import AlgorithmResult, Rounds
from omnigraph.algorithms.selection import EdgeSelection, select
from omnigraph.choices import EngineName
from omnigraph.engine.choose import Measure, by_size
from omnigraph.errors import InvalidParameterError, NotFoundError
from omnigraph.transaction.view import View

if TYPE_CHECKING:
    import pyarrow as pa

    from omnigraph.engine.spark.execute import Frame

ALGORITHM_LOCAL_EDGES_MAX: Final = 25_000_000
"""Edges that an algorithm follows in this process; above, `auto` chooses Spark."""


class AlgorithmRunner(Protocol):
    """What an engine does for algorithms."""

    def run_algorithm(
        self, algorithm: Algorithm, selection: EdgeSelection
    ) -> tuple[pa.Table | Frame, Rounds | None]:
        """The rows of the result, where the engine has them, and how it ended."""
        ...


def run_algorithm(
    view: View,
    algorithm: Algorithm,
    edges: Iterable[str] | None,
    engine: str | None,
    runner: Callable[[EngineName], AlgorithmRunner],
) -> AlgorithmResult:
    """Run an algorithm on a graph at one commit. Nothing is written to the graph.

    Args:
        edges: The names of the edge types that it follows; all when None.
    """
    selection = select(view, edges)
    if isinstance(algorithm, ShortestPaths):
        _require_sources(algorithm, selection)
    measure = Measure.of_count(selection.edge_count, ALGORITHM_LOCAL_EDGES_MAX, "edge")
    choice = by_size(engine, [measure])
    rows, rounds = runner(choice.engine).run_algorithm(algorithm, selection)
    types = tuple(node.name for node in selection.nodes)
    return AlgorithmResult(algorithm, types, rows, rounds, choice.engine, choice.why)


def _require_sources(paths: ShortestPaths, selection: EdgeSelection) -> None:
    known = [node.name for node in selection.nodes]
    for name in paths.sources:
        if name not in known:
            message = f"paths cannot start at nodes of type {name!r}, which no edge connects"
            hint = f"the edges that are followed connect {', '.join(known)}"
            raise InvalidParameterError(message, hint=hint, name="sources")


def missing_source_error(type_name: str, id_: str) -> NotFoundError:
    """The error for a node to start from that does not exist."""
    message = f"node {type_name}/{id_}, to start from, does not exist"
    return NotFoundError(message, hint="sources are ids of nodes at this commit")
