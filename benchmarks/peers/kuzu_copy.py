"""Kuzu or its successor, filled from files by COPY; runs in the peers' environment."""

from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
from kuzu_family import VERSION, kuzu

__all__ = ["VERSION", "load"]

_TABLES = {
    "Person": "NODE TABLE Person(name STRING, age INT64, gender STRING, city STRING, joined DATE,"
    " score DOUBLE, bio STRING, PRIMARY KEY (name))",
    "Company": "NODE TABLE Company(name STRING, founded INT32, motto STRING, PRIMARY KEY (name))",
    "Follows": "REL TABLE Follows(FROM Person TO Person, since DATE, note STRING)",
    "Works": "REL TABLE Works(FROM Person TO Company, title STRING, since DATE, salary DOUBLE)",
}


def load(place: Path) -> Callable[[str, str], Any]:
    """Nothing yet: each database is filled once, and empty before."""
    numbers = count()
    database: Any = None
    connection: Any = None

    def run(task: str, text: str) -> pa.Table | None:
        nonlocal database, connection
        match task:
            case "empty":
                # Each takes terabytes of addresses, and a process has room for a few.
                if database is not None:
                    connection.close()
                    database.close()
                database = kuzu.Database(str(place / f"kuzu-{next(numbers)}.db"))
                connection = kuzu.Connection(database)
                for each in _TABLES.values():
                    connection.execute(f"CREATE {each}")
            case "copy":
                for name in _TABLES:
                    connection.execute(f"COPY {name} FROM '{Path(text) / name}.parquet'")
            case "count":
                nodes = "MATCH (n) RETURN count(*) AS rows"
                edges = "MATCH ()-[e]->() RETURN count(*) AS rows"
                found = [connection.execute(each).get_as_arrow() for each in (nodes, edges)]
                return pa.table({"rows": [sum(each["rows"][0].as_py() for each in found)]})
        return None

    return run
