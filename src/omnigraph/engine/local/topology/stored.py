"""Topologies in files: written beside the indexes, and read by whoever has none in memory.

A file has the arrays at one version of an edge table, and the row ids of the nodes at that time. It
serves every version that follows from it (`topology.follow`), on its ref and on refs that started
later. Nothing depends on it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final

import numpy as np

from omnigraph.engine.local.topology.adjacency import Adjacency, PairArrays
from omnigraph.engine.local.topology.numbers import NodeNumbers
from omnigraph.engine.local.topology.topology import Topology
from omnigraph.errors import StorageError
from omnigraph.limits import TRIED_ARRAY_FILES_MAX
from omnigraph.storage.array_files import (
    ArrayFile,
    StoredArrays,
    array_path,
    find_arrays,
    read_arrays,
    write_arrays,
)
from omnigraph.storage.row_ids import RowIds
from omnigraph.storage.tables import Table, TableAddress

_KIND: Final = "topology"


def store(topology: Topology) -> str:
    """Write a topology to a file, which replaces one of the same version; return its path."""
    arrays: dict[str, np.ndarray] = {}
    for name, adjacency in (("out", topology.out), ("into", topology.into)):
        for part, array in zip(_PARTS, adjacency.whole.arrays, strict=True):
            arrays[f"{name}_{part}"] = array
    facts = {}
    for name, numbers in (("source", topology.sources), ("target", topology.targets)):
        arrays[f"{name}_starts"] = numbers.row_ids.starts
        arrays[f"{name}_lengths"] = numbers.row_ids.lengths
        facts[name] = _to_fact(numbers.address)
    path = array_path(topology.edges.address, _KIND)
    write_arrays(topology.edges, path, StoredArrays(facts, arrays))
    return path


def find_files(edges: Table) -> list[tuple[str | None, ArrayFile]]:
    """The files with topologies of versions in line with one, and their refs; the nearest first."""
    return find_arrays(edges, _KIND)


def find_stored(edges: Table, source: Table, target: Table) -> Iterator[Topology]:
    """Topologies of other versions, read from files: the nearest few that can be read."""
    for ref, file in find_files(edges)[:TRIED_ARRAY_FILES_MAX]:
        topology = _read(edges, source, target, ref, file)
        if topology is not None:
            yield topology


def _read(
    edges: Table, source: Table, target: Table, ref: str | None, file: ArrayFile
) -> Topology | None:
    try:
        content = read_arrays(edges, file.path)
        address = edges.address
        if (ref, file.version) != (address.ref, address.version):
            edges = edges.owner.open(address.location, ref=ref, version=file.version)
    except StorageError:
        # A cleanup may have removed the version, and then the file serves nobody.
        return None
    if content is None:
        return None
    sources = _numbers(content, "source", source)
    targets = sources if source is target else _numbers(content, "target", target)
    if sources is None or targets is None:
        return None
    out, into = _adjacency(content.arrays, "out"), _adjacency(content.arrays, "into")
    return Topology(edges, sources, targets, out, into)


def _numbers(content: StoredArrays, name: str, table: Table) -> NodeNumbers | None:
    """The numbers of the nodes of the stored version; None if they are of another table."""
    location, ref, version = content.facts[name]
    if location != table.address.location:
        return None
    if (ref, version) == (table.address.ref, table.address.version):
        opened = lambda: table  # noqa: E731
    else:
        opened = partial(table.owner.open, location, ref=ref, version=version)
    address = TableAddress(table.address.root, location, ref, version)
    runs = content.arrays[f"{name}_starts"], content.arrays[f"{name}_lengths"]
    return NodeNumbers(address, RowIds(*runs, {(_KIND, None): runs}), opened)


def _adjacency(arrays: Mapping[str, np.ndarray], name: str) -> Adjacency:
    pairs = PairArrays(*(arrays[f"{name}_{part}"] for part in _PARTS))
    return Adjacency(pairs, pairs.size)


_PARTS: Final = ("offsets", "neighbours", "repeated", "edge_counts")


def _to_fact(address: TableAddress) -> list[Any]:
    return [address.location, address.ref, address.version]
