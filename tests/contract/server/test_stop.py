"""Stopping: one deadline for all that runs, and nothing is cut without a word."""

import json
import threading
import time

import pytest

import omnigraph
from omnigraph.graph import Graph
from tests.contract.server.test_http import ADD, mutate
from tests.support.served import serving, settings_for
from tests.support.server_process import ServerProcess

SCHEMA = "node Person { name: String @key  age: I64? }"
ROWS = 150_000


def test_a_server_that_is_asked_to_stop_ends_what_it_has_begun(tmp_path):
    graph = omnigraph.init(tmp_path / "world", SCHEMA)
    rows = "".join(
        json.dumps({"type": "Person", "data": {"name": f"p{number}"}}) + "\n"
        for number in range(ROWS)
    )
    answers: list[int] = []
    streamed: list[bytes] = []
    with ServerProcess(tmp_path / "world", tmp_path) as server:
        begun = threading.Event()

        def write():
            answers.append(server.ask("POST", "load?index=false", content=rows).status_code)

        def listen():
            with server.stream("changes", {"Accept": "text/event-stream"}) as events:
                begun.set()
                streamed.extend(events.iter_bytes())

        threads = [threading.Thread(target=write), threading.Thread(target=listen)]
        for thread in threads:
            thread.start()
        assert begun.wait(30)
        server.wait_until_running("write")
        asked_at = time.monotonic()
        assert server.stop() == 0
        for thread in threads:
            thread.join(10)
            assert not thread.is_alive()
        log = server.log()

    assert time.monotonic() - asked_at < 19, "it did not wait for the stream until the deadline"
    assert answers == [200]
    assert not any(b"problem" in piece for piece in streamed)
    assert "Traceback" not in log
    count = graph.query("query q() { match { $p: Person } return { count($p) as n } }")
    assert count.rows() == [{"n": ROWS}]


@pytest.mark.parametrize("kind", ["write", "read"])
def test_what_takes_longer_than_the_time_to_stop_is_answered_at_its_end(
    tmp_path, monkeypatch, caplog, kind
):
    omnigraph.init(tmp_path / "world", SCHEMA)
    settings = settings_for(tmp_path, {"world": str(tmp_path / "world")}, stop_seconds=1)
    running, release = threading.Event(), threading.Event()

    def block(*_, **__):
        running.set()
        release.wait(20)
        raise AssertionError

    monkeypatch.setattr(Graph, "mutate" if kind == "write" else "snapshot", block)
    answers = []
    try:
        with serving(settings) as served, served.client() as client:

            def ask():
                if kind == "write":
                    answers.append(mutate(client, ADD, {"n": "x"}))
                else:
                    answers.append(client.get("/graphs/world/snapshot"))

            asking = threading.Thread(target=ask)
            asking.start()
            assert running.wait(10)
            asked_at = time.monotonic()
            served.stop()
            seconds = time.monotonic() - asked_at
            asking.join(5)
    finally:
        release.set()

    assert 0.9 < seconds < 3
    codes = [answer.json()["code"] for answer in answers]
    assert codes == ["outcome_unknown" if kind == "write" else "storage"]
    assert not [record for record in caplog.records if record.exc_info]
