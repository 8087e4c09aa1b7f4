"""On a real cluster: loads from a bucket and exports to one, whose executors are killed."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator
from itertools import count, product
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest

import omnigraph
from omnigraph.errors import OmnigraphError
from omnigraph.storage.meter import Meter
from omnigraph.storage.objects import Objects
from omnigraph.storage.roots import Root
from tests.support import cluster, spark_drivers, spark_loads
from tests.support.s3 import S3Server
from tests.support.spark_drivers import Driver
from tests.support.spark_loads import BEFORE, INPUTS, after, contents
from tests.support.spark_traps import Moment, Trap, names_of, set_trap

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1_800)]

FILES: Final = 12
KILLS_MAX: Final = 16
_numbers = count()


@pytest.fixture
def objects(s3_bucket: str) -> Objects:
    return Objects(Root.parse(f"s3://{s3_bucket}/lake"), Meter())


@pytest.fixture
def running(s3_server: S3Server, objects: Objects) -> Iterator[tuple[cluster.Cluster, Driver]]:
    """A cluster whose workers found the store in their environment, and a driver."""
    assert objects.list("") == ()
    assert os.environ["AWS_ENDPOINT_URL"] == s3_server.endpoint
    with cluster.run_cluster() as found, spark_drivers.run_driver(found.environment) as drive:
        yield found, drive


def send_inputs(objects: Objects, folder: Path) -> None:
    """The input of a merge, in many files of every compression."""
    lines = Path(spark_loads.source(folder, INPUTS["merge"])).read_text().splitlines(keepends=True)
    for number in range(FILES):
        data = "".join(lines[number::FILES]).encode()
        match number % 3:
            case 0:
                objects.put(f"raw/{number}.jsonl", data)
            case 1:
                objects.put(f"raw/{number}.jsonl.gz", gzip.compress(data))
            case _:
                packed = pa.compress(data, codec="zstd", asbytes=True)
                objects.put(f"raw/{number}.jsonl.zst", packed)


def merged(uri: str, url: str) -> tuple[list[str], Any]:
    told: list[Any] = []
    return names_of(lambda: told.append(spark_loads.load(uri, url, "merge"))), told[0]


def trapped(trap: Trap, work: Any, *arguments: Any) -> Any:
    with set_trap(trap):
        try:
            return work(*arguments)
        except OmnigraphError as error:
            return f"{type(error).__name__}: {error}"


def exported(uri: str, target: str) -> None:
    omnigraph.open(uri, read_only=True).export(target, engine="spark")


def names_of_export(uri: str, target: str) -> list[str]:
    return names_of(lambda: exported(uri, target))


def test_loads_and_exports_in_a_bucket_whose_executors_are_killed(
    running: tuple[cluster.Cluster, Driver], objects: Objects, s3_bucket: str, tmp_path: Path
) -> None:
    _, drive = running
    send_inputs(objects, tmp_path)
    url = f"s3://{s3_bucket}/lake/raw/*.jsonl*"

    def place() -> str:
        folder = tmp_path / f"inputs{next(_numbers)}"
        folder.mkdir()
        return spark_loads.furnished(str(tmp_path / f"{next(_numbers)}.omni"), folder)

    def marks() -> str:
        return str(tmp_path / f"{next(_numbers)}.marks")

    names, told = drive(merged, place(), url)
    for name, moment in product(dict.fromkeys([names[0], names[-1]]), Moment):
        uri, trap = place(), Trap(name, moment, marks())
        assert drive(trapped, trap, spark_loads.load, uri, url, "merge") == told
        assert trap.sprung == 1, f"nothing was killed at {name}, {moment}"
        assert contents(uri) == after("merge")
        spark_loads.assert_settled(uri)

    def read_back(target: str) -> spark_loads.Contents:
        graph = omnigraph.init(tmp_path / f"{next(_numbers)}.omni", spark_loads.SCHEMA)
        graph.load(f"s3://{s3_bucket}/lake/{target}", engine="local", index=False)
        return contents(graph.uri)

    def assert_complete(target: str) -> None:
        stored = objects.read(f"{target}/_export.json")
        assert stored is not None
        files = json.loads(stored.data)["files"]
        assert set(objects.list(target)) == {
            f"{target}/{name}" for name in [*files, "_export.json"]
        }
        assert read_back(target) == after("merge")

    lake = f"s3://{s3_bucket}/lake"
    export_names = drive(names_of_export, uri, f"{lake}/first")
    assert_complete("first")
    for name, moment in product(dict.fromkeys(export_names), Moment):
        target, trap = f"{next(_numbers)}", Trap(name, moment, marks())
        assert drive(trapped, trap, exported, uri, f"{lake}/{target}") is None
        assert trap.sprung == 1, f"nothing was killed at {name}, {moment}"
        assert_complete(target)

    trap = Trap(export_names[-1], Moment.TELLING, marks(), times=KILLS_MAX)
    told = drive(trapped, trap, exported, uri, f"{lake}/failed")
    assert "Error: the export on Spark" in told, told
    assert objects.list("failed") == ()
    drive(exported, uri, f"{lake}/failed")
    assert_complete("failed")


def test_a_driver_that_is_killed_in_an_export_leaves_no_list_and_it_can_be_run_again(
    objects: Objects, s3_bucket: str, tmp_path: Path
) -> None:
    (tmp_path / "inputs").mkdir()
    uri = spark_loads.furnished(str(tmp_path / "graph.omni"), tmp_path / "inputs")
    target = f"s3://{s3_bucket}/lake/out"
    with spark_drivers.run_driver() as drive:
        names = drive(names_of_export, uri, f"s3://{s3_bucket}/lake/first")
    for name in dict.fromkeys(names):
        marks = tmp_path / f"{next(_numbers)}.marks"
        spark_drivers.kill_during(name, Moment.TELLING, marks, exported, uri, target)
        left = objects.list("out")
        assert any("_unfinished" in path for path in left)
        assert "out/_export.json" not in left
    with spark_drivers.run_driver() as drive:
        drive(exported, uri, target)
    stored = objects.read("out/_export.json")
    assert stored is not None
    files = json.loads(stored.data)["files"]
    assert set(objects.list("out")) == {f"out/{name}" for name in [*files, "_export.json"]}
    graph = omnigraph.init(tmp_path / "copy.omni", spark_loads.SCHEMA)
    graph.load(target, engine="local", index=False)
    assert contents(graph.uri) == BEFORE
