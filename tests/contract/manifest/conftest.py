"""Fresh graphs on local disk and on S3."""

from pathlib import Path

import pytest

import omnigraph
from tests.support.publishing import SCHEMA


@pytest.fixture(params=["local", "s3"])
def uri(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a test may put a graph."""
    if request.param == "local":
        return str(tmp_path / "graph.omni")
    return f"s3://{request.getfixturevalue('s3_bucket')}/graph.omni"


@pytest.fixture
def graph(uri: str) -> omnigraph.Graph:
    """A fresh graph with two node types and one edge type."""
    return omnigraph.init(uri, SCHEMA)
