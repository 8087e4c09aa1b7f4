"""Kuzu, by way of its successor where that is installed; runs in the peers' environment."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

try:
    import ladybug as kuzu
except ImportError:
    import kuzu

VERSION = f"{kuzu.__name__} {kuzu.__version__}"

_NODES = {
    "Person": "number INT64, name STRING, age INT64, gender STRING",
    "City": "number INT64, name STRING",
    "State": "number INT64, name STRING",
    "Country": "number INT64, name STRING",
    "Interest": "number INT64, name STRING",
}
_EDGES = {
    "Follows": ("Person", "Person"),
    "LivesIn": ("Person", "City"),
    "CityIn": ("City", "State"),
    "StateIn": ("State", "Country"),
    "HasInterest": ("Person", "Interest"),
}


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
    for name, columns in _NODES.items():
        connection.execute(f"CREATE NODE TABLE {name}(id STRING, {columns}, PRIMARY KEY (id))")
        names = ", ".join(["id", *(each.split()[0] for each in columns.split(", "))])
        file = rows / f"{name}.parquet"
        connection.execute(f"COPY {name} FROM (LOAD FROM '{file}' RETURN {names})")
    for name, (source, target) in _EDGES.items():
        connection.execute(f"CREATE REL TABLE {name}(FROM {source} TO {target})")
        file = rows / f"{name}.parquet"
        connection.execute(f"COPY {name} FROM (LOAD FROM '{file}' RETURN src, dst)")
