"""What a one-row write costs storage: the same at any depth, size and coverage of indexes."""

import pyarrow as pa
import pytest

from omnigraph.storage import lookups
from omnigraph.storage.indexes import IndexSpec, stage_indexes
from omnigraph.storage.staging import locate, stage_append, stage_delete, stage_upsert
from omnigraph.storage.store import Store
from omnigraph.storage.tables import Table
from tests.support.counting import Counted
from tests.support.tables import LOCATION, applied, create, in_fragments, rows

DEPTHS = (10, 100)


@pytest.fixture
def store(root: str) -> Store:
    return Store.open(root)


def grown(table: Table, depth: int, *, first: int = 0) -> Table:
    for number in range(first, depth):
        table = applied(stage_append(table, rows([f"k{number}"])))
    return table


def warm(store: Store, ref: str | None) -> Table:
    """The newest version through handles and caches that were used before."""
    store.tables.head_version(LOCATION, ref=ref)
    table = store.tables.open_latest(LOCATION, ref=ref)
    locate(table, pa.array(["s1", "s9"]))
    return table


def indexed(table: Table) -> Table:
    return applied(stage_indexes(table, [IndexSpec("id")]))


def insert(asked: Counted, store: Store, ref: str | None, version: int) -> dict[str, int]:
    """What each part of a one-row insert asks of S3."""
    cost = {}
    asked.take()
    assert store.tables.head_version(LOCATION, ref=ref) == version
    cost["head"] = asked.take()
    table = store.tables.open(LOCATION, ref=ref, version=version)
    cost["open"] = asked.take()
    assert locate(table, pa.array([f"new{version}"])).num_rows == 0
    cost["look up"] = asked.take()
    staged = stage_append(table, rows([f"new{version}"]))
    cost["stage"] = asked.take()
    applied(staged)
    cost["apply"] = asked.take()
    return cost


def plain(table: Table) -> Table:
    return table


@pytest.mark.parametrize(
    ("finish", "ref"),
    [
        (indexed, "draft"),
        (plain, None),
        pytest.param(indexed, None, marks=pytest.mark.soak),
        pytest.param(plain, "draft", marks=pytest.mark.soak),
    ],
)
def test_a_one_row_insert_asks_the_same_at_any_depth(asked, store, finish, ref):
    table = finish(create(store, [f"s{number}" for number in range(100)]))
    if ref is not None:
        store.refs.create(LOCATION, ref, source=None, version=table.version)
    table = warm(store, ref)
    depth, costs = 0, []
    for each in DEPTHS:
        table, depth = grown(table, each, first=depth), each
        costs.append(insert(asked, store, ref, table.version))
        table = store.tables.open_latest(LOCATION, ref=ref)

    # A ref may be made again under its name, so one request looks whether its version is the same.
    expected = {"head": 1, "open": int(ref is not None), "look up": 0, "stage": 1, "apply": 3}
    assert costs == [expected, expected]


def test_a_one_row_upsert_and_delete_ask_the_same_at_any_depth(asked, store):
    indexed(create(store, [f"s{number}" for number in range(1000)]))
    table = warm(store, None)
    depth, costs = 0, []
    for each in DEPTHS:
        table, depth = grown(table, each, first=depth), each
        # The index's own pages, and how the base's file is laid out, are read once for all.
        locate(table, pa.array(["s1"]))
        asked.take()
        changes = [
            stage_upsert(table, rows([f"k{each - 1}"], n=1)),
            stage_upsert(table, rows([f"s{each}"], n=1)),
            stage_delete(table, ids=[f"k{each - 2}"]),
            stage_delete(table, ids=[f"s{each + 1}"]),
        ]
        costs.append(asked.take())
        assert len({id(change) for change in changes}) == 4

    assert costs[0] == costs[1] <= 12


def test_what_others_wrote_is_read_once(asked, store):
    table = grown(create(store, "ab"), 20)
    elsewhere = Store.open(store.root.uri)
    opened = elsewhere.tables.open_latest(LOCATION, ref=None)
    locate(opened, pa.array(["nobody"]))
    grown(table, 22, first=20)
    opened = elsewhere.tables.open_latest(LOCATION, ref=None)

    asked.take()
    locate(opened, pa.array(["nobody"]))
    assert asked.take() == 2
    locate(opened, pa.array(["nobody"]))
    assert asked.take() == 0


@pytest.mark.parametrize("size", [1_000, 100_000])
def test_a_lookup_through_an_index_asks_the_same_whatever_the_size(asked, store, size):
    table = indexed(create(store, [f"s{number:06}" for number in range(size)]))
    costs = []
    for number in (1, 2, size - 2, size - 1):
        asked.take()
        assert locate(table, pa.array([f"s{number:06}"])).num_rows == 1
        costs.append(asked.take())

    # Beside the row: the top of the index once, then each of its pages once.
    assert costs[1] == costs[3] == 1
    assert costs[2] <= 3
    assert costs[0] <= 7
    asked.take()
    assert locate(table, pa.array(["s000001x"])).num_rows == 0
    assert asked.take() == 0


def test_many_fragments_are_looked_up_without_asking_about_each(asked, store, monkeypatch):
    monkeypatch.setattr(lookups, "OPENED_FRAGMENTS_MAX", 3)
    table = indexed(in_fragments(store, *[[f"a{n}", f"b{n}"] for n in range(6)]))
    table = grown(table, 10)
    assert locate(table, pa.array(["a1", "k3"])).num_rows == 2

    asked.take()
    assert locate(table, pa.array(["nobody"])).num_rows == 0
    assert asked.take() == 0
    assert locate(table, pa.array(["b5", "k4"])).num_rows == 2
    assert asked.take() <= 3
