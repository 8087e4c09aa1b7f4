"""Paths on arrays: what SQL and the reference return, on graphs with many equal paths."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from omnigraph.engine.local import paths
from omnigraph.engine.local.execute import LocalEngine
from omnigraph.engine.protocol import Data
from omnigraph.query import ir
from omnigraph.query.compile import compile_queries
from omnigraph.query.lowering.operands import Given
from omnigraph.query.lowering.plan import lower
from omnigraph.schema.parser import parse_schema
from tests.oracle.reference import ReferenceGraph, Row
from tests.oracle.tables import to_rows
from tests.support.engines import store_tables
from tests.support.query_cases import NOW

CATALOG = parse_schema(
    """
    node Town { name: String @key }
    edge Road: Town -> Town { km: F64?  toll: I64? }
    """
)
NODE_COUNT = 300


def roads() -> ReferenceGraph:
    """A random graph; whole and small numbers make many paths equal."""
    random = np.random.default_rng(7)
    ends = random.integers(0, NODE_COUNT, (1500, 2))
    weights = random.integers(-1, 4, len(ends))
    towns: list[Row] = [{"id": f"t{each}", "name": f"t{each}"} for each in range(NODE_COUNT)]
    edges: list[Row] = [
        {
            "id": f"e{place}",
            "src": f"t{source}",
            "dst": f"t{target}",
            "km": None if weight == 3 else float(weight) / 2,
            "toll": None if weight == 3 else int(weight),
        }
        for place, ((source, target), weight) in enumerate(zip(ends, weights, strict=True))
    ]
    return ReferenceGraph({"Town": towns, "Road": edges})


WALKS = (
    "$a road{1,5} $b as $p",
    "$a road{2,64} $b as $p",
    "$b road{1,4} $a as $p",
    "$a <road>{1,3} $b as $p",
    "$a road{1,6} $b as $p by km",
    "$a road{1,6} $b as $p by toll",
    "$b road{1,4} $a as $p by toll",
    "$a <road>{1,4} $b as $p by km",
)
TARGETS = ("", '$b.name in ["t5", "t77", "t123", "t299"]', '$b.name = "t150"')


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Data:
    root: Path = tmp_path_factory.mktemp("roads")
    return Data(store_tables(root, roads(), CATALOG, indexed=False).__getitem__)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("walk", WALKS)
def test_arrays_find_the_paths_of_sql(
    data: Data, monkeypatch: pytest.MonkeyPatch, walk: str, target: str
) -> None:
    # Even of few nodes, the whole column of ids is sorted.
    monkeypatch.setattr(paths, "TAKEN_IDS_MAX", 40)
    cost = ", cost($p) as cost" if "by" in walk else ""
    text = f"""query q() {{
      match {{ $a: Town  $a.name in ["t1", "t2", "t150"]  {walk}  {target} }}
      return {{ $a, $b, length($p) as n, nodes($p) as via{cost} }}
    }}"""
    (query,) = compile_queries(text, CATALOG)
    assert isinstance(query, ir.ReadQuery)
    plan = lower(query, CATALOG, Given({}, NOW)).plan(Given({}, NOW))
    assert plan.paths is not None
    engine = LocalEngine()
    assert engine._find_paths(plan.paths, data) is not None
    found = to_rows(engine.run(plan, data))
    assert found == to_rows(LocalEngine(uses_arrays=False).run(plan, data))
    assert found or target
