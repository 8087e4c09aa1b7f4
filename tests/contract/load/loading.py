"""Graphs that are loaded: requests carried out through the one protocol of all writers."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from omnigraph import graph as graphs
from omnigraph.clock import SystemClock
from omnigraph.graph import Graph
from omnigraph.load.loads import LoadRequest, Loads
from omnigraph.load.results import LoadResult
from omnigraph.model.commits import OperationKind
from omnigraph.model.names import MAIN, BranchName
from omnigraph.transaction.writes import WriteRequest

Counts = tuple[int, int, int]
"""Inserted, updated, deleted."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """One graph, and loads into it."""

    graph: Graph
    folder: Path

    def load(self, source: Any, mode: str = "append", **more: Any) -> LoadResult:
        """Carry out a load."""
        branch = BranchName.parse(more.pop("branch", str(MAIN)))
        order = WriteRequest(OperationKind.LOAD, branch, message=more.pop("message", None))
        loads = Loads(
            self.graph._transactions,
            self.graph._backends.of,
            SystemClock(),
            self.graph._begin_embedding,
            self.graph.requests,
        )
        return loads.run(order, LoadRequest(source, mode=mode, **more))

    def put(self, *lines: Mapping[str, Any] | str, mode: str = "append", **more: Any) -> LoadResult:
        """Load a graph file of these lines."""
        return self.load(self.file("data.jsonl", *lines), mode, **more)

    def file(self, name: str, *lines: Mapping[str, Any] | str) -> str:
        """Write a file, packed as its name says."""
        path = self.folder / name
        texts = [each if isinstance(each, str) else json.dumps(each) for each in lines]
        data = "".join(f"{each}\n" for each in texts).encode()
        if name.endswith(".gz"):
            # In two parts, as tools that split and join files leave them.
            half = len(data) // 2
            data = gzip.compress(data[:half]) + gzip.compress(data[half:])
        elif name.endswith(".zst"):
            data = pa.compress(data, codec="zstd", asbytes=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return str(path)

    def rows(self, type_name: str, branch: str = "main") -> dict[str, dict[str, Any]]:
        """The rows of a type by id, without that; no id may stand twice."""
        snapshot = self.graph.snapshot(branch=branch)
        key = self.graph.schema.show(branch=branch).catalog.type_named(type_name).table_key
        pin = snapshot.pin(key)
        table = self.graph._store.tables.open(pin.location, ref=pin.ref, version=pin.version)
        found = table.read().to_pylist()
        assert len({row["id"] for row in found}) == len(found) == pin.row_count
        return {row.pop("id"): row for row in found}

    def ids(self, type_name: str) -> set[str]:
        """The ids of a type."""
        return set(self.rows(type_name))

    def ends(self, type_name: str) -> set[tuple[str, str]]:
        """Where the edges of a type lead from and to."""
        return {(row["src"], row["dst"]) for row in self.rows(type_name).values()}

    def head(self) -> str:
        """The newest commit."""
        return str(self.graph.snapshot().head.commit_id)


def loaded(folder: Path, schema: str) -> Loaded:
    """An empty graph."""
    return Loaded(graphs.init(folder / "graph", schema), folder)


def node(type_name: str, **data: Any) -> dict[str, Any]:
    """An envelope of a node."""
    return {"type": type_name, "data": data}


def edge(type_name: str, source: str, target: str, **data: Any) -> dict[str, Any]:
    """An envelope of an edge."""
    found: dict[str, Any] = {"edge": type_name, "from": source, "to": target}
    return {**found, "data": data} if data else found


def changed(result: LoadResult) -> dict[str, Counts]:
    """What changed, by type."""
    return {
        name: (each.inserted, each.updated, each.deleted) for name, each in result.changes.items()
    }


def lines_of(path: Path | str) -> Sequence[Any]:
    """The lines of a file of JSON, which has no word for NaN."""
    texts = Path(path).read_text().splitlines()
    return [json.loads(each, parse_constant=_refused) for each in texts]


def _refused(word: str) -> Any:
    message = f"{word} is no JSON"
    raise ValueError(message)
