"""Declared columns and filters: what a frame does not declare is not read, and rows are Spark's."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from random import Random
from typing import Any, Final

import pyarrow as pa
import pytest

from omnigraph.connector.options import PinnedType, pin
from omnigraph.connector.readers import declared_schema, open_reader
from omnigraph.errors import InvalidParameterError
from omnigraph.graph import Graph
from tests.support.graphs import graph_with

SCHEMA: Final = """
node Person {
  name: String @key  age: I64?  born: Date?  text: String?  f: F64?  seen: DateTime?
}
"""
COUNT: Final = 400
TEXT_BYTES: Final = 1_000
"""At random, so that no compression makes them fewer."""


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    people = [
        {
            "name": f"p{n:03}",
            "age": n if n % 7 else None,
            "text": Random(n).randbytes(TEXT_BYTES).hex(),
            "f": n / 2,
            "born": date(2019, 12, 31) if n == 1 else None,
            "seen": datetime(2020, 1, 1, 8, tzinfo=UTC) if n == 1 else None,
        }
        for n in range(COUNT)
    ]
    return graph_with(tmp_path_factory.mktemp("selections") / "g", SCHEMA, {"Person": people})


def bytes_read() -> int:
    [line] = [each for each in Path("/proc/self/io").read_text().splitlines() if "rchar" in each]
    return int(line.split()[1])


def read(graph: Graph, **options: str) -> tuple[list[dict[str, Any]], int]:
    """The rows that tasks read, in this process, and how many bytes they read for it."""
    pinned = pin({"graph": graph.uri, "path": "Person", **options})
    reader = open_reader(pinned, declared_schema(pinned))
    partitions = reader.partitions()
    before = bytes_read()
    rows: list[dict[str, Any]] = []
    for part in partitions:
        for batch in reader.read(part):
            assert isinstance(batch, pa.RecordBatch)
            rows += batch.to_pylist()
    return rows, bytes_read() - before


def test_columns_that_are_not_declared_are_not_read(graph):
    whole, bytes_of_all = read(graph)
    narrow, bytes_of_two = read(graph, columns="age, name")

    assert [list(row) for row in narrow[:1]] == [["age", "name"]]
    assert len(whole) == len(narrow) == COUNT
    assert bytes_of_all > COUNT * TEXT_BYTES
    assert bytes_of_two < bytes_of_all / 10


@pytest.mark.parametrize(
    ("where", "passes"),
    [
        ("name = 'p007'", lambda n: n == 7),
        ("name IN ('p007', 'p009', 'x')", lambda n: n in (7, 9)),
        ("age >= 390 AND name != 'p395'", lambda n: n >= 390 and n % 7 and n != 395),
        ("(age BETWEEN 1 AND 3) AND NOT name = 'p002'", lambda n: n in (1, 3)),
        ("age > -1 AND age < 2", lambda n: n == 1),
        ("age IS NULL AND name < 'p010'", lambda n: n in (0, 7)),
        ("NOT age IS NULL AND name < 'p003'", lambda n: n in (1, 2)),
        ("born = DATE'2020-01-01'", lambda n: False),  # noqa: ARG005
        ("born < '2020-01-01' AND seen < '2020-01-01 10:00:00.5+02:00'", lambda n: n == 1),
    ],
)
def test_rows_that_do_not_pass_are_not_read(graph, where, passes):
    rows, bytes_of_some = read(graph, where=where, columns="name,text")

    assert {row["name"] for row in rows} == {f"p{n:03}" for n in range(COUNT) if passes(n)}
    assert bytes_of_some < COUNT * TEXT_BYTES


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"columns": "name,nme"}, "Person has no column 'nme'"),
        ({"columns": "name,name"}, "is named twice"),
        ({"where": "nme = 'x'"}, "Person has no column nme"),
        ({"where": "p.name = 'x'"}, "Person has no column p.name"),
        ({"where": "age ="}, "is not SQL"),
        ({"where": "f > 1.5"}, "cannot declare the filter 'f > 1.5'"),
        ({"where": "age = 1 OR age = 2"}, "cannot declare"),
        ({"where": "upper(name) = 'X'"}, "cannot declare"),
        ({"where": "age = '1'"}, "cannot declare"),
        ({"where": "age < f"}, "cannot declare"),
        # Python reads these as dates and times, and Spark does not.
        ({"where": "born = '20200101'"}, "cannot declare"),
        ({"where": "born > '2020-W01-1'"}, "cannot declare"),
        ({"where": "born > '2020-02-30'"}, "cannot declare"),
        ({"where": "born IN ('2020-01-01', '2020W011')"}, "cannot declare"),
        ({"where": "seen = '20200101T000000Z'"}, "cannot declare"),
        ({"where": "seen > '2020-W01-1T00:00:00Z'"}, "cannot declare"),
        # Its meaning depends on the session.
        ({"where": "seen IN ('2020-01-01 00:00:00')"}, "cannot declare"),
        # Spark compares dates, and not their texts.
        ({"where": "name = DATE'2020-01-01'"}, "cannot declare"),
    ],
)
def test_what_cannot_be_declared_is_refused_by_name(graph, options, said):
    with pytest.raises(InvalidParameterError, match=said):
        pin({"graph": graph.uri, "path": "Person", **options})


def test_partitions_are_groups_of_fragments(graph):
    pinned = pin({"graph": graph.uri, "path": "Person"})
    assert isinstance(pinned, PinnedType)
    reader = open_reader(pinned, declared_schema(pinned))

    assert [part.value for part in reader.partitions()] == [(0,)]


def test_a_frame_that_declares_a_filter_may_be_used_many_times(graph, spark):
    frame = (
        spark.read.format("omnigraph")
        .option("graph", graph.uri)
        .option("columns", "name, age")
        .option("where", "age < 5")
        .load("Person")
    )

    assert frame.columns == ["name", "age"]
    both = frame.where("name = 'p001'").union(frame.where("name > 'p003'")).union(frame)
    assert sorted(row["name"] for row in both.collect()) == sorted(
        ["p001", "p004", "p001", "p002", "p003", "p004"]
    )


def test_rows_are_counted_without_reading_the_table(graph, spark, monkeypatch):
    assert graph.frame("Person", where="age < 5", columns=[], spark=spark).count() == 4

    def refuse(*given: Any) -> None:
        message = f"the table was read: {given}"
        raise AssertionError(message)

    monkeypatch.setattr("omnigraph.engine.spark.relations.read_fragments", refuse)
    counted = graph.frame("Person", columns=[], spark=spark)

    assert (counted.count(), counted.columns) == (COUNT, [])
    narrow = graph.frame("Person", columns=["age"], spark=spark)
    assert narrow.columns == ["age"]
