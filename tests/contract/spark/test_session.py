"""Sessions: one home of defaults, quiet and quick to start, and never in a caller's way."""

import os
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from omnigraph.engine.spark.archive import archive_stem
from omnigraph.engine.spark.execute import SparkEngine
from omnigraph.engine.spark.java import find_java
from omnigraph.engine.spark.session import (
    PLAN_SETTINGS,
    local_cores,
    open_session,
    plan_session,
    spark_options,
)
from omnigraph.engine.spark.settings import MASTER_VARIABLE, SessionSettings

SOURCE = Path(__file__).parents[3] / "src"


def python(text: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a program in a process of its own, where no Spark is running yet."""
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(text)],
        env={**os.environ, "PYTHONPATH": str(SOURCE), **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_a_local_session_binds_to_loopback_and_shows_nothing(spark):
    assert spark.conf.get("spark.driver.host") == "127.0.0.1"
    assert spark.conf.get("spark.driver.bindAddress") == "127.0.0.1"
    assert spark.conf.get("spark.ui.enabled") == "false"
    assert spark.conf.get("spark.ui.showConsoleProgress") == "false"
    assert spark.sparkContext.uiWebUrl is None


def test_a_session_means_what_plans_mean(spark):
    assert {name: spark.conf.get(name) for name in PLAN_SETTINGS} == PLAN_SETTINGS
    assert plan_session(spark) is spark


def test_workers_run_this_python(spark):
    def executable(batches):
        import sys

        import pyarrow as pa

        for _ in batches:
            yield pa.record_batch({"x": [sys.executable]})

    found = spark.range(0, 1, 1, 1).mapInArrow(executable, "x string").toArrow()

    assert found["x"].to_pylist() == [sys.executable]


def test_starting_leaves_the_environment_as_it_was(spark):
    assert spark is not None
    assert "SPARK_SUBMIT_OPTS" not in os.environ
    assert "PYSPARK_PYTHON" not in os.environ


def test_a_running_session_is_used_by_every_thread(spark):
    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(open_session, SessionSettings(master="local[7]")).result()

    assert other.sparkContext is spark.sparkContext
    assert open_session() is spark
    assert SparkEngine().session is spark


def test_the_master_is_the_one_asked_for_then_the_environments_then_local(monkeypatch):
    monkeypatch.delenv(MASTER_VARIABLE, raising=False)
    assert SessionSettings().chosen_master == "local[*]"

    monkeypatch.setenv(MASTER_VARIABLE, "spark://host:7077")
    assert SessionSettings().chosen_master == "spark://host:7077"
    assert SessionSettings(master="local[3]").chosen_master == "local[3]"


@pytest.mark.parametrize(
    ("master", "cores"),
    [("local", 1), ("local[3]", 3), ("local[3, 2]", 3), ("spark://h:1", None), ("yarn", None)],
)
def test_the_cores_of_a_local_master_are_known(master, cores):
    assert local_cores(master) == cores


def test_every_core_of_this_machine_is_used_unless_told():
    assert local_cores("local[*]") == len(os.sched_getaffinity(0))


def test_a_cluster_is_not_told_what_is_true_only_here():
    options = spark_options(SessionSettings(master="spark://host:7077"))

    assert options["spark.master"] == "spark://host:7077"
    here_alone = ("spark.driver.host", "spark.driver.bindAddress", "spark.executorEnv.PYTHONPATH")
    assert not any(name in options for name in here_alone)


def test_a_local_session_is_sized_by_this_machine():
    options = spark_options(SessionSettings(master="local[3]"))

    assert options["spark.sql.shuffle.partitions"] == "12"
    assert 1024 <= int(options["spark.driver.memory"].removesuffix("m")) <= 8192


def test_what_the_caller_says_wins():
    said = SessionSettings(driver_memory="2g", options={"spark.app.name": "mine"}, show_ui=True)
    options = spark_options(said)

    assert options["spark.driver.memory"] == "2g"
    assert options["spark.app.name"] == "mine"
    assert options["spark.ui.enabled"] == "true"


def test_an_archive_that_kills_java_is_removed_and_spark_starts_quietly(tmp_path):
    real = find_java()
    assert real is not None
    home = tmp_path / "java's home"
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    # As Java does with an archive cut short (facts/test_class_archives.py).
    dies = """case "$*" in *SharedArchiveFile*) kill -BUS $$;; esac"""
    java.write_text(f'#!/bin/sh\n{dies}\nexec {real} "$@"\n')
    java.chmod(0o755)
    cache = tmp_path / "a cache" / "omnigraph"
    cache.mkdir(parents=True)
    archive = cache / f"{archive_stem(java)}-7.jsa"
    archive.write_bytes(b"archive")

    ran = python(
        """
        from omnigraph.engine.spark.session import open_session
        from omnigraph.engine.spark.settings import SessionSettings, Workload
        settings = SessionSettings(master="local[1]", work=Workload.SHORT, driver_memory="1g")
        print(open_session(settings).range(10).count())
        """,
        JAVA_HOME=str(home),
        XDG_CACHE_HOME=str(tmp_path / "a cache"),
    )

    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "10\n", "")
    assert list(cache.iterdir()) == []


def test_a_java_that_does_not_run_is_told_in_a_sentence(tmp_path):
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\nexit 1\n")
    java.chmod(0o755)

    ran = python(
        """
        from omnigraph.engine.spark.session import open_session
        from omnigraph.errors import ErrorCode, InvalidInputError
        try:
            open_session()
        except InvalidInputError as error:
            assert error.code is ErrorCode.ENGINE_UNAVAILABLE
            print(error.message)
            print(error.hint)
        """,
        JAVA_HOME=str(tmp_path),
        XDG_CACHE_HOME=str(tmp_path / "cache"),
    )

    first, hint = ran.stdout.splitlines()
    assert first.startswith(f"Spark did not start with {java}: ")
    assert "--engine local" in hint


def test_without_java_a_sentence_says_what_to_do(tmp_path):
    ran = python(
        """
        from omnigraph.engine.spark.session import open_session
        from omnigraph.errors import ErrorCode, InvalidInputError
        try:
            open_session()
        except InvalidInputError as error:
            assert error.code is ErrorCode.ENGINE_UNAVAILABLE
            print(error)
        """,
        JAVA_HOME=str(tmp_path),
        PATH=str(tmp_path),
    )

    assert ran.stdout == (
        "the Spark engine needs Java, and none was found (install Java 17 or newer, "
        "or pip install 'omnigraph[java]', or use the local engine: --engine local, "
        "or engine='local' in Python)\n"
    )


def test_spark_is_not_imported_before_it_is_asked_for():
    ran = python(
        """
        import sys
        import omnigraph, omnigraph.cli.main, omnigraph.graph
        print([name for name in ("pyspark", "py4j") if name in sys.modules])
        """
    )

    assert ran.stdout == "[]\n"
