"""Serving: what the way over HTTP adds to a query, to a large result, and to many clients at once.

python -m benchmarks.server [--quick] [--write]
"""

import argparse
import io
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Final

import httpx
import pyarrow as pa

import omnigraph
from benchmarks import program, report
from omnigraph import graph
from omnigraph.errors import OmnigraphError
from tests.support.server_load import (
    BRANCHES,
    NOTES,
    PEOPLE,
    READ,
    SCHEMA,
    WRITE,
    LoadOutcome,
    prepare,
    run_load,
)
from tests.support.server_process import ServerProcess

ARROW: Final = "application/vnd.apache.arrow.stream"
STREAM: Final = "query q() { match { $p: Person } return { $p.id, $p.name, $p.age } }"
LIMITS: Final = "[limits]\nreads_per_actor = 16\nwrites_per_actor = 8\n"

POINTS: Final = 1_000
STREAM_ROWS: Final = 1_000_000
STREAM_ROUNDS: Final = 21
CLIENTS: Final = 8
SECONDS: Final = 10.0
CROWD: Final = 64
CROWD_SECONDS: Final = 60.0
ADDED_GOAL: Final = 0.002
STREAM_GOAL: Final = 0.7
TAIL_GOAL: Final = 10
MEMORY_GOAL: Final = 1.25

READING: Final = """\
A server in a process of its own, on this machine, and one client in this process; the same graph is
also opened in this process (embedded). Point: one row by its key, in turns, as JSON. Stream: all
rows of a type as Arrow, by `omnigraph.connect`, until the table is there, as it is embedded; "by
httpx" reads the body of `POST query` by that library alone. Throughput: 8 clients, 4
reads of a point to each write of a row on one of 4 branches, against 8 threads of one process that
do the same embedded. Crowd: 64 clients that do the same for 70 s. They begin at once, all of them
with a read, and their first 10 s are not counted; then every write that was acknowledged is looked
for. Clients take their share of the two cores."""


def main() -> None:
    given = program.parser(__doc__, "quick").parse_args()
    program.run("Serving", given, _section)


def _section(given: argparse.Namespace, folder: Path) -> str:
    start = report.start()
    quick: bool = given.quick
    made = graph.init(folder / "world", SCHEMA)
    prepare(made)
    rows = 20_000 if quick else STREAM_ROWS
    large = graph.init(folder / "large", SCHEMA)
    ages = pa.array([number % 90 for number in range(rows)], pa.int32())
    names = pa.array([f"person {number}" for number in range(rows)])
    large.load({"Person": pa.table({"name": names, "age": ages})})
    second = f'[graphs.large]\nuri = "{folder / "large"}"\n{LIMITS}'
    with ServerProcess(folder / "world", folder, second) as server:
        headers = {"Authorization": f"Bearer {server.token}"}
        with httpx.Client(base_url=server.url, headers=headers, timeout=120) as client:
            points = _points(made, client, 100 if quick else POINTS)
            address = f"{server.url}/graphs/large"
            with omnigraph.connect(address, server.token) as remote:
                rounds = 2 if quick else STREAM_ROUNDS
                *streams, plain = _streams(large, remote, client, rounds)
        seconds = 1.0 if quick else SECONDS
        served = run_load(server.port, server.token, clients=CLIENTS, seconds=seconds)
        assert not served.failures, served.failures[:3]
        embedded = _work_embedded(made, seconds)
        crowd = _crowd(made, server, 1.0 if quick else CROWD_SECONDS)
    counted = len(served.read_seconds) + served.writes
    return "\n\n".join(
        [
            READING,
            report.circumstances(start, versions=["httpx"]),
            "### Goals",
            "\n".join(
                [
                    *_goals(points, (streams[0], streams[1]), is_measured=not quick),
                    *_crowd_goals(crowd, is_measured=not quick),
                ]
            ),
            "### Times",
            report.table(
                ["", "embedded", "served"],
                [
                    ["point, p50", *(f"{median(each) * 1000:.2f} ms" for each in points)],
                    ["point, p99", *(f"{_p99(each) * 1000:.2f} ms" for each in points)],
                    [f"{rows:,} rows", *(f"{median(each):.3f} s" for each in streams)],
                    ["the same by httpx", "", f"{median(plain):.3f} s"],
                    ["requests / s", f"{embedded / seconds:.0f}", f"{counted / seconds:.0f}"],
                    ["throughput ratio", "", f"{counted / embedded:.2f}"],
                ],
            ),
            "### A crowd",
            report.table(["", "read", "write"], _crowd_rows(crowd)),
            f"With the first 10 s, a read takes {_p99(crowd.all_reads) * 1000:.1f} ms at p99. The "
            f"server holds {crowd.early >> 20} MiB before that minute, and {crowd.late >> 20} MiB "
            f"after it. Answers that asked to try again: {sum(crowd.outcome.refused.values())}.",
        ]
    )


@dataclass(frozen=True, slots=True)
class Crowd:
    """What many clients saw, and the bytes that the server held before and after them."""

    outcome: LoadOutcome
    early: int
    late: int

    @property
    def all_reads(self) -> list[float]:
        """The seconds of each read, those while the clients settled included."""
        return [*self.outcome.early_read_seconds, *self.outcome.read_seconds]


def _crowd(made: graph.Graph, server: ServerProcess, seconds: float) -> Crowd:
    sizes: list[int] = []
    outcome = run_load(
        server.port,
        server.token,
        clients=CROWD,
        seconds=seconds,
        run="crowd",
        settle_seconds=seconds / 6,
        when_settled=lambda: sizes.append(server.resident_bytes()),
    )
    sizes.append(server.resident_bytes())
    assert not outcome.failures, outcome.failures[:3]
    stored = {
        row["n.text"] for branch in BRANCHES for row in made.query(NOTES, branch=branch).rows()
    }
    lost = [note for notes in outcome.acknowledged.values() for note in notes - stored]
    assert not lost, lost[:3]
    return Crowd(outcome, *sizes)


def _crowd_goals(crowd: Crowd, *, is_measured: bool) -> list[str]:
    ratio = crowd.outcome.percentile(0.99) / crowd.outcome.percentile(0.5)
    grown = crowd.late / crowd.early
    return [
        report.goal(
            f"with {CROWD} clients, p99 of a point is {ratio:.1f} times its p50 (goal {TAIL_GOAL})",
            "",
            is_met=ratio <= TAIL_GOAL,
            is_measured=is_measured,
        ),
        report.goal(
            f"a minute of that leaves {grown:.2f} times the memory (goal {MEMORY_GOAL})",
            "",
            is_met=grown <= MEMORY_GOAL,
            is_measured=is_measured,
        ),
    ]


def _crowd_rows(crowd: Crowd) -> list[list[str]]:
    times = crowd.outcome.read_seconds, crowd.outcome.write_seconds
    rows = [
        [name, *(f"{sorted(each)[int(len(each) * share)] * 1000:.1f} ms" for each in times)]
        for name, share in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99))
    ]
    return [["requests", *(f"{len(each):,}" for each in times)], *rows]


def _goals(
    points: tuple[list[float], list[float]],
    streams: tuple[list[float], list[float]],
    *,
    is_measured: bool,
) -> list[str]:
    added = median(points[1]) - median(points[0])
    ratio = median(streams[0]) / median(streams[1])
    return [
        report.goal(
            f"a point over HTTP takes {added * 1000:.2f} ms more than embedded (goal 2)",
            "",
            is_met=added <= ADDED_GOAL,
            is_measured=is_measured,
        ),
        report.goal(
            f"rows are streamed at {ratio:.2f} times the rate of reading them (goal 0.7)",
            "",
            is_met=ratio >= STREAM_GOAL,
            is_measured=is_measured,
        ),
    ]


def _points(
    made: graph.Graph, client: httpx.Client, rounds: int
) -> tuple[list[float], list[float]]:
    embedded: list[float] = []
    served: list[float] = []
    for number in range(rounds + 20):
        parameters = {"n": f"p{number * 7 % PEOPLE}"}
        expected = _time(embedded, lambda p=parameters: made.query(READ, p).rows())
        body = {"query": READ, "params": parameters}
        found = _time(served, lambda b=body: client.post("/graphs/world/query", json=b).json())
        assert found["rows"] == expected
    return embedded[20:], served[20:]


def _streams(
    large: graph.Graph, remote: omnigraph.RemoteGraph, client: httpx.Client, rounds: int
) -> tuple[list[float], list[float], list[float]]:
    embedded: list[float] = []
    served: list[float] = []
    plain: list[float] = []

    def fetch() -> pa.Table:
        answer = client.post(
            "/graphs/large/query", json={"query": STREAM}, headers={"Accept": ARROW}
        )
        return pa.ipc.open_stream(io.BytesIO(answer.content)).read_all()

    for _ in range(rounds + 1):
        expected = _time(embedded, lambda: large.query(STREAM).arrow())
        found = _time(served, lambda: remote.query(STREAM).arrow())
        assert found.num_rows == _time(plain, fetch).num_rows == expected.num_rows
    return embedded[1:], served[1:], plain[1:]


def _work_embedded(made: graph.Graph, seconds: float) -> int:
    """How many reads and writes threads of this process make in some seconds."""
    ends_at = time.monotonic() + seconds
    counts: list[int] = []
    lock = threading.Lock()

    def work(number: int) -> None:
        done = 0
        while time.monotonic() < ends_at:
            if done % 5 == number % 5:
                branch = BRANCHES[(number + done) % 4]
                with suppress(OmnigraphError):
                    made.mutate(WRITE, {"t": f"e{number}-{done}"}, branch=branch)
            else:
                made.query(READ, {"n": f"p{done * 13 % PEOPLE}"}).rows()
            done += 1
        with lock:
            counts.append(done)

    with ThreadPoolExecutor(CLIENTS) as pool:
        list(pool.map(work, range(CLIENTS)))
    return sum(counts)


def _time(seconds: list[float], run: Callable[[], Any]) -> Any:
    begun = time.perf_counter()
    found = run()
    seconds.append(time.perf_counter() - begun)
    return found


def _p99(seconds: list[float]) -> float:
    return sorted(seconds)[int(len(seconds) * 0.99)]


if __name__ == "__main__":
    main()
