"""Pinned reads: exactly the rows of one version, whatever happens after."""

import pytest

from omnigraph.errors import ErrorCode, NotFoundError, StorageError
from omnigraph.storage import filters
from omnigraph.storage.staging import stage_append, stage_delete, stage_overwrite, stage_upsert
from omnigraph.storage.tables import ROW_ADDRESS, ROW_ID
from tests.support.tables import LOCATION, applied, create, ids, in_fragments, latest, numbers, rows


def test_a_new_table_is_read_back(table, elsewhere):
    found = elsewhere.tables.open(LOCATION, ref=None, version=1)

    assert found.schema.equals(table.schema)
    assert found.read().equals(rows("abc"))


def test_a_pinned_table_keeps_its_rows_while_the_head_moves_on(table, store, elsewhere):
    moved = applied(stage_upsert(table, rows("ax", n=1)))
    moved = applied(stage_delete(moved, ids=["b"]))
    moved = applied(stage_overwrite(moved, rows("z")))

    expected = [{"a": 0, "b": 0, "c": 0}, {"a": 1, "b": 0, "c": 0, "x": 1}]
    expected += [{"a": 1, "c": 0, "x": 1}, {"z": 0}]
    for each in (store, elsewhere):
        opened = [each.tables.open(LOCATION, ref=None, version=v) for v in range(1, 5)]
        assert [numbers(pinned) for pinned in opened] == expected
    assert numbers(table) == expected[0]


def test_each_ref_has_the_version_it_started_at_and_its_own(table, store, elsewhere):
    second = applied(stage_append(table, rows("x")))
    draft = store.refs.create(LOCATION, "review/1", source=None, version=second.version)
    applied(stage_append(draft, rows("y")))

    def versions(ref):
        numbers = (-1, 0, 1, 2, 3, 4, 1 << 64)
        return [n for n in numbers if elsewhere.tables.has_version(LOCATION, ref=ref, version=n)]

    assert (versions(None), versions("review/1"), versions("gone")) == ([1, 2], [2, 3], [])


def test_columns_are_read_by_name_in_the_order_asked_for(table):
    assert table.read(["note", "id"]).column_names == ["note", "id"]
    assert table.read([ROW_ID, ROW_ADDRESS]).column_names == [ROW_ID, ROW_ADDRESS]


def test_a_filter_keeps_the_rows_it_matches(table):
    table = applied(stage_append(table, rows("xy", n=7)))

    assert ids(table, "n = 7") == ["x", "y"]
    assert ids(table, filters.text_in("id", ["a", "y", "nobody"])) == ["a", "y"]
    assert ids(table, "n > 7") == []
    assert table.count_rows("n = 7") == 2
    assert table.count_rows() == 5


def test_a_filter_may_use_a_column_that_is_not_read(table):
    assert table.read(["n"], filter_text="id = 'a'").to_pylist() == [{"n": 0}]


def test_only_the_fragments_asked_for_are_read(store):
    table = in_fragments(store, "ab", "c", "de")

    assert len(table.fragments()) == 3
    assert table.read(["id"], fragments=[2, 0])["id"].to_pylist() == ["d", "e", "a", "b"]
    assert table.read(["id"], fragments=[1], filter_text="id = 'a'").num_rows == 0
    assert table.read(["id"], fragments=[]).num_rows == 0


def test_a_scan_streams_the_same_rows(table):
    assert table.scan(["id"]).read_all()["id"].to_pylist() == ["a", "b", "c"]


def test_the_newest_version_is_found_without_a_cache(table, elsewhere):
    assert latest(elsewhere).version == 1
    applied(stage_append(table, rows("x")))

    assert latest(elsewhere).version == 2
    assert ids(latest(elsewhere)) == ["a", "b", "c", "x"]


def test_the_number_of_the_newest_version_is_found_without_a_cache(table, store, elsewhere):
    assert elsewhere.tables.head_version(LOCATION, ref=None) == 1
    second = applied(stage_append(table, rows("x")))
    draft = store.refs.create(LOCATION, "review/1", source=None, version=second.version)
    assert elsewhere.tables.head_version(LOCATION, ref="review/1") == 2
    applied(stage_append(draft, rows("y")))

    for each in (store, elsewhere):
        assert each.tables.head_version(LOCATION, ref=None) == 2
        assert each.tables.head_version(LOCATION, ref="review/1") == 3


@pytest.mark.usefixtures("table")
def test_the_newest_version_of_a_ref_that_was_made_again_is_its_own(store, elsewhere):
    draft = store.refs.create(LOCATION, "draft", source=None, version=1)
    applied(stage_append(draft, rows("y")))
    assert elsewhere.tables.head_version(LOCATION, ref="draft") == 2
    store.refs.delete(LOCATION, "draft")

    with pytest.raises(StorageError):
        elsewhere.tables.head_version(LOCATION, ref="draft")
    store.refs.create(LOCATION, "draft", source=None, version=1)
    assert elsewhere.tables.head_version(LOCATION, ref="draft") == 1


def test_an_empty_table_has_a_schema_and_no_rows(store):
    table = create(store)

    assert table.read().equals(rows(""))
    assert (table.count_rows(), table.fragments()) == (0, ())


def test_a_table_exists_once_it_was_committed(store, elsewhere):
    assert not store.tables.exists(LOCATION)
    create(store, "a")

    assert store.tables.exists(LOCATION)
    assert elsewhere.tables.exists(LOCATION)
    assert not store.tables.exists(LOCATION[:-1])


def test_a_missing_table_is_not_found(store):
    for opening in (
        lambda: store.tables.open(LOCATION, ref=None, version=1),
        lambda: store.tables.open_latest(LOCATION, ref=None),
        lambda: store.tables.head_version(LOCATION, ref=None),
    ):
        with pytest.raises(NotFoundError, match=LOCATION) as missing:
            opening()
        assert missing.value.code is ErrorCode.NOT_FOUND


def test_a_table_that_was_missing_is_found_once_it_is_there(store, elsewhere):
    with pytest.raises(NotFoundError):
        latest(elsewhere)
    create(store, "a")

    assert ids(latest(elsewhere)) == ["a"]


@pytest.mark.usefixtures("table")
@pytest.mark.parametrize("version", [0, 2, 99, -1, 2**63, 2**64])
def test_a_missing_version_is_a_storage_error_that_names_it(store, version):
    with pytest.raises(StorageError) as missing:
        store.tables.open(LOCATION, ref=None, version=version)

    assert f"v{version}" in missing.value.message


@pytest.mark.usefixtures("table")
def test_a_missing_ref_is_a_storage_error(store):
    with pytest.raises(StorageError):
        store.tables.open(LOCATION, ref="nowhere", version=1)
    with pytest.raises(StorageError):
        store.tables.open_latest(LOCATION, ref="nowhere")
    with pytest.raises(StorageError):
        store.tables.head_version(LOCATION, ref="nowhere")
