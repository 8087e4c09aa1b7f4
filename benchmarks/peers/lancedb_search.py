"""LanceDB on the very table that ours reads, with its indexes; runs in the peers' environment."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lancedb
from lancedb.rerankers import RRFReranker

VERSION = f"lancedb {lancedb.__version__}"


def load(place: Path) -> Callable[[str, str], Any]:
    """Open `doc.lance`; a task is `text`, `both`, `nearest` or `nearest of N %`."""
    table = lancedb.connect(place).open_table("doc")
    queries = json.loads((place / "queries.json").read_text())
    knobs = json.loads((place / "knobs.json").read_text())

    def near(search: Any) -> Any:
        return search.distance_type("cosine").nprobes(knobs["nprobes"])

    def search_for(task: str, query: dict[str, Any]) -> Any:
        text, vector = query["text"], query["vector"]
        match task.split():
            case ["text"]:
                return table.search(text, query_type="fts", fts_columns="body")
            case ["both"]:
                both = table.search(query_type="hybrid", vector_column_name="vector")
                return near(both.vector(vector).text(text)).rerank(RRFReranker())
            case ["nearest", *rest]:
                search = near(table.search(vector, vector_column_name="vector"))
                return search.where(f"share < {rest[1]}", prefilter=True) if rest else search
            case _:
                raise ValueError(task)

    def ask(task: str, number: str) -> Any:
        search = search_for(task, queries[int(number)])
        return search.limit(10).select(["number"]).to_arrow().select(["number"])

    return ask
