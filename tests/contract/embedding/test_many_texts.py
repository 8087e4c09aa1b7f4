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

COMMIT_ROWS_MAX: Final = max(131_072, 65_536 * (os.cpu_count() or 1))
"""What docs/embeddings.md says of a commit on Spark, and so of what a kill costs at most."""

EMBED: Final = """
import sys
import omnigraph
print(omnigraph.open(sys.argv[1]).embeddings.run(engine="spark").embedded)
"""

COUNT: Final = """
import os
import numpy
from omnigraph.embedding.providers.local import LocalProvider

embed = LocalProvider.embed

def count(self, texts, dimension):
    folder = os.environ["COUNTED_TEXTS"]
    with open(f"{folder}/{os.getpid()}", "ab", buffering=0) as file:
        file.write(numpy.array([int(text.split()[2]) for text in texts], numpy.int64).tobytes())
    return embed(self, texts, dimension)

LocalProvider.embed = count
"""
"""Run by every Python process at its start, those of executors included: notes each text that the
model is called with, before it is, in a file that a kill leaves."""


def text_of(number: int) -> str:
    return f"{KINDS[number % 5]} number {number} of the farm"


class CountedRun:
    """A run with a driver, and a Java, of its own, in a group of processes of its own."""

    def __init__(self, uri: str, folder: Path) -> None:
        self.counted = folder / "counted"
        self.counted.mkdir(parents=True)
        (folder / "sitecustomize.py").write_text(COUNT)
        paths = [str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]
        own = {"PYTHONPATH": os.pathsep.join(paths), "COUNTED_TEXTS": str(self.counted)}
        self.process = subprocess.Popen(
            [sys.executable, "-c", EMBED, uri], start_new_session=True, env=os.environ | own
        )

    def kill(self) -> None:
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def counts(self) -> np.ndarray:
        """For each text by its number, how often the model was called with it."""
        files = [np.frombuffer(path.read_bytes(), np.int64) for path in self.counted.iterdir()]
        return np.bincount(np.concatenate([np.zeros(0, np.int64), *files]), minlength=ROWS)


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


def require_vectors(graph: Graph) -> None:
    """A hundred rows have the vectors of their texts."""
    step = max(1, ROWS // 100)
    found = docs_of(graph).read(["number", "vector"], filter_text=f"number % {step} = 0")
    vectors = dict(zip(found["number"].to_pylist(), found["vector"].to_pylist(), strict=True))
    expected = LocalProvider().embed([*map(text_of, vectors)], 256)
    np.testing.assert_allclose([*vectors.values()], expected, atol=1e-6)


@pytest.mark.soak
@pytest.mark.timeout(2 * SECONDS_MAX)
def test_a_killed_run_on_spark_is_continued_and_embeds_no_committed_text_again(tmp_path: Path):
    uri = str(tmp_path / "graph.omni")
    rows = pa.table({"number": range(ROWS), "body": [*map(text_of, range(ROWS))]})
    omnigraph.init(uri, schema=SCHEMA).load({"Doc": rows}, engine="local", embed="later")
    deadline = time.monotonic() + SECONDS_MAX

    killed = CountedRun(uri, tmp_path / "killed")
    seen: set[int] = set()
    while not seen or max(seen) < ROWS // 2:
        assert killed.process.poll() is None, "it has ended before it was killed"
        assert time.monotonic() < deadline
        time.sleep(0.2)
        seen.add(current_of(uri))
    killed.kill()
    graph = omnigraph.open(uri)
    committed = current_of(uri)
    before = versions_of(graph)
    assert ROWS // 2 <= committed < ROWS
    assert np.count_nonzero(before) == committed
    assert graph.check().is_sound

    second = CountedRun(uri, tmp_path / "second")
    assert second.process.wait(deadline - time.monotonic()) == 0

    assert current_of(uri) == ROWS
    after = versions_of(graph)
    assert np.all(after > 0)
    assert np.array_equal(after[before > 0], before[before > 0]), "no row was written again"
    _, sizes = np.unique(after, return_counts=True)
    assert sizes.max() <= COMMIT_ROWS_MAX
    assert seen <= {0, *np.cumsum(sizes).tolist()}, "only whole commits were ever visible"
    first, again = killed.counts(), second.counts()
    assert first.max() == 1
    assert np.all(first[before > 0] == 1)
    assert np.array_equal(again, before == 0), "what was not committed, once"
    assert np.count_nonzero(first + again > 1) <= COMMIT_ROWS_MAX, "only what was cut off"
    require_vectors(graph)
    assert graph.check().is_sound
