"""The connector: `spark.read.format("omnigraph")` reads what the graph holds, wherever it is."""

import re
from datetime import date
from functools import reduce
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, datasource
from pyspark.sql import functions as sql

from omnigraph.connector import writer as writers
from omnigraph.engine.spark import types
from omnigraph.limits import LOAD_LOCAL_ROWS_MAX
from omnigraph.schema.catalog import NodeType, Property
from omnigraph.schema.resolve import catalog_of
from tests.contract.spark.builders import (
    FIRST_INSTANT,
    LAST_INSTANT,
    ODD_INSTANT,
    VALUES,
    every_type,
)
from tests.support.connect import require_classic
from tests.support.graphs import add_rows, graph_with
from tests.support.publishing import PERSON

PUSHDOWN = "spark.sql.python.filterPushdown.enabled"
SCHEMA = """
node Person {
  name: String @key  born: Date?  age: I64?  seen: DateTime?  ok: Bool?  u: U32?  f: F64?
}
edge Knows: Person -> Person { since: I64 }
"""
FIRST, ODD, LAST = FIRST_INSTANT, ODD_INSTANT, LAST_INSTANT
PEOPLE = [
    {
        "name": "Ada",
        "born": date(1, 1, 1),
        "age": -(2**63),
        "seen": FIRST_INSTANT,
        "ok": True,
        "u": 1,
    },
    {"name": "A%'_a", "born": date(1582, 10, 10), "age": 2**63 - 1, "seen": ODD, "f": -0.0},
    {
        "name": "Bo",
        "born": date(9999, 12, 31),
        "age": 7,
        "seen": LAST_INSTANT,
        "ok": False,
        "f": 0.0,
    },
    {"name": "Cy", "f": float("nan")},
]


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    place = tmp_path_factory.mktemp("connector") / "a graph's place"
    made = graph_with(place, SCHEMA, {"Person": PEOPLE[:2]})
    add_rows(made, {"Person": PEOPLE[2:], "Knows": [{"src": "Ada", "dst": "Bo", "since": 1}]})
    return made


@pytest.fixture(scope="module")
def session(spark):
    own = spark.newSession()
    own.conf.set(PUSHDOWN, "true")
    return own


@pytest.fixture
def read(session, graph):
    return session.read.format("omnigraph").option("graph", graph.uri)


def names(frame) -> set[str]:
    return set(frame.toArrow()["name"].to_pylist())


def test_a_type_is_read_by_name(read):
    frame = read.load("Person")

    assert frame.columns == ["id", "name", "born", "age", "seen", "ok", "u", "f"]
    assert names(frame) == {"Ada", "A%'_a", "Bo", "Cy"}
    found = {row["name"]: row for row in frame.toArrow().to_pylist()}
    assert found["Ada"]["age"] == -(2**63)
    assert found["Bo"]["born"] == date(9999, 12, 31)


def test_edges_have_their_ends(read):
    frame = read.load("Knows")

    assert frame.columns == ["id", "src", "dst", "since"]
    assert frame.select("src", "dst", "since").toArrow().to_pylist() == [
        {"src": "Ada", "dst": "Bo", "since": 1}
    ]


def test_every_property_type_arrives(session, tmp_path):
    every = NodeType(
        "Every", tuple(Property(f"c{n}", type_, nullable=True) for n, type_ in enumerate(VALUES))
    )
    graph = graph_with(tmp_path / "g", catalog_of(every), {"Every": every_type()})

    found = session.read.format("omnigraph").option("graph", graph.uri).load("Every").toArrow()

    expected = every_type().cast(types.crossing_schema(every_type().schema))
    assert str(found.sort_by("id").to_pylist()) == str(expected.to_pylist())


def test_the_schema_can_be_narrowed(read):
    frame = read.schema("name string, age bigint").load("Person")

    assert frame.columns == ["name", "age"]
    assert names(frame) == {"Ada", "A%'_a", "Bo", "Cy"}


def test_a_column_that_is_not_there_is_refused_by_name(read):
    with pytest.raises(PySparkException, match="column agee, expected as bigint, does not exist"):
        read.schema("agee bigint").load("Person").count()


def test_a_branch_a_commit_and_a_version_are_read(session, graph, read):
    first = graph.commits.list()[1]
    draft = graph.branches.create("draft")
    draft.mutate('query q() { insert Person { name: "Draft" } }')
    version = graph.snapshot().manifest_version

    assert "Draft" in names(read.option("branch", "draft").load("Person"))
    fresh = session.read.format("omnigraph").option("graph", graph.uri)
    assert names(fresh.option("commit", first.commit_id).load("Person")) == {"Ada", "A%'_a"}
    fresh = session.read.format("omnigraph").option("graph", graph.uri)
    assert names(fresh.option("version", version).load("Person")) == {"Ada", "A%'_a", "Bo", "Cy"}


def test_a_frame_stays_at_its_commit_while_the_branch_moves_on(session, tmp_path):
    require_classic("a frame is analysed at each use")
    graph = graph_with(tmp_path / "g", SCHEMA, {"Person": [{"name": "Ada"}]})
    frame = session.read.format("omnigraph").option("graph", graph.uri).load("Person")
    graph.mutate('query q() { insert Person { name: "Bo" } }')

    assert names(frame) == {"Ada"}


def test_an_empty_type_has_columns_and_no_rows(session, tmp_path):
    graph = graph_with(tmp_path / "g", SCHEMA, {})
    frame = session.read.format("omnigraph").option("graph", graph.uri).load("Person")

    assert (frame.count(), len(frame.columns)) == (0, 8)


# fmt: off
FILTERS = {
    #                        the filter                                       pushed down
    "equal":                ("name = 'Ada'",                                  True),
    "quoted":               ("name = 'A%\\'_a'",                              True),
    "not equal":            ("name != 'Ada'",                                 True),
    "one of":               ("name IN ('Ada', 'Cy', 'Nobody')",               True),
    "none of":              ("name NOT IN ('Ada', 'Cy')",                     True),
    "prefix":               ("startswith(name, 'A%')",                        True),
    "prefix by like":       ("name LIKE 'A%'",                                True),
    "order of text":        ("name > 'B'",                                    True),
    "least":                ("age = -9223372036854775808L",                   True),
    "greatest":             ("age >= 9223372036854775807L",                   True),
    "less":                 ("age < 8",                                       True),
    "null":                 ("age IS NULL",                                   True),
    "not null":             ("age IS NOT NULL",                               True),
    "null-safe":            ("age <=> 7",                                     True),
    "null-safe negated":    ("NOT (age <=> 7)",                               False),
    "null-safe null":       ("born <=> NULL",                                 True),
    "date":                 ("born = DATE'1582-10-10'",                       False),
    "first date":           ("born <= DATE'0001-01-01'",                      False),
    "last date":            ("born >= DATE'9999-12-31'",                      True),
    "instant":              ("seen = TIMESTAMP'1582-10-10T01:02:03.456789Z'", False),
    "first instant":        ("seen <= TIMESTAMP'0001-01-01T00:00:00Z'",       False),
    "last instant":         ("seen > TIMESTAMP'9999-12-31T23:59:59.999998Z'", True),
    "true":                 ("ok = true",                                     True),
    "unsigned":             ("u = 1",                                         False),
    "float zero":           ("f = 0.0D",                                      False),
    "not a number":         ("f > 1.0D",                                      False),
    "suffix":               ("endswith(name, 'a')",                           False),
}
# fmt: on


@pytest.fixture(scope="module")
def answers(session, graph):
    """Who passes each filter in Lance, and in Spark."""
    require_classic("a local checkpoint goes with the frame that it was made of")
    pushing = session.read.format("omnigraph").option("graph", graph.uri).option("pushdown", "true")
    plain = session.read.format("omnigraph").option("graph", graph.uri).load("Person")
    same = session.createDataFrame(plain.toArrow()).localCheckpoint()
    return answered(lambda: pushing.load("Person")), answered(lambda: same)


def answered(load) -> dict[str, set[str]]:
    """One job for all filters: a job for each takes its time."""
    labelled = [
        load().where(text).select(sql.lit(label).alias("label"), "name")
        for label, (text, _) in FILTERS.items()
    ]
    found: dict[str, set[str]] = {label: set() for label in FILTERS}
    for row in reduce(DataFrame.union, labelled).toArrow().to_pylist():
        found[row["label"]].add(row["name"])
    return found


@pytest.mark.parametrize("label", FILTERS)
def test_a_filter_passes_the_same_rows_in_lance_and_in_spark(answers, label):
    in_lance, in_spark = answers

    assert in_lance[label] == in_spark[label]


@pytest.mark.skipif(not hasattr(datasource, "EqualTo"), reason="needs Spark 4.1")
@pytest.mark.parametrize("label", ["equal", "least", "date", "unsigned", "float zero"])
def test_what_lance_answers_exactly_is_pushed_down_and_nothing_else(read, label):
    require_classic("the plan is looked at in Java")
    text, pushed = FILTERS[label]

    frame = read.option("pushdown", "true").load("Person").where(text)

    plan = frame._jdf.queryExecution().executedPlan().toString()
    assert (re.search(r"\bFilter\b", plan) is None) == pushed, plan


def test_a_frame_may_be_used_many_times_unless_filters_are_pushed(read):
    frame = read.load("Person")

    assert names(frame.where("name = 'Ada'")) == {"Ada"}
    assert names(frame) == {"Ada", "A%'_a", "Bo", "Cy"}
    assert names(frame.where("name = 'Ada'").union(frame.where("name = 'Bo'"))) == {"Ada", "Bo"}


def test_a_query_is_answered(read):
    text = (
        "query q($least: I64) { match { $p: Person  $p.age >= $least } return { $p.name, $p.age } }"
    )
    frame = read.option("query", text).option("params", '{"least": 7}').load()

    assert frame.columns == ["p.name", "p.age"]
    assert set(frame.toArrow()["p.name"].to_pylist()) == {"A%'_a", "Bo"}
    frame = read.option("query", text).option("params", '{"least": 8}').load()
    assert set(frame.toArrow()["p.name"].to_pylist()) == {"A%'_a"}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"path": "Persn"}, "the schema has no type Persn"),
        ({"path": "Person", "brnch": "x"}, "'brnch' is not a valid option"),
        ({"path": "Person", "branch": "nobody"}, "nobody"),
        ({"path": "Person", "version": "one"}, "must be a positive whole number"),
        ({}, "give either a type or the option query"),
        ({"query": "query q() {"}, "q"),
    ],
)
def test_what_is_wrong_is_said_at_once(read, options, said):
    require_classic("a frame is analysed at its first use")
    for name, value in options.items():
        if name != "path":
            read.option(name, value)
    with pytest.raises(AnalysisException, match=said):
        read.load(options["path"]) if "path" in options else read.load()


def save(session, graph, rows, **options):
    writer = session.createDataFrame(rows, "name string, age long").write.format("omnigraph")
    writer.options(graph=graph.uri, **options).mode("append").save("Person")


@pytest.fixture
def written(tmp_path):
    return graph_with(tmp_path / "g", SCHEMA, {"Person": [{"name": "Ada", "age": 1}]})


def ages(graph, **at) -> dict[str, int]:
    rows = graph.query("query q() { match { $p: Person } return { $p.name, $p.age } }", **at).rows()
    return {row["p.name"]: row["p.age"] for row in rows}


def test_a_frame_is_written_in_one_commit(session, written):
    before = len(written.commits.list())

    save(session, written, [("Bo", 2), ("Cy", 3)], message="why")

    assert ages(written) == {"Ada": 1, "Bo": 2, "Cy": 3}
    assert len(written.commits.list()) == before + 1
    assert written.commits.list()[0].message == "why"
    assert list(Path(written.uri, "__staging").rglob("*.*")) == []


def test_a_frame_is_merged_on_a_branch(session, written):
    written.branches.create("draft")

    save(session, written, [("Ada", 7), ("Bo", 2)], branch="draft", mode="merge")

    assert ages(written) == {"Ada": 1}
    assert ages(written, branch="draft") == {"Ada": 7, "Bo": 2}


def test_duplicates_of_a_merge_need_an_order(session, written):
    rows = [("Ada", 7), ("Bo", 2), ("Ada", 9), ("Ada", 8)]
    with pytest.raises(PySparkException, match="Ada"):
        save(session, written, rows, mode="merge")
    with pytest.raises(PySparkException, match="have no order"):
        save(session, written, rows, mode="merge", onDuplicate="last")
    assert ages(written) == {"Ada": 1}

    save(session, written, rows, mode="merge", orderBy="age")

    assert ages(written) == {"Ada": 9, "Bo": 2}


def test_rows_that_break_rules_are_refused_and_nothing_is_written(session, written):
    with pytest.raises(PySparkException, match="Ada") as refusal:
        save(session, written, [("Bo", 2), ("Ada", 9)])
    # Our message comes first, without the stack of Spark's worker.
    assert "IntegrityError: the data breaks the schema" in str(refusal.value).splitlines()[0]
    assert "Traceback" not in str(refusal.value)

    assert ages(written) == {"Ada": 1}
    assert list(Path(written.uri, "__staging").rglob("*.*")) == []


def test_more_than_one_process_holds_is_left_in_files_and_loaded_by_spark(
    session, written, monkeypatch
):
    monkeypatch.setattr(writers, "LOAD_LOCAL_ROWS_MAX", 3)
    monkeypatch.setattr(writers, "LOAD_HELD_BYTES_MAX", 1)
    columns = session.createDataFrame([], "name string, age long").schema
    options = {"graph": written.uri, "path": "Person", "mode": "merge", "message": "much"}
    writer = writers.open_writer(options, columns, overwrites=False)
    rows = [{"name": f"p{number}", "age": number} for number in range(6)] + [{"name": "Ada"}]
    schema = pa.schema([("name", pa.string()), ("age", pa.int64())])
    batches = pa.Table.from_pylist(rows, schema).to_batches(max_chunksize=2)

    left = writer.write(iter(batches))
    assert (len(left.paths), left.rows) == (4, 7)
    writer.commit([left, writer.write(iter(()))])

    assert ages(written) == {**{f"p{number}": number for number in range(6)}, "Ada": None}
    assert written.commits.list()[0].message == "much"
    assert list(Path(written.uri, "__staging").rglob("*.*")) == []


@pytest.mark.soak
@pytest.mark.timeout(1_800)
def test_a_frame_of_any_size_is_written_in_one_commit(session, written):
    count = LOAD_LOCAL_ROWS_MAX + 1
    before = len(written.commits.list())
    frame = session.range(count).select(sql.concat(sql.lit("p"), "id").alias("name"))

    writer = frame.write.format("omnigraph").options(graph=written.uri)
    writer.mode("append").save("Person")

    assert written.snapshot().pin(PERSON).row_count == count + 1
    assert len(written.commits.list()) == before + 1
    with pytest.raises(PySparkException, match="Person 'p0' already exists") as refused:
        writer.mode("append").save("Person")
    assert f"exists Person(name): {count:,}" in str(refused.value)
    assert len(written.commits.list()) == before + 1
    assert list(Path(written.uri, "__staging").rglob("*.*")) == []
