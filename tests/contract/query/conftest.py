"""A small graph that is asked through its facade, on either engine."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from omnigraph.graph import Graph
from tests.support.facade_graph import PEOPLE, SCHEMA
from tests.support.graphs import graph_with


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    where: Path = tmp_path_factory.mktemp("asked") / "graph.omni"
    knows = [("ada", "bob"), ("bob", "cy"), ("cy", "ada")]
    rows = {
        "Person": PEOPLE,
        "City": [{"name": "Oslo"}],
        "Knows": [{"id": f"k{n}", "src": a, "dst": b} for n, (a, b) in enumerate(knows)],
        "LivesIn": [{"id": "l0", "src": "ada", "dst": "Oslo"}],
    }
    return graph_with(where, SCHEMA, rows)


@pytest.fixture(params=["local", "spark"])
def engine(request: pytest.FixtureRequest) -> str:
    if request.param == "spark":
        # The engine uses the session that is active: that of the whole test run.
        session: SparkSession = request.getfixturevalue("spark")
        assert session is not None
    return str(request.param)
