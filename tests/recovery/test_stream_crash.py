"""A driver of a stream dies at every failpoint: each batch is in the graph exactly once."""

from collections.abc import Collection
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import omnigraph
from omnigraph.choices import Mode
from omnigraph.failpoints import Failpoint
from omnigraph.load.routes import ByColumn
from tests.support.crashes import (
    Cut,
    at_rest,
    copied,
    cut_off,
    much_later,
    put_to_death,
    sleeping_at,
    trace,
)
from tests.support.streams import (
    batch_of,
    batches_in,
    names_in,
    people,
    write_people,
    writer_of,
)
from tests.support.writers import furnished

PASSED = {
    Failpoint.STREAM_AFTER_LOOKUP,
    Failpoint.WRITE_AFTER_STAGE,
    Failpoint.WRITE_AFTER_EACH_APPLY,
    Failpoint.PUBLISH_AFTER_COMMIT,
    Failpoint.STREAM_AFTER_BATCH,
}
"""Between the look-up, the staged files, the heads, the publish and what Spark records."""

SHARP = (Failpoint.WRITE_AFTER_EACH_APPLY, Failpoint.STREAM_AFTER_BATCH)
"""Between the heads, when recovery undoes the batch; behind them; and after the commit."""

BOTH = pa.table({"kind": ["Person", "City"], "name": ["eva", "oslo"]})
"""A batch of two types: a driver may die between their heads."""


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A graph with the first batch of a stream."""
    graph = furnished(str(tmp_path_factory.mktemp("begun") / "begun.omni"))
    write_people(graph, 0, "cy")
    return graph.uri


def write_both(uri: str, mode: Mode = Mode.APPEND) -> bool:
    """A new driver that writes the second batch; whether it wrote it."""
    writer = writer_of(omnigraph.open(uri), of=ByColumn("kind"), mode=mode)
    return writer.write(batch_of(1), BOTH) is not None


def cuts_of(uri: str, path: Path, **options: Any) -> list[Cut]:
    return trace(partial(write_both, copied(uri, path / "traced.omni"), **options))


def assert_written_once(uri: str) -> None:
    """The next driver begins with the batch again, and goes on."""
    write_both(uri)
    graph = omnigraph.open(uri)
    write_people(graph, 2, "fay")
    assert names_in(graph) == dict.fromkeys(["ada", "bob", "cy", "eva", "fay"], 1)
    assert graph.entity("City", "oslo") is not None
    assert batches_in(graph) == [("people", 0), ("people", 1), ("people", 2)]
    at_rest(uri)


@pytest.mark.parametrize("mode", [Mode.APPEND, pytest.param(Mode.MERGE, marks=pytest.mark.soak)])
def test_a_batch_is_written_once_wherever_its_driver_dies(
    begun: str, tmp_path: Path, mode: Mode
) -> None:
    cuts = cuts_of(begun, tmp_path, mode=mode)
    assert {cut.point for cut in cuts} >= PASSED
    for number, cut in enumerate(cuts):
        uri = copied(begun, tmp_path / f"{number}.omni")
        cut_off(cut, partial(write_both, uri, mode))
        assert_written_once(uri)


def test_a_batch_that_recovery_finishes_is_known(begun: str, tmp_path: Path) -> None:
    # Both heads have moved: recovery publishes the commit, with the batch in it.
    uri = copied(begun, tmp_path / "graph.omni")
    cut_off(Cut(Failpoint.WRITE_AFTER_EACH_APPLY, 2), partial(write_both, uri))
    graph = omnigraph.open(uri)
    assert batches_in(graph) == [("people", 0), ("people", 1)]
    [record] = graph.streams.list()
    assert (record.batch, record.commit_id) == (batch_of(1), graph.baseline())
    assert not write_both(uri)


def test_the_first_batch_of_a_stream_is_written_once(tmp_path: Path) -> None:
    start = furnished(str(tmp_path / "start.omni")).uri
    first = partial(_write_first, copied(start, tmp_path / "traced.omni"))
    for number, cut in enumerate(trace(first)):
        uri = copied(start, tmp_path / f"{number}.omni")
        cut_off(cut, partial(_write_first, uri))
        _write_first(uri)
        assert batches_in(omnigraph.open(uri)) == [("people", 0)]


def _write_first(uri: str) -> None:
    # Without rows: it makes a commit all the same.
    writer_of(omnigraph.open(uri)).write(batch_of(0), people())


def test_a_batch_without_rows_is_recorded_once(begun: str, tmp_path: Path) -> None:
    cuts = trace(partial(_write_nothing, copied(begun, tmp_path / "traced.omni")))
    points = {cut.point for cut in cuts}
    assert points >= {Failpoint.STREAM_AFTER_LOOKUP, Failpoint.APPLY_AFTER_COMMIT}
    for number, cut in enumerate(cuts):
        uri = copied(begun, tmp_path / f"{number}.omni")
        cut_off(cut, partial(_write_nothing, uri))
        _write_nothing(uri)
        graph = omnigraph.open(uri)
        assert [record.batch for record in graph.streams.list()] == [batch_of(1)]
        write_people(graph, 2, "fay")
        assert batches_in(graph) == [("people", 0), ("people", 2)]
        at_rest(uri)


def test_a_driver_that_sleeps_records_a_batch_without_rows(begun: str, tmp_path: Path) -> None:
    cuts = trace(partial(_write_nothing, copied(begun, tmp_path / "traced.omni")))
    for number, cut in enumerate(cuts):
        uri = copied(begun, tmp_path / f"{number}.omni")

        def meanwhile(uri: str = uri) -> None:
            much_later(uri).load({"City": [{"name": "rival"}]})

        with sleeping_at(cut, meanwhile):
            _write_nothing(uri)
        graph = omnigraph.open(uri)
        assert [record.batch for record in graph.streams.list()] == [batch_of(1)]
        assert graph.entity("City", "rival") is not None
        at_rest(uri)


def _write_nothing(uri: str) -> None:
    writer_of(omnigraph.open(uri)).write(batch_of(1), people())


@pytest.mark.parametrize("points", [SHARP, pytest.param(Failpoint, marks=pytest.mark.soak)])
def test_a_batch_is_written_once_wherever_its_driver_is_killed(
    begun: str, tmp_path: Path, points: Collection[Failpoint]
) -> None:
    cuts = [cut for cut in cuts_of(begun, tmp_path) if cut.point in set(points)]
    for number, cut in enumerate(cuts):
        uri = copied(begun, tmp_path / f"{number}.omni")
        put_to_death(cut, write_both, uri)
        assert_written_once(uri)
