"""What a server does before it takes requests."""

import json
import subprocess
import sys
from functools import partial

import pytest

import omnigraph
from omnigraph.errors import GraphNotFoundError
from omnigraph.failpoints import Failpoint, arm
from omnigraph.server.serve import serve
from tests.support.concurrency import at_once
from tests.support.served import serving, settings_for

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


@pytest.mark.parametrize(
    "point",
    [
        Failpoint.CLAIM_AFTER_PUT,
        Failpoint.WRITE_AFTER_CHECK,
        Failpoint.WRITE_AFTER_EACH_APPLY,
        Failpoint.PUBLISH_AFTER_COMMIT,
        Failpoint.WRITE_AFTER_PUBLISH,
    ],
)
def test_a_server_beside_what_a_killed_one_left_carries_out_each_request_once(tmp_path, point):
    graph = omnigraph.init(tmp_path / "world", "node Note { text: String }")
    settings = settings_for(tmp_path, {"world": graph.uri})

    def add(client, text):
        body = {"query": "query q($t: String) { insert Note { text: $t } }", "params": {"t": text}}
        return client.post("/graphs/world/mutate", json=body, headers={"Idempotency-Key": text})

    with serving(settings) as killed, killed.client() as client, arm(point):
        assert add(client, "first").is_error
    with serving(settings) as served, served.client() as client:
        texts = ["first", "first", "second", "third"]
        answers = at_once([partial(add, client, text) for text in texts])
        assert [answer.status_code for answer in answers] == [200] * 4, answers
        assert answers[0].json() == answers[1].json()
    rows = graph.query("query q() { match { $n: Note } return { $n.text } }").rows()
    assert sorted(row["n.text"] for row in rows) == ["first", "second", "third"]
