"""The Python of Spark's workers: ours on this machine, and asked for on others."""

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from textwrap import dedent

import pytest
from pyspark.sql import SparkSession

import omnigraph
from omnigraph.engine.spark import workers
from omnigraph.engine.spark.session import plan_session
from omnigraph.errors import ErrorCode, InvalidInputError
from tests.support import cluster
from tests.support.environments import empty_python


@pytest.fixture
def asked(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[SparkSession]:
    """A session whose workers nobody has asked yet, and which runs our Python again afterwards."""
    monkeypatch.setattr(workers, "_FIT", set())
    context = spark.sparkContext
    before = context.pythonExec, context.pythonVer
    yield spark
    context.pythonExec, context.pythonVer = before


@pytest.fixture
def other_python(tmp_path: Path) -> str:
    """A Python of our version that has nothing installed."""
    return str(empty_python(tmp_path))


def refusal(session: SparkSession) -> InvalidInputError:
    with pytest.raises(InvalidInputError) as raised:
        workers.check_workers(session)
    assert raised.value.code is ErrorCode.WORKERS_MISMATCH
    settings = ("PYSPARK_PYTHON", "spark.pyspark.python", "spark.archives", "omnigraph spark pack")
    for setting in settings:
        assert setting in raised.value.hint
    assert f"omnigraph {omnigraph.__version__}" in raised.value.hint
    assert "\n" not in str(raised.value)
    return raised.value


def test_workers_that_have_the_package_are_asked_once_in_spark(
    asked: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    workers.check_workers(asked)
    monkeypatch.setattr(workers, "_worker_interpreter", lambda _: pytest.fail("asked again"))
    workers.check_workers(asked.newSession())


def test_workers_without_the_package_are_named_with_both_sides_in_spark(
    asked: SparkSession, other_python: str
) -> None:
    asked.sparkContext.pythonExec = other_python
    message = refusal(asked).message
    version = "{}.{}".format(*sys.version_info)
    assert f"workers run Python {version} (" in message
    assert "without omnigraph (No module named 'omnigraph')" in message
    assert f"this process Python {version} ({sys.executable}) with omnigraph" in message


def test_workers_of_another_release_are_refused_in_spark(
    asked: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = replace(workers.Interpreter.ours(), release="9.9.9")
    monkeypatch.setattr(workers.Interpreter, "ours", lambda: ours)
    message = refusal(asked).message
    assert f"with omnigraph {omnigraph.__version__}, and this process" in message
    assert "with omnigraph 9.9.9" in message


def test_workers_with_another_lance_are_refused_in_spark(
    asked: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = workers.Interpreter.ours()
    ours = replace(real, packages={**real.packages, "pylance": "13.9.1"})
    monkeypatch.setattr(workers.Interpreter, "ours", lambda: ours)
    message = refusal(asked).message
    assert message.endswith("with omnigraph 0.1.0, pylance 13.9.1")
    assert f"pylance {real.packages['pylance']}, and this process" in message
    assert "duckdb" not in message


def test_workers_of_another_version_of_python_are_refused_in_spark(asked: SparkSession) -> None:
    asked.sparkContext.pythonVer = "3.99"
    assert "3.99" in refusal(asked).message


def test_workers_whose_python_is_missing_are_refused_in_spark(asked: SparkSession) -> None:
    asked.sparkContext.pythonExec = "/nowhere/python3"
    assert "/nowhere/python3" in refusal(asked).message


def test_on_this_machine_workers_run_our_python_whatever_was_said_in_spark(
    asked: SparkSession, other_python: str
) -> None:
    asked.sparkContext.pythonExec = other_python
    plan_session(asked)
    assert asked.sparkContext.pythonExec == sys.executable


def test_a_cluster_is_asked_before_its_first_job_in_spark(
    asked: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asked.sparkContext, "master", "spark://host:7077")
    monkeypatch.setattr(asked.sparkContext, "pythonExec", "/nowhere/python3")
    with pytest.raises(InvalidInputError, match="/nowhere/python3"):
        plan_session(asked)


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_a_cluster_of_spark_without_the_package_is_one_error_with_the_setting(
    tmp_path: Path, other_python: str
) -> None:
    program = """
        import sys
        from pyspark.sql import SparkSession
        builder = SparkSession.builder.master(sys.argv[2]).config("spark.ui.enabled", "false")
        spark = builder.config("spark.executor.memory", "512m").getOrCreate()
        import omnigraph
        graph = omnigraph.init(sys.argv[1], "node Person { name: String @key }")
        try:
            print(graph.load({"Person": [{"name": "Ada"}]}, engine="spark").inserted)
        except omnigraph.errors.InvalidInputError as error:
            print(error.code, error)
    """

    def told(found: cluster.Cluster, name: str, python: str) -> str:
        ran = subprocess.run(
            [sys.executable, "-c", dedent(program), str(tmp_path / name), found.master],
            env={**os.environ, **found.environment, "PYSPARK_PYTHON": python},
            capture_output=True,
            text=True,
            check=True,
            timeout=200,
        )
        return ran.stdout

    with cluster.run_cluster(workers=1) as found:
        assert told(found, "fit.omni", sys.executable) == "1\n"
        said = told(found, "unfit.omni", other_python)
    assert said.startswith("workers_mismatch Spark's workers run Python")
    assert "without omnigraph (No module named 'omnigraph')" in said
    assert "PYSPARK_PYTHON" in said
