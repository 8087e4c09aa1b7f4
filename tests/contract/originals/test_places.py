"""Imported graphs in other places: moved, and in buckets."""

import shutil
from pathlib import Path

import pytest

import omnigraph
from tests.contract.originals.test_import import assert_complete
from tests.support.crashes import upload_graph
from tests.support.originals import RELEASES, unpack


@pytest.mark.parametrize("release", RELEASES)
def test_moved_import_is_complete(release, tmp_path):
    """Nothing of it is left where it was made, and nothing of its source."""
    source, made = unpack(f"{release}/graph", tmp_path), tmp_path / "made.omni"
    omnigraph.import_original(source, made)
    shutil.rmtree(source)
    moved = made.rename(tmp_path / "moved to.omni")
    graph = omnigraph.open(moved)
    assert_complete(graph, release, tmp_path)
    for branch in graph.branches.list():
        graph.mutate('query q() { insert City { name: "next" } }', branch=branch)
    assert graph.check(history=True).is_sound


@pytest.mark.parametrize("places", ["bucket to disk", "disk to bucket"])
def test_import_between_directories_and_buckets(places, tmp_path, s3_bucket):
    source, target = str(unpack("0.8.0/graph", tmp_path)), str(tmp_path / "ours.omni")
    if places == "bucket to disk":
        local, source = source, f"s3://{s3_bucket}/old/graph.omni"
        upload_graph(local, source)
        shutil.rmtree(local)
    else:
        target = f"s3://{s3_bucket}/new/ours.omni"
    omnigraph.import_original(source, target)
    graph = omnigraph.open(target)
    assert_complete(graph, "0.8.0", Path(tmp_path))
    assert graph.check(history=True).is_sound
