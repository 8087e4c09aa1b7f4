"""Segments of vector indexes: which ones Lance can join, and what that takes."""

from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from lance import LanceDataset, LanceOperation
from lance.dataset import Index
from lance.indices import IndicesBuilder

ROWS_PER_FRAGMENT = 400
FRAGMENTS = 3
DIMENSION = 16
PARTITIONS = 4


def vectors(scales: tuple[float, ...] = (1, 1, 1)) -> np.ndarray:
    """Those of each fragment have another spread."""
    drawn = np.random.default_rng(5).standard_normal((FRAGMENTS * ROWS_PER_FRAGMENT, DIMENSION))
    return np.asarray(drawn * np.repeat(scales, ROWS_PER_FRAGMENT)[:, None], np.float32)


def create(uri: str, values: np.ndarray) -> LanceDataset:
    vector = pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), DIMENSION)
    rows = pa.table({"number": np.arange(len(values)), "vector": vector})
    return lance.write_dataset(
        rows, uri, max_rows_per_file=ROWS_PER_FRAGMENT, enable_stable_row_ids=True
    )


def build(dataset: LanceDataset, kind: str, **model: Any) -> list[Index]:
    """A segment of each fragment, by the same model or, without one, each by its own."""
    return [
        dataset.create_index_uncommitted(
            "vector",
            kind,
            name="v",
            metric="l2",
            replace=True,
            num_partitions=PARTITIONS,
            fragment_ids=[fragment.fragment_id],
            **model,
        )
        for fragment in dataset.get_fragments()
    ]


def nearest(dataset: LanceDataset, vector: np.ndarray, **options: Any) -> pa.Table:
    search = {"column": "vector", "q": vector, "k": 10, "metric": "l2", **options}
    return dataset.to_table(columns=["number", "_distance"], nearest=search)


def find(dataset: LanceDataset, vector: np.ndarray, **options: Any) -> set[int]:
    return set(nearest(dataset, vector, **options)["number"].to_pylist())


def commit(dataset: LanceDataset, segments: list[Index]) -> LanceDataset:
    operation = LanceOperation.CreateIndex(segments, [])
    return LanceDataset.commit(dataset, operation, read_version=dataset.version, max_retries=0)


@pytest.fixture
def dataset(tmp_path):
    return create(str(tmp_path), vectors())


def centroids(dataset: LanceDataset) -> pa.FixedSizeListArray:
    builder = IndicesBuilder(dataset, "vector")
    return builder.train_ivf(num_partitions=PARTITIONS, distance_type="l2").centroids


def test_flat_segments_that_share_centroids_are_joined(dataset):
    segments = build(dataset, "IVF_FLAT", ivf_centroids=centroids(dataset))

    landed = commit(dataset, [dataset.merge_existing_index_segments(segments)])

    statistics = landed.stats.index_stats("v")
    assert (statistics["num_segments"], statistics["num_unindexed_rows"]) == (1, 0)
    for vector in vectors()[::120]:
        every = find(landed, vector, nprobes=PARTITIONS)
        assert every == find(landed, vector, use_index=False)


def test_segments_of_codes_that_share_centroids_and_codebook_are_joined(dataset):
    builder = IndicesBuilder(dataset, "vector")
    ivf = builder.train_ivf(num_partitions=PARTITIONS, distance_type="l2")
    codes = builder.train_pq(ivf, 4, sample_rate=2)
    segments = build(
        dataset,
        "IVF_PQ",
        ivf_centroids=ivf.centroids,
        pq_codebook=codes.codebook,
        num_sub_vectors=4,
    )

    landed = commit(dataset, [dataset.merge_existing_index_segments(segments)])

    assert landed.stats.index_stats("v")["num_segments"] == 1
    for vector in vectors()[::120]:
        found = find(landed, vector, nprobes=PARTITIONS, refine_factor=20)
        assert len(found & find(landed, vector, use_index=False)) >= 9


@pytest.mark.parametrize("kind", ["IVF_FLAT", "IVF_PQ"])
def test_segments_with_centroids_of_their_own_are_not_joined_but_serve_together(dataset, kind):
    segments = build(dataset, kind, **({"num_sub_vectors": 4} if kind == "IVF_PQ" else {}))

    with pytest.raises((OSError, ValueError, RuntimeError), match=r"centroids|transposed"):
        dataset.merge_existing_index_segments(segments)

    landed = commit(dataset, segments)
    assert landed.stats.index_stats("v")["num_segments"] == FRAGMENTS
    for vector in vectors()[::120]:
        found = find(landed, vector, nprobes=PARTITIONS, refine_factor=20)
        assert len(found & find(landed, vector, use_index=False)) >= 9


def test_joined_segments_of_bytes_are_read_with_one_range_of_values(tmp_path):
    """Trap: a byte means a share of its own segment's range, and only the widest is kept."""
    values = vectors(scales=(1, 10, 100))
    dataset = create(str(tmp_path), values)
    model = {"ivf_centroids": centroids(dataset)}

    def right(dataset: LanceDataset) -> int:
        """Of the ten nearest of ten vectors in the narrowest range, how many are found."""
        return sum(
            len(find(dataset, small, nprobes=PARTITIONS) & find(dataset, small, use_index=False))
            for small in values[:10]
        )

    apart = commit(dataset, build(dataset, "IVF_HNSW_SQ", **model))
    assert right(apart) > 80

    apart.drop_index("v")
    dataset = lance.dataset(str(tmp_path))
    segments = build(dataset, "IVF_HNSW_SQ", **model)
    joined = commit(dataset, [dataset.merge_existing_index_segments(segments)])
    assert right(joined) < 40


def test_flat_vectors_of_a_column_called_flat_cannot_be_indexed(tmp_path):
    """Trap: Lance panics, because it has a column of this name in its index."""
    vector = pa.FixedSizeListArray.from_arrays(pa.array(vectors().ravel()), DIMENSION)
    dataset = lance.write_dataset(pa.table({"flat": vector}), str(tmp_path))

    def index(kind: str, **more: Any) -> Index:
        return dataset.create_index_uncommitted(
            "flat", kind, name="v", num_partitions=1, fragment_ids=[0], **more
        )

    with pytest.raises(BaseException, match="unwrap"):  # a panic is no Exception
        index("IVF_FLAT")
    assert index("IVF_PQ", num_sub_vectors=4).name == "v"
