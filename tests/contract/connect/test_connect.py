"""Spark Connect: a session without a SparkContext, on a server that these tests start.

A process has sessions of one kind, so what uses Spark Connect runs in processes of its own.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from tests.support.connect import ADDRESS_VARIABLE, run_connect_server
from tests.support.environments import empty_python
from tests.support.sources import REPOSITORY


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    options = {"spark.sql.session.timeZone": "America/New_York"}
    with run_connect_server(options=options) as address:
        yield address


def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY), **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )


def tour(address: str, folder: Path, *length: str) -> dict[str, Any]:
    ran = run("-m", "tests.support.connect_tour", address, str(folder), *length)
    assert ran.returncode == 0, ran.stderr
    return dict(json.loads(ran.stdout))


BEGIN = {
    "kind": "pyspark.sql.connect.session",
    "loaded": 3,
    "friends": [{"p.name": "Ada", "q.name": "Bob"}],
}


def test_rows_are_loaded_and_found_through_spark_connect(server: str, tmp_path: Path) -> None:
    seen = tour(server, tmp_path)
    said = seen.pop("said")
    assert said.startswith("engine_unavailable this session of Spark Connect has spark.sql.")
    assert 'spark.conf.set("spark.sql.caseSensitive", "true")' in said
    assert 'spark.conf.set("spark.sql.session.timeZone", "UTC")' in said
    assert seen == BEGIN


@pytest.mark.soak
def test_everything_works_through_spark_connect(server: str, tmp_path: Path) -> None:
    seen = tour(server, tmp_path, "long")
    del seen["said"]
    assert seen == BEGIN | {
        "refused": "integrity",
        "updated": 2,
        "differs": ["Ada", "Bob"],
        "read": [["Ada", 37], ["Bob", 8], ["Dan", 1]],
        "joined": [["Cyd", "Person"]],
        "exported": ["Ada", "Bob", "Cyd", "Dan"],
        "ingest": "engine_unavailable",
        "streamed": [0],
        "followed": [["insert", "Eve"]],
        "components": 4,
        "indexed": "spark",
    }


@pytest.mark.soak
def test_a_command_uses_a_server_of_spark_connect(server: str, tmp_path: Path) -> None:
    program = """
        import sys, omnigraph
        graph = omnigraph.init(sys.argv[1], "node Person { name: String @key }")
        print(graph.load({"Person": [{"name": "Ada"}]}, engine="spark").inserted)
    """
    graph = str(tmp_path / "world.omni")
    ran = run("-W", "error", "-c", dedent(program), graph, OMNIGRAPH_SPARK_MASTER=server)
    assert (ran.stdout, ran.stderr) == ("1\n", "")


def test_a_server_that_does_not_answer_is_named_at_once() -> None:
    variables = ("SPARK_REMOTE", "OMNIGRAPH_SPARK_MASTER")
    program = """
        import os, sys
        from omnigraph.engine.spark.session import open_session
        from omnigraph.errors import InvalidInputError
        for variable in sys.argv[1:]:
            os.environ[variable] = "sc://127.0.0.1:1"
            try:
                open_session()
            except InvalidInputError as error:
                print(error.code, error)
            del os.environ[variable]
    """
    ran = run("-c", dedent(program), *variables)
    for variable, line in zip(variables, ran.stdout.splitlines(), strict=True):
        assert line == (
            "engine_unavailable no server of Spark Connect answers at 127.0.0.1:1: "
            f"Connection refused (write sc://host:15002 in {variable}, and check that the server "
            "runs)"
        ), ran.stderr


@pytest.mark.soak
def test_workers_without_the_package_are_one_error_with_the_settings_in_spark_connect(
    tmp_path: Path,
) -> None:
    with run_connect_server(python=str(empty_python(tmp_path))) as address:
        said = tour(address, tmp_path)["said"]
    assert said.startswith("workers_mismatch Spark's workers run Python")
    assert "without omnigraph (No module named 'omnigraph')" in said
    assert "spark.addArtifacts('environment.tar.gz#environment', archive=True)" in said
    assert "spark.conf.set('spark.sql.execution.pyspark.python', " in said


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_the_contract_suites_pass_through_spark_connect() -> None:
    suites = ("load", "query", "engine", "merge", "changes", "export", "connector")
    paths = [f"tests/contract/{suite}" for suite in suites]
    with run_connect_server() as address:
        ran = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-k", "spark", "-m", "not soak", *paths],
            cwd=REPOSITORY,
            env={**os.environ, ADDRESS_VARIABLE: address},
            capture_output=True,
            text=True,
            check=False,
        )
    assert ran.returncode == 0, ran.stdout[-5000:]
