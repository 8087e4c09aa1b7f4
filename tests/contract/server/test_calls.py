"""Calls of Python clients, made by hand: what does not fit is refused, and none runs for ever."""

import json
import time

import httpx
import pyarrow as pa
import pytest

import omnigraph
from tests.contract.server.test_http import problem
from tests.support.served import serving, settings_for


def named(text):
    return {"$": "BranchName", "value": text}


@pytest.mark.parametrize(
    "target",
    [
        {"branch": 5},
        {"branch": None},
        {"branch": named("../..")},
        {"branch": "../.."},
        {"branch": named("main\0")},
        {"branch": named("")},
        {"branch": named("a" * 4_000)},
        {"branch": named("main"), "version": "x"},
        {"branch": named("main"), "version": 1.5},
        {"branch": named("main"), "version": True},
        {"branch": named("main"), "version": 10**30},
        {"branch": named("main"), "version": -1},
        {"branch": named("main"), "commit": "zz"},
        {"branch": named("main"), "commit": 7},
        {"branch": named("main"), "commit": {"$": "CommitId", "value": "../../x"}},
    ],
)
@pytest.mark.parametrize("operation", ["snapshot", "refresh", "export"])
def test_a_target_that_is_none_is_refused(client, operation, target):
    arguments = {"target": "x.jsonl"} if operation == "export" else {}
    body = {"target": {"$": "Target", **target}, "arguments": arguments}
    answer = client.post(f"/graphs/world/calls/{operation}", json=body)
    # Nothing is refreshed in the past, whether or not there is such a version.
    assert answer.status_code in (400, 403, 404), answer.text


@pytest.mark.parametrize(
    "arguments",
    [
        {"target": "x.jsonl", "progress": 1},
        {"target": "x" * 300},
        {"target": "ö" * 150},
        {"target": "x\ud800"},
        {"target": "a\nb"},
        {"target": ".."},
        {"target": 5},
    ],
)
def test_an_export_that_cannot_be_is_refused(client, arguments):
    body = json.dumps({"arguments": arguments})
    headers = {"Content-Type": "application/json"}
    answer = client.post("/graphs/world/calls/export", content=body, headers=headers)
    assert answer.status_code == 400, answer.text


def test_an_export_does_not_say_where_the_server_wrote_it(client, served):
    answer = client.post("/graphs/world/calls/export", json={"arguments": {"target": "x.jsonl"}})
    assert answer.status_code == 200
    assert str(served.service.scratch).encode() not in answer.content


@pytest.fixture(scope="module")
def ring(tmp_path_factory):
    """A graph whose ranks take some seconds."""
    folder = tmp_path_factory.mktemp("ring")
    schema = "node Person { name: String @key }\nedge Knows: Person -> Person"
    graph = omnigraph.init(folder / "world", schema)
    names = [str(number) for number in range(COUNT)]
    others = [str((number * number + 1) % COUNT) for number in range(COUNT)]
    graph.load(
        {"Person": pa.table({"name": names}), "Knows": pa.table({"from": names, "to": others})},
        index=False,
    )
    return graph


COUNT = 50_000
RANKS = {"arguments": {"rounds": 10_000, "tolerance": 1e-300, "damping": 0.9999999}}


def test_an_algorithm_takes_no_longer_than_a_query(ring, tmp_path):
    settings = settings_for(tmp_path, {"world": ring.uri}, limits={"query_timeout": "1s"})
    with serving(settings) as served, served.client() as client:
        begun = time.monotonic()
        answer = client.post("/graphs/world/calls/algorithms.pagerank", json=RANKS)
    found = problem(answer, 413, "query_timeout")
    assert "1s, the limit timeout of the server" in found["detail"]
    assert time.monotonic() - begun < 5


def test_a_client_that_leaves_cancels_an_algorithm(ring, tmp_path):
    settings = settings_for(tmp_path, {"world": ring.uri})
    with serving(settings) as served, served.client() as client:
        with pytest.raises(httpx.ReadTimeout):
            client.post("/graphs/world/calls/algorithms.pagerank", json=RANKS, timeout=0.5)
        begun = time.monotonic()
        while served.service.reads.inside and time.monotonic() - begun < 20:
            time.sleep(0.05)
        assert time.monotonic() - begun < 2
