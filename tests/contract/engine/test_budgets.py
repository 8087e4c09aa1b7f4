"""A query that exceeds its budget, or is cancelled, ends soon, frees what it held, and no more."""

import gc
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import omnigraph
from omnigraph import Cancellation, Graph
from omnigraph.engine.interrupts import RUN_THREAD
from omnigraph.errors import (
    CancelledError,
    DiagnosticsError,
    ErrorCode,
    LimitExceededError,
    OmnigraphError,
)

PEOPLE = 1_000_000
DENSE = 300
SCHEMA = """
node Person { number: I64 @key  twice: I64 }
node Dot { number: I64 @key }
edge Near: Dot -> Dot
"""
COUNT = "query q() { match { $p: Person } return { count($p) as people } }"
CROSS = "query q() { match { $a: Person  $b: Person  $a.twice < $b.number } return { count($a) } }"
PAIRS = "query q() { match { $a: Person  $b: Person } return { $a.number, $b.twice } }"
GROUPS = """query q() { match { $a: Person  $b: Person  $a.twice != $b.number }
  return { $a.number as a, $b.twice as b, count($a) as n } order { n, a, b } limit 3 }"""
WALK = """query q() {
  match { $a: Dot  $a near{1,4} $b  $b near{1,4} $c  $c near{1,4} $d }
  return { $a.number, $b.number, $c.number, $d.number } }"""

SECONDS = 0.3
"""How long a query runs before its budget ends."""
SECONDS_MAX = 4.0
"""How long after that it may end; measured: less than a tenth, on a busy machine up to one."""
JOBS_SECONDS_MAX = 60
BYTES_LEFT_MAX = 150 << 20


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    graph = omnigraph.init(tmp_path_factory.mktemp("budgets") / "graph", SCHEMA)
    numbers = pa.array(range(PEOPLE))
    dots = [(one, other) for one in range(DENSE) for other in range(DENSE) if one != other]
    graph.load(
        {
            "Person": pa.table({"number": numbers, "twice": pa.array(range(0, 2 * PEOPLE, 2))}),
            "Dot": pa.table({"number": pa.array(range(DENSE))}),
            "Near": pa.table(
                {
                    "from": [str(one) for one, _ in dots],
                    "to": [str(other) for _, other in dots],
                }
            ),
        },
        engine="local",
        index=False,
    )
    return graph


@pytest.fixture(params=["local", "spark"])
def engine(request: pytest.FixtureRequest) -> str:
    if request.param == "spark":
        request.getfixturevalue("spark")
    return str(request.param)


@pytest.fixture(autouse=True)
def nothing_is_left(graph: Graph) -> Iterator[None]:
    yield
    assert graph.query(COUNT).rows() == [{"people": PEOPLE}], "the handle can be used"
    # On Spark the caller does not wait for the end of jobs that were cancelled.
    for thread in threading.enumerate():
        if thread.name == RUN_THREAD:
            thread.join(JOBS_SECONDS_MAX)
    assert RUN_THREAD not in {thread.name for thread in threading.enumerate()}


def seconds_to_fail(run: Callable[[], object], kind: type[OmnigraphError]) -> tuple[float, str]:
    start = time.monotonic()
    with pytest.raises(kind) as refused:
        run()
    return time.monotonic() - start, refused.value.code.value


@pytest.mark.parametrize("text", [CROSS, WALK], ids=["cross product", "dense walk"])
def test_a_query_ends_when_its_time_is_up(graph: Graph, engine: str, text: str) -> None:
    seconds, code = seconds_to_fail(
        lambda: graph.query(text, engine=engine, timeout=SECONDS), LimitExceededError
    )
    assert code == ErrorCode.QUERY_TIMEOUT
    assert SECONDS <= seconds < SECONDS + SECONDS_MAX


@pytest.mark.parametrize("text", [CROSS, WALK], ids=["cross product", "dense walk"])
def test_a_query_is_cancelled_from_another_thread(graph: Graph, engine: str, text: str) -> None:
    cancellation = Cancellation()
    timer = threading.Timer(SECONDS, cancellation.cancel)
    timer.start()
    seconds, code = seconds_to_fail(
        lambda: graph.query(text, engine=engine, cancel=cancellation), CancelledError
    )
    timer.join()
    assert code == ErrorCode.CANCELLED
    assert SECONDS * 0.9 <= seconds < SECONDS + SECONDS_MAX
    seconds, _ = seconds_to_fail(lambda: graph.query(COUNT, cancel=cancellation), CancelledError)
    assert seconds < SECONDS_MAX


def test_a_walk_of_999_hops_is_refused_before_it_starts(graph: Graph, engine: str) -> None:
    with pytest.raises(DiagnosticsError, match="at most 64 hops"):
        graph.query(WALK.replace("{1,4}", "{1,999}"), engine=engine)


def test_one_cancellation_ends_queries_of_several_threads(graph: Graph) -> None:
    cancellation = Cancellation()
    codes: list[str] = []

    def run() -> None:
        codes.append(
            seconds_to_fail(lambda: graph.query(CROSS, cancel=cancellation), CancelledError)[1]
        )

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    time.sleep(SECONDS)
    cancellation.cancel()
    for thread in threads:
        thread.join(SECONDS_MAX)
    assert codes == [ErrorCode.CANCELLED] * 3


def resident_bytes() -> int:
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def test_the_longest_walks_end_in_time_and_free_what_they_held(graph: Graph) -> None:
    text = WALK.replace("{1,4}", "{1,64}")
    before = resident_bytes()
    seconds, code = seconds_to_fail(
        lambda: graph.query(text, engine="local", timeout=SECONDS), LimitExceededError
    )
    assert code == ErrorCode.QUERY_TIMEOUT
    assert seconds < SECONDS + SECONDS_MAX
    assert resident_bytes() - before < BYTES_LEFT_MAX
    assert graph.query(COUNT).rows() == [{"people": PEOPLE}]


@pytest.mark.parametrize("text", [PAIRS, GROUPS], ids=["large result", "large groups"])
def test_a_query_ends_when_it_needs_too_much_memory_and_frees_it(graph: Graph, text: str) -> None:
    before = resident_bytes()
    _, code = seconds_to_fail(lambda: graph.query(text, memory="200MB"), LimitExceededError)
    assert code == ErrorCode.QUERY_MEMORY
    assert resident_bytes() - before < BYTES_LEFT_MAX


def test_what_fits_the_memory_has_the_same_result(graph: Graph) -> None:
    people = "query q() { match { $p: Person } return { $p.number, $p.twice } }"
    assert graph.query(people, memory="200MB").arrow() == graph.query(people).arrow()
    groups = "query q() { match { $p: Person } return { $p.number as n, count($p) as c } limit 9 }"
    _, code = seconds_to_fail(lambda: graph.query(groups, memory="16MB"), LimitExceededError)
    assert code == ErrorCode.QUERY_MEMORY
    assert len(graph.query(groups, memory="1GB")) == 9


def test_a_cross_product_with_too_many_rows_is_refused_before_it_is_ordered(graph: Graph) -> None:
    _, code = seconds_to_fail(
        lambda: graph.query(PAIRS, max_rows=1000, timeout="20s"), LimitExceededError
    )
    assert code == ErrorCode.QUERY_MAX_ROWS


def test_a_query_with_too_many_rows_is_refused_and_not_cut(graph: Graph, engine: str) -> None:
    dots = "query q() { match { $d: Dot } return { $d.number } }"
    assert len(graph.query(dots, engine=engine, max_rows=DENSE)) == DENSE
    _, code = seconds_to_fail(
        lambda: graph.query(dots, engine=engine, max_rows=DENSE - 1), LimitExceededError
    )
    assert code == ErrorCode.QUERY_MAX_ROWS


def test_a_limit_of_the_query_itself_is_not_cut_either(graph: Graph) -> None:
    dots = "query q() { match { $d: Dot } return { $d.number } limit 20 }"
    assert len(graph.query(dots, max_rows=20)) == 20
    _, code = seconds_to_fail(lambda: graph.query(dots, max_rows=19), LimitExceededError)
    assert code == ErrorCode.QUERY_MAX_ROWS


INTERRUPTED = """
import os, signal, sys, threading, time
import omnigraph
signal.signal(signal.SIGINT, signal.default_int_handler)
graph = omnigraph.open(sys.argv[1], read_only=True)
graph.query(sys.argv[3])
seconds = float(sys.argv[4])
timer = threading.Timer(seconds, lambda: os.kill(os.getpid(), signal.SIGINT))
try:
    start = time.monotonic()
    timer.start()
    graph.query(sys.argv[2])
except KeyboardInterrupt:
    over = time.monotonic() - start - seconds
    timer.join()
    print(over, graph.query(sys.argv[3]).rows(), threading.active_count())
"""


@pytest.mark.parametrize("seconds", [0.02, SECONDS], ids=["while it reads", "while it joins"])
def test_ctrl_c_ends_a_query(graph: Graph, seconds: float) -> None:
    run = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, graph.uri, CROSS, COUNT, str(seconds)],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    over, _, rest = run.stdout.strip().partition(" ")
    assert float(over) < SECONDS_MAX
    assert rest == f"[{{'people': {PEOPLE}}}] 1"


def test_the_settings_of_a_graph_hold_unless_a_call_says_else(tmp_path: Path) -> None:
    graph = omnigraph.init(tmp_path / "graph", SCHEMA)
    graph.load({"Dot": pa.table({"number": pa.array(range(20))})}, index=False)
    dots = "query q() { match { $d: Dot } return { $d.number } }"
    graph.settings.set("query.max_rows", 10)
    with pytest.raises(LimitExceededError) as refused:
        graph.query(dots)
    assert "10 rows, the limit max_rows set for the graph" in refused.value.message
    assert refused.value.details == {"limit": "max_rows", "value": "10", "source": "graph"}
    assert len(graph.query(dots, max_rows="none")) == 20
    with pytest.raises(LimitExceededError, match="max_rows given with the query"):
        graph.query(dots, max_rows=19)
    # One row by its id needs no settings.
    assert len(graph.query("query q() { match { $d: Dot {number: 7} } return { $d.number } }")) == 1


def test_a_mutation_that_looks_for_rows_for_too_long_changes_nothing(graph: Graph) -> None:
    head = graph.snapshot().head.commit_id
    touch = "query q() { update Person set { twice: 1 } where number > 5 }"
    _, code = seconds_to_fail(lambda: graph.mutate(touch, timeout=0.001), LimitExceededError)
    assert code == ErrorCode.QUERY_TIMEOUT
    cancellation = Cancellation()
    cancellation.cancel()
    _, code = seconds_to_fail(lambda: graph.mutate(touch, cancel=cancellation), CancelledError)
    assert code == ErrorCode.CANCELLED
    assert graph.snapshot().head.commit_id == head
