"""Reading what two versions do not share: by its places, or out of whole fragments."""

from pathlib import Path

import pytest

from omnigraph.storage.differences import difference, read_parts
from omnigraph.storage.pairs import Pair, size_of, unequal_pairs
from omnigraph.storage.tables import ROW_ADDRESS, Table
from tests.contract.merge.worlds import change, node, world


def versions(uri: Path) -> tuple[Table, Table]:
    """Twenty rows, of which ten were then changed, one deleted and one added."""
    names = [f"n{number:02}" for number in range(20)]
    graph = world(uri, {"P": {name: node(name) for name in names}, "K": {}})
    before = graph.snapshot()
    change(graph, {"P": {name: node(name, a=2) for name in names[:10]} | {"new": node("new")}})
    change(graph, {"P": {names[19]: None}})
    pins = [each.pin(key) for each in (before, graph.snapshot()) for key in each.pins]
    old, new = (each for each in pins if each.key.type_name == "P")
    tables = graph._store.tables
    first, second = (
        tables.open(each.location, ref=each.ref, version=each.version) for each in (old, new)
    )
    return first, second


@pytest.mark.parametrize("rows_picked_max", [0, 100])
def test_places_may_be_read_beside_rows(tmp_path, monkeypatch, rows_picked_max):
    before, after = versions(tmp_path / "graph")
    module = "omnigraph.storage.differences"
    monkeypatch.setattr(f"{module}.KEYS_PER_LOOKUP_MAX", max(1, rows_picked_max))
    monkeypatch.setattr(f"{module}.PICKED_SHARE_MAX", 0)
    found = difference(before, after)
    for columns in (["id"], ["id", ROW_ADDRESS], ["a", ROW_ADDRESS, "id"]):
        batches = list(read_parts(before, found.before, columns))
        assert {tuple(each.schema.names) for each in batches} == {tuple(columns)}
        ids = sorted(name for each in batches for name in each["id"].to_pylist())
        assert ids == [*(f"n{number:02}" for number in range(10)), "n19"]


def test_metadata_tells_about_how_much_differs(tmp_path):
    before, after = versions(tmp_path / "graph")
    pairs = unequal_pairs(before, after)
    assert sorted(pairs, key=str) == [Pair(0, 0), Pair(None, 1)]
    size = size_of(before, after, pairs)
    # Eleven rows are gone from their places, and as many are in a new fragment.
    assert size.row_count == 22
    assert size.byte_count > 0
    assert unequal_pairs(after, after) == ()
