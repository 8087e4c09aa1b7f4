"""Kuzu or its successor, a node at a time; runs in the peers' environment."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
from kuzu_family import VERSION, kuzu

__all__ = ["VERSION", "load"]


def load(place: Path) -> Callable[[str, str], Any]:
    """An empty database, and a connection that stays open."""
    connection = kuzu.Connection(kuzu.Database(str(place)))
    connection.execute("CREATE NODE TABLE Person(name STRING, age INT64, PRIMARY KEY (name))")

    def run(task: str, text: str) -> pa.Table | None:
        if task == "count":
            return connection.execute("MATCH (p:Person) RETURN count(p)").get_as_arrow()
        connection.execute("CREATE (:Person {name: $n, age: 1})", {"n": text})
        return None

    return run
