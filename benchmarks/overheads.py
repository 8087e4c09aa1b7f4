"""What a query costs beside its rows: on a tiny graph, and as the first one of a process."""

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Final

from benchmarks import social
from benchmarks.questions import QUESTIONS
from benchmarks.rounds import Answer, Outcome, compete
from omnigraph import graph

TINY_SCHEMA: Final = "node Person { name: String @key }\nedge Knows: Person -> Person"
TINY_ROWS: Final = """query q() {
  insert Person { name: "Ada" }  insert Person { name: "Bob" }  insert Person { name: "Cid" }
  insert Knows { from: "Ada"  to: "Bob" }  insert Knows { from: "Ada"  to: "Cid" } }"""
TINY_HOP: Final = """query q($n: String) {
  match { $p: Person {name: $n}  $p knows $q } return { $q.name as name } }"""
HOPS_PER_ROUND: Final = 200

FIRST: Final = QUESTIONS["8"]
FIRST_RATIO_BEFORE: Final = 1.12
"""What the first query took before there were topologies, divided by DuckDB's time.

Measured once, at commit f4c473e, on the graph of 2.4 million edges, with both in turns.
"""

OURS_FIRST: Final = """
import json, sys, time
import duckdb, lance, numpy, pyarrow.compute, sqlglot
import omnigraph.engine.local.execute, omnigraph.engine.queries
from omnigraph import graph
uri, text = sys.argv[1:]
start = time.process_time()
rows = graph.open(uri, read_only=True).query(text).rows()
print(json.dumps([time.process_time() - start, [list(row.values()) for row in rows]]))
"""
DUCKDB_FIRST: Final = """
import json, sys, time
import duckdb, lance, pyarrow.compute
uri, text = sys.argv[1:]
start = time.process_time()
connection = duckdb.connect()
connection.execute("SET enable_progress_bar = false")
connection.register("follows", lance.dataset(uri))
rows = connection.sql(text).fetchall()
print(json.dumps([time.process_time() - start, rows]))
"""


def tiny_hop(folder: Path, *, rounds: int) -> float:
    """The processor time, in milliseconds, of one hop from a key on a warm handle."""
    made = graph.init(folder, TINY_SCHEMA)
    made.mutate(TINY_ROWS)
    handle = graph.open(folder, read_only=True)
    milliseconds = []
    for _ in range(rounds + 1):
        start = time.process_time()
        for _ in range(HOPS_PER_ROUND):
            found = handle.query(TINY_HOP, {"n": "Ada"}).arrow()
        milliseconds.append((time.process_time() - start) * 1000 / HOPS_PER_ROUND)
        assert sorted(found["name"].to_pylist()) == ["Bob", "Cid"]
    # The first round is the warm-up.
    return median(milliseconds[1:])


def first_query(made: graph.Graph, folder: Path, *, rounds: int) -> dict[str, Outcome]:
    """The processor time of the first query of a process; imports do not count.

    Ours is asked of a copy in the folder that is indexed as a load leaves it, with its topologies
    in files, and of the graph without them.
    """
    follows = social.pinned(made, "Follows").uri
    indexed = shutil.copytree(made.uri, folder)
    graph.open(indexed).ensure_indices()
    return compete(
        {
            "ours": _in_a_process(OURS_FIRST, str(indexed), FIRST.gq),
            "ours, no topology stored": _in_a_process(OURS_FIRST, made.uri, FIRST.gq),
            "DuckDB": _in_a_process(DUCKDB_FIRST, follows, FIRST.sql),
        },
        rounds=min(rounds, 3),
    )


def _in_a_process(script: str, *arguments: str) -> Callable[[], Answer]:
    def run() -> Answer:
        command = [sys.executable, "-c", script, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        seconds, rows = json.loads(done.stdout)
        return seconds, rows

    return run
