"""Many clients at once: nothing is lost, nothing is there twice, also when the server is killed."""

import logging
import threading
import time
from pathlib import Path

import pytest

import omnigraph
from tests.support.server_load import (
    BRANCHES,
    NOTES,
    SCHEMA,
    LoadOutcome,
    faults_in,
    prepare,
    run_load,
)
from tests.support.server_process import ServerProcess

log = logging.getLogger(__name__)
# The actor of all clients is one.
KILLS_MIN = 8
LIMITS = "[limits]\nreads_per_actor = 16\nwrites_per_actor = 8\n"


@pytest.fixture
def graph(tmp_path):
    made = omnigraph.init(tmp_path / "world", SCHEMA)
    prepare(made)
    return made


def test_many_clients_lose_nothing(graph, tmp_path):
    with ServerProcess(tmp_path / "world", tmp_path, LIMITS) as server:
        outcome = run_load(server.port, server.token, clients=64, seconds=3)
        assert server.stop() == 0

    assert outcome.failures == []
    assert outcome.writes > 20
    assert outcome.interruptions == 0
    assert faults_in(graph, outcome) == []


def test_the_oracle_sees_what_is_lost_and_what_is_there_twice(graph):
    outcome = LoadOutcome()
    outcome.acknowledged["b0"] = {"lost"}
    outcome.tried = {"lost", "twice"}
    for _ in range(2):
        graph.load({"Note": [{"text": "twice"}]}, branch="b1", index=False)
    graph.load({"Note": [{"text": "strange"}]}, branch="b2", index=False)

    assert set(faults_in(graph, outcome)) == {
        "lost is lost",
        "twice is there 2 times",
        "strange came from nowhere",
    }


@pytest.mark.soak
def test_a_minute_of_load_is_fast_and_takes_no_more_memory(graph, tmp_path):
    sizes: list[int] = []
    with ServerProcess(Path(graph.uri), tmp_path, LIMITS) as server:
        outcome = run_load(
            server.port,
            server.token,
            clients=64,
            seconds=60,
            settle_seconds=10,
            when_settled=lambda: sizes.append(server.resident_bytes()),
        )
        sizes.append(server.resident_bytes())
        assert server.stop() == 0

    early, late = sizes
    log.info("%s; %.0f MiB, then %.0f", outcome, early / 2**20, late / 2**20)
    assert outcome.failures == []
    assert outcome.percentile(0.99) <= 10 * outcome.percentile(0.5)
    assert late < 1.25 * early + (64 << 20)


@pytest.mark.soak
def test_killed_servers_carry_out_every_request_once(graph, tmp_path):
    server = ServerProcess(tmp_path / "world", tmp_path, LIMITS)
    done = threading.Event()
    kills, outcome = 0, LoadOutcome()

    def kill_often() -> None:
        nonlocal kills
        while not done.wait(3):
            server.kill()
            server.start()
            kills += 1

    with server:
        killer = threading.Thread(target=kill_often)
        killer.start()
        try:
            begun = time.monotonic()
            # On a busy machine, a server takes longer to start than to be killed.
            while kills < KILLS_MIN or time.monotonic() < begun + 60:
                run = f"r{len(outcome.tried)}-"
                outcome.merge(
                    run_load(server.port, server.token, clients=64, seconds=20, writes=0.5, run=run)
                )
        finally:
            done.set()
            killer.join()
        assert server.stop() == 0

    log.info("%s; %s kills", outcome, kills)
    assert outcome.failures == []
    assert (outcome.interruptions > 0, outcome.writes > 50) == (True, True)
    assert faults_in(graph, outcome) == []
    everything = sum(len(graph.query(NOTES, branch=branch)) for branch in BRANCHES)
    assert outcome.writes <= everything <= len(outcome.tried)
    assert graph.check().is_sound
