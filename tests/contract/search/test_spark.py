"""Search on Spark: the same rows, scores and order as on the local engine, which is tested."""

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pytest

import omnigraph
from omnigraph.engine.spark import relations, searching
from omnigraph.graph import Graph
from omnigraph.relational.plans import SearchRows

SCHEMA: Final = """
node Doc {
  number: I64 @key
  body: String?
  title: String @index(analyzer="simple")
  near: Vector(4)?
  far: Vector(4)? @index(metric="l2")
}
edge Cites: Doc -> Doc { why: String? }
"""
WORDS: Final = ("graph", "graphs", "lake", "the", "table", "branches", "commit", "Zoë", "merge")
ROWS: Final = 60
QUERIES: Final = {
    "tests": """
        match { $d: Doc search($d.body, $q) fuzzy($d.title, $w) not { $d cites $x
                match_text($x.body, "graph lake") } }
        return { $d.number }""",
    "edges": """
        match { $d: Doc $d $e:cites $x search($e.why, $q) }
        return { $d.number count($x) as n } order { n desc }""",
    "bm25": """
        match { $d: Doc }
        return { $d.number, bm25($d.body, $q) as score } order { score } limit 7""",
    "bm25 of a scope": """
        match { $d: Doc $x: Doc {number: 3} $x cites $d }
        return { $d.number, bm25($d.body, $q) as score } order { score asc }""",
    "nearest": """
        match { $d: Doc }
        return { $d.number, nearest($d.near, $v) as distance } order { distance } limit 7""",
    "farthest of a scope": """
        match { $d: Doc $d.number > 20 }
        return { $d.number, nearest($d.far, $v) as distance } order { distance desc } limit 7""",
    "fusion": """
        match { $d: Doc $x cites $d }
        return { $d.number, $x.number, rrf(nearest($d.near, $v), bm25($d.body, $q),
                 bm25($d.title, $w), 2) as score, bm25($d.title, $w) as words }
        order { score } limit 30""",
}


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    random = np.random.default_rng(3)
    made = omnigraph.init(tmp_path_factory.mktemp("search") / "graph", SCHEMA)

    def text(count: int) -> str:
        return " ".join(random.choice(WORDS, count))

    def vector(number: int) -> list[float] | None:
        return None if number % 11 == 0 else random.integers(-2, 3, 4).astype(float).tolist()

    docs = {
        "number": list(range(ROWS)),
        "body": [None if number % 7 == 0 else text(1 + number % 5) for number in range(ROWS)],
        "title": [text(1) for _ in range(ROWS)],
        "near": [vector(number) for number in range(ROWS)],
        "far": [vector(number) for number in range(ROWS)],
    }
    rows = pa.table(docs, schema=_columns())
    ends = random.integers(0, ROWS, (4 * ROWS, 2)).astype(str)
    whys = [None if number % 5 == 0 else text(2) for number in range(len(ends))]
    edges = pa.table({"from": ends[:, 0], "to": ends[:, 1], "why": whys})
    # Several fragments, so that there are several tasks; some rows are replaced, and some deleted.
    for start in range(0, ROWS, 15):
        made.load({"Doc": rows.slice(start, 15)}, mode="merge", engine="local")
    made.load({"Cites": edges}, engine="local")
    made.load({"Doc": rows.slice(20, 3)}, mode="merge", engine="local")
    made.mutate("query q() { delete Doc where number = 41 }")
    return made


def _columns() -> pa.Schema:
    vector = pa.list_(pa.float32(), 4)
    return pa.schema(
        [
            ("number", pa.int64()),
            ("body", pa.string()),
            ("title", pa.string()),
            ("near", vector),
            ("far", vector),
        ]
    )


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch):
    """Even a small table is searched by several tasks."""
    monkeypatch.setattr(relations, "SPARK_PARTITION_ROWS_MIN", 1)


def ask(graph: Graph, body: str, engine: str) -> list[Any]:
    values = {"q": "the graph of Zoe", "w": "grahps", "v": [1.0, 0.0, 2.0, -1.0]}
    types = {"q": "String", "w": "String", "v": "Vector(4)"}
    used = {name: values[name] for name in values if f"${name}" in body.replace("$why", "")}
    parameters = ", ".join(f"${name}: {types[name]}" for name in used)
    return graph.query(f"query asked({parameters}) {{ {body} }}", used, engine=engine).rows()


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("name", QUERIES)
def test_spark_finds_and_ranks_what_the_local_engine_does(graph, name):
    expected = ask(graph, QUERIES[name], "local")
    assert expected
    assert ask(graph, QUERIES[name], "spark") == expected


@pytest.mark.usefixtures("spark")
def test_a_task_keeps_the_best_of_its_part_and_what_is_as_good(graph, monkeypatch):
    """Of 60 distances few are sent on, and ties at the limit are among them."""
    frames: list[Any] = []
    search_frame = searching.search_frame

    def noted(session: Any, relation: SearchRows, table: Any) -> Any:
        frames.append(search_frame(session, relation, table))
        return frames[-1]

    monkeypatch.setattr("omnigraph.engine.spark.execute.search_frame", noted)
    ask(graph, QUERIES["nearest"].replace("limit 7", "limit 1"), "spark")

    [frame] = frames
    scores = [row.score for row in frame.collect()]
    distances = {row["distance"] for row in ask(graph, QUERIES["nearest"], "local")}
    assert min(scores) == min(distances)
    assert 1 < len(scores) < ROWS // 4
