"""Graphs to export: every property type at its extremes, on main and on a branch."""

from pathlib import Path
from typing import Any

from omnigraph.backends.registry import Backends
from omnigraph.clock import SystemClock
from omnigraph.export.results import ExportResult
from omnigraph.export.run import ExportOrder, export
from omnigraph.graph import Graph
from omnigraph.schema.catalog import NodeType, Property
from omnigraph.schema.resolve import catalog_of
from omnigraph.transaction.view import view_at
from tests.contract.spark.builders import VALUES, every_type
from tests.support.graphs import graph_with

CLOCK = SystemClock()

EVERY = NodeType(
    "Every", tuple(Property(f"c{n}", type_, nullable=True) for n, type_ in enumerate(VALUES))
)

SMALL = """
node Person { name: String @key  born: Date?  note: String? @default("none") }
node Thing { label: String }
edge Knows: Person -> Person { since: I64 }
"""


def every_graph(place: Path) -> Graph:
    """One type with every property type; its ids are not those of a key."""
    return graph_with(place, catalog_of(EVERY), {"Every": every_type()})


def small_graph(place: Path) -> Graph:
    return graph_with(
        place,
        SMALL,
        {
            "Person": [
                {"name": "Zoë", "born": "1999-12-31", "note": ""},
                {"name": "Ada", "born": None, "note": None},
                {"name": 'a "quoted"\nname', "born": None, "note": "x"},
            ],
            "Knows": [{"id": "k1", "src": "Zoë", "dst": "Ada", "since": 7}],
        },
    )


def exported(graph: Graph, target: str | Path, **order: Any) -> ExportResult:
    view = view_at(graph._store, graph._catalogs, graph.snapshot())
    return export(view, CLOCK, Backends().of, ExportOrder(target, **order))
