"""A manifest that cannot be right is refused by name, and is not taken for one that is missing."""

import shutil
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import omnigraph
from omnigraph.errors import ErrorCode, NotFoundError, OmnigraphError, StorageError
from omnigraph.manifest.format import CURRENT
from omnigraph.manifest.layout import MANIFEST, manifest_schema
from omnigraph.model.names import MAIN
from tests.support.publishing import PERSON, SCHEMA, advance, manifest_at


@pytest.fixture
def graph(tmp_path: Path) -> omnigraph.Graph:
    return omnigraph.init(tmp_path / "graph.omni", SCHEMA)


def rewrite(graph: omnigraph.Graph, rows: list[dict[str, Any]]) -> None:
    table = pa.Table.from_pylist(rows, schema=manifest_schema(CURRENT))
    lance.write_dataset(table, f"{graph.uri}/{MANIFEST}", mode="overwrite")


def stored(graph: omnigraph.Graph) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = lance.dataset(f"{graph.uri}/{MANIFEST}").to_table().to_pylist()
    return rows


def assert_refused(graph: omnigraph.Graph, *, read_only: bool) -> None:
    before = sorted(Path(graph.uri).rglob("*"))
    with pytest.raises(OmnigraphError) as refused:
        omnigraph.open(graph.uri, read_only=read_only)
    assert refused.value.code is ErrorCode.CORRUPTED
    assert graph.uri in refused.value.message
    assert refused.value.hint
    assert sorted(Path(graph.uri).rglob("*")) == before


@pytest.mark.parametrize("read_only", [True, False])
def test_a_manifest_without_rows_is_corrupted(graph: omnigraph.Graph, *, read_only: bool) -> None:
    rewrite(graph, [])
    assert_refused(graph, read_only=read_only)


@pytest.mark.parametrize("metadata", ["[]", "7", '"x"', "{}", "no json", None])
@pytest.mark.parametrize("object_type", ["graph_head", "graph_commit"])
def test_a_row_whose_facts_make_no_sense_is_corrupted(
    graph: omnigraph.Graph, object_type: str, metadata: str | None
) -> None:
    rows = stored(graph)
    for row in rows:
        if row["object_type"] == object_type:
            row["metadata"] = metadata
    rewrite(graph, rows)
    assert_refused(graph, read_only=True)


def test_a_table_whose_rows_are_not_counted_is_corrupted(graph: omnigraph.Graph) -> None:
    rewrite(graph, [{**row, "row_count": None} for row in stored(graph)])
    assert_refused(graph, read_only=True)


@pytest.mark.parametrize("read_only", [True, False])
def test_a_manifest_of_zeros_is_not_migrated_as_if_it_were_old(
    graph: omnigraph.Graph, *, read_only: bool
) -> None:
    (newest,) = Path(graph.uri, MANIFEST, "_versions").glob("*.manifest")
    newest.write_bytes(bytes(newest.stat().st_size))
    assert_refused(graph, read_only=read_only)


def test_an_old_version_that_cannot_be_read_is_not_called_missing(graph: omnigraph.Graph) -> None:
    manifest = manifest_at(graph.uri)
    middle = advance(manifest, PERSON)
    advance(manifest, PERSON)
    _, file, _ = sorted(Path(graph.uri, MANIFEST, "_versions").glob("*.manifest"))
    content = file.read_bytes()
    file.write_bytes(b"rubbish")

    reader = manifest_at(graph.uri)
    with pytest.raises(StorageError):
        reader.at_version(MAIN, middle.manifest_version)
    with pytest.raises(StorageError):
        reader.at_commit(middle.commit_id)
    for absent in (0, -1, 99, 1 << 70):
        with pytest.raises(NotFoundError) as refused:
            reader.at_version(MAIN, absent)
        assert refused.value.code is ErrorCode.VERSION_NOT_FOUND

    file.write_bytes(content)
    assert reader.at_commit(middle.commit_id).head == middle


def test_a_graph_that_lost_its_manifest_is_no_place_for_another(graph: omnigraph.Graph) -> None:
    shutil.rmtree(Path(graph.uri, MANIFEST))
    assert_refused(graph, read_only=True)
    before = sorted(Path(graph.uri).rglob("*"))
    with pytest.raises(StorageError, match="__manifest is missing") as refused:
        omnigraph.init(graph.uri, SCHEMA)
    assert refused.value.code is ErrorCode.CORRUPTED
    assert sorted(Path(graph.uri).rglob("*")) == before
