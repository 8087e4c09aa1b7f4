"""Vector models: what the segments of a vector index must share so that they can be joined."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from lance import LanceDataset
from lance.indices import IndicesBuilder

from omnigraph.choices import VectorKind

SHARED_KINDS: Final = (VectorKind.IVF_FLAT, VectorKind.IVF_PQ)
"""The kinds whose segments can be joined. Bytes have a range of values in each segment, and joined
they are read with one of them (docs/substrate.md)."""

_SAMPLE_RATE: Final = 256
"""Vectors that Lance learns one partition, or one code, from."""

_SAMPLE_RATE_MIN: Final = 2
"""Lance takes no less; where it finds fewer vectors, it learns from those."""

_CODES: Final = 256
"""Codes of one byte."""


@dataclass(frozen=True, slots=True)
class VectorModel:
    """The centres of partitions, and the vectors that codes stand for. It can be sent.

    Attributes:
        arguments: All that Lance builds a segment with this model by.
    """

    arguments: Mapping[str, Any]


def learn(
    dataset: LanceDataset,
    column: str,
    fragments: Sequence[int],
    arguments: Mapping[str, Any],
    *,
    vector_count: int,
) -> VectorModel:
    """A model of some fragments; reads a sample of their vectors.

    Args:
        arguments: What one segment over all of them would be built by.
        vector_count: How many vectors they have.
    """
    builder, ids = IndicesBuilder(dataset, column), list(fragments)
    ivf = builder.train_ivf(
        arguments["num_partitions"],
        distance_type=arguments["metric"],
        sample_rate=_SAMPLE_RATE,
        fragment_ids=ids,
    )
    shared: dict[str, Any] = {**arguments, "ivf_centroids": ivf.centroids}
    if count := arguments.get("num_sub_vectors"):
        rate = max(_SAMPLE_RATE_MIN, min(_SAMPLE_RATE, vector_count // _CODES))
        codes = builder.train_pq(ivf, count, sample_rate=rate, fragment_ids=ids)
        shared["pq_codebook"] = codes.codebook
    return VectorModel(shared)
