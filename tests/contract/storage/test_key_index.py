"""One row by its id, through the pages of an index: the same as a scan finds, without one."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from omnigraph.limits import OPENED_FRAGMENTS_MAX
from omnigraph.storage import key_index, key_pages
from omnigraph.storage.indexes import IndexSpec, stage_indexes
from omnigraph.storage.key_index import find_position, find_row
from omnigraph.storage.lookups import find
from omnigraph.storage.staging import stage_append, stage_delete, stage_upsert
from omnigraph.storage.store import Store
from omnigraph.storage.tables import ROW_ID, Table
from tests.support.tables import LOCATION, applied, create, in_fragments, rows

COLUMNS = ["n", "note"]
FIRST = [f"k{number:05}" for number in range(9_000)]
SECOND = [f"{place}{number:04}" for number in range(3_000) for place in "äz"]


@pytest.fixture
def worn(local: Store) -> Table:
    """Two indexed fragments of several pages, of which rows were deleted, updated and replaced."""
    table = applied(stage_append(create(local, FIRST), rows(SECOND, n=1)))
    table = applied(stage_indexes(table, [IndexSpec("id")]))
    table = applied(stage_delete(table, ids=[*FIRST[100:200], *SECOND[::7], FIRST[-1]]))
    table = applied(stage_upsert(table, rows(FIRST[5_000:5_010], n=2)))
    # Ids that were deleted come again, with other row ids.
    return applied(stage_append(table, rows([*FIRST[100:105], "new"], n=3)))


def asked_of_pages(table: Table, id_: str) -> list[dict[str, Any]]:
    row = find_row(table, id_, COLUMNS)
    assert row is not None
    assert row.schema.names == COLUMNS
    found: list[dict[str, Any]] = row.to_pylist()
    return found


def test_the_index_of_a_worn_table_finds_each_row_that_is_left(worn: Table) -> None:
    covered = {0, 1}
    every = worn.read(["id", *COLUMNS], fragment_ids=covered).to_pylist()
    left = {row["id"]: [{name: row[name] for name in COLUMNS}] for row in every}
    assert len(left) > 14_000
    asked = [*FIRST[::11], *FIRST[95:206], *SECOND[::13], *FIRST[4_995:5_015], FIRST[-1], "", "zz"]
    assert {id_: asked_of_pages(worn, id_) for id_ in asked} == {
        id_: left.get(id_, []) for id_ in asked
    }


def test_a_lookup_joins_what_the_index_knows_with_what_was_written_since(worn: Table) -> None:
    for id_, n in ((FIRST[0], 0), (FIRST[101], 3), (FIRST[5_001], 2), (SECOND[1], 1), ("new", 3)):
        found = find(worn, "id", [id_], columns=["id", "n"])
        assert found.to_pylist() == [{"id": id_, "n": n}]
    assert find(worn, "id", [FIRST[150]], columns=["id"]).num_rows == 0


def test_no_scan_is_made_for_a_row_that_the_index_covers(
    worn: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(Table, "_scanner")
    assert asked_of_pages(worn, FIRST[77]) == [{"n": 0, "note": f"note of {FIRST[77]}"}]
    assert find(worn, "id", [FIRST[78]], columns=["n"]).num_rows == 1


def test_many_threads_look_up_rows_at_once(worn: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    # Nothing stays in memory: each lookup reads a page.
    monkeypatch.setattr(key_pages, "KEPT_KEY_PAGES_BYTES_MAX", 0)
    asked = FIRST[:100] * 4
    with ThreadPoolExecutor(4) as pool:
        found = pool.map(partial(find_row, worn, columns=["note"]), asked)
        notes = [row.to_pylist() for row in found if row is not None]
    assert notes == [[{"note": f"note of {id_}"}] for id_ in asked]


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    """The numbers of the pages of each read."""
    reads: list[list[int]] = []
    original = key_pages._read_pages

    def seen(outline: Any, numbers: range) -> Any:
        reads.append(list(numbers))
        return original(outline, numbers)

    monkeypatch.setattr(key_pages, "_read_pages", seen)
    return reads


def test_pages_that_were_read_stay_up_to_a_number_of_bytes(
    worn: Table, read: list[list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(2):
        for id_ in (FIRST[0], FIRST[1], SECOND[-2]):
            asked_of_pages(worn, id_)
    assert read == [[0], [2, 3]]
    monkeypatch.setattr(key_pages, "KEPT_KEY_PAGES_BYTES_MAX", 1)
    for id_ in (FIRST[5_100], FIRST[0], FIRST[0]):
        asked_of_pages(worn, id_)
    assert read[2:] == [[0, 1, 2, 3], [0], [0]]


def test_each_time_that_a_page_is_missing_twice_as_many_are_read(
    local: Store, read: list[list[int]]
) -> None:
    ids = [f"k{number:06}" for number in range(49_152)]
    table = applied(stage_indexes(create(local, ids), [IndexSpec("id")]))
    for page in (0, 11, 4, 7, 9, 3):
        assert len(asked_of_pages(table, ids[4_096 * page + 7])) == 1
    assert read == [[0], [10, 11], [4, 5, 6, 7], [8, 9, 10, 11], [*range(12)]]


@pytest.mark.parametrize("columns", [[ROW_ID], ["id", ROW_ID]])
def test_what_fragments_do_not_store_is_left_to_a_scan(worn: Table, columns: list[str]) -> None:
    assert find_row(worn, FIRST[0], columns) is None


def test_an_index_of_another_form_is_left_to_a_scan(
    worn: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(key_pages, "_read_outline", lambda _: None)
    assert find_row(worn, FIRST[0], COLUMNS) is None
    assert find(worn, "id", [FIRST[0]], columns=["n"]).to_pylist() == [{"n": 0}]


def test_a_row_of_another_id_is_not_believed(worn: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    original = key_pages.KeyPages.find
    monkeypatch.setattr(
        key_pages.KeyPages, "find", lambda self, folder, _: original(self, folder, FIRST[1])
    )
    assert find_row(worn, FIRST[0], COLUMNS) is None
    assert find(worn, "id", [FIRST[0]], columns=["id"]).to_pylist() == [{"id": FIRST[0]}]


def test_positions_are_compared_with_ids_first_by_the_row_and_then_in_memory(
    worn: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = applied(stage_indexes(worn, [IndexSpec("id")]))
    taken: list[str] = []
    take, found = key_index._take, key_pages.KeyPages.find

    def counted_take(table: Table, places: Any, id_: str, columns: Any) -> Any:
        taken.append(id_)
        return take(table, places, id_, columns)

    monkeypatch.setattr(key_index, "_take", counted_take)
    monkeypatch.setattr(
        key_pages.KeyPages, "find", lambda self, folder, _: found(self, folder, FIRST[1])
    )
    assert [find_position(whole, id_) for id_ in (FIRST[0], FIRST[2], FIRST[3])] == [None] * 3
    assert find_position(whole, FIRST[1]) is not None
    assert taken == [FIRST[0]]


def test_a_damaged_index_is_avoided(worn: Table, caplog: pytest.LogCaptureFixture) -> None:
    root = Path(worn.address.root.uri)
    for page in (root / LOCATION / "_indices").rglob("page_lookup.lance"):
        page.unlink()
    opened = Store.open(worn.address.root.uri).tables.open_latest(LOCATION, ref=None)
    assert find(opened, "id", [FIRST[3]], columns=["n"]).to_pylist() == [{"n": 0}]
    assert "an index cannot be read" in caplog.text


def test_a_table_of_many_fragments_is_left_to_a_scan(local: Store) -> None:
    table = in_fragments(local, *([f"{number}"] for number in range(OPENED_FRAGMENTS_MAX + 1)))
    table = applied(stage_indexes(table, [IndexSpec("id")]))
    assert find_row(table, "5", COLUMNS) is None
    assert find(table, "id", ["5"], columns=["id"]).num_rows == 1


def test_a_table_without_an_index_of_ids_is_left_to_a_scan(local: Store) -> None:
    table = applied(stage_indexes(create(local, "abc"), [IndexSpec("note")]))
    assert find_row(table, "a", COLUMNS) is None


def test_the_position_of_a_row_in_a_scan_is_found_where_the_index_covers_every_fragment(
    worn: Table,
) -> None:
    assert find_position(worn, FIRST[0]) is None
    whole = applied(stage_indexes(worn, [IndexSpec("id")]))
    order = whole.read(["id"])["id"].to_pylist()
    asked = [*FIRST[::97], *FIRST[98:203], *SECOND[::101], *FIRST[4_998:5_003], "new", "nobody"]
    positions = {id_: find_position(whole, id_) for id_ in asked}
    assert positions == {id_: order.index(id_) if id_ in order else None for id_ in asked}
    assert None in positions.values()
