"""Creating, emptying and replacing a table with one Overwrite."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Final

import lance
import pyarrow as pa
import pytest
from lance import LanceOperation
from lance.fragment import write_fragments

from tests.contract.lance.builders import (
    SCHEMA,
    append,
    commit,
    create,
    create_index,
    delete,
    fragments_of,
    keys_of,
    overwrite,
    staged,
)

RACERS: Final = 4


def test_an_overwrite_without_fragments_creates_an_empty_table(anywhere):
    create(anywhere)

    created = lance.dataset(anywhere)

    assert (created.version, created.count_rows(), created.schema) == (1, 0, SCHEMA)


def test_a_table_created_by_overwrite_has_stable_row_ids_if_asked(uri):
    assert create(uri).has_stable_row_ids


def test_an_overwrite_without_fragments_empties_a_table(anywhere):
    base = create(anywhere, "a")

    commit(base, LanceOperation.Overwrite(SCHEMA, []))

    assert lance.dataset(anywhere).count_rows() == 0


def test_an_emptied_table_can_be_appended_to(uri):
    base = create(uri, "a")
    emptied = commit(base, LanceOperation.Overwrite(SCHEMA, []))

    assert keys_of(commit(emptied, append(emptied, "b"))) == ["b"]


def test_creating_a_table_twice_fails_and_leaves_the_first(anywhere):
    create(anywhere, "a")

    with pytest.raises(OSError, match=r"_versions/0\.manifest was not found"):
        create(anywhere)
    assert keys_of(lance.dataset(anywhere)) == ["a"]


def test_racing_creators_of_a_table_have_exactly_one_winner(anywhere):
    start = Barrier(RACERS)

    def contend(_number: int) -> bool:
        start.wait()
        try:
            create(anywhere)
        except OSError:
            return False
        return True

    with ThreadPoolExecutor(RACERS) as threads:
        assert sum(threads.map(contend, range(RACERS))) == 1
    assert lance.dataset(anywhere).version == 1


def test_an_overwrite_keeps_older_versions_readable(uri):
    base = create(uri, "a")

    landed = commit(base, overwrite(base, "b"))

    assert keys_of(landed.checkout_version(1)) == ["a"]


def test_an_overwrite_may_change_the_schema(uri):
    base = create(uri, "a")
    other = pa.table({"title": ["x"]})
    fragments = write_fragments(other, base, schema=other.schema, mode="overwrite")

    landed = commit(base, LanceOperation.Overwrite(other.schema, fragments))

    assert landed.to_table() == other


def test_an_overwrite_keeps_stable_row_ids_on(uri):
    base = create(uri, "a")

    assert commit(base, overwrite(base, "b")).has_stable_row_ids


def test_an_overwrite_drops_every_index(uri):
    base = create(uri, "a")
    base = commit(base, create_index(base))

    landed = commit(base, LanceOperation.Overwrite(SCHEMA, fragments_of(base)))

    assert landed.describe_indices() == []


def test_fragments_carried_through_an_overwrite_keep_order_and_row_ids(uri):
    base = create(uri, "a")
    base = commit(base, append(base, "b"))
    carried = fragments_of(base)

    landed = commit(base, LanceOperation.Overwrite(SCHEMA, [*staged(base, "first"), *carried]))

    assert landed.to_table(columns=["key", "_rowid"]).to_pydict() == {
        "key": ["first", "a", "b"],
        "_rowid": [2, 0, 1],
    }


def test_fragments_carried_through_an_overwrite_get_new_ids(uri):
    base = create(uri, "a")
    base = commit(base, append(base, "b"))

    landed = commit(base, LanceOperation.Overwrite(SCHEMA, fragments_of(base)))

    assert [each.fragment_id for each in landed.get_fragments()] == [2, 3]


def test_rows_carried_through_an_overwrite_count_as_created_by_it(uri):
    base = create(uri, "a")
    base = commit(base, append(base, "b"))

    landed = commit(base, LanceOperation.Overwrite(SCHEMA, fragments_of(base)))

    versions = ["_row_created_at_version", "_row_last_updated_at_version"]
    assert landed.to_table(columns=versions).to_pydict() == {each: [3, 3] for each in versions}


def test_a_fragment_with_deletions_cannot_be_carried_through_an_overwrite(uri):
    base = create(uri, "a", "b")
    base = commit(base, delete(base, "a"))

    with pytest.raises(OSError, match="Overwrite fragments must be newly written"):
        commit(base, LanceOperation.Overwrite(SCHEMA, fragments_of(base)))


def test_creating_by_write_dataset_over_a_table_is_an_oserror(uri):
    table = create(uri, "a").to_table()

    with pytest.raises(OSError, match="Dataset already exists"):
        lance.write_dataset(table, uri, mode="create")
