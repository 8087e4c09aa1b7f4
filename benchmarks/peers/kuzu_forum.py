"""Kuzu or its successor on the tables of a forum, keyed by integers; in the peers' environment."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kuzu_family import VERSION, kuzu

__all__ = ["VERSION", "load"]


def load(rows: Path) -> Callable[[str, str], Any]:
    """Fill a database beside the rows, unless an earlier process has."""
    place = rows / "kuzu.db"
    is_new = not place.exists()
    connection = kuzu.Connection(kuzu.Database(str(place)))
    if is_new:
        _fill(connection, rows)

    def ask(number: str, cypher: str) -> Any:  # noqa: ARG001
        return connection.execute(cypher).get_as_arrow()

    return ask


def _fill(connection: Any, rows: Path) -> None:
    described = json.loads((rows / "tables.json").read_text())
    for name, columns in described["nodes"].items():
        typed = ", ".join(f"{column} {kind}" for column, kind in columns.items())
        connection.execute(f"CREATE NODE TABLE {name}({typed}, PRIMARY KEY (number))")
    for name, (source, target) in described["edges"].items():
        connection.execute(f"CREATE REL TABLE {name}(FROM {source} TO {target})")
    for name in [*described["nodes"], *described["edges"]]:
        connection.execute(f"COPY {name} FROM '{rows / name}.parquet'")
