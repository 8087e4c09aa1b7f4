"""Algorithms: PageRank and components on both engines, beside igraph.

python -m benchmarks.algorithms [--edges N] [--rounds N] [--quick] [--write]
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks import report
from benchmarks.peers.process import Peer
from benchmarks.rounds import Answer, Contestants, compete
from benchmarks.topology import EDGES_PER_NODE, FOLLOWS, PERSON, write_graph
from omnigraph.engine.snapshots import data_at
from omnigraph.graph import Graph
from omnigraph.storage.store import Store

EDGES: Final = 5_000_000
QUICK_EDGES: Final = 20_000
ROUNDS: Final = 3
PEER_SECONDS_MAX: Final = 120
TASKS: Final = ("pagerank", "components")

READING: Final = """\
PageRank until ranks change by less than 1e-6 in all, and connected components, of a graph of random
edges. *local* is a handle that has its arrays, and *first* one that has read nothing: it reads
the ids of all nodes and edges. *spark* is local mode with all cores; it reads the graph each time.
igraph has its graph in memory. GraphFrames takes no part: what PyPI has of it needs a jar."""


def main() -> None:
    """Run everything, print it, and with `--write` keep it in RESULTS.md."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--edges", type=int, default=EDGES)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--no-spark", action="store_true")
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    edges, rounds = (QUICK_EDGES, 1) if given.quick else (given.edges, given.rounds)
    text = run(edges, rounds, spark=not given.no_spark, peers=not given.no_peers)
    print(text)
    if given.write:
        report.write_section("Algorithms", text)


def run(edge_count: int, rounds: int, *, spark: bool, peers: bool) -> str:
    """The section's text."""
    start = report.start()
    with tempfile.TemporaryDirectory(prefix="omnigraph-bench-") as folder:
        made = write_graph(Path(folder) / "graph", edge_count)
        _write_edges(made, Path(folder))
        peer = Peer("igraph_algorithms", Path(folder))
        try:
            outcomes = {
                task: compete(
                    _contestants(task, made, peer if peers else None, spark=spark),
                    rounds=rounds,
                    warm_ups=1,
                )
                for task in TASKS
            }
        finally:
            peer.close()
    return "\n\n".join(
        [
            READING,
            f"{edge_count:,} edges, {EDGES_PER_NODE} per node.",
            report.circumstances(start, versions=[peer.version]),
            "### Ratios",
            report.ratios(outcomes, to="igraph" if peers else "first"),
            "### Times",
            report.times(outcomes),
        ]
    )


def _contestants(task: str, made: Graph, peer: Peer | None, *, spark: bool) -> Contestants:
    contestants: dict[str, Callable[[], Answer]] = {
        "local": lambda: _answer(task, made, "local"),
        "first": lambda: _answer(task, made.at(branch="main"), "local"),
    }
    if spark:
        contestants["spark"] = lambda: _answer(task, made, "spark")
    if peer is not None:
        contestants["igraph"] = lambda: peer.ask(task, seconds_max=PEER_SECONDS_MAX)
    return contestants


def _answer(task: str, made: Graph, engine: str) -> Answer:
    """How many components there are, or the highest rank in units of the mean."""
    size = made.snapshot().row_count(PERSON)
    started = time.perf_counter()
    if task == "components":
        rows = made.algorithms.components(engine=engine).rows
        if isinstance(rows, pa.Table):
            count = pc.count_distinct(rows["component"]).as_py()
        else:
            count = rows.select("component").distinct().count()
        return time.perf_counter() - started, [[count]]
    highest = made.algorithms.pagerank(engine=engine).first(1)["rank"][0].as_py()
    return time.perf_counter() - started, [[round(highest * size, 3)]]


def _write_edges(made: Graph, folder: Path) -> None:
    """What igraph reads: the numbers of the ends of edges."""
    data = data_at(Store.open(made.uri), made.snapshot())
    ends = data.table(FOLLOWS).read(["src", "dst"])
    numbers = {name: pc.cast(ends[name], pa.int64()) for name in ("src", "dst")}
    pq.write_table(pa.table(numbers), folder / "edges.parquet")
    size = pa.table({"size": [made.snapshot().row_count(PERSON)]})
    pq.write_table(size, folder / "size.parquet")


if __name__ == "__main__":
    main()
