"""What a server does before it takes requests."""

import json
import subprocess
import sys

import pytest

import omnigraph
from omnigraph.errors import GraphNotFoundError
from omnigraph.server.serve import serve
from tests.support.served import settings_for

PROGRAM = """
import json, sys
from omnigraph.server.service import GraphService
from omnigraph.server.settings import read_settings

state, uri = sys.argv[1:]
service = GraphService(read_settings(None, state=state, graphs={"world": {"uri": uri}}))
service.open()
graph = service.graph("world", None)
before = set(sys.modules)
graph.mutate('query q() { insert Person { name: "Ada" } }', timeout="60s", key="k")
graph.query('query q() { match { $p: Person {name: "Ada"} } return { $p.name } }', memory="1GiB")
graph.query('query q() { match { $p: Person } return { count($p) as n } }', timeout="60s")
graph.load({"Person": [{"name": "Bob"}]}, index=False)
graph.diff("main", "main")
print(json.dumps(sorted(name for name in set(sys.modules) - before if "omnigraph." in name)))
"""


def test_requests_import_nothing_that_others_import_at_the_same_time(tmp_path):
    """All clients of a server that starts again send their requests at once."""
    graph = omnigraph.init(tmp_path / "world", "node Person { name: String @key }")
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "state"), graph.uri]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == []


def test_a_graph_that_is_not_there_is_reported_before_anything_is_served(tmp_path):
    started: list[str] = []
    settings = settings_for(tmp_path, {"world": str(tmp_path / "wrold.omni")}, port=0)
    with pytest.raises(GraphNotFoundError, match=r"wrold\.omni"):
        serve(settings, started=started.append)
    assert started == []
