"""A million short texts, embedded by the local model on Spark in a run that is killed half way."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.embedding.providers.local import LocalProvider
from omnigraph.engine.snapshots import data_at
from omnigraph.storage.tables import ROW_VERSION, Table

ROWS: Final = int(os.environ.get("OMNIGRAPH_TEST_EMBEDDED_ROWS", "1000000"))
SCHEMA: Final = 'node Doc { number: I64 @key  body: String  vector: Vector(256) @embed("body") }'
KINDS: Final = ("ant", "bee", "cow", "dog", "eel")
SECONDS_MAX: Final = 3000

EMBED: Final = """
import sys
import omnigraph
print(omnigraph.open(sys.argv[1]).embeddings.run(engine="spark").embedded)
"""


def text_of(number: int) -> str:
    return f"{KINDS[number % 5]} number {number} of the farm"


def begin(uri: str) -> subprocess.Popen[bytes]:
    """A run with a driver, and a Java, of its own, in a group of processes of its own."""
    return subprocess.Popen([sys.executable, "-c", EMBED, uri], start_new_session=True)


def current_of(uri: str) -> int:
    [status] = omnigraph.open(uri).embeddings.status()
    assert (status.stale, status.current + status.pending) == (0, ROWS), "no state but these"
    return status.current


def docs_of(graph: Graph) -> Table:
    [key] = graph.snapshot().pins
    return data_at(graph._store, graph.snapshot()).table(key)


def versions_of(graph: Graph) -> np.ndarray:
    """For each row by its number, the version that wrote it last, and 0 if it has no vector."""
    rows = docs_of(graph).read(["number", "vector_embedded", ROW_VERSION])
    found = np.zeros(ROWS, np.int64)
    is_embedded = rows["vector_embedded"].is_valid().to_numpy()
    found[rows["number"].to_numpy()] = np.where(is_embedded, rows[ROW_VERSION].to_numpy(), 0)
    return found


@pytest.mark.soak
@pytest.mark.timeout(2 * SECONDS_MAX)
def test_a_killed_run_on_spark_is_continued_and_embeds_no_row_twice(tmp_path: Path):
    uri = str(tmp_path / "graph.omni")
    rows = pa.table({"number": range(ROWS), "body": [*map(text_of, range(ROWS))]})
    omnigraph.init(uri, schema=SCHEMA).load({"Doc": rows}, engine="local", embed="later")
    deadline = time.monotonic() + SECONDS_MAX

    run = begin(uri)
    while current_of(uri) < ROWS // 2:
        assert run.poll() is None, "it has ended before it was killed"
        assert time.monotonic() < deadline
        time.sleep(0.2)
    os.killpg(run.pid, signal.SIGKILL)
    run.wait()
    graph = omnigraph.open(uri)
    committed = current_of(uri)
    before = versions_of(graph)
    assert ROWS // 2 <= committed < ROWS
    assert np.count_nonzero(before) == committed
    assert graph.check().is_sound

    assert begin(uri).wait(deadline - time.monotonic()) == 0

    assert current_of(uri) == ROWS
    after = versions_of(graph)
    assert np.all(after > 0)
    assert np.array_equal(after[before > 0], before[before > 0]), "no row was embedded again"
    some = list(range(0, ROWS, ROWS // 100))
    found = docs_of(graph).read(["number", "vector"], filter_text=f"number % {ROWS // 100} = 0")
    vectors = dict(zip(found["number"].to_pylist(), found["vector"].to_pylist(), strict=True))
    expected = LocalProvider().embed([*map(text_of, some)], 256)
    np.testing.assert_allclose([vectors[number] for number in some], expected, atol=1e-6)
    assert graph.check().is_sound
