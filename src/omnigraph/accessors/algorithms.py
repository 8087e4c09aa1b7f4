"""Algorithms on a graph: `graph.algorithms`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING

from omnigraph.choices import EdgeDirection
from omnigraph.errors import InvalidParameterError
from omnigraph.model.arguments import require_choice, require_names, require_number, require_texts

# What a signature names need not be imported to read a graph.
if TYPE_CHECKING:
    from omnigraph.algorithms.requests import Algorithm
    from omnigraph.algorithms.results import AlgorithmResult
    from omnigraph.backends.registry import Backends
    from omnigraph.graph import Graph
    from omnigraph.manifest.snapshot import Snapshot
    from omnigraph.transaction.view import View

EdgeNames = str | Collection[str] | None


class Algorithms:
    """Algorithms on a graph, at the commit of its handle: `graph.algorithms`.

    Each follows some edge types, or all, and computes values of all nodes of the types that these
    connect. `engine` is `local`, `spark` or `auto`, by size. Nothing is written to the graph.
    """

    def __init__(
        self, graph: Graph, view_at: Callable[[Snapshot], View], backends: Backends
    ) -> None:
        self._graph = graph
        self._view_at = view_at
        self._backends = backends

    def degrees(self, *, edges: EdgeNames = None, engine: str | None = None) -> AlgorithmResult:
        """How many edges lead to each node, and from it: `in_degree`, `out_degree`, `degree`.

        Raises:
            TypeNotFoundError: the schema has no edge type of a name.
            InvalidInputError: there is nothing to follow, or no such engine.
        """
        from omnigraph.algorithms.requests import Degrees

        return self._run(Degrees(), edges, engine)

    def pagerank(
        self,
        *,
        edges: EdgeNames = None,
        damping: float = 0.85,
        tolerance: float = 1e-6,
        rounds: int = 100,
        undirected: bool = False,
        engine: str | None = None,
    ) -> AlgorithmResult:
        """How much time a random walk spends at each node: `rank`, which adds up to 1.

        Args:
            damping: How likely the walk follows an edge; else it jumps to any node.
            tolerance: It ends when ranks change by less than that, added up over all nodes.
            rounds: It ends after so many rounds at the latest; `rounds` of the result says how.
            undirected: Whether edges are followed both ways.

        Raises:
            TypeNotFoundError: the schema has no edge type of a name.
            InvalidInputError: a parameter is out of range, or there is nothing to follow.
        """
        from omnigraph.algorithms.requests import PageRank

        request = PageRank(
            _require_float(damping, "damping"),
            _require_float(tolerance, "tolerance"),
            require_number(rounds, "rounds"),
            bool(undirected),
        )
        return self._run(request, edges, engine)

    def components(self, *, edges: EdgeNames = None, engine: str | None = None) -> AlgorithmResult:
        """Which nodes are connected, in whichever direction: `component`, named by its first node.

        Raises:
            TypeNotFoundError: the schema has no edge type of a name.
            InvalidInputError: there is nothing to follow, or no such engine.
        """
        from omnigraph.algorithms.requests import Components

        return self._run(Components(), edges, engine)

    def label_propagation(
        self, *, edges: EdgeNames = None, rounds: int = 10, engine: str | None = None
    ) -> AlgorithmResult:
        """Communities: `community`, named by one of its nodes.

        Args:
            rounds: At most so many; `rounds` of the result says how it ended.

        Raises:
            TypeNotFoundError: the schema has no edge type of a name.
            InvalidInputError: a parameter is out of range, or there is nothing to follow.
        """
        from omnigraph.algorithms.requests import LabelPropagation

        return self._run(LabelPropagation(require_number(rounds, "rounds")), edges, engine)

    def shortest_paths(
        self,
        sources: Mapping[str, Collection[str]] | Collection[str],
        *,
        edges: EdgeNames = None,
        direction: str = "out",
        max_hops: int | None = None,
        engine: str | None = None,
    ) -> AlgorithmResult:
        """The fewest edges from any of some nodes to each: `distance`, and the `source` it is from.

        Both are null where no path leads.

        Args:
            sources: The nodes to start from: ids by type, `{"Person": ["ada"]}`, or texts such as
                `"Person/ada"`.
            direction: `out` follows edges from source to target, `in` back, `both` either way.
            max_hops: Nodes that are further away count as not reached.

        Raises:
            NotFoundError: a node to start from, or an edge type, does not exist.
            InvalidInputError: a parameter is out of range, or there is nothing to follow.
        """
        from omnigraph.algorithms.requests import ShortestPaths, parse_nodes

        if isinstance(sources, Mapping):
            named = require_names(sources, "sources")
            ids = {name: require_texts(some, "sources") or () for name, some in named.items()}
        else:
            ids = parse_nodes(require_texts(sources, "sources") or ())
        way = require_choice(direction, EdgeDirection, "direction")
        hops = None if max_hops is None else require_number(max_hops, "max_hops")
        return self._run(ShortestPaths(ids, way, hops), edges, engine)

    def triangles(self, *, edges: EdgeNames = None, engine: str | None = None) -> AlgorithmResult:
        """How many triangles each node is in: `triangles`. Directions and parallels do not count.

        Raises:
            TypeNotFoundError: the schema has no edge type of a name.
            InvalidInputError: there is nothing to follow, or no such engine.
        """
        from omnigraph.algorithms.requests import Triangles

        return self._run(Triangles(), edges, engine)

    def _run(self, algorithm: Algorithm, edges: EdgeNames, engine: str | None) -> AlgorithmResult:
        from omnigraph.algorithms.run import run_algorithm

        view = self._view_at(self._graph.full_snapshot())
        names = require_texts(edges, "edges")
        return run_algorithm(view, algorithm, names, engine, self._backends.of)


def _require_float(value: object, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        message = f"{name} must be a number, not {value!r}"
        raise InvalidParameterError(message, name=name)
    return float(value)
