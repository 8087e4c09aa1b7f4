"""Digests are equal exactly where the values are, wherever those lie in their arrays."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest

from omnigraph.changes import digests
from omnigraph.changes.digests import slim

VECTOR = pa.list_(pa.float32(), 2)
NAN = float("nan")
OTHER_NAN = np.array([0x7FC00001], np.uint32).view(np.float32)[0]


def of(values: Sequence[object], kind: pa.DataType) -> list[str | None]:
    found: list[str | None] = slim(pa.table({"x": pa.array(values, kind)}))["x"].to_pylist()
    return found


def test_vectors_have_one_digest_each_by_value():
    vectors = [[0.0, 1.0], [-0.0, 1.0], [1.0, 0.0], None, [NAN, 1.0], [OTHER_NAN, 1.0]]
    zero, negative, turned, none, nan, other = of(vectors, VECTOR)
    assert zero == negative
    assert nan == other
    assert none is None
    assert len({zero, turned, nan}) == 3


def test_blobs_have_one_digest_each_and_none_is_not_empty():
    empty, none, one, same = of([b"", None, b"a\x00", b"a\x00"], pa.large_binary())
    assert none is None
    assert one == same != empty


@pytest.mark.parametrize("kind", [VECTOR, pa.large_binary()])
def test_a_value_has_the_same_digest_wherever_it_lies(kind, monkeypatch):
    monkeypatch.setattr(digests, "_ROWS_AT_ONCE", 3)
    makes = [[float(n), 2.0] if kind is VECTOR else b"%d" % n for n in range(20)]
    values = [None if n % 7 == 3 else each for n, each in enumerate(makes)]
    whole = of(values, kind)
    array = pa.array(values, kind)
    pieces = pa.chunked_array([array.slice(5, 4), array.slice(9, 11), array.slice(2, 3)])
    found = slim(pa.table({"x": pieces}).slice(1))["x"].to_pylist()
    assert found == [*whole[6:9], *whole[9:20], *whole[2:5]]
    assert len({each for each in whole if each is not None}) == sum(v is not None for v in values)


def test_other_columns_stay_as_they_are():
    rows = pa.table({"id": ["a"], "x": pa.array([[1.0, 2.0]], VECTOR), "n": [[1]]})
    assert slim(rows).drop_columns("x") == rows.drop_columns("x")
    assert slim(rows).column_names == rows.column_names
    assert slim(rows.slice(0, 0)).num_rows == 0
