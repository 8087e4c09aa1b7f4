"""Options of indexes for search: as Lance takes them to build an index, and as it describes one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from omnigraph.choices import Analyzer, IndexKind, Metric, VectorKind
from omnigraph.limits import VECTOR_PARTITION_ROWS
from omnigraph.schema.catalog import IndexOptions, TextOptions, VectorOptions
from omnigraph.search.analysis import index_parameters

VECTOR_SUBVECTOR_MAX: Final = 8
"""Numbers of a vector that one code stands for."""


def text_arguments(options: TextOptions) -> dict[str, Any]:
    """What Lance builds an index of texts by."""
    return {"with_position": options.positions, **index_parameters(options.analyzer)}


def vector_arguments(options: VectorOptions, *, rows: int, dimension: int) -> dict[str, Any]:
    """What Lance builds an index of so many vectors by.

    >>> options = VectorOptions(VectorKind.IVF_PQ)
    >>> vector_arguments(options, rows=50_000, dimension=300)
    {'metric': 'cosine', 'num_partitions': 12, 'num_sub_vectors': 50}
    """
    partitions = max(1, rows // VECTOR_PARTITION_ROWS)
    arguments: dict[str, Any] = {"metric": str(options.metric), "num_partitions": partitions}
    if options.kind is VectorKind.IVF_PQ:
        # The more numbers one code stands for, the more of them have to be read again.
        sizes = (size for size in range(1, VECTOR_SUBVECTOR_MAX + 1) if dimension % size == 0)
        arguments["num_sub_vectors"] = dimension // max(sizes)
    return arguments


def read_options(
    index_type: str, details: Mapping[str, Any]
) -> tuple[IndexKind, IndexOptions] | None:
    """The kind and options of an index that Lance describes; None otherwise of ours."""
    if index_type.upper() == IndexKind.INVERTED:
        for analyzer in Analyzer:
            parameters = index_parameters(analyzer)
            if all(details.get(name) == value for name, value in parameters.items()):
                positions = bool(details["with_position"])
                return IndexKind.INVERTED, TextOptions(analyzer, positions)
        return None
    kinds = {kind.upper(): kind for kind in VectorKind}
    metrics = {metric.upper(): metric for metric in Metric}
    kind, metric = kinds.get(index_type.upper()), metrics.get(str(details.get("metric_type")))
    if kind is None or metric is None:
        return None
    return IndexKind.VECTOR, VectorOptions(kind, metric)
