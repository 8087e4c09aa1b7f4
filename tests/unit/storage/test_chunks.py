"""Chunks: neighbours are joined to few arrays, and values are copied a few times at most."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.storage import chunks
from omnigraph.storage.chunks import ColumnChunk, find_reusable, join_neighbours


def chunk(key: str, *values: int) -> ColumnChunk[str]:
    return ColumnChunk.of(key, pa.chunked_array([pa.array(values, pa.int64())]))


def values(parts: tuple[ColumnChunk[str], ...]) -> list[int]:
    return [value for part in parts for array in part.arrays for value in array.to_pylist()]


@pytest.fixture
def copied(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows each join copies."""
    counts: list[int] = []
    join = pa.concat_arrays

    def counting(arrays: list[pa.Array]) -> pa.Array:
        counts.append(sum(map(len, arrays)))
        return join(arrays)

    monkeypatch.setattr("omnigraph.storage.chunks.pa.concat_arrays", counting)
    return counts


def test_one_row_at_a_time_makes_few_chunks_and_few_copies(copied):
    parts: tuple[ColumnChunk[str], ...] = ()
    for number in range(2000):
        parts = join_neighbours([*parts, chunk(str(number), number)])
    assert values(parts) == list(range(2000))
    assert len(parts) <= 12
    assert sum(copied) <= 2000 * 12


def test_many_at_once_are_copied_once(copied):
    parts = join_neighbours(chunk(str(number), number) for number in range(2000))
    assert values(parts) == list(range(2000))
    assert sum(copied) <= 2000


@pytest.mark.parametrize("bound", ["JOINED_CHUNK_ROWS_MAX", "JOINED_CHUNK_BYTES_MAX"])
def test_large_ones_are_not_joined(monkeypatch, bound):
    monkeypatch.setattr(chunks, bound, 3 if bound.endswith("ROWS_MAX") else 3 * 8)
    parts = join_neighbours([chunk("a", 1, 2, 3, 4), chunk("b", 5), chunk("c", 6), chunk("d", 7)])
    assert [part.keys for part in parts] == [("a",), ("b", "c", "d")]
    assert values(parts) == [1, 2, 3, 4, 5, 6, 7]


def test_what_has_no_rows_is_joined_too():
    parts = join_neighbours([chunk("a"), chunk("b"), chunk("c", 1), chunk("d")])
    assert values(parts) == [1]
    assert [key for part in parts for key in part.keys] == ["a", "b", "c", "d"]


keys = st.lists(st.sampled_from("abcdefgh"), unique=True, max_size=8)


@given(versions=st.lists(keys, min_size=1, max_size=6))
def test_any_version_is_made_of_any_other(versions):
    rows = {key: [number, -number] for number, key in enumerate("abcdefgh")}
    parts: tuple[ColumnChunk[str], ...] = ()
    for version in versions:
        found = find_reusable(parts, version)
        new = [part for part in found if isinstance(part, int)]
        old = [key for part in found if isinstance(part, ColumnChunk) for key in part.keys]
        assert sorted([*(version[place] for place in new), *old]) == sorted(version)
        parts = join_neighbours(
            chunk(version[part], *rows[version[part]]) if isinstance(part, int) else part
            for part in found
        )
        assert [key for part in parts for key in part.keys] == version
        assert values(parts) == [value for key in version for value in rows[key]]


def test_only_what_changed_is_made_anew():
    before = join_neighbours([chunk("a", *range(100)), chunk("b", 1), chunk("c", 2)])
    assert find_reusable(before, ["a", "b", "c", "d"]) == [*before, 3]
    assert find_reusable(before, ["a", "c", "d"])[0] is before[0]
    assert find_reusable(before, ["a", "c", "d"])[1:] == [1, 2]
