"""On a real cluster, executors in JVMs of their own: queries, frames, the connector, export."""

import json
import os
import subprocess
import sys
import textwrap

import pytest

from tests.contract.export.graphs import exported, small_graph
from tests.support import cluster
from tests.support.graphs import add_rows

PROGRAM = """
import json, sys

import omnigraph
from omnigraph.backends.registry import Backends
from omnigraph.clock import SystemClock
from omnigraph.engine.spark.session import open_session
from omnigraph.engine.spark.settings import SessionSettings, Workload
from omnigraph.export.run import ExportOrder, export
from omnigraph.connector.frames import type_frame
from omnigraph.transaction.view import view_at

uri, target = sys.argv[1:]
options = {"spark.executor.memory": "512m", "spark.sql.shuffle.partitions": "2"}
spark = open_session(SessionSettings(work=Workload.SHORT, driver_memory="512m", options=options))
graph = omnigraph.open(uri, read_only=True)
draft = graph.at(branch="draft")
view = view_at(draft._store, draft._catalogs, draft.snapshot())
order = ExportOrder(target, engine="spark")

answer = {
    "master": spark.sparkContext.master,
    "query": draft.query(
        "query q() { match { $p: Person } return { $p.name } order { $p.name } }", engine="spark"
    ).rows(),
    "frame": type_frame(view, "Thing").count(),
    "read": spark.read.format("omnigraph").option("graph", uri).option("branch", "draft")
        .load("Person").count(),
    "export": dict(export(view, SystemClock(), Backends().of, order).rows),
}
print(json.dumps(answer))
"""


@pytest.mark.timeout(300)
@pytest.mark.soak
def test_a_cluster_reads_and_exports_a_branch(tmp_path):
    graph = small_graph(tmp_path / "graph.omni")
    add_rows(graph, {"Thing": [{"label": str(n)} for n in range(1000)]})
    draft = graph.branches.create("draft")
    draft.mutate('query q() { insert Person { name: "Draft" } }')
    exported(draft, tmp_path / "local.jsonl")

    with cluster.run_cluster() as running:
        ran = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(PROGRAM), graph.uri, str(tmp_path / "out")],
            env={**os.environ, **running.environment},
            capture_output=True,
            text=True,
            check=False,
            timeout=200,
        )

    assert ran.returncode == 0, ran.stderr[-3000:]
    answer = json.loads(ran.stdout)
    assert answer["master"] == running.master
    assert [row["p.name"] for row in answer["query"]] == ["Ada", "Draft", "Zoë", 'a "quoted"\nname']
    assert (answer["frame"], answer["read"]) == (1000, 4)
    assert answer["export"] == {"Person": 4, "Thing": 1000, "Knows": 1}
    contents = json.loads((tmp_path / "out" / "_export.json").read_text())
    parts = [(tmp_path / "out" / name).read_bytes() for name in contents["files"]]
    assert b"".join(parts) == (tmp_path / "local.jsonl").read_bytes()
