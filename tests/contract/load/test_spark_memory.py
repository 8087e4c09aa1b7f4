"""What a load on Spark leaves to its driver: counts and names of files, however many rows."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import omnigraph
from tests.support.driver_memory import measure_above_idle

SCHEMA = "node P { name: String @key  n: I64 }"
SMALL, LARGE = 100_000, 4_000_000

ABOVE_BYTES_MAX = 16 << 20
"""A few bytes for each row of the larger load: its ids alone would take more."""

LOAD = 'told = graph.load({"P": sys.argv[2]}, engine="spark", index=False).inserted'


def people(path: Path, count: int) -> Path:
    names = pa.array([f"p{number:09}" for number in range(count)])
    pq.write_table(pa.table({"name": names, "n": range(count)}), path, row_group_size=1 << 17)
    return path


@pytest.mark.soak
@pytest.mark.timeout(1_800)
def test_the_driver_of_a_load_holds_no_rows(tmp_path):
    taken = {}
    for count in (SMALL, LARGE):
        graph = omnigraph.init(tmp_path / str(count), SCHEMA)
        source = people(tmp_path / f"{count}.parquet", count)
        taken[count], inserted = measure_above_idle(graph.uri, LOAD, str(source))
        assert inserted == count

    assert taken[LARGE] < taken[SMALL] + ABOVE_BYTES_MAX, taken
