"""lance-graph: Cypher over Arrow tables in memory; runs in the peers' environment."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance_graph
import pyarrow.parquet as pq

VERSION = f"lance-graph {lance_graph.__version__}"

_NODES = ("Person", "City", "State", "Country", "Interest")
_EDGES = ("Follows", "LivesIn", "CityIn", "StateIn", "HasInterest")

# It has no WITH between two matches, so the group follows the whole pattern, as in ours.
_OTHERWISE = {
    "2": """MATCH (f:Person)-[:Follows]->(p:Person)-[:LivesIn]->(c:City)
              -[:CityIn]->(s:State)-[:StateIn]->(n:Country)
            RETURN p.id AS person, count(*) AS followers,
              c.name AS city, s.name AS state, n.name AS country
            ORDER BY followers DESC, person LIMIT 1""",
}


def load(rows: Path) -> Callable[[str, str], Any]:
    """Read every table into memory."""
    config = lance_graph.GraphConfig.builder()
    for name in _NODES:
        config = config.with_node_label(name, "id")
    for name in _EDGES:
        config = config.with_relationship(name, "src", "dst")
    built = config.build()
    # The id of an edge is not part of its model, and only in the way there.
    tables = {name: pq.read_table(rows / f"{name}.parquet") for name in _NODES}
    tables |= {name: pq.read_table(rows / f"{name}.parquet").drop(["id"]) for name in _EDGES}

    def ask(number: str, cypher: str) -> Any:
        query = lance_graph.CypherQuery(_OTHERWISE.get(number, cypher))
        return query.with_config(built).execute(tables)

    return ask
