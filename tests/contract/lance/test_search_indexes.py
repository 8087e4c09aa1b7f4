"""Indexes of texts and vectors: how they are staged, described and extended, and what they find."""

import json
from dataclasses import replace
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from lance import LanceDataset, LanceOperation
from lance.dataset import Index
from lance.fragment import FragmentMetadata
from lance.optimize import Compaction
from lance.query import MatchQuery

from omnigraph.choices import Analyzer
from omnigraph.search.analysis import index_parameters
from tests.contract.lance.builders import append, commit, committed_segments, create, mixed, upsert

VECTORS = 600


def stage(dataset: LanceDataset, *fragments: int, column: str = "key", **options: Any) -> Index:
    """A segment of an index of texts, as it is written first."""
    return dataset.create_index_uncommitted(
        column, "INVERTED", name="words", replace=True, fragment_ids=list(fragments), **options
    )


def adopt(dataset: LanceDataset, *segments: Index, removed: tuple[Index, ...] = ()) -> LanceDataset:
    operation = LanceOperation.CreateIndex(
        new_indices=list(segments), removed_indices=list(removed)
    )
    return commit(dataset, operation)


def indexed(dataset: LanceDataset, *fragments: int, **options: Any) -> LanceDataset:
    segment = stage(dataset, *fragments, **options)
    return adopt(dataset, dataset.merge_existing_index_segments([segment]))


def search(dataset: LanceDataset, words: str, *, column: str = "key") -> list[str]:
    scanner = dataset.scanner(
        columns=[column, "_score"],
        full_text_query=MatchQuery(words, column),
        prefilter=True,
        fast_search=True,
    )
    return sorted(scanner.to_table()[column].to_pylist())


def texts(uri: str, *values: str | None) -> LanceDataset:
    rows = pa.table({"text": pa.array(values, pa.string())})
    return lance.write_dataset(rows, uri, enable_stable_row_ids=True)


def with_vectors(uri: str, count: int = VECTORS) -> LanceDataset:
    drawn = np.random.default_rng(3).standard_normal(count * 8).astype(np.float32)
    vector = pa.FixedSizeListArray.from_arrays(pa.array(drawn), 8)
    rows = pa.table({"number": np.arange(count), "vector": vector})
    return lance.write_dataset(rows, uri, enable_stable_row_ids=True)


def test_an_index_of_texts_is_unreadable_until_it_is_finalised(uri):
    dataset = create(uri, "red fox", "blue fox")

    raw = adopt(dataset, stage(dataset, 0))
    with pytest.raises((OSError, ValueError, RuntimeError)):
        search(raw, "fox")


def test_a_finalised_index_of_texts_finds_words_and_is_extended(uri):
    dataset = indexed(create(uri, "red fox", "blue bird"), 0)
    assert search(dataset, "foxes") == ["red fox"]

    dataset = commit(dataset, append(dataset, "old foxes"))
    assert search(dataset, "fox") == ["red fox"]
    assert search(indexed(dataset, 1), "fox") == ["old foxes", "red fox"]


@pytest.mark.parametrize("analyzer", Analyzer)
@pytest.mark.parametrize("positions", [False, True])
def test_an_index_of_texts_says_how_it_was_built(uri, analyzer, positions):
    parameters = index_parameters(analyzer)
    dataset = indexed(create(uri, "red fox"), 0, with_position=positions, **parameters)

    [index] = dataset.describe_indices()
    assert index.index_type == "Inverted"
    assert {name: index.details[name] for name in parameters} == parameters
    assert index.details["with_position"] is positions


@pytest.mark.parametrize("metric", ["cosine", "l2", "dot"])
@pytest.mark.parametrize("kind", ["IVF_FLAT", "IVF_PQ", "IVF_HNSW_SQ"])
def test_an_index_of_vectors_says_how_it_was_built(uri, kind, metric):
    dataset = with_vectors(uri)
    codes: dict[str, Any] = {"num_sub_vectors": 2} if kind == "IVF_PQ" else {}
    segment = dataset.create_index_uncommitted(
        "vector", kind, name="v", metric=metric, num_partitions=2, fragment_ids=[0], **codes
    )

    [index] = adopt(dataset, segment).describe_indices()
    assert index.index_type == kind
    assert index.details["metric_type"] == metric.upper()


def test_an_index_of_texts_finds_an_updated_row_by_its_former_words(uri):
    """Why what an index finds is a candidate, whose text is looked at again."""
    dataset = indexed(texts(uri, "red fox", "blue bird"), 0, column="text")
    dataset.update({"text": "'grey wolf'"}, where="text = 'red fox'")
    assert search(dataset, "fox", column="text") == []

    dataset = indexed(dataset, 1, column="text")
    assert search(dataset, "fox", column="text") == ["grey wolf"]
    assert search(dataset, "wolf", column="text") == ["grey wolf"]


def test_joined_segments_of_texts_have_former_words_beside_the_present_ones(uri):
    """Why crowded segments are built anew, and not joined."""
    dataset = indexed(texts(uri, "red fox", "blue bird"), 0, column="text")
    dataset.update({"text": "'grey wolf'"}, where="text = 'red fox'")
    dataset = indexed(dataset, 1, column="text")
    parts = committed_segments(dataset)

    joined = adopt(dataset, dataset.merge_existing_index_segments(parts), removed=tuple(parts))

    assert search(joined, "fox", column="text") == ["grey wolf"]


def test_a_column_may_have_an_index_of_words_and_one_of_values(uri):
    dataset = indexed(create(uri, "red fox", "blue bird"), 0)
    values = dataset.create_index_uncommitted("key", "BTREE", name="values", fragment_ids=[0])
    dataset = adopt(dataset, values)

    assert search(dataset, "fox") == ["red fox"]
    scanner = dataset.scanner(filter="key = 'red fox'")
    assert "ScalarIndexQuery" in scanner.explain_plan()
    assert scanner.to_table()["key"].to_pylist() == ["red fox"]
    assert dataset.to_table(filter="key > 'blue'", columns=["key"]).num_rows == 2


def test_an_index_of_words_alone_leaves_filters_by_value_to_a_scan(uri):
    dataset = indexed(create(uri, "red fox", "blue bird"), 0)

    assert dataset.to_table(filter="key = 'red fox'").num_rows == 1
    assert dataset.to_table(filter="key IN ('red fox', 'x')").num_rows == 1
    assert dataset.to_table(filter="key IS NULL").num_rows == 0


def test_codes_of_vectors_need_256_of_them(uri):
    dataset = with_vectors(uri, 255)
    segment = dataset.create_index_uncommitted(
        "vector",
        "IVF_PQ",
        name="v",
        metric="l2",
        num_partitions=1,
        num_sub_vectors=2,
        fragment_ids=[0],
    )

    # It is there, and has nothing.
    statistics = adopt(dataset, segment).stats.index_stats("v")
    assert "num_partitions" not in statistics["indices"][0]


def test_no_partitions_are_learnt_from_nulls(uri):
    vector = pa.nulls(300, pa.list_(pa.float32(), 8))
    dataset = lance.write_dataset(pa.table({"vector": vector}), uri, enable_stable_row_ids=True)

    with pytest.raises((OSError, ValueError, RuntimeError), match="0 vectors"):
        dataset.create_index_uncommitted(
            "vector", "IVF_FLAT", name="v", metric="l2", num_partitions=1, fragment_ids=[0]
        )


def test_an_inherited_index_of_texts_is_extended_on_a_branch(uri):
    dataset = indexed(create(uri, "red fox", "blue bird"), 0)
    branch = dataset.create_branch("draft", dataset.version)
    branch = commit(branch, mixed(branch, update=(), insert=("old foxes",), value=1))
    branch = commit(branch, upsert(branch, "blue bird", value=7))

    fragments = [fragment.fragment_id for fragment in branch.get_fragments()]
    extended = indexed(branch, *fragments[1:])

    assert search(extended, "fox") == ["old foxes", "red fox"]
    assert set(search(extended, "bird")) == {"blue bird"}
    assert search(lance.dataset(uri), "fox") == ["red fox"]


def test_a_row_is_found_by_every_segment_that_ever_had_it(uri):
    dataset = indexed(create(uri, "red fox", "blue bird"), 0)
    dataset = commit(dataset, upsert(dataset, "blue bird", value=7))

    assert search(indexed(dataset, 1), "bird") == ["blue bird", "blue bird"]


def rewrite(dataset: LanceDataset) -> LanceOperation.Rewrite:
    """Stage all rows of the two fragments in one."""
    old = [fragment.metadata for fragment in dataset.get_fragments()]
    options: Any = {"target_rows_per_fragment": 1000}
    [task] = Compaction.plan(dataset, options).tasks
    [new] = task.execute(dataset).new_fragments
    numbered = FragmentMetadata.from_json(json.dumps({**new.to_json(), "id": 2}))
    group = LanceOperation.RewriteGroup(old_fragments=old, new_fragments=[numbered])
    return LanceOperation.Rewrite(groups=[group], rewritten_indices=[])


def test_a_rewrite_of_fragments_that_a_segment_covers_in_part_is_refused(uri):
    dataset = commit(created := create(uri, "red fox"), append(created, "old foxes"))
    staged = rewrite(dataset)
    dataset = indexed(dataset, 0)

    with pytest.raises((OSError, ValueError), match="split of indexed and non-indexed"):
        commit(dataset, staged)


def test_a_segment_that_covers_all_that_is_rewritten_covers_the_result(uri):
    dataset = commit(created := create(uri, "red fox"), append(created, "old foxes"))

    dataset = indexed(dataset, 0, 1)
    dataset = commit(dataset, rewrite(dataset))

    [index] = dataset.describe_indices()
    assert [set(segment.fragment_ids) for segment in index.segments] == [{2}]
    assert search(dataset, "fox") == ["old foxes", "red fox"]


def test_a_segment_is_committed_again_with_fewer_fragments(uri):
    dataset = commit(created := create(uri, "red fox"), append(created, "old foxes"))
    segment = dataset.merge_existing_index_segments([stage(dataset, 0, 1)])
    dataset = adopt(dataset, segment)

    fewer: Any = {0}
    narrow = adopt(dataset, replace(segment, fragment_ids=fewer), removed=(segment,))

    [index] = narrow.describe_indices()
    assert [set(part.fragment_ids) for part in index.segments] == [{0}]
    assert search(narrow, "fox") == ["red fox"]
