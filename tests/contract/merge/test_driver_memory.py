"""What a merge on Spark leaves to its driver: counts and files, however many rows there are."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import omnigraph
from omnigraph.model.tables import TableKey
from omnigraph.schema.arrow import table_schema
from omnigraph.storage import staging
from tests.support.driver_memory import measure_above_idle
from tests.support.writers import write

SCHEMA = "node P { name: String @key  a: I32?  b: I32?  text: String? }"
SMALL, LARGE = 40_000, 1_500_000

MERGE = """
diff = graph.diff("main", "draft", engine="spark").counts["P"]
merged = graph.merge("draft", engine="spark").changes["P"]
told = [(each.inserted, each.updated, each.deleted) for each in (diff, merged)]
"""


def people(first: int, count: int, *, a: int, b: int) -> pa.Table:
    ids = [f"p{number:09}" for number in range(first, first + count)]
    numbers = (pa.array(np.full(count, each), pa.int32()) for each in (a, b))
    texts = [f"some words about {each}" for each in ids]
    return pa.table([ids, ids, *numbers, texts], names=["id", "name", "a", "b", "text"])


def parted(uri: Path, changed: int) -> None:
    """As many came on a draft, and half of that on main; of every hundred, both updated some."""
    graph = omnigraph.init(uri, SCHEMA)
    type_ = graph.schema.show().catalog.type_named("P")

    def put(branch: str, rows: pa.Table, *, new: bool) -> None:
        stage = staging.stage_append if new else staging.stage_upsert
        typed = rows.cast(table_schema(type_))
        write(graph, {TableKey.parse("node:P"): lambda table: stage(table, typed)}, branch=branch)

    put("main", people(0, changed, a=1, b=1), new=True)
    graph.branches.create("draft")
    # Few: Lance takes about 100 bytes for each replaced row when it commits, whoever wrote it.
    put("draft", people(0, changed // 50, a=2, b=1), new=False)
    put("draft", people(10 * changed, changed, a=3, b=3), new=True)
    put("main", people(0, changed // 100, a=1, b=4), new=False)
    put("main", people(20 * changed, changed // 2, a=5, b=5), new=True)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_the_driver_holds_no_rows(tmp_path):
    taken = {}
    for changed in (SMALL, LARGE):
        parted(tmp_path / str(changed), changed)
        taken[changed], counts = measure_above_idle(tmp_path / str(changed), MERGE)
        updated = changed // 50
        assert counts == [[changed, updated, changed // 2], [changed, updated, 0]]
    # The ids alone of so many rows would take more.
    assert taken[LARGE] - taken[SMALL] < 32 << 20, taken
