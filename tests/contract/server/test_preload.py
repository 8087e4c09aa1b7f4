"""What a server imports before it takes requests."""

import json
import subprocess
import sys

import omnigraph

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
