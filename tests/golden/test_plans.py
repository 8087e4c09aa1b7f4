"""Queries and the plans they are lowered to: SQL in both dialects, and what may be looked up."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from omnigraph.engine.spark.execute import spark_tree
from omnigraph.model.types import PropertyType, Scalar
from omnigraph.query import ir
from omnigraph.query.compile import compile_queries
from omnigraph.query.lowering.operands import Given
from omnigraph.query.lowering.plan import lower
from omnigraph.relational.plans import TableRows
from omnigraph.schema.parser import parse_schema
from tests.support.cases import check

FOLDER = Path(__file__).parent / "query"
CATALOG = parse_schema((FOLDER / "schema.pg").read_text(encoding="utf-8"))
NOW = datetime(2026, 1, 1, tzinfo=UTC)
VALUES: dict[PropertyType, ir.Value] = {Scalar.STRING: "x", Scalar.I64: 18}


def planned(text: str) -> str:
    (query,) = compile_queries(text, CATALOG)
    assert isinstance(query, ir.ReadQuery)
    given = Given({each.name: VALUES[each.type] for each in query.parameters}, NOW)
    plan = lower(query, CATALOG, given).plan(given)
    reads = [
        f"{name} reads {each.table}: {', '.join(each.columns)}"
        for name, each in plan.relations.items()
        if isinstance(each, TableRows)
    ]
    bound = [f"{name} is {each.value!r}: {each.type}" for name, each in plan.values.items()]
    looks_up = [f"{each.relation}.{each.column} by {each.by}" for each in plan.reductions]
    lookup = [] if plan.lookup is None else [f"answer: the row {plan.lookup.id!r}"]
    fields = {name: f"relation_{place}" for place, name in enumerate(plan.relations)}
    spark_text = spark_tree(plan.tree, fields).sql(dialect="spark")
    return "\n".join(
        [
            *reads,
            *bound,
            *looks_up,
            *lookup,
            "-- duckdb",
            plan.tree.sql(dialect="duckdb", pretty=True),
            "-- spark",
            spark_text.format(**{field: name for name, field in fields.items()}),
            "",
        ]
    )


@pytest.mark.parametrize("path", sorted(FOLDER.glob("plans*.case")), ids=lambda path: path.stem)
def test_queries_have_their_recorded_plans(path: Path) -> None:
    check(path, planned)
