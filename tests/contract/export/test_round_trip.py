"""What an export writes, a load reads: every type at its extremes, in every format."""

from __future__ import annotations

from pathlib import Path

import pytest

from omnigraph import graph as graphs
from omnigraph.graph import Graph
from tests.contract.export.graphs import every_graph, exported, small_graph
from tests.contract.load.loading import Loaded

TARGETS = {
    "ndjson": "out.jsonl",
    "gzip": "out.jsonl.gz",
    "zstd": "out.jsonl.zst",
    "csv": "csv",
    "parquet": "parquet",
}


def _bytes(place: Path) -> dict[str, bytes]:
    files = [place] if place.is_file() else sorted(place.rglob("*.*"))
    return {each.name: each.read_bytes() for each in files if each.name[0] not in "._"}


def _export(graph: Graph, place: Path, kind: str) -> Path:
    target = place / TARGETS[kind]
    exported(graph, target, format=kind if kind in ("csv", "parquet") else None)
    return target


@pytest.mark.parametrize("mode", ["append", "merge", "overwrite"])
@pytest.mark.parametrize("kind", TARGETS)
@pytest.mark.parametrize("make", [every_graph, small_graph])
def test_an_export_loads_again_as_the_same_graph(tmp_path, make, kind, mode):
    graph = make(tmp_path / "graph")
    source = _export(graph, _folder(tmp_path / "source"), kind)
    exports = []
    for name in ("first", "second"):
        again = graphs.init(tmp_path / f"{name} graph", graph.schema.show().catalog)
        Loaded(again, tmp_path).load(source, mode)
        source = _export(again, _folder(tmp_path / name), kind)
        exports.append(_bytes(source))
    assert exports[0] == exports[1]


@pytest.mark.parametrize("kind", TARGETS)
def test_every_value_is_loaded_as_it_was_but_for_the_sign_of_zero(tmp_path, kind):
    graph = every_graph(tmp_path / "graph")
    again = graphs.init(tmp_path / "again", graph.schema.show().catalog)
    Loaded(again, tmp_path).load(_export(graph, _folder(tmp_path / "source"), kind))
    texts = [
        _export(each, _folder(tmp_path / name), "ndjson").read_text()
        for each, name in ((graph, "before"), (again, "after"))
    ]
    # What a writer of ours stores has no minus zero: it would equal zero, and be another row.
    assert texts[1] == texts[0].replace("-0.0,", "0.0,").replace("-0.0]", "0.0]")


def _folder(place: Path) -> Path:
    place.mkdir()
    return place
