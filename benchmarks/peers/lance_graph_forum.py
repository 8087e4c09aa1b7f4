"""lance-graph on the tables of a forum, in memory; runs in the peers' environment."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance_graph
import pyarrow.parquet as pq

VERSION = f"lance-graph {lance_graph.__version__}"


def load(rows: Path) -> Callable[[str, str], Any]:
    """Read every table into memory."""
    described = json.loads((rows / "tables.json").read_text())
    config = lance_graph.GraphConfig.builder()
    for name in described["nodes"]:
        config = config.with_node_label(name, "number")
    for name in described["edges"]:
        config = config.with_relationship(name, "src", "dst")
    built = config.build()
    names = [*described["nodes"], *described["edges"]]
    tables = {name: pq.read_table(rows / f"{name}.parquet") for name in names}

    def ask(number: str, cypher: str) -> Any:  # noqa: ARG001
        return lance_graph.CypherQuery(cypher).with_config(built).execute(tables)

    return ask
