"""A load on Spark into a graph on an object store, by drivers of which some are killed."""

from __future__ import annotations

from pathlib import Path

import pytest

from omnigraph.failpoints import Failpoint
from tests.support import crashes, spark_drivers, spark_loads
from tests.support.crashes import Cut
from tests.support.spark_loads import BEFORE, INPUTS, after, contents, load, scratch
from tests.support.spark_traps import Moment, names_of

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1_800)]


@pytest.fixture
def uri(s3_bucket: str, tmp_path: Path) -> str:
    return spark_loads.furnished(f"s3://{s3_bucket}/graph.omni", tmp_path)


def merged(uri: str, path: str) -> list[str]:
    """Merge; the work that executors were given."""
    return names_of(lambda: load(uri, path, "merge"))


def test_a_graph_on_an_object_store_is_loaded(uri: str, tmp_path: Path) -> None:
    # A driver of its own: the one of this run began before there was an object store.
    with spark_drivers.run_driver() as drive:
        drive(load, uri, spark_loads.source(tmp_path, INPUTS["append"]), "append")
        assert contents(uri) == after("append")
        again = {name: after("append")[name] for name in INPUTS["append"]}
        assert drive(load, uri, spark_loads.source(tmp_path, again), "merge") == dict.fromkeys(
            again, (0, 0, 0)
        )
    assert contents(uri) == after("append")
    assert scratch(uri) == ()
    spark_loads.assert_settled(uri)


def test_a_driver_that_is_killed_leaves_a_graph_on_an_object_store_whole(
    uri: str, tmp_path: Path
) -> None:
    path = spark_loads.source(tmp_path, INPUTS["merge"])
    # Nothing visible; one head of two moved, and put back; both moved, and published by the next.
    ends = {
        Failpoint.WRITE_AFTER_STAGE: BEFORE,
        Failpoint.WRITE_AFTER_EACH_APPLY: BEFORE,
        Failpoint.PUBLISH_AFTER_STAGE: after("merge"),
    }
    for point, wanted in ends.items():
        spark_drivers.kill_at(Cut(point), load, uri, path, "merge")
        crashes.reopen(uri)
        assert contents(uri) == wanted
        spark_loads.assert_settled(uri)

    with spark_drivers.run_driver() as drive:
        last = drive(merged, uri, path)[-1]
    spark_drivers.kill_during(last, Moment.TELLING, tmp_path / "marks", load, uri, path, "merge")
    assert scratch(uri), "scratch was cleared before"
    assert contents(uri) == after("merge")
    spark_loads.assert_settled(uri)
