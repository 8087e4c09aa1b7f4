"""Copies of a process that has imported Lance, Arrow, DuckDB and obstore: everything works in them.

docs/decisions/0017-a-starter.md relies on it.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Final

from omnigraph import graph
from tests.support.commands import omnigraph

# Imports as the starter does, and makes copies at once; each uses what starts threads.
PROGRAM: Final = """
import os, sys
from pathlib import Path
from omnigraph.cli import starter
from omnigraph.warm import server

starter.preload()
server.require_one_thread()
extras = {"pandas", "pyspark", "fastavro", "cedarpy", "anyio", "mcp", "fastapi", "jwt", "uvicorn"}
assert not extras & set(sys.modules), "a starter needs nothing that may not be installed"

import duckdb, lance, numpy as np, obstore, pyarrow as pa, pyarrow.compute as pc
from obstore.store import LocalStore

def use(folder):
    rows = pa.table({"n": pa.array(range(200_000)), "s": ["x"] * 200_000})
    lance.write_dataset(rows, folder / "table", max_rows_per_file=20_000)
    table = lance.dataset(folder / "table")
    assert table.to_table(filter="n % 2 = 0").num_rows == 100_000
    table.create_scalar_index("n", "BTREE")
    assert lance.dataset(folder / "table").to_table(filter="n = 77").num_rows == 1
    duckdb.connect(config={"threads": 4})
    total = duckdb.sql("select sum(n), count(distinct s) from rows").fetchall()
    assert total == [(199_999 * 100_000, 1)]
    assert pc.sum(rows["n"]).as_py() == total[0][0]
    assert np.ones((300, 300)).dot(np.ones((300, 300)))[0, 0] == 300
    store = LocalStore(folder)
    obstore.put(store, "object", b"bytes")
    assert bytes(obstore.get(store, "object").bytes()) == b"bytes"

folder, copies = Path(sys.argv[1]), {}
for number in range(int(sys.argv[2])):
    place = folder / str(number)
    place.mkdir()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            use(place)
            code = 0
        finally:
            os._exit(code)
    copies[pid] = number
codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in copies]
server.require_one_thread()
print(codes)
"""


def test_copies_at_once_read_write_and_compute(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path), "3"],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )

    assert (done.stdout, done.stderr) == (f"{[0] * 3}\n", "")
    # Copies of one generator of random numbers would choose the same names of files.
    names = [path.name for path in tmp_path.glob("*/table/data/*")]
    assert len(names) == len(set(names)) == 3 * 10


def test_why_the_starter_sets_variables_while_it_imports() -> None:
    """Without them numpy and Arrow start a thread each; if that ends, they can go."""
    program = "import os, numpy, pyarrow; print(len(os.listdir('/proc/self/task')))"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)

    assert int(run.stdout) > 1


def test_a_copy_reads_and_writes_objects_over_the_network(s3_bucket: str) -> None:
    store = f"s3://{s3_bucket}/graph"
    made = graph.init(store, "node Person { name: String @key }")
    added = omnigraph("mutate", "--store", store, "-e", 'query q() { insert Person { name: "a" } }')
    merged = omnigraph("branch", "create", "side", "--store", store)
    found = omnigraph(
        *("query", "--store", store, "--json"),
        *("-e", "query q() { match { $p: Person } return { $p.name } }"),
    )

    assert (added.code, merged.code) == (0, 0), added.err + merged.err
    assert json.loads(found.out) == [{"p.name": "a"}]
    assert len(made.commits.list()) == 2
