"""What a search on Spark leaves to its driver: statistics and the best, however many rows match."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import omnigraph
from tests.support.driver_memory import measure_above_idle

DIMENSION = 16
SCHEMA = f"""
node Doc {{ number: I64 @key  body: String  vector: Vector({DIMENSION}) }}
"""
SMALL, LARGE = 20_000, 1_000_000

SEARCH = f"""
text = '''query q($q: String, $v: Vector({DIMENSION})) {{
  match {{ $d: Doc search($d.body, $q) }}
  return {{ $d.number as n, rrf(bm25($d.body, $q), nearest($d.vector, $v)) as score }}
  order {{ score }} limit 10
}}'''
params = dict(q="common word3", v=[1.0] * {DIMENSION})
told = [row["n"] for row in graph.query(text, params, engine="spark").rows()]
"""


def write(place: Path, rows: int) -> None:
    numbers = np.arange(rows)
    # Every row matches and has a distance.
    vectors = np.random.default_rng(1).standard_normal(rows * DIMENSION).astype(np.float32)
    table = pa.table(
        {
            "number": numbers,
            "body": [f"a common text with word{number % 1000}" for number in range(rows)],
            "vector": pa.FixedSizeListArray.from_arrays(pa.array(vectors), DIMENSION),
        }
    )
    omnigraph.init(place, SCHEMA).load({"Doc": table}, engine="local", index=False)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_the_driver_holds_no_rows(tmp_path):
    taken = {}
    for rows in (SMALL, LARGE):
        write(tmp_path / str(rows), rows)
        taken[rows], found = measure_above_idle(tmp_path / str(rows), SEARCH)
        assert len(found) == 10
    # The scores alone of so many rows would take a quarter of that, and their ids the rest.
    assert taken[LARGE] - taken[SMALL] < 32 << 20, taken
