"""Topologies: how fast arrays of edges are built and read from files, and what memory they take.

python -m benchmarks.topology [--edges N …] [--rounds N] [--write]
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks import report
from omnigraph import graph
from omnigraph.choices import TableKind
from omnigraph.clock import SystemClock
from omnigraph.engine.local.topology import stored
from omnigraph.engine.local.topology.topologies import EdgeTables, Topologies
from omnigraph.engine.local.topology.topology import Topology
from omnigraph.engine.protocol import Data
from omnigraph.engine.snapshots import data_at
from omnigraph.manifest.drafts import CommitDraft, PinTable
from omnigraph.manifest.publisher import publish
from omnigraph.manifest.reader import Manifest
from omnigraph.manifest.requirements import TableAt
from omnigraph.model.commits import OperationKind
from omnigraph.model.ids import CommitId, OperationId
from omnigraph.model.names import MAIN, TypeName
from omnigraph.model.tables import TableKey
from omnigraph.storage import heads, indexes, staging
from omnigraph.storage.store import Store

EDGES: Final = (2_400_000, 25_000_000)
EDGES_PER_NODE: Final = 24
EDGES_AT_ONCE: Final = 2_500_000
ROUNDS: Final = 3
BYTES_PER_EDGE_GOAL: Final = 10
FRESH_GOAL: Final = 0.3
SCHEMA: Final = """
node Person { number: I64 @key }
edge Follows: Person -> Person
"""
PERSON: Final = TableKey(TableKind.NODE, TypeName("Person"))
FOLLOWS: Final = TableKey(TableKind.EDGE, TypeName("Follows"))
TABLES: Final = EdgeTables(FOLLOWS, PERSON, PERSON)

READING: Final = """\
Arrays of all edges of a type, both ways, each measurement in a process of its own that has opened
the graph and has read nothing. *build* makes them from the ids in the table; *file* maps what an
index run has stored; *follow* brings those of one version to the next, which has one edge more.
Memory is the most that the process had, above what it had with the graph open; the arrays are what
stays."""


def main() -> None:
    """Run everything, print it, and with `--write` keep it in RESULTS.md."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--edges", type=int, nargs="+", default=list(EDGES))
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--measure", nargs=2, metavar=("GRAPH", "HOW"))
    given = parser.parse_args()
    if given.measure:
        print(json.dumps(measure(*given.measure)))
        return
    text = run(given.edges, given.rounds)
    print(text)
    if given.write:
        report.write_section("Topology", text)


def run(sizes: Sequence[int], rounds: int) -> str:
    """The section's text."""
    start = report.start()
    found = {size: _measure_size(size, rounds) for size in sizes}
    rows = [_row(size, each) for size, each in found.items()]
    head = ["edges", "arrays, bytes per edge", "file / build, processor time"]
    head += ["build, ns per edge", "build, bytes per edge", "file, ms", "follow, ms"]
    return "\n\n".join(
        [
            READING,
            f"{EDGES_PER_NODE} edges per node, at random; medians of {rounds} processes.",
            report.circumstances(start),
            "### Goals",
            "\n".join(goal for size, each in found.items() for goal in _goals(size, each)),
            "### By number of edges",
            report.table(head, rows),
            _on_paper(found),
        ]
    )


def write_graph(path: Path, edge_count: int) -> graph.Graph:
    """A graph with so many edges at random, in one commit, indexed by their ends."""
    made = graph.init(path, SCHEMA)
    people = max(1, edge_count // EDGES_PER_NODE)
    random = np.random.default_rng(edge_count)
    store, clock = Store.open(made.uri), SystemClock()
    manifest = Manifest(store)
    now = manifest.current(MAIN)
    author = heads.Authorship(OperationId(clock.ulid()), OperationKind.LOAD)
    texts = pc.cast(pa.array(np.arange(people)), pa.string())
    nodes = pa.table({"id": texts, "number": np.arange(people)})
    table = store.tables.open_pin(now.pin(PERSON))
    tables = {PERSON: heads.apply(staging.stage_append(table, _as(table.schema, nodes)), author)}
    table = store.tables.open_pin(now.pin(FOLLOWS))
    for first in range(0, edge_count, EDGES_AT_ONCE):
        count = min(EDGES_AT_ONCE, edge_count - first)
        ends = [texts.take(pa.array(random.integers(0, people, count))) for _ in range(2)]
        ids = pc.cast(pa.array(np.arange(first, first + count)), pa.string())
        rows = _as(table.schema, pa.table({"id": ids, "src": ends[0], "dst": ends[1]}))
        table = heads.apply(staging.stage_append(table, rows), author)
    tables[FOLLOWS] = table
    for key, columns in ((PERSON, ["id"]), (FOLLOWS, ["src"])):
        specs = [indexes.IndexSpec(column) for column in columns]
        if write := indexes.stage_indexes(tables[key], specs):
            tables[key] = heads.apply(write, author)
    changes = tuple(
        PinTable(replace(now.pin(key), version=each.version, row_count=each.count_rows()))
        for key, each in tables.items()
    )
    requires = tuple(TableAt(key, now.pin(key).version, None) for key in tables)
    commit = CommitId(clock.ulid())
    load = OperationKind.LOAD
    publish(manifest, clock, CommitDraft(MAIN, commit, load, changes=changes, requires=requires))
    return made


def measure(uri: str, how: str) -> dict[str, float]:
    """One measurement in this process: processor time, memory, and the size of the arrays."""
    opened = graph.open(uri, read_only=how != "follow")
    store = Store.open(uri)
    data = _data(opened, store)
    data.table(FOLLOWS).count_rows()
    topologies = Topologies()
    if how == "follow":
        assert topologies.of(data, TABLES) is not None
        opened.mutate('query q() { insert Follows { from: "1", to: "2" } }')
        data = _data(opened, store)
    idle = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began, wall = time.process_time(), time.perf_counter()
    topology = topologies.of(data, TABLES)
    assert topology is not None
    took = time.process_time() - began, time.perf_counter() - wall
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        "cpu": took[0],
        "wall": took[1],
        "peak": (peak - idle) * 1024,
        "arrays": sum(each.base.nbytes for each in (topology.out, topology.into)),
        "edges": topology.out.base.edge_count,
    }


def _measure_size(edge_count: int, rounds: int) -> Mapping[str, Mapping[str, float]]:
    with tempfile.TemporaryDirectory(prefix="omnigraph-bench-") as folder:
        made = write_graph(Path(folder) / "graph", edge_count)
        found = {"build": _median(made, "build", rounds)}
        stored.store(_required(Topologies().of(_data(made), TABLES)))
        found["file"] = _median(made, "file", rounds)
        found["follow"] = _median(made, "follow", rounds)
    return found


def _median(made: graph.Graph, how: str, rounds: int) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.topology", "--measure", made.uri, how]
    root = Path(__file__).parents[1]
    found: list[dict[str, float]] = []
    for _ in range(rounds):
        done = subprocess.run(command, cwd=root, stdout=subprocess.PIPE, text=True, check=True)
        found.append(json.loads(done.stdout.splitlines()[-1]))
    return {name: median(each[name] for each in found) for name in found[0]}


def _row(size: int, found: Mapping[str, Mapping[str, float]]) -> list[str]:
    build, file, follow = found["build"], found["file"], found["follow"]
    return [
        f"{size:,}",
        f"{build['arrays'] / size:.2f}",
        f"{file['cpu'] / build['cpu']:.3f}",
        f"{build['cpu'] / size * 1e9:.0f}",
        f"{build['peak'] / size:.1f}",
        f"{file['cpu'] * 1e3:.0f}",
        f"{follow['cpu'] * 1e3:.1f}",
    ]


def _goals(size: int, found: Mapping[str, Mapping[str, float]]) -> list[str]:
    per_edge = found["build"]["arrays"] / size
    ratio = found["file"]["cpu"] / found["build"]["cpu"]
    return [
        report.goal(
            f"{size:,} edges take {per_edge:.2f} bytes each in both ways"
            f" (goal: at most {BYTES_PER_EDGE_GOAL})",
            "",
            is_met=per_edge <= BYTES_PER_EDGE_GOAL,
        ),
        report.goal(
            f"a process that reads the file takes {ratio:.2f} times what building takes"
            f" (goal: at most {FRESH_GOAL})",
            "",
            is_met=ratio <= FRESH_GOAL,
        ),
    ]


def _on_paper(found: Mapping[int, Mapping[str, Mapping[str, float]]]) -> str:
    """What a hundred million edges would take, by the slope of the largest two sizes."""
    sizes = sorted(found)[-2:]
    if len(sizes) < 2:
        return ""
    values = {}
    for how, name in (("build", "arrays"), ("build", "peak"), ("build", "cpu"), ("file", "cpu")):
        low, high = (found[size][how][name] for size in sizes)
        slope = (high - low) / (sizes[1] - sizes[0])
        values[how, name] = high + slope * (100_000_000 - sizes[1])
    return (
        "On paper, by the slopes, 100 million edges: arrays of"
        f" {values['build', 'arrays'] / 2**20:,.0f} MiB, built in {values['build', 'cpu']:.0f} s of"
        f" processor time with at most {values['build', 'peak'] / 2**20:,.0f} MiB, and read from a"
        f" file in {values['file', 'cpu']:.2f} s."
    )


def _data(opened: graph.Graph, store: Store | None = None) -> Data:
    return data_at(store or Store.open(opened.uri), opened.snapshot())


def _required(topology: Topology | None) -> Topology:
    assert topology is not None, "it fits into memory"
    return topology


def _as(schema: pa.Schema, rows: pa.Table) -> pa.Table:
    return rows.select(schema.names).cast(schema)


if __name__ == "__main__":
    main()
