"""Running plans: the rows, their order, and what goes wrong, in one useful line."""

import pickle
import shutil
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa
import pytest
import sqlglot
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from sqlglot import exp

from omnigraph.choices import EngineName
from omnigraph.engine.protocol import Engine
from omnigraph.engine.spark.execute import SparkEngine, spark_tree
from omnigraph.engine.spark.failures import translate_errors
from omnigraph.errors import (
    ErrorCode,
    InternalError,
    InvalidInputError,
    NotFoundError,
    OmnigraphError,
)
from omnigraph.model.types import Scalar
from omnigraph.relational.plans import BoundValue, IsOneOf, Reduction, TableRows
from tests.contract.spark.builders import GIVEN, PERSON, data, person, plan
from tests.support.tables import create, in_fragments

NUMBER = {"n": Scalar.I64}


def test_it_is_an_engine(engine):
    running: Engine = engine

    assert running.name is EngineName.SPARK


def test_tables_and_given_rows_are_joined(engine, store):
    table = in_fragments(store, "abc", "de")
    given = pa.table(
        {"who": ["b", "e", "nobody"], "much": pa.array([1, 2**64 - 1, 3], pa.uint64())}
    )
    asked = plan(
        "WITH known AS MATERIALIZED (SELECT id FROM person WHERE id <> :unwanted) "
        "SELECT known.id, given.much FROM known JOIN given ON given.who = known.id ORDER BY 1",
        {"p.id": Scalar.STRING, "much": Scalar.U64},
        relations={**person("id"), **GIVEN},
        values={"unwanted": BoundValue("a", Scalar.STRING)},
    )
    before = asked.tree.sql()

    found = engine.run(asked, data(table, given))

    assert found.to_pylist() == [{"p.id": "b", "much": 1}, {"p.id": "e", "much": 2**64 - 1}]
    assert asked.tree.sql() == before
    assert engine.frame(asked, data(table, given)).columns == ["p.id", "much"]


def test_the_order_of_a_plan_is_kept(engine):
    rows = pa.table({"x": pa.array(range(20_000), pa.int64())})
    asked = plan("SELECT x FROM given ORDER BY x % 1000 DESC, x", NUMBER, relations=GIVEN)

    found = engine.run(asked, data(given=rows))["n"].to_pylist()

    assert found == sorted(range(20_000), key=lambda x: (-(x % 1000), x))


def test_a_relation_may_be_used_twice_and_under_other_names(engine, store):
    asked = plan(
        "SELECT COUNT(*) FROM person, person AS other WHERE person.id < other.id",
        NUMBER,
        relations=person("id"),
    )

    assert engine.run(asked, data(create(store, "abc")))["n"].to_pylist() == [3]


def test_rows_are_counted_without_reading_a_column(engine, store):
    asked = plan("SELECT COUNT(*) FROM person", NUMBER, relations=person())

    assert engine.run(asked, data(in_fragments(store, "ab", "c")))["n"].to_pylist() == [3]


def test_names_in_the_tree_mean_nothing(engine):
    asked = plan("SELECT 1 AS a, 2 AS a, 3", dict.fromkeys(("x.y", "`", "X.Y"), Scalar.I64))

    assert engine.run(asked, data()).to_pylist() == [{"x.y": 1, "`": 2, "X.Y": 3}]
    assert engine.frame(asked, data()).toArrow().to_pylist() == [{"x.y": 1, "`": 2, "X.Y": 3}]


def test_columns_that_differ_in_case_are_two(engine):
    rows = pa.table({"name": ["a"], "Name": ["b"]})
    asked = plan(
        "SELECT Name, name FROM given", dict.fromkeys("ab", Scalar.STRING), relations=GIVEN
    )

    assert engine.run(asked, data(given=rows)).to_pylist() == [{"a": "b", "b": "a"}]


def test_a_reduction_reads_less_and_changes_no_answer(engine, store):
    table = in_fragments(store, "abc", "de")
    reductions = (Reduction("person", "id", IsOneOf(("a", "e"))),)
    text = "SELECT id FROM person WHERE id IN ('a', 'e') ORDER BY id"
    asked = plan(text, {"id": Scalar.STRING}, relations=person("id"), reductions=reductions)

    assert engine.run(asked, data(table))["id"].to_pylist() == ["a", "e"]

    everything = plan(
        "SELECT COUNT(id) FROM person", NUMBER, relations=person("id"), reductions=reductions
    )
    assert engine.run(everything, data(table))["n"].to_pylist() == [2]


def test_plans_that_run_at_once_do_not_meet(engine, spark):
    asked = plan("SELECT SUM(x) FROM given", NUMBER, relations=GIVEN)

    def run(number: int) -> list[int]:
        rows = pa.table({"x": pa.array([number] * 10, pa.int64())})
        found: list[int] = engine.run(asked, data(given=rows))["n"].to_pylist()
        return found

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(run, range(8))) == [[10 * number] for number in range(8)]
    assert spark.catalog.listTables() == []


def test_views_go_even_if_the_plan_fails(engine, spark, store):
    asked = plan("SELECT nowhere FROM person", NUMBER, relations=person("id"))

    with pytest.raises(InternalError):
        engine.run(asked, data(create(store, "a")))
    assert spark.catalog.listTables() == []


def test_a_frame_can_be_used_long_after_the_plan(engine, store):
    asked = plan("SELECT id FROM person", {"id": Scalar.STRING}, relations=person("id"))

    frame = engine.frame(asked, data(create(store, "abc")))

    assert frame.where("id > 'a'").count() == 2


def test_the_session_of_a_caller_keeps_its_settings_and_plans_get_theirs(spark):
    theirs = spark.newSession()
    theirs.conf.set("spark.sql.ansi.enabled", "false")
    theirs.conf.set("spark.sql.session.timeZone", "America/New_York")
    engine = SparkEngine(theirs)

    with pytest.raises(InvalidInputError):
        engine.run(plan("SELECT CAST(9223372036854775807 AS BIGINT) + 1", NUMBER), data())
    found = engine.run(
        plan("SELECT CAST(TIMESTAMP '2024-01-01 00:00:00' AS STRING)", {"t": Scalar.STRING}), data()
    )

    assert found["t"].to_pylist() == ["2024-01-01 00:00:00"]
    assert theirs.conf.get("spark.sql.ansi.enabled") == "false"
    assert theirs.conf.get("spark.sql.session.timeZone") == "America/New_York"


def test_a_tree_over_fields_keeps_the_names_that_columns_are_qualified_by():
    tree = sqlglot.parse_one("SELECT a.id FROM a JOIN b AS c ON a.id = c.id JOIN d ON TRUE")
    assert isinstance(tree, exp.Query)

    found = spark_tree(tree, {"a": "v1", "b": "v2"}).sql(dialect="spark")

    assert found == "SELECT a.id FROM {v1} AS a JOIN {v2} AS c ON a.id = c.id JOIN d ON TRUE"


@pytest.mark.parametrize("relations", [GIVEN, {}], ids=["with a relation", "without any"])
def test_braces_in_a_plan_are_no_fields_of_it(engine, relations):
    text = "{} {{x}} {relation_0}"
    source = " FROM given" if relations else ""
    asked = plan(f"SELECT '{text}'{source}", {"x": Scalar.STRING}, relations=relations)

    found = engine.run(asked, data(given=pa.table({"n": [1]})))

    assert found["x"].to_pylist() == [text]


def test_plans_run_without_a_warning_of_pandas(engine):
    asked = plan("SELECT n FROM given", NUMBER, relations=GIVEN)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = engine.run(asked, data(given=pa.table({"n": [1]})))
    assert found["n"].to_pylist() == [1]


OVERFLOWS = {
    "sum": "SELECT CAST(SUM(v) AS BIGINT) FROM (VALUES (9223372036854775807), (1)) AS t(v)",
    "addition": "SELECT CAST(9223372036854775807 AS BIGINT) + 1",
    "cast": "SELECT CAST(v AS INT) FROM (VALUES (9999999999)) AS t(v)",
    "decimal": "SELECT CAST(99999999999999999999999999999999999999 AS DECIMAL(38, 0)) * 10",
    "result": "SELECT CAST(9223372036854775808 AS DECIMAL(20, 0))",
    "division": "SELECT 1 / v FROM (VALUES (0)) AS t(v)",
    "text": "SELECT CAST(v AS BIGINT) FROM (VALUES ('x')) AS t(v)",
}


@pytest.mark.parametrize("text", OVERFLOWS.values(), ids=OVERFLOWS)
def test_a_computed_value_that_does_not_fit_is_the_requests_fault(engine, text):
    with pytest.raises(InvalidInputError) as caught:
        engine.run(plan(text, NUMBER), data())

    assert caught.value.code is ErrorCode.VALUE_OUT_OF_RANGE
    assert_one_useful_line(caught.value)


def assert_one_useful_line(error: OmnigraphError):
    assert "\n" not in error.message
    assert len(error.message) < 600
    for word in ("SQLSTATE", "ansi", "try_", "org.apache", "Traceback"):
        assert word not in error.message


def test_a_plan_that_spark_refuses_is_our_bug(engine):
    with pytest.raises(InternalError, match="nowhere") as caught:
        engine.run(plan("SELECT nowhere", NUMBER), data())

    assert_one_useful_line(caught.value)


def test_nothing_is_printed_about_an_error_that_is_raised(engine, capfd):
    for text in ("SELECT nowhere", *OVERFLOWS.values()):
        with pytest.raises((InternalError, InvalidInputError)):
            engine.run(plan(text, NUMBER), data())

    printed = capfd.readouterr()
    assert (printed.out, printed.err) == ("", "")


def test_a_table_that_executors_cannot_read_is_told_as_storage_tells_it(engine, store):
    table = create(store, "abc")
    asked = plan("SELECT id FROM person", {"id": Scalar.STRING}, relations=person("id"))
    shutil.rmtree(table.address.uri)

    with pytest.raises(NotFoundError) as caught:
        engine.run(asked, data(table))

    assert caught.value.message == f"the table at {table.address.uri} does not exist"
    assert caught.value.code is ErrorCode.NOT_FOUND


def test_a_missing_data_file_is_a_storage_error_that_may_be_retried(engine, store):
    table = create(store, "abc")
    asked = plan("SELECT id FROM person", {"id": Scalar.STRING}, relations=person("id"))
    for file in (Path(table.address.uri) / "data").iterdir():
        file.unlink()

    with pytest.raises(OmnigraphError) as caught:
        engine.run(asked, data(table))

    assert caught.value.retryable
    assert table.address.uri in caught.value.message
    assert_one_useful_line(caught.value)


def test_a_worker_that_dies_is_told_in_a_line(spark):
    def die(_):
        import os

        os._exit(3)

    with (
        pytest.raises(InternalError, match="lost a worker process") as caught,
        translate_errors("it"),
    ):
        spark.range(1).mapInArrow(die, "x int").toArrow()

    assert_one_useful_line(caught.value)


def test_a_bug_inside_a_worker_is_told_with_its_own_line(spark):
    def fail(_):
        message = "no such thing\nand more"
        raise LookupError(message)

    said = "LookupError: no such thing"
    with pytest.raises(InternalError, match=said) as caught, translate_errors("it"):
        spark.range(1).mapInArrow(fail, "x int").toArrow()

    assert_one_useful_line(caught.value)


def fail_in(*actions):
    message = "no more"
    with ExitStack() as stack:
        for each in actions:
            stack.enter_context(translate_errors(each))
        raise Py4JError(message)


def test_what_failed_is_what_was_asked_for_and_no_step_of_it():
    with pytest.raises(InternalError, match="the load on Spark failed"):
        fail_in("the load", "the plan")
    with pytest.raises(InternalError, match="the plan on Spark failed"):
        fail_in("the plan")


def test_an_engine_does_not_travel(engine):
    with pytest.raises(TypeError, match="ReadTask"):
        pickle.dumps(engine)


def test_a_relation_names_its_table(engine, store):
    asked = plan("SELECT n FROM rel", NUMBER, relations={"rel": TableRows(PERSON, ("n",))})

    assert engine.run(asked, data(create(store, "a", n=5)))["n"].to_pylist() == [5]
