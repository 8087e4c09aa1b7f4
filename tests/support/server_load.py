"""A load of a server: clients that read points and write rows, and repeat what was not answered."""

import http.client
import json
import random
import statistics
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

SCHEMA: Final = "node Person { name: String @key  age: I32? }\nnode Note { text: String }"
BRANCHES: Final = ("b0", "b1", "b2", "b3")
PEOPLE: Final = 1_000
READ: Final = "query q($n: String) { match { $p: Person {name: $n} } return { $p.name, $p.age } }"
WRITE: Final = "query q($t: String) { insert Note { text: $t } }"
NOTES: Final = "query q() { match { $n: Note } return { $n.text } }"
_BUSY: Final = frozenset({409, 429})
_RETRY_SECONDS_MAX: Final = 0.5


@dataclass(slots=True)
class LoadOutcome:
    """What the clients saw.

    Attributes:
        acknowledged: The notes whose writes were answered by success, by branch.
        tried: All notes that were sent at all.
        early_read_seconds: Those of reads that began while the clients still settled.
        refused: How often a status was answered that asks to try again.
        failures: Every other answer that was no success.
        interruptions: How often a connection broke.
    """

    acknowledged: dict[str, set[str]] = field(
        default_factory=lambda: {branch: set() for branch in BRANCHES}
    )
    tried: set[str] = field(default_factory=set)
    early_read_seconds: list[float] = field(default_factory=list)
    read_seconds: list[float] = field(default_factory=list)
    write_seconds: list[float] = field(default_factory=list)
    refused: Counter[int] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    interruptions: int = 0
    _lock: Any = field(default_factory=threading.Lock)

    def merge(self, other: "LoadOutcome") -> None:
        """Add what another client saw."""
        with self._lock:
            for branch, notes in other.acknowledged.items():
                self.acknowledged[branch] |= notes
            self.tried |= other.tried
            self.early_read_seconds += other.early_read_seconds
            self.read_seconds += other.read_seconds
            self.write_seconds += other.write_seconds
            self.refused += other.refused
            self.failures += other.failures
            self.interruptions += other.interruptions

    @property
    def writes(self) -> int:
        """How many writes were acknowledged."""
        return sum(map(len, self.acknowledged.values()))

    def percentile(self, share: float) -> float:
        """The seconds that this share of reads took at most."""
        ordered = sorted(self.read_seconds)
        return ordered[min(len(ordered) - 1, int(len(ordered) * share))]

    def __str__(self) -> str:
        median = statistics.median(self.read_seconds) if self.read_seconds else 0.0
        return (
            f"{len(self.read_seconds)} reads, p50 {median * 1000:.1f} ms, "
            f"p99 {self.percentile(0.99) * 1000 if self.read_seconds else 0:.1f} ms; "
            f"{self.writes} writes, {dict(self.refused)} refused, "
            f"{self.interruptions} interruptions, {len(self.failures)} failures"
        )


def prepare(graph: Any) -> None:
    """Give a graph of this schema the rows and branches that the clients use."""
    graph.load({"Person": [{"name": f"p{n}", "age": n % 90} for n in range(PEOPLE)]})
    for branch in BRANCHES:
        graph.branches.create(branch)


def run_load(
    port: int,
    token: str,
    *,
    clients: int,
    seconds: float,
    writes: float = 0.2,
    run: str = "c",
    settle_seconds: float = 0.0,
    when_settled: Callable[[], None] = lambda: None,
) -> LoadOutcome:
    """Let clients work for some seconds, and then end what they have begun.

    Args:
        run: Begins the names of its clients, and so of what they write and of their requests' keys.
        settle_seconds: How long they work before that. All of them begin at once with a read, as no
            crowd does that has been there for a while.
        when_settled: Called when the seconds begin that count.
    """
    outcome = LoadOutcome()
    counts_from = time.monotonic() + settle_seconds
    ends_at = counts_from + seconds

    def work(number: int) -> None:
        client = _Client(f"{run}{number}", port, token, counts_from)
        try:
            client.run(ends_at, writes)
        finally:
            outcome.merge(client.outcome)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    time.sleep(max(0.0, counts_from - time.monotonic()))
    when_settled()
    for thread in threads:
        thread.join()
    return outcome


class _Client:
    """One client, with a connection of its own and nothing else in common with others."""

    def __init__(self, name: str, port: int, token: str, counts_from: float) -> None:
        self._name = name
        self._counts_from = counts_from
        self._port = port
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        self._random = random.Random(name)
        self._connection: http.client.HTTPConnection | None = None
        self.outcome = LoadOutcome()

    def run(self, ends_at: float, writes: float) -> None:
        count = 0
        while time.monotonic() < ends_at:
            if self._random.random() < writes:
                self._write(f"{self._name}-{count}")
                count += 1
            else:
                self._read(f"p{self._random.randrange(PEOPLE)}")
        if self._connection is not None:
            self._connection.close()

    def _read(self, name: str) -> None:
        begun = time.monotonic()
        answer = self._ask("query", {"query": READ, "params": {"n": name}})
        if answer is not None:
            is_early, seen = begun < self._counts_from, self.outcome
            times = seen.early_read_seconds if is_early else seen.read_seconds
            times.append(time.monotonic() - begun)
            if [row["p.name"] for row in answer["rows"]] != [name]:
                self.outcome.failures.append(f"{name}: {answer['rows']}")

    def _write(self, note: str) -> None:
        branch = self._random.choice(BRANCHES)
        body = {"query": WRITE, "params": {"t": note}, "branch": branch}
        self.outcome.tried.add(note)
        begun = time.monotonic()
        if self._ask("mutate", body, key=note) is not None:
            if begun >= self._counts_from:
                self.outcome.write_seconds.append(time.monotonic() - begun)
            self.outcome.acknowledged[branch].add(note)

    def _ask(self, route: str, body: dict[str, Any], key: str | None = None) -> Any:
        """The answer; a write is repeated with its key until there is one."""
        headers = self._headers if key is None else {**self._headers, "Idempotency-Key": key}
        give_up = time.monotonic() + 120
        while time.monotonic() < give_up:
            try:
                if self._connection is None:
                    self._connection = http.client.HTTPConnection(
                        "127.0.0.1", self._port, timeout=60
                    )
                self._connection.request(
                    "POST", f"/graphs/world/{route}", json.dumps(body), headers
                )
                response = self._connection.getresponse()
                text = response.read()
            except (OSError, http.client.HTTPException):
                self.outcome.interruptions += 1
                if self._connection is not None:
                    self._connection.close()
                self._connection = None
                time.sleep(0.05 + 0.1 * self._random.random())
                continue
            if response.status == 200:
                return json.loads(text)
            if response.status not in _BUSY and not _is_stopping(response.status, text):
                self.outcome.failures.append(f"{response.status} {text.decode()[:500]}")
                return None
            self.outcome.refused[response.status] += 1
            time.sleep(_RETRY_SECONDS_MAX * self._random.random())
        self.outcome.failures.append(f"{route}: no answer in time")
        return None


def _is_stopping(status: int, text: bytes) -> bool:
    return status == 503 and b"the server stops" in text


def faults_in(graph: Any, outcome: LoadOutcome) -> list[str]:
    """What is lost, there twice, or on another branch than it was written to."""
    faults: list[str] = []
    for branch, acknowledged in outcome.acknowledged.items():
        stored = Counter(row["n.text"] for row in graph.query(NOTES, branch=branch).rows())
        faults += [f"{note} is lost" for note in acknowledged - stored.keys()]
        faults += [f"{note} is there {count} times" for note, count in stored.items() if count > 1]
        faults += [f"{note} came from nowhere" for note in stored.keys() - outcome.tried]
    return faults
