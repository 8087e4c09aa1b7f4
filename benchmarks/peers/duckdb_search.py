"""DuckDB with its full-text index, and vectors by a scan; runs in the peers' environment.

The extensions are those of wheels: this machine need not reach DuckDB's own server.
"""

import importlib.util
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb

VERSION = f"duckdb {duckdb.__version__} with fts"


def load(place: Path) -> Callable[[str, str], Any]:
    """Copy the rows into a table in memory and index its texts; a task is as for LanceDB."""
    connection = duckdb.connect()
    connection.execute(f"LOAD '{_extension('fts')}'")
    queries = json.loads((place / "queries.json").read_text())
    dimension = len(queries[0]["vector"])
    connection.execute(
        f"CREATE TABLE doc AS SELECT number, share, body, vector::FLOAT[{dimension}] AS vector"
        f" FROM '{place / 'rows.parquet'}'"
    )
    connection.execute("PRAGMA create_fts_index('doc', 'number', 'body')")
    text = (
        "SELECT number FROM (SELECT number, fts_main_doc.match_bm25(number, $query) AS score"
        " FROM doc) WHERE score IS NOT NULL ORDER BY score DESC, number LIMIT 10"
    )
    distance = f"array_cosine_distance(vector, $query::FLOAT[{dimension}])"

    def ask(task: str, number: str) -> Any:
        query = queries[int(number)]
        match task.split():
            case ["text"]:
                return connection.execute(text, {"query": query["text"]}).to_arrow_table()
            case ["nearest", *rest]:
                where = f"WHERE share < {rest[1]}" if rest else ""
                nearest = f"SELECT number FROM doc {where} ORDER BY {distance} LIMIT 10"
                return connection.execute(nearest, {"query": query["vector"]}).to_arrow_table()
            case _:
                message = "has no rank fusion"
                raise ValueError(message)

    return ask


def _extension(name: str) -> Path:
    found = importlib.util.find_spec(f"duckdb_extension_{name}")
    assert found is not None, f"the wheel of {name} is not installed"
    assert found.origin is not None, "it is a package with files"
    return next(Path(found.origin).parent.rglob("*.duckdb_extension"))
