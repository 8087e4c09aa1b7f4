"""igraph, on edges that are in memory already; runs in the peers' environment."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import igraph
import pyarrow as pa
import pyarrow.parquet as pq

VERSION = f"igraph {igraph.__version__}"


def load(place: Path) -> Callable[[str, str], Any]:
    """The graph of a file with the numbers of the ends of edges."""
    edges = pq.read_table(place / "edges.parquet")
    size = int(pq.read_table(place / "size.parquet")["size"][0].as_py())
    pairs = list(zip(edges["src"].to_pylist(), edges["dst"].to_pylist(), strict=True))
    graph = igraph.Graph(n=size, edges=pairs, directed=True)

    def ask(task: str, _: str) -> Any:
        if task == "components":
            return pa.table({"count": [len(graph.connected_components(mode="weak"))]})
        ranks = graph.pagerank(damping=0.85)
        return pa.table({"highest": [round(max(ranks) * size, 3)]})

    return ask
