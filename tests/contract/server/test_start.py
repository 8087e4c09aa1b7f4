"""What a server does before it takes requests."""

import json
import subprocess
import sys
from functools import partial

import pytest

import omnigraph
from omnigraph.errors import GraphNotFoundError, InvalidInputError
from omnigraph.failpoints import Failpoint, arm
from omnigraph.server.jobs import JobState
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


def test_two_servers_do_not_share_a_state_folder(tmp_path):
    graph = omnigraph.init(tmp_path / "world", "node Person { name: String @key }")
    settings = settings_for(tmp_path, {"world": graph.uri}, port=0)
    with serving(settings) as first:
        upload = first.service.scratch / "load-on-its-way.jsonl"
        upload.write_text("x")
        job = first.service.jobs.new("world", "ada", key=None, request={}, digest="0")
        with pytest.raises(InvalidInputError, match="uses the state folder") as refused:
            serve(settings, started=lambda _: None)
        assert str(settings.state) in refused.value.message
        assert "--state" in refused.value.hint
        assert upload.read_text() == "x"
        assert first.service.jobs.find(job.job_id).state is JobState.QUEUED
    with serving(settings) as second:
        assert second.service.jobs.find(job.job_id).state is JobState.INTERRUPTED


def test_a_job_under_a_key_of_another_request_does_not_stop_the_next_start(tmp_path):
    graph = omnigraph.init(tmp_path / "world", "node Person { name: String @key }")
    settings = settings_for(tmp_path, {"world": graph.uri})
    with serving(settings) as served, served.client() as client:
        body = {"query": 'query q() { insert Person { name: "Ada" } }'}
        done = client.post("/graphs/world/mutate", json=body, headers={"Idempotency-Key": "k"})
        assert done.status_code == 200
        # As if the server had stopped before the job began.
        job = served.service.jobs.new("world", "ada", key="k", request={}, digest="0")
    with serving(settings) as served, served.client() as client:
        found = client.get(f"/graphs/world/jobs/{job.job_id}").json()
        assert (found["state"], found["problem"]["code"]) == ("failed", "request_mismatch")
