"""Rows whose values a schema change converted are the same rows to a diff."""

from itertools import zip_longest
from pathlib import Path
from typing import Any, TypeAlias

from omnigraph.model.types import Scalar
from omnigraph.schema.retyping import WIDENINGS
from tests.contract.merge.worlds import rows_of
from tests.support.graphs import graph_with
from tests.support.value_conversions import CASES, No

Rows: TypeAlias = dict[str, dict[str, Any]]

PAIRS = {name.lower().replace(" ", "_to_"): tuple(map(Scalar, name.split())) for name in CASES}
REQUESTS = [f"P.{name}" for name, pair in PAIRS.items() if pair not in WIDENINGS]


def schema_of(side: int) -> str:
    properties = "  ".join(f"{name}: {pair[side]}?" for name, pair in PAIRS.items())
    return f"node P {{ {properties} }}"


def rows_with(side: int) -> Rows:
    """The values of one side of every case that converts, each pair of types in its own column."""
    columns = [[case[side] for case in cases if case[1] is not No] for cases in CASES.values()]
    return {
        f"p{number}": {"id": f"p{number}", **dict(zip(PAIRS, values, strict=True))}
        for number, values in enumerate(zip_longest(*columns))
    }


def texts_of(rows: Rows) -> dict[str, list[str]]:
    """By id, the values as texts, because NaN is not equal to itself."""
    return {id_: list(map(str, row.values())) for id_, row in rows.items()}


def test_a_diff_across_all_conversions_shows_no_rows(tmp_path: Path) -> None:
    graph = graph_with(tmp_path / "graph", schema_of(0), {"P": rows_with(0).values()})
    before = str(graph.snapshot().head.commit_id)

    graph.schema.apply(schema_of(1), convert=REQUESTS)

    assert texts_of(rows_of(graph)["P"]) == texts_of(rows_with(1))
    assert list(graph.diff(before, "main").rows()) == []
