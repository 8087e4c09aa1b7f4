"""What a load on Spark leaves to its driver: counts and names of files, however many rows."""

import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import omnigraph

SCHEMA = "node P { name: String @key  n: I64 }"
SMALL, LARGE = 100_000, 4_000_000

ABOVE_BYTES_MAX = 16 << 20
"""A few bytes for each row of the larger load: its ids alone would take more."""

LOAD = """
import json, sys
from pathlib import Path
import omnigraph
from omnigraph.engine.spark.session import SessionSettings, Work, open_session

def peak():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(each.split()[1]) << 10 for each in lines if each.startswith("VmHWM:"))

settings = SessionSettings(master="local[2]", driver_memory="1g", work=Work.SHORT)
open_session(settings).range(10).count()
graph = omnigraph.open(sys.argv[1])
idle = peak()
done = graph.load({"P": sys.argv[2]}, engine="spark", index=False)
print(json.dumps({"above_idle": peak() - idle, "inserted": done.inserted}))
"""


def people(path: Path, count: int) -> Path:
    names = pa.array([f"p{number:09}" for number in range(count)])
    pq.write_table(pa.table({"name": names, "n": range(count)}), path, row_group_size=1 << 17)
    return path


@pytest.mark.soak
@pytest.mark.timeout(1_800)
def test_the_driver_of_a_load_holds_no_rows(tmp_path):
    above_idle = {}
    for count in (SMALL, LARGE):
        graph = omnigraph.init(tmp_path / str(count), SCHEMA)
        source = people(tmp_path / f"{count}.parquet", count)
        asked = [sys.executable, "-c", LOAD, graph.uri, str(source)]
        done = subprocess.run(asked, stdout=subprocess.PIPE, text=True, check=True)
        told = json.loads(done.stdout.splitlines()[-1])
        assert told["inserted"] == count
        above_idle[count] = told["above_idle"]

    assert above_idle[LARGE] < above_idle[SMALL] + ABOVE_BYTES_MAX, above_idle
