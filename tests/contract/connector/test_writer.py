"""Saving, once executors have left their rows: what landed is done, whatever comes after it."""

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql.types import StringType, StructField, StructType

from omnigraph.clock import SystemClock
from omnigraph.connector.writer import LoadWriter, SaveTask
from omnigraph.errors import IntegrityError, StorageError
from omnigraph.graph import Graph
from omnigraph.load.spark.scratch import Scratch
from omnigraph.model.commits import OperationKind
from omnigraph.model.names import MAIN
from omnigraph.policy.authority import Access
from omnigraph.recovery.scratch import find_scratch
from omnigraph.storage.objects import Objects
from omnigraph.transaction.writes import WriteRequest
from tests.support.writers import furnished

COLUMNS = StructType([StructField("name", StringType())])


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return furnished(str(tmp_path / "graph.omni"))


@pytest.fixture(autouse=True)
def _stuck(monkeypatch: pytest.MonkeyPatch) -> None:
    """No file of scratch can be removed."""

    def fail(*_: object) -> None:
        message = "the disk is read-only"
        raise StorageError(message)

    monkeypatch.setattr(Objects, "clear", fail)


def save(graph: Graph, name: str) -> None:
    scratch = Scratch(graph._store.root, SystemClock().ulid())
    order = WriteRequest(OperationKind.LOAD, MAIN)
    writer = LoadWriter(SaveTask("Person", COLUMNS, order, "append", scratch, Access()))
    writer.commit([writer.write(iter([pa.record_batch({"name": [name]})]))])


def test_rows_that_landed_are_saved_though_scratch_stays(
    graph: Graph, caplog: pytest.LogCaptureFixture
) -> None:
    save(graph, "eva")
    assert graph.entity("Person", "eva") is not None
    [left] = find_scratch(graph._store.objects)
    assert f"{left.folder} is left to a later cleanup: the disk is read-only" in caplog.text


def test_scratch_that_stays_does_not_hide_why_rows_were_refused(graph: Graph) -> None:
    with pytest.raises(IntegrityError):
        save(graph, "ada")
