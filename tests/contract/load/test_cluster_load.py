"""On a real cluster: loads and exports of every kind, whose executors are killed at their work."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count, product
from multiprocessing import Pipe, get_context
from pathlib import Path
from threading import Event
from typing import Any, Final

import pytest

import omnigraph
from omnigraph.errors import OmnigraphError
from tests.support import cluster, spark_drivers, spark_loads
from tests.support.spark_drivers import Driver, await_end, java_pid
from tests.support.spark_loads import BEFORE, INPUTS, after, contents
from tests.support.spark_traps import Moment, Trap, names_of, set_trap

pytestmark = [pytest.mark.soak, pytest.mark.timeout(3_600)]

TASK_FAILURES_MAX: Final = 4
"""Attempts that Spark gives a task, and a stage whose inputs went with an executor."""

KILLS_MAX: Final = TASK_FAILURES_MAX * TASK_FAILURES_MAX
"""Where a stage begins anew, so do the attempts of its tasks."""

MODES: Final = tuple(INPUTS)


@dataclass(frozen=True, slots=True)
class World:
    """A graph to copy, a driver on a cluster, and a place for the rest."""

    base: str
    folder: Path
    drive: Driver
    cluster: cluster.Cluster

    def place(self) -> str:
        """A fresh graph, always with the same rows."""
        return shutil.copytree(self.base, self.folder / f"{next(_numbers)}.omni").as_posix()

    def marks(self) -> str:
        return str(self.folder / f"{next(_numbers)}.marks")


_numbers = count()


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("cluster")
    (folder / "inputs").mkdir()
    base = spark_loads.furnished(str(folder / "base.omni"), folder / "inputs")
    with cluster.run_cluster() as found, spark_drivers.run_driver(found.environment) as drive:
        yield World(base, folder, drive, found)


def source(world: World, mode: str) -> str:
    return spark_loads.source(world.folder / "inputs", INPUTS[mode])


def changes(mode: str) -> dict[str, tuple[int, int, int]]:
    """What a load must say that it changed."""
    if mode == "overwrite":
        return {name: (len(rows), 0, len(BEFORE[name])) for name, rows in INPUTS[mode].items()}
    return {
        name: (len(rows.keys() - BEFORE[name].keys()), len(rows.keys() & BEFORE[name].keys()), 0)
        for name, rows in INPUTS[mode].items()
    }


def master() -> str:
    from pyspark.sql import SparkSession

    return str(SparkSession.active().sparkContext.master)


def traced(uri: str, path: str, mode: str) -> tuple[list[str], Any]:
    """The work that a load gives executors, and what it changed."""
    told: list[Any] = []
    return names_of(lambda: told.append(spark_loads.load(uri, path, mode))), told[0]


def trapped_load(trap: Trap, uri: str, path: str, mode: str) -> Any:
    """What a load says that it changed, or the kind of its failure."""
    with set_trap(trap):
        try:
            return spark_loads.load(uri, path, mode)
        except OmnigraphError as error:
            return f"{type(error).__name__}: {error}"


def exported(uri: str, target: str) -> None:
    omnigraph.open(uri, read_only=True).export(target, engine="spark")


def trapped_export(trap: Trap, uri: str, target: str) -> str | None:
    with set_trap(trap):
        try:
            exported(uri, target)
        except OmnigraphError as error:
            return f"{type(error).__name__}: {error}"
    return None


def read_back(world: World, target: str) -> spark_loads.Contents:
    """What an export holds: what a graph has that it was loaded into."""
    graph = omnigraph.init(world.folder / f"{next(_numbers)}.omni", spark_loads.SCHEMA)
    graph.load(target, engine="local", index=False)
    return contents(graph.uri)


def assert_whole(uri: str, wanted: Mapping[str, Any]) -> None:
    assert contents(uri) == wanted
    spark_loads.assert_settled(uri)


@pytest.mark.parametrize("mode", MODES)
def test_a_load_whose_executor_is_killed_at_any_work_is_whole(world: World, mode: str) -> None:
    path, uri = source(world, mode), world.place()
    names, told = world.drive(traced, uri, path, mode)
    assert world.drive(master) == world.cluster.master
    assert told == changes(mode)
    assert_whole(uri, after(mode))
    assert len(names) >= (3 if mode == "merge" else 1)

    for name, moment in product(names, Moment):
        uri = world.place()
        trap = Trap(name, moment, world.marks())
        executors = world.cluster.await_executors()

        told = world.drive(trapped_load, trap, uri, path, mode)

        assert trap.sprung == 1, f"nothing was killed at {name}, {moment}"
        assert set(executors) - set(world.cluster.executor_pids()), "no executor is gone"
        assert told == changes(mode), f"{name}, {moment}"
        assert_whole(uri, after(mode))
        assert spark_loads.scratch(uri) == ()


@pytest.mark.parametrize("mode", ["append", "merge"])
def test_a_load_whose_executors_are_killed_again_and_again_fails_and_leaves_nothing(
    world: World, mode: str
) -> None:
    path, uri = source(world, mode), world.place()
    names, _ = world.drive(traced, world.place(), path, mode)
    head = omnigraph.open(uri, read_only=True).snapshot().head.commit_id

    for name in (names[0], names[-1]):
        trap = Trap(name, Moment.TELLING, world.marks(), times=KILLS_MAX)
        told = world.drive(trapped_load, trap, uri, path, mode)

        assert trap.sprung >= TASK_FAILURES_MAX
        assert "Error: the load on Spark" in told, told
        assert "\n" not in told, "a Java stack is no message"
        assert omnigraph.open(uri, read_only=True).snapshot().head.commit_id == head
        assert_whole(uri, BEFORE)
        assert spark_loads.scratch(uri) == ()

    assert world.drive(spark_loads.load, uri, path, mode) == changes(mode)
    assert_whole(uri, after(mode))


def test_an_export_whose_executor_is_killed_at_any_work_is_whole(world: World) -> None:
    # In several parts: rows of two files are sorted by several tasks.
    uri = world.place()
    world.drive(spark_loads.load, uri, source(world, "merge"), "merge")
    first = str(world.folder / "export")
    names = world.drive(names_of_export, uri, first)
    assert read_back(world, first) == after("merge")

    for name, moment in product(names, Moment):
        target = str(world.folder / f"{next(_numbers)}.export")
        trap = Trap(name, moment, world.marks())

        assert world.drive(trapped_export, trap, uri, target) is None

        assert trap.sprung == 1, f"nothing was killed at {name}, {moment}"
        assert read_back(world, target) == after("merge")
        assert _files(target) == _files(first)

    trap = Trap(names[-1], Moment.TELLING, world.marks(), times=KILLS_MAX)
    target = str(world.folder / "failed")
    told = world.drive(trapped_export, trap, uri, target)
    assert trap.sprung >= TASK_FAILURES_MAX
    assert told is not None
    assert "Error: the export on Spark" in told, told
    assert not list(world.folder.glob("*failed*"))
    world.drive(exported, uri, target)
    assert _files(target) == _files(first)


def hold(connection: Any) -> None:
    """Have a cluster with executors and a driver at work, say who is at it, and never end."""
    with cluster.run_cluster() as found, spark_drivers.run_driver(found.environment) as drive:
        drive(run_everywhere)
        connection.send(
            {
                "supervisor": (found.supervisor_pid,),
                "daemons": (found.master_pid, *found.worker_pids),
                "executors": found.executor_pids(),
                "driver": (drive(os.getpid), drive(java_pid)),
            }
        )
        Event().wait()


def run_everywhere() -> None:
    from pyspark.sql import SparkSession

    SparkSession.active().range(0, 100, 1, numPartitions=8).repartition(4).count()


@pytest.mark.parametrize(
    ("victim", "others"),
    [
        ("supervisor", ("daemons", "executors")),
        ("holder", ("supervisor", "daemons", "executors", "driver")),
    ],
)
def test_nothing_of_a_cluster_outlives_who_started_it(victim: str, others: tuple[str, ...]) -> None:
    ours, theirs = Pipe()
    holder = get_context("spawn").Process(target=hold, args=(theirs,))
    holder.start()
    try:
        assert ours.poll(spark_drivers.ANSWER_SECONDS_MAX), "it did not start"
        pids = {**ours.recv(), "holder": (holder.pid,)}
        assert all(pids.values())

        os.kill(pids[victim][0], signal.SIGKILL)

        for pid in (each for name in others for each in pids[name]):
            await_end(pid)
    finally:
        holder.kill()
        holder.join()


def names_of_export(uri: str, target: str) -> list[str]:
    return names_of(lambda: exported(uri, target))


def _files(target: str) -> dict[str, bytes]:
    """What lies in an export, but for what says of which commit it is."""
    return {
        str(each.relative_to(target)): each.read_bytes()
        for each in Path(target).rglob("*")
        if each.is_file()
    }
