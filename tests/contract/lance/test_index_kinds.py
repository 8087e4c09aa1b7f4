"""Kinds of index: which columns can have one, and that filters find through it what they should."""

import math
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, Final

import lance
import pyarrow as pa
import pytest
from lance import LanceDataset, LanceOperation
from lance.dataset import Index

from tests.contract.lance.builders import (
    append,
    commit,
    committed_segments,
    create,
    delete,
    index,
    mixed,
    upsert,
)

OLD, NEW = datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC), datetime(2020, 1, 2, 3, 4, 5, 6, UTC)
LAST: Final = datetime(9999, 12, 31, tzinfo=UTC)

# type, values, and filters with the places of the rows that they find
COLUMNS: Final[dict[str, tuple[pa.DataType, list[Any], dict[str, str]]]] = {
    "i32": (
        pa.int32(),
        [-(2**31), 2**31 - 1, 7, None],
        {"= -2147483648": "0", "> -2147483648": "12", "IN (7, 8)": "2", "< 7": "0"},
    ),
    "i64": (
        pa.int64(),
        [-(2**63), 2**63 - 1, 7, None],
        {"= CAST('-9223372036854775808' AS BIGINT)": "0", ">= 9223372036854775807": "1"},
    ),
    "u32": (pa.uint32(), [0, 2**32 - 1, 7, None], {"= 4294967295": "1", "<= 7": "02"}),
    "u64": (
        pa.uint64(),
        [0, 2**64 - 1, 7, None],
        {"= 18446744073709551615": "1", ">= 9223372036854775808": "1", "IN (7, 0)": "02"},
    ),
    "f32": (
        pa.float32(),
        [0.1, -0.0, math.nan, None, math.inf],
        {
            "= CAST('0.10000000149011612' AS DOUBLE)": "0",
            "= 0.0": "1",
            "= CAST('NaN' AS DOUBLE)": "2",
            ">= CAST('inf' AS DOUBLE)": "24",
        },
    ),
    "f64": (
        pa.float64(),
        [0.1, -0.0, math.nan, None, 1e300],
        {
            "= 0.1": "0",
            "= CAST('0.0' AS DOUBLE)": "1",
            "< CAST('0.0' AS DOUBLE)": "",
            "<= CAST('-0.0' AS DOUBLE)": "1",
            "IN (CAST('nan' AS DOUBLE), CAST('1e+300' AS DOUBLE))": "24",
            "> CAST('1e+300' AS DOUBLE)": "2",
        },
    ),
    "date": (
        pa.date32(),
        [date(1, 1, 1), date(1969, 12, 31), date(9999, 12, 31), None],
        {"= date '0001-01-01'": "0", ">= date '1969-12-31'": "12"},
    ),
    "instant": (
        pa.timestamp("us", "UTC"),
        [OLD, NEW, LAST, None],
        {
            "= timestamp '1969-12-31T23:59:59.999999Z'": "0",
            "> timestamp '2020-01-02T03:04:05.000005Z'": "12",
        },
    ),
    "bool": (pa.bool_(), [True, False, None], {"= true": "0", "= false": "1", "IN (true)": "0"}),
    "text": (pa.string(), ["a", "it's", "ü", None], {"= 'it''s'": "1", "IN ('a', 'ü')": "02"}),
}


def table_of(uri: str, kind: pa.DataType, values: list[Any]) -> LanceDataset:
    rows = pa.table({"c": pa.array(values, kind), "place": [str(n) for n in range(len(values))]})
    return lance.write_dataset(rows, uri, enable_stable_row_ids=True)


def adopt(base: LanceDataset, *new: Index, removed: tuple[Index, ...] = ()) -> LanceDataset:
    return commit(base, LanceOperation.CreateIndex(list(new), list(removed)))


def build(base: LanceDataset, column: str, kind: str, *fragments: int) -> Index:
    ids = list(fragments) or [each.fragment_id for each in base.get_fragments()]
    return base.create_index_uncommitted(
        column, kind, name=f"{column}_index", fragment_ids=ids, replace=True
    )


def found(base: LanceDataset, where: str, *, by_index: bool) -> str:
    scanner = base.scanner(columns=["place"], filter=where, use_scalar_index=by_index)
    assert ("ScalarIndexQuery" in scanner.explain_plan()) is by_index
    return "".join(scanner.to_table()["place"].to_pylist())


@pytest.mark.parametrize("kind", ["BTREE", "BITMAP"])
@pytest.mark.parametrize("name", COLUMNS)
def test_an_index_on_this_type_finds_what_a_scan_finds(uri, name, kind):
    type_, values, filters = COLUMNS[name]
    base = table_of(uri, type_, values)
    base = adopt(base, build(base, "c", kind))

    for where, places in filters.items():
        assert found(base, f"c {where}", by_index=True) == places
        assert found(base, f"c {where}", by_index=False) == places
    assert found(base, "c IS NULL", by_index=True) == str(values.index(None))


@pytest.mark.parametrize("kind", ["BTREE", "BITMAP"])
@pytest.mark.parametrize("type_", [pa.list_(pa.int64()), pa.list_(pa.float32(), 2)])
def test_lists_and_vectors_cannot_have_such_an_index(uri, type_, kind):
    base = table_of(uri, type_, [[1, 2], None])

    with pytest.raises(TypeError, match="BTREE/BITMAP index column c must be int"):
        build(base, "c", kind)


def test_an_index_has_one_column(uri):
    base = create(uri, "a")

    with pytest.raises(NotImplementedError, match="only support a single column"):
        base.create_index_uncommitted(["key", "value"], "BTREE", name="both", fragment_ids=[0])


def test_the_indexes_of_two_columns_are_intersected(uri):
    rows = pa.table({"a": [1, 1, 2, 2], "b": ["x", "y", "x", "y"], "place": list("0123")})
    base = lance.write_dataset(rows, uri, enable_stable_row_ids=True)
    base = adopt(base, build(base, "a", "BTREE"), build(base, "b", "BITMAP"))

    scanner = base.scanner(columns=["place"], filter="a = 1 AND b = 'y'")
    assert "AND([b = y]@b_index(Bitmap),[a = 1]@a_index(BTree))" in scanner.explain_plan() or (
        "AND([a = 1]@a_index(BTree),[b = y]@b_index(Bitmap))" in scanner.explain_plan()
    )
    assert found(base, "a = 1 AND b = 'y'", by_index=True) == "1"
    assert found(base, "a >= 1 AND b = 'x' AND place = '2'", by_index=True) == "2"


def covered(base: LanceDataset) -> list[set[int]]:
    return [set(each.fragment_ids) for each in committed_segments(base)]


def counts(base: LanceDataset) -> list[int]:
    """How many rows the index alone finds for each key."""
    return [
        base.scanner(filter=f"key = '{key}'", fast_search=True).to_table().num_rows
        for key in "abcd"
    ]


@pytest.fixture(params=["BTREE", "BITMAP"])
def segmented(request: pytest.FixtureRequest, anywhere: str) -> LanceDataset:
    """An index of four segments, each over one row."""
    base = create(anywhere)
    for key in "abcd":
        base = commit(base, append(base, key))
    return adopt(base, *(build(base, "key", request.param, number) for number in range(4)))


def test_committed_segments_are_joined_by_their_descriptions(segmented):
    segments = committed_segments(segmented)
    joined = segmented.merge_existing_index_segments(segments[1:])

    landed = adopt(segmented, joined, removed=tuple(segments[1:]))

    assert covered(landed) == [{0}, {1, 2, 3}]
    assert counts(lance.dataset(segmented.uri)) == [1, 1, 1, 1]


def test_inherited_segments_are_joined_among_the_files_of_the_branch(segmented):
    segmented.create_branch("draft", segmented.version)
    branch = lance.dataset(segmented.uri).checkout_version(("draft", None))
    segments = committed_segments(branch)
    assert [each.base_id for each in segments] == [0, 0, 0, 0]

    landed = adopt(branch, branch.merge_existing_index_segments(segments), removed=tuple(segments))

    [joined] = committed_segments(landed)
    assert (joined.base_id, set(joined.fragment_ids)) == (None, {0, 1, 2, 3})
    again = lance.dataset(segmented.uri).checkout_version(("draft", None))
    assert counts(again) == [1, 1, 1, 1]
    assert len(committed_segments(lance.dataset(segmented.uri))) == 4


def test_a_committed_segment_is_removed_by_its_description(segmented):
    first, *_ = committed_segments(segmented)

    landed = adopt(segmented, removed=(first,))

    assert covered(landed) == [{1}, {2}, {3}]
    assert counts(landed) == [0, 1, 1, 1]
    assert landed.count_rows("key = 'a'") == 1


def test_joining_leaves_out_fragments_that_are_gone(segmented):
    shrunk = commit(segmented, delete(segmented, "b", "c"))

    joined = shrunk.merge_existing_index_segments(committed_segments(segmented))

    assert set(joined.fragment_ids) == {0, 3}
    landed = adopt(shrunk, joined, removed=tuple(committed_segments(shrunk)))
    assert counts(landed) == [1, 0, 0, 1]


def updated_between_segments(uri: str, kind: str) -> LanceDataset:
    """Two rows with the values 0 and 1, of which the first got 1 when a segment covered it.

    Another segment covers its new place.
    """
    base = create(uri, "a")
    base = commit(base, mixed(base, insert=("b",), value=1))
    base = adopt(base, build(base, "value", kind))
    base = commit(base, upsert(base, "a", value=1))
    newest = max(each.fragment_id for each in base.get_fragments())
    return adopt(base, build(base, "value", kind, newest))


def keys_where(base: LanceDataset, where: str) -> list[str]:
    return sorted(base.to_table(columns=["key"], filter=where)["key"].to_pylist())


def test_a_bitmap_index_finds_an_updated_row_by_its_former_value(uri):
    base = updated_between_segments(uri, "BITMAP")

    assert keys_where(base, "value = 0") == ["a"], "there is no such row"
    assert keys_where(base, "value != 0") == ["b"], "both rows pass"


def test_an_ordered_index_finds_an_updated_row_by_its_value_alone(uri):
    base = updated_between_segments(uri, "BTREE")

    assert keys_where(base, "value = 0") == []
    assert keys_where(base, "value != 0") == ["a", "b"]


def test_fragments_that_a_bitmap_index_covers_in_part_cannot_be_rewritten(uri):
    base = create(uri, "a")
    base = adopt(base, build(base, "value", "BITMAP"))
    base = commit(base, append(base, "b"))
    both = [fragment.metadata for fragment in base.get_fragments()]
    rewrite = LanceOperation.Rewrite([LanceOperation.RewriteGroup(both, both[:1])], [])

    with pytest.raises(OSError, match="split of indexed and non-indexed"):
        commit(base, rewrite)


def test_a_segment_of_which_nothing_is_left_goes_unless_it_is_the_last(uri):
    base = create(uri, "a")
    base = commit(base, append(base, "b"))
    base = adopt(base, index(base, fragment_ids=[0]), index(base, fragment_ids=[1]))

    base = commit(base, delete(base, "a"))
    assert covered(base) == [{1}]
    base = commit(base, delete(base, "b"))
    assert covered(base) == [{1}]


def test_a_segment_built_on_a_detached_version_is_adopted_by_the_head(uri):
    base = create(uri, "a")
    base = adopt(base, index(base))
    operation = append(base, "b")
    preview = LanceDataset.commit(base, operation, read_version=base.version, detached=True)
    segment = index(preview, fragment_ids=[1], replace=True)

    landed = adopt(commit(base, operation), segment)

    assert covered(landed) == [{0}, {1}]
    assert counts(lance.dataset(uri))[:2] == [1, 1]
    grown = commit(landed, append(landed, "c"))
    assert grown.count_rows("key = 'c'") == 1


def test_the_sizes_of_segments_and_their_age_are_known_without_reading(uri):
    base = create(uri, "a", "b")
    base = adopt(base, index(base))
    opened = lance.dataset(uri)
    opened.io_stats_incremental()

    [described] = opened.describe_indices()
    [segment] = described.segments
    files = Path(uri, "_indices", segment.uuid).iterdir()
    assert segment.size_bytes == described.total_size_bytes
    assert segment.size_bytes == sum(path.stat().st_size for path in files)
    assert segment.created_at is not None
    assert segment.created_at.tzinfo is UTC
    assert segment.created_at.timestamp() == pytest.approx(Path(uri).stat().st_mtime, abs=60)
    opened.io_stats_incremental()
    assert (
        opened.describe_indices()[0].num_rows_indexed,
        opened.io_stats_incremental().read_iops,
    ) == (2, 0)
