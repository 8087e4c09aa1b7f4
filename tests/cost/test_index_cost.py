"""What extending an index costs storage: by the rows it lacks, whatever it covers already."""

import pytest

from omnigraph.storage.indexes import IndexSpec, covered_fragments, stage_indexes
from omnigraph.storage.staging import stage_append
from omnigraph.storage.store import Store
from tests.support.tables import LOCATION, applied, create, in_fragments, rows

ID = IndexSpec("id")


@pytest.fixture
def store(root: str) -> Store:
    return Store.open(root)


def test_an_extension_asks_the_same_whatever_is_covered(asked, store):
    costs = []
    for place, count in enumerate((1, 8)):
        location = f"{LOCATION[:-1]}{place + 1}"
        table = create(store, location=location)
        for number in range(count):
            table = applied(stage_append(table, rows([f"k{number}"])))
        table = applied(stage_indexes(table, [ID]))
        table = applied(stage_append(table, rows(["new"])))
        asked.take()
        staged = stage_indexes(table, [ID])
        costs.append(asked.take())
        assert covered_fragments(applied(staged), ID) == set(range(count + 1))

    # The one new data file is read, and the segment's two files are written.
    assert costs[0] == costs[1] <= 8


def test_what_a_build_asks_grows_by_fragment(asked, store):
    table = in_fragments(store, *[[f"k{number}"] for number in range(8)])
    asked.take()
    staged = stage_indexes(table, [ID])
    whole = asked.take()
    assert covered_fragments(applied(staged), ID) == set(range(8))
    assert whole >= 8
