"""The blocks of docs/spark.md that need a cluster or a server run on those that tests start."""

import gzip
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import obstore
import pytest
from obstore.store import ObjectStore, from_url

import omnigraph
from tests.support.cluster import run_cluster
from tests.support.connect import run_connect_server
from tests.support.docs import blocks
from tests.support.s3 import S3Server
from tests.support.sources import REPOSITORY

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1800)]

PAGE: Final = (REPOSITORY / "docs" / "spark.md").read_text(encoding="utf-8")
SCHEMA: Final = "node Person { name: String @key  age: I64? }"
PEOPLE: Final = b'{"type": "Person", "data": {"name": "Ada", "age": 36}}\n'
MASTER: Final = "spark://host:7077"

PROGRAM: Final = """
import omnigraph
from pyspark.sql import SparkSession

session = SparkSession.builder.getOrCreate()
graph = omnigraph.open("s3://lake/world.omni")
people = session.createDataFrame([("Bob", 7)], "name string, age long")
print(graph.load({"Person": people}).inserted)
"""


def blocks_under(heading: str) -> list[str]:
    """The plain blocks of a section."""
    _, _, section = PAGE.partition(f"\n## {heading}\n")
    section, _, _ = section.partition("\n## ")
    return ["\n".join(block.lines) for block in blocks(section) if not block.language]


@pytest.fixture
def lake(s3_bucket: str, s3_server: S3Server) -> Iterator[ObjectStore]:
    """The bucket of the page, with a file to load and a graph."""
    assert s3_bucket
    bucket = s3_server.create_bucket("lake")
    store = from_url(f"s3://{bucket}")
    obstore.put(store, "raw/people.jsonl.gz", gzip.compress(PEOPLE))
    omnigraph.init(f"s3://{bucket}/world.omni", SCHEMA)
    yield store
    obstore.delete(store, paths_in(store))


def paths_in(store: ObjectStore, prefix: str = "") -> list[str]:
    return [each["path"] for each in obstore.list(store, prefix).collect()]


def run_block(text: str, folder: Path, **variables: str) -> str:
    """What a block of the page prints, in a shell that stops at the first error."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    known = {**os.environ, "PATH": path, "OMNIGRAPH_STORE": "s3://lake/world.omni", **variables}
    ran = subprocess.run(
        ["bash", "-e", "-c", text],
        cwd=folder,
        env=known,
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def names_in_lake() -> set[str]:
    rows = omnigraph.open("s3://lake/world.omni").query(
        "query q() { match { $p: Person } return { $p.name as name } }"
    )
    return {row["name"] for row in rows.rows()}


@pytest.mark.usefixtures("lake")
def test_the_blocks_about_clusters_run_on_one_of_spark(tmp_path: Path) -> None:
    with run_cluster(workers=1) as cluster:
        loopback = {"SPARK_LOCAL_IP": cluster.environment["SPARK_LOCAL_IP"]}
        python, packed = blocks_under("On a standalone cluster")

        text = python.replace(MASTER, cluster.master)
        text = text.replace("/opt/omnigraph/bin/python", sys.executable)
        assert "Person  1         0        0" in run_block(text, tmp_path, **loopback)
        assert names_in_lake() == {"Ada"}

        graph = omnigraph.open("s3://lake/world.omni")
        graph.mutate('query q() { delete Person where name = "Ada" }')
        text = packed.replace(MASTER, cluster.master)
        assert "Person  1         0        0" in run_block(text, tmp_path, **loopback)

        [submit] = blocks_under("On YARN and Kubernetes")
        on_yarn, _, _ = submit.partition("\nspark-submit --master k8s")
        (tmp_path / "program.py").write_text(PROGRAM)
        text = on_yarn.replace("--master yarn", f"--master {cluster.master}")
        assert run_block(text, tmp_path, **loopback).splitlines()[-1] == "1"
        assert names_in_lake() == {"Ada", "Bob"}


def test_the_block_about_buckets_runs_on_a_cluster_of_spark(
    tmp_path: Path, lake: ObjectStore
) -> None:
    [text] = blocks_under("Object stores")
    with run_cluster(workers=1) as cluster:
        run_block(text.replace(MASTER, cluster.master), tmp_path, **cluster.environment)
    assert "export/people/_export.json" in paths_in(lake, "export")


@pytest.mark.usefixtures("lake")
def test_the_block_about_spark_connect_runs_on_a_server(tmp_path: Path) -> None:
    run_block("omnigraph spark pack environment.tar.gz", tmp_path)
    [text] = blocks_under("Through Spark Connect")
    before = """
        import omnigraph
        from pyspark.sql import SparkSession

        rows = SparkSession.builder.remote("sc://host:15002").getOrCreate()
        rows.createDataFrame([("Cyd", 3)], "name string, age long").createTempView("people")
    """
    lines = [*(line.strip() for line in before.splitlines()), *text.splitlines()]
    with run_connect_server() as address:
        program = "\n".join(lines).replace("sc://host:15002", address)
        (tmp_path / "program.py").write_text(program)
        run_block(f"{sys.executable} program.py", tmp_path)
    assert names_in_lake() == {"Cyd"}
