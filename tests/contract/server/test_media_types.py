"""Every documented media type, from rows to a body and back."""

import io
import json
import time
from datetime import date
from typing import Any

import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq
import pytest

from tests.contract.server.test_http import problem

ROWS: list[dict[str, Any]] = [
    {"name": "Eva", "age": 2**53 + 1, "score": 0.1, "born": date(1815, 12, 10)},
    {"name": 'a "b", c\nd', "age": -1, "score": 1e300, "born": None},
    {"name": "ö 🎈", "age": None, "score": None, "born": date(1, 1, 1)},
]
SORTED = sorted(ROWS, key=lambda row: row["name"])
SCHEMA = pa.schema(
    [("name", pa.string()), ("age", pa.int64()), ("score", pa.float64()), ("born", pa.date32())]
)
TABLE = pa.Table.from_pylist(ROWS, SCHEMA)
QUERY = """query q() {
  match { $p: Person  $p.name in ["Eva", "a \\"b\\", c\\nd", "ö 🎈"] }
  return { $p.name as name, $p.age as age, $p.score as score, $p.born as born }
  order { $p.name }
}"""


def lines(rows):
    return "".join(f"{json.dumps(row, default=str)}\n" for row in rows).encode()


def file_of(write):
    sink = io.BytesIO()
    write(sink)
    return sink.getvalue()


def arrow(sink, new):
    with new(sink, SCHEMA) as writer:
        writer.write_table(TABLE, max_chunksize=2)


BODIES = {
    "application/x-ndjson": lines(ROWS),
    "application/json": lines(ROWS),
    "text/csv": file_of(lambda sink: pcsv.write_csv(TABLE, sink)),
    "application/vnd.apache.parquet": file_of(lambda sink: pq.write_table(TABLE, sink)),
    "application/vnd.apache.arrow.file": file_of(lambda sink: arrow(sink, pa.ipc.new_file)),
    "application/vnd.apache.arrow.stream": file_of(lambda sink: arrow(sink, pa.ipc.new_stream)),
}


@pytest.fixture
def people(graph):
    yield lambda: graph.query(QUERY).rows()
    graph.mutate('query q() { delete Person where name != "Ada" }')


def load(client, kind, body, **query):
    """Load a body, and wait for it if it became a job."""
    headers = {"Content-Type": kind}
    asked = {"type": "Person", "mode": "merge", **query}
    answer = client.post("/graphs/world/load", content=body, headers=headers, params=asked)
    assert answer.status_code in (200, 202), answer.text
    if answer.status_code == 200:
        return
    place, give_up = answer.headers["location"], time.monotonic() + 20
    while (job := client.get(place).json())["state"] in ("queued", "running"):
        assert time.monotonic() < give_up
        time.sleep(0.02)
    assert job["state"] == "done", job


def test_every_documented_body_has_a_sample(client):
    paths = client.get("/openapi.json").json()["paths"]
    documented = paths["/graphs/{graph}/load"]["post"]["requestBody"]["content"]
    assert set(documented) == set(BODIES)


@pytest.mark.parametrize("kind", BODIES)
def test_rows_of_a_body_are_read_back(client, people, kind):
    load(client, kind, BODIES[kind])
    assert people() == SORTED


@pytest.mark.parametrize(
    "kind", ["application/x-ndjson", "text/csv", "application/vnd.apache.arrow.stream"]
)
def test_answer_of_a_query_is_a_body_of_a_load(client, graph, people, kind):
    graph.load({"Person": ROWS}, mode="merge", index=False)
    answer = client.post("/graphs/world/query", json={"query": QUERY}, headers={"Accept": kind})
    graph.mutate('query q() { delete Person where name != "Ada" }')
    assert people() == []
    load(client, kind, answer.content)
    assert people() == SORTED


@pytest.mark.parametrize("kind", [kind for kind in BODIES if "arrow" in kind])
def test_rows_of_arrow_that_break_rules_are_left_out(client, people, kind):
    wrong = pa.table({"name": ["Eva", "Bob"], "age": ["old", "3"]})
    new = pa.ipc.new_file if kind.endswith("file") else pa.ipc.new_stream

    def write(sink):
        with new(sink, wrong.schema) as writer:
            writer.write_table(wrong)

    load(client, kind, file_of(write), on_error="quarantine")
    assert people() == []


@pytest.mark.parametrize("kind", [kind for kind in BODIES if "json" not in kind])
def test_columns_without_a_type_are_refused(client, kind):
    headers = {"Content-Type": kind}
    refused = client.post("/graphs/world/load", content=BODIES[kind], headers=headers)
    assert problem(refused, 400, "invalid_input")["hint"] == "name it: POST load?type=TYPE"
