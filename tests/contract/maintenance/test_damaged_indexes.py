"""Damaged indexes: every answer is the same without them, a warning names them, and check does."""

import logging
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

import omnigraph
from omnigraph.errors import StorageError
from omnigraph.graph import Graph
from omnigraph.storage.selections import SELECTED_TABLE_ROWS_MIN
from tests.support.crashes import copied

SCHEMA: Final = """
node Item { name: String @key  size: I64 @index  code: I64? @unique }
edge Near: Item -> Item
"""
COUNT: Final = SELECTED_TABLE_ROWS_MIN + 500
"""Rows of which a filter on an index finds a few."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> str:
    graph = omnigraph.init(tmp_path_factory.mktemp("damage") / "graph.omni", SCHEMA)
    items = [{"name": f"i{n:04}", "size": n % 1000, "code": n} for n in range(COUNT)]
    edges = [{"src": f"i{n:04}", "dst": f"i{n + 1:04}"} for n in range(COUNT - 1)]
    graph.load({"Item": items, "Near": edges}, engine="local")
    # Two fragments without an index follow the indexed one.
    for name in ("late", "later"):
        graph.mutate(f'query q() {{ insert Item {{ name: "{name}" size: 7 }} }}')
    return graph.uri


def _lose(folder: Path) -> None:
    shutil.rmtree(folder)


def _garble(folder: Path) -> None:
    for file in folder.iterdir():
        file.write_bytes(b"rubbish" * 200)


def _truncate(folder: Path) -> None:
    for file in folder.iterdir():
        file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


DAMAGES: Final[dict[str, Callable[[Path], None]]] = {
    "lost": _lose,
    "garbled": _garble,
    "truncated": _truncate,
}


def damage(uri: str, how: Callable[[Path], None]) -> int:
    folders = [path for path in Path(uri).rglob("_indices/*") if path.is_dir()]
    for folder in folders:
        how(folder)
    return len(folders)


def _rows(text: str) -> Callable[[Graph], object]:
    return lambda graph: sorted(map(repr, graph.query(f"query q() {{ {text} }}").rows()))


def _written(text: str) -> Callable[[Graph], object]:
    return lambda graph: graph.mutate(f"query q() {{ {text} }}").changes


def _loaded(mode: str, *names: str) -> Callable[[Graph], object]:
    rows = {"Item": [{"name": name, "size": 1} for name in names]}
    return lambda graph: graph.load(rows, mode=mode, index=False, engine="local").changes


# fmt: off
READS: Final[dict[str, Callable[[Graph], Any]]] = {
    "a key":        _rows('match { $i: Item { name: "i0007" } } return { $i.size }'),
    "a property":   _rows("match { $i: Item { size: 7 } } return { $i.name }"),
    "a range":      _rows("match { $i: Item  $i.size < 3 } return { $i.name }"),
    "an inequality": _rows("match { $i: Item  $i.size != 3 } return { count($i) }"),
    "a path":       _rows('match { $i: Item { name: "i0007" }  $i near $j } return { $j.name }'),
    "an entity":    lambda graph: graph.entity("Item", "i0009"),
}
WRITES: Final[dict[str, Callable[[Graph], Any]]] = {
    "an update":    _written("update Item set { size: 5 } where size = 7"),
    "a delete":     _written("delete Item where size = 7"),
    "a key delete": _written('delete Item where name = "i0011"'),
    "an insert":    _written('insert Item { name: "new" size: 1 code: -1 }'),
    "an upsert":    _loaded("merge", "i0012", "new"),
    "an append":    _loaded("append", "new"),
}
# fmt: on


@pytest.fixture(scope="module")
def right(whole: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """What each use finds or changes through sound indexes."""
    folder = tmp_path_factory.mktemp("right")
    return {name: read(omnigraph.open(whole)) for name, read in READS.items()} | {
        name: write(omnigraph.open(copied(whole, folder / f"{number}.omni")))
        for number, (name, write) in enumerate(WRITES.items())
    }


@pytest.mark.parametrize("how", DAMAGES)
def test_every_use_of_a_damaged_index_is_answered_by_a_scan(whole, right, tmp_path, how, caplog):
    read_only = copied(whole, tmp_path / "read.omni")
    assert damage(read_only, DAMAGES[how]) == 7
    for name, read in READS.items():
        assert read(omnigraph.open(read_only)) == right[name], name
    for number, (name, write) in enumerate(WRITES.items()):
        uri = copied(whole, tmp_path / f"{number}.omni")
        damage(uri, DAMAGES[how])
        assert write(omnigraph.open(uri)) == right[name], name
    warnings = [each for each in caplog.records if each.levelno == logging.WARNING]
    assert warnings
    assert all("omnigraph index --rebuild" in each.getMessage() for each in warnings)


def test_check_finds_a_damaged_index_and_a_rebuild_mends_it(whole, tmp_path, caplog):
    graph = omnigraph.open(copied(whole, tmp_path / "graph.omni"))
    damage(graph.uri, _garble)
    assert len(graph.check().findings) == 7

    graph.ensure_indices(rebuild=True, engine="local")

    fresh = omnigraph.open(graph.uri)
    assert fresh.check().findings == ()
    caplog.clear()
    assert READS["a property"](fresh) == READS["a property"](omnigraph.open(whole))
    assert caplog.records == []


def test_lost_rows_are_still_an_error_and_the_first_one(whole, tmp_path, caplog):
    graph = omnigraph.open(copied(whole, tmp_path / "graph.omni"))
    damage(graph.uri, _lose)
    for path in Path(graph.uri).rglob("nodes/*/data/*.lance"):
        path.unlink()

    with pytest.raises(StorageError):
        READS["a property"](graph)
    assert caplog.records == []


@pytest.mark.usefixtures("spark")
def test_spark_reads_past_a_damaged_index(whole, right, tmp_path):
    graph = omnigraph.open(copied(whole, tmp_path / "graph.omni"))
    damage(graph.uri, _lose)
    rows = graph.query(
        "query q() { match { $i: Item { size: 7 } } return { $i.name } }", engine="spark"
    ).rows()
    assert sorted(map(repr, rows)) == right["a property"]
