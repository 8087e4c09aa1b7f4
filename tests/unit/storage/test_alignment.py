"""Rows of two versions of a fragment meet by their offsets, however they are batched."""

from collections.abc import Iterator

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.storage.differences import _align
from omnigraph.storage.tables import ROW_ADDRESS

OFFSETS = st.lists(st.integers(0, 30), unique=True).map(sorted)
CUTS = st.lists(st.integers(1, 5), min_size=1)


def batches(fragment_id: int, offsets: list[int], cuts: list[int]) -> Iterator[pa.Table]:
    start = 0
    while start < len(offsets):
        part = offsets[start : start + cuts[start % len(cuts)]]
        start += len(part)
        addresses = pa.array([(fragment_id << 32) + offset for offset in part], pa.uint64())
        yield pa.table({"n": pa.array(part), ROW_ADDRESS: addresses})


@given(OFFSETS, OFFSETS, CUTS, CUTS)
def test_rows_that_both_versions_have_meet_once_and_in_order(old, new, old_cuts, new_cuts):
    olds, news = [], []
    for before, after in _align(batches(3, old, old_cuts), batches(8, new, new_cuts)):
        olds += before["n"].to_pylist()
        news += after["n"].to_pylist()
    assert olds == news == sorted(set(old) & set(new))
