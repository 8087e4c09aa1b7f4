"""Exports to, and loads from, a stand-in for Google's object store."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import omnigraph
from omnigraph.errors import ErrorCode, NotFoundError
from tests.contract.export.graphs import SMALL, exported, small_graph
from tests.contract.export.stores import check_exports, check_lists
from tests.support.google import GoogleStore, run_google


@pytest.fixture
def google(monkeypatch: pytest.MonkeyPatch) -> Iterator[GoogleStore]:
    with run_google() as store:
        for name, value in store.environment.items():
            monkeypatch.setenv(name, value)
        store.buckets["lake"] = {}
        yield store


def test_an_export_is_whole_and_loads_again(google, tmp_path):
    check_exports("gs://lake/exports", tmp_path, "local")
    assert {key.partition("/")[0] for key in google.buckets["lake"]} == {"exports"}


def test_the_list_of_an_export_decides(google, tmp_path):
    assert google.endpoint
    check_lists("gs://lake/exports", tmp_path)


def test_a_missing_bucket_is_named(google, tmp_path):
    assert google.endpoint
    graph = small_graph(tmp_path / "small.omni")
    for target in ("there", "there.jsonl"):
        with pytest.raises(
            NotFoundError, match=r"gs://none/out.*the bucket does not exist"
        ) as said:
            exported(graph, f"gs://none/out/{target}")
        assert said.value.code is ErrorCode.BUCKET_NOT_FOUND
    with pytest.raises(NotFoundError, match=r"gs://none/out.*the bucket does not exist"):
        omnigraph.init(tmp_path / "copy.omni", SMALL).load("gs://none/out/there")
