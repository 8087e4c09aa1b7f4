"""One index in several segments: built apart, joined, and adopted together."""

import pickle
import shutil
from pathlib import Path
from typing import Any

import lance
import pytest
from lance import LanceDataset, LanceOperation

from tests.contract.lance.builders import (
    append,
    commit,
    create,
    create_index,
    fragments_of,
    index,
    upsert,
)

KEYS = "abcdef"


def in_fragments(uri: str, *keys: str) -> LanceDataset:
    """A table with a fragment for each key."""
    base = create(uri)
    for key in keys:
        base = commit(base, append(base, key))
    return base


def adopt(dataset: LanceDataset, *segments: Any) -> LanceDataset:
    return commit(dataset, LanceOperation.CreateIndex(list(segments), []))


def covered(dataset: LanceDataset) -> list[set[int]]:
    """The fragments of each segment of the one index."""
    [described] = dataset.describe_indices()
    return [set(each.fragment_ids) for each in described.segments]


def counts(dataset: LanceDataset) -> dict[str, int]:
    """How often each key is found through the index; deaf to what it does not cover."""
    return {
        key: dataset.scanner(filter=f"key = '{key}'", fast_search=True).to_table().num_rows
        for key in KEYS
    }


EACH_ONCE = dict.fromkeys(KEYS, 1)


def test_a_segment_crosses_processes(anywhere):
    base = in_fragments(anywhere, *KEYS)
    segment = index(base, fragment_ids=[0, 1])

    assert pickle.loads(pickle.dumps(segment)) == segment


def test_segments_built_apart_become_one_index_in_one_commit(anywhere):
    base = in_fragments(anywhere, *KEYS)
    handles = [lance.dataset(anywhere) for _ in range(3)]
    groups = ([0, 1], [2, 3], [4, 5])
    segments = [index(each, fragment_ids=ids) for each, ids in zip(handles, groups, strict=True)]

    landed = adopt(base, *segments)

    assert sorted(covered(landed), key=min) == [{0, 1}, {2, 3}, {4, 5}]
    assert counts(lance.dataset(anywhere)) == EACH_ONCE


def test_a_segment_may_be_staged_as_an_extension_of_an_index_that_is_not_there(anywhere):
    base = in_fragments(anywhere, *KEYS)

    assert counts(adopt(base, index(base, replace=True))) == EACH_ONCE


def test_a_segment_built_twice_is_two_and_either_will_do(uri):
    base = in_fragments(uri, *KEYS)
    first, second = (index(base) for _ in range(2))
    assert first.uuid != second.uuid

    shutil.rmtree(Path(uri, "_indices", first.uuid))

    assert counts(adopt(base, second)) == EACH_ONCE


def test_segments_are_joined_without_their_table_and_then_not_needed(uri):
    base = in_fragments(uri, *KEYS)
    segments = [index(base, fragment_ids=ids) for ids in ([0, 1], [2], [3, 4, 5])]
    data = Path(uri, "data").rename(Path(uri, "elsewhere"))

    joined = lance.dataset(uri).merge_existing_index_segments(segments)

    data.rename(Path(uri, "data"))
    for each in segments:
        shutil.rmtree(Path(uri, "_indices", each.uuid))
    landed = adopt(base, joined)
    assert covered(landed) == [{0, 1, 2, 3, 4, 5}]
    assert counts(lance.dataset(uri)) == EACH_ONCE


def test_joined_segments_extend_an_index_that_exists(anywhere):
    base = in_fragments(anywhere, *"ab")
    base = commit(base, create_index(base))
    for key in "cdef":
        base = commit(base, append(base, key))
    parts = [index(base, fragment_ids=ids, replace=True) for ids in ([2, 3], [4, 5])]

    landed = adopt(base, base.merge_existing_index_segments(parts))

    assert sorted(covered(landed), key=min) == [{0, 1}, {2, 3, 4, 5}]
    assert counts(lance.dataset(anywhere)) == EACH_ONCE


def test_segments_of_a_branch_are_built_and_joined_where_its_files_are(uri):
    main = in_fragments(uri, *"abc")
    main = commit(main, create_index(main))
    branch = main.create_branch("draft", main.version)
    for key in "def":
        branch = commit(branch, append(branch, key))
    branch = lance.dataset(uri).checkout_version(("draft", None))
    before = set(Path(uri, "_indices").iterdir())
    parts = [index(branch, fragment_ids=[each], replace=True) for each in (3, 4, 5)]

    landed = adopt(branch, branch.merge_existing_index_segments(parts))

    assert counts(landed) == EACH_ONCE
    assert len(list(Path(uri, "tree", "draft", "_indices").iterdir())) == 4
    assert set(Path(uri, "_indices").iterdir()) == before


def test_building_a_segment_reads_no_fragment_but_its_own(uri):
    base = in_fragments(uri, *KEYS)
    for fragment in fragments_of(base)[:5]:
        Path(uri, "data", fragment.files[0].path).unlink()

    segment = index(lance.dataset(uri), fragment_ids=[5])

    assert set(segment.fragment_ids) == {5}
    with pytest.raises(OSError, match=r"[Nn]ot found"):
        index(lance.dataset(uri), fragment_ids=[4])


def test_a_row_that_moved_on_is_found_by_its_new_value_alone_in_joined_segments(uri):
    base = create(uri, *KEYS)
    old = index(base, "value")
    base = adopt(base, old)
    base = commit(base, upsert(base, "a", value=7))
    new = index(base, "value", fragment_ids=[1], replace=True)

    joined = base.merge_existing_index_segments([old, new])
    landed = commit(base, LanceOperation.CreateIndex([joined], [old]))

    assert covered(landed) == [{0, 1}]
    found = [
        landed.scanner(filter=f"value = {value}", fast_search=True).to_table()["key"].to_pylist()
        for value in (0, 7)
    ]
    assert found == [[*"bcdef"], ["a"]]


def test_every_segment_is_asked_by_every_lookup(uri):
    base = in_fragments(uri, *KEYS)
    parts = [index(base, fragment_ids=[each]) for each in range(len(KEYS))]
    joined = base.merge_existing_index_segments(parts)
    apart = adopt(base, *parts)
    together = commit(apart, LanceOperation.CreateIndex([joined], parts))
    asked = []
    for each in (apart, together):
        opened = lance.dataset(uri, version=each.version)
        opened.io_stats_incremental()
        assert opened.count_rows("key = 'c'") == 1
        asked.append(opened.io_stats_incremental().read_iops)

    assert asked[0] > 3 * asked[1]
