"""What holds of exports in any object store: they are whole, replaced in one step, and load."""

from __future__ import annotations

from pathlib import Path

import pytest

import omnigraph
from omnigraph.errors import AlreadyExistsError, InvalidInputError, NotFoundError
from omnigraph.storage.meter import Meter
from omnigraph.storage.objects import Objects
from omnigraph.storage.roots import Root
from tests.contract.export.graphs import SMALL, exported, small_graph


def check_exports(folder: str, place: Path, engine: str) -> None:
    """Export a small graph into a folder of a store, replace it, and load it again."""
    graph = small_graph(place / "small.omni")
    exported(graph, place / "here.jsonl", engine="local")
    objects = Objects(Root.in_store(folder), Meter())
    for format_ in ("csv", "parquet", "ndjson"):
        # Where NDJSON is one file, the name says so.
        is_file = (engine, format_) == ("local", "ndjson")
        target = f"{folder}/{format_} %20 ä{'.jsonl' if is_file else ''}"
        exported(graph, target, format=format_, engine=engine)
        with pytest.raises(AlreadyExistsError, match="exists"):
            exported(graph, target, format=format_, engine=engine)
        result = exported(graph, target, format=format_, engine=engine, replaces=True)
        if not is_file:
            name = target.rpartition("/")[2]
            stored = {f"{name}/{file}" for file in (*result.files, "_export.json")}
            assert set(objects.list(name)) == stored, "nothing is left of the first one"
        copy = omnigraph.init(place / f"{format_}.omni", SMALL)
        copy.load(target, engine=engine)
        exported(copy, place / f"{format_}.jsonl", engine="local")
        assert (place / f"{format_}.jsonl").read_bytes() == (place / "here.jsonl").read_bytes()


def check_lists(folder: str, place: Path) -> None:
    """The list of an export decides, and is stored by one of several only."""
    graph = small_graph(place / "lists.omni")
    objects = Objects(Root.in_store(folder), Meter())
    objects.put("there/_unfinished.01M7HSF4M9RTNMKYE2FPY7VRJZ.json", b"{}")
    objects.put("there/Person.01M7HSF4M9RTNMKYE2FPY7VRJZ.csv", b"name\nx\n")
    copy = omnigraph.init(place / "copy.omni", SMALL)
    for named in ("there", "there/*.csv", "*"):
        with pytest.raises(InvalidInputError, match="is not complete"):
            copy.load(f"{folder}/{named}")
    lost, *_ = exported(graph, f"{folder}/there", format="csv").files
    objects.delete(f"there/{lost}")
    with pytest.raises(NotFoundError, match=lost):
        copy.load(f"{folder}/there")

    assert objects.put_if_absent("list", b"1")
    assert not objects.put_if_absent("list", b"2")
    first = objects.read("list")
    assert first is not None
    assert objects.update("list", b"3", expecting=first.tag)
    assert not objects.update("list", b"4", expecting=first.tag)
    now = objects.read("list")
    assert now is not None
    assert now.data == b"3"
    objects.delete_all(["missing", "list", "there/missing"])
    assert not objects.exists("list")
    assert not objects.update("list", b"5", expecting=now.tag)
