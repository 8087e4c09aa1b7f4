"""Packed environments: an archive from which workers run our tasks, wherever it is unpacked."""

import os
import subprocess
import sys
import tarfile
from importlib import metadata
from pathlib import Path

import pytest

from omnigraph.engine.spark import packing
from omnigraph.errors import AlreadyExistsError, NotFoundError, StorageError
from tests.support.cluster import run_cluster


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pack two packages only: all of them are some hundred megabytes."""
    names = ("omnigraph", "lark")
    packages = {name: metadata.distribution(name) for name in names}
    monkeypatch.setattr(packing, "_closure", lambda _: packages)


@pytest.mark.usefixtures("few")
def test_what_is_packed_runs_elsewhere(tmp_path: Path) -> None:
    packed = packing.pack_environment(tmp_path / "environment.tar.gz")
    place = tmp_path / "any place" / "environment"
    with tarfile.open(packed.path) as archive:
        archive.extractall(place, filter="data")
    program = "import sys, json, ssl, ctypes, lark, omnigraph; print(sys.prefix)"

    ran = subprocess.run(
        ["./environment/bin/python", "-c", program],
        cwd=place.parent,
        # No Python is on this PATH.
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert (ran.stdout, ran.stderr) == (f"{place}/python\n", "")
    assert packed.options == {
        "spark.archives": f"{packed.path}#environment",
        "spark.pyspark.python": "./environment/bin/python",
    }
    assert set(packed.packages) == {"omnigraph", "lark"}


def test_what_tasks_need_is_packed_and_what_spark_has_is_not() -> None:
    packed = packing._closure(["omnigraph", "hypothesis"])

    assert {"pylance", "pyarrow", "duckdb", "obstore", "numpy", "hypothesis"} <= packed.keys()
    assert not packed.keys() & {"pyspark", "py4j", "pytest", "grpcio", "moto"}


def test_an_archive_is_not_replaced_and_a_package_must_be_installed(tmp_path: Path) -> None:
    there = tmp_path / "environment.tar.gz"
    there.write_bytes(b"mine")
    with pytest.raises(AlreadyExistsError, match="exists"):
        packing.pack_environment(there)
    with pytest.raises(NotFoundError, match="nowhere-to-be-found is not installed"):
        packing.pack_environment(tmp_path / "other.tar.gz", also=["nowhere-to-be-found"])
    assert there.read_bytes() == b"mine"
    assert list(tmp_path.iterdir()) == [there]


@pytest.mark.usefixtures("few")
def test_a_folder_that_is_missing_is_one_error(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="could not be written"):
        packing.pack_environment(tmp_path / "nowhere" / "x.tar.gz", with_interpreter=False)


PROGRAM = """
import sys, omnigraph
graph = omnigraph.init(sys.argv[1], "node Person { name: String @key }")
print(graph.load({"Person": [{"name": "Ada"}]}, engine="spark").inserted)
from pyspark.sql import SparkSession, functions as sql
def place(_):
    import sys
    return sys.prefix
udf = sql.udf(place, "string", useArrow=False)
print(SparkSession.active().range(1).select(udf("id")).collect()[0][0])
"""


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_workers_of_a_cluster_of_spark_run_what_was_packed(tmp_path: Path) -> None:
    archive = tmp_path / "environment.tar.gz"
    command = [sys.executable, "-m", "omnigraph", "spark", "pack", str(archive)]
    subprocess.run(command, check=True, capture_output=True)
    with run_cluster(workers=1) as cluster:
        variables = {**cluster.environment, "OMNIGRAPH_SPARK_ENVIRONMENT": str(archive)}
        del variables["PYSPARK_PYTHON"]
        ran = subprocess.run(
            [sys.executable, "-c", PROGRAM, str(tmp_path / "world.omni")],
            env={**os.environ, **variables},
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )
    inserted, prefix = ran.stdout.splitlines()
    assert inserted == "1", ran.stderr
    assert prefix.endswith("/environment/python")
