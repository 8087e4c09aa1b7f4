"""One server with one graph for all tests that do not change how it runs."""

import pytest

import omnigraph
from tests.support.served import Served, serving, settings_for

SCHEMA = """
node Person { name: String @key  age: I64?  score: F64?  born: Date?  picture: Blob? }
node Badge { number: I32 @unique }
edge Knows: Person -> Person
"""


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    graph = omnigraph.init(folder / "world", SCHEMA)
    graph.load({"Person": [{"name": "Ada", "age": 2**60}]}, index=False)
    settings = settings_for(
        folder,
        {"world": str(folder / "world")},
        limits={"body_bytes": 200_000, "load_bytes": 5_000_000, "direct_load_bytes": 1_000},
    )
    with serving(settings) as running:
        yield running


@pytest.fixture
def client(served: Served):
    with served.client() as own:
        yield own


@pytest.fixture
def graph(served: Served):
    return served.service.graph("world", None)
