"""Times in answers: every one is an instant of ISO 8601 in UTC, with a `Z`."""

import re
from collections import Counter
from datetime import datetime

import pytest

import omnigraph
from omnigraph.failpoints import Failpoint
from tests.contract.server.test_http import ADD, wait_for
from tests.contract.server.test_threats import addresses
from tests.support.crashes import Cut, cut_off
from tests.support.served import serving, settings_for

TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d[^\",]*")
INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{6})?Z")


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A graph that has one of everything that has a time, and a server of it."""
    folder = tmp_path_factory.mktemp("times")
    uri = str(folder / "world")
    omnigraph.init(uri, "node Person { name: String @key  seen: DateTime? }")
    cut_off(
        Cut(Failpoint.WRITE_AFTER_EACH_APPLY), lambda: omnigraph.open(uri).mutate(ADD, {"n": "x"})
    )
    graph = omnigraph.open(uri)
    graph.load({"Person": [{"name": "Ada", "seen": "1815-12-10T12:00:00+02:00"}]}, index=False)
    graph.branches.create("draft").mutate(ADD, {"n": "Bob"}, actor="bob")
    graph.tags.create("v1")
    graph.proposals.create("draft", "a proposal", actor="bob")
    graph.proposals.comment(1, "why?", actor="ada")
    graph.proposals.approve(1, actor="ada")
    graph.proposals.close(1, actor="ada")
    with serving(settings_for(folder, {"world": uri})) as served, served.client() as client:
        headers = {"Prefer": "respond-async"}
        line = b'{"type": "Person", "data": {"name": "Cyd"}}'
        job = client.post("/graphs/world/load", content=line, headers=headers)
        wait_for(client, job.headers["location"])
        yield client, job.json()["job_id"], graph.commits.list()[0].commit_id


def test_every_time_of_every_answer_has_one_form(world):
    client, job_id, commit_id = world
    found: Counter[str] = Counter()
    for address in addresses(client, job_id, commit_id):
        times = TIME.findall(client.get(address).text)
        assert [time for time in times if not INSTANT.fullmatch(time)] == [], address
        found[address.rpartition("/")[2].partition("?")[0]] += len(times)
    of = ("recovery", "tags", "v1", "proposals", "1", "jobs", job_id, "commits", "branches", "Ada")
    assert [name for name in of if not found[name]] == []


def test_recovery_is_told_as_by_the_command_line(world):
    client, *_ = world
    [entry] = client.get("/graphs/world/recovery").json()["recoveries"]
    assert entry["state"] == "rolled_forward"
    assert datetime.fromisoformat(entry.pop("recovered_at")).utcoffset() is not None
    assert entry["tables"] == [{"table_key": "node:Person", "from": 1, "to": 2}]
