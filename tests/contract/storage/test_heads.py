"""Heads: nothing shows before `apply`, and `apply` lands exactly above the pin or not at all."""

from collections.abc import Callable

import lance
import pyarrow as pa
import pytest

from omnigraph.clock import SystemClock
from omnigraph.errors import ErrorCode, OmnigraphError, TableConflictError
from omnigraph.failpoints import Failpoint, SimulatedCrash, arm
from omnigraph.model.commits import OperationKind
from omnigraph.model.ids import OperationId
from omnigraph.storage.heads import Authorship, apply, author_of, restore
from omnigraph.storage.indexes import IndexSpec, stage_indexes
from omnigraph.storage.staging import (
    StagedWrite,
    stage_append,
    stage_create,
    stage_delete,
    stage_overwrite,
    stage_upsert,
)
from omnigraph.storage.tables import Table
from tests.support.tables import (
    AUTHOR,
    LOCATION,
    applied,
    ids,
    in_fragments,
    latest,
    numbers,
    row_ids,
    rows,
    stage_added,
)

Stage = Callable[[Table], StagedWrite | None]
NEW = pa.field("new", pa.int64())

STAGES: dict[str, Stage] = {
    "append": lambda table: stage_append(table, rows("x", n=1)),
    "upsert": lambda table: stage_upsert(table, rows("ax", n=1)),
    "delete": lambda table: stage_delete(table, ids=["a"]),
    "overwrite": lambda table: stage_overwrite(table, rows("x", n=1)),
    "columns of nulls": lambda table: stage_added(table, [NEW]),
    "columns of values": lambda table: stage_added(table, [NEW], values={"new": 1}),
    "indexes": lambda table: stage_indexes(table, [IndexSpec("id")]),
}

every_stage = pytest.mark.parametrize("stage", STAGES.values(), ids=STAGES.keys())


def staged_by(stage: Stage, table: Table) -> StagedWrite:
    staged = stage(table)
    assert staged is not None
    return staged


@every_stage
def test_nothing_shows_before_apply(table, store, elsewhere, stage):
    before = table.read()
    staged = staged_by(stage, table)

    for each in (store, elsewhere):
        assert latest(each).version == 1
        assert latest(each).read().equals(before)
    moved = applied(staged)
    assert (moved.version, latest(store).version, latest(elsewhere).version) == (2, 2, 2)
    assert latest(elsewhere).read().equals(moved.read())


def test_a_table_that_was_only_staged_does_not_exist(store, elsewhere):
    staged = stage_create(store.tables, LOCATION, rows("abc"))
    assert not store.tables.exists(LOCATION)
    assert not elsewhere.tables.exists(LOCATION)

    created = applied(staged)
    assert (created.version, staged.row_count) == (1, 3)
    assert elsewhere.tables.exists(LOCATION)


@pytest.mark.parametrize("held", ["", "xy"], ids=["empty", "full"])
def test_of_two_creations_of_one_table_the_second_is_refused(store, elsewhere, held):
    first = stage_create(store.tables, LOCATION, rows("abc"))
    second = stage_create(elsewhere.tables, LOCATION, rows(held))
    applied(first)
    with pytest.raises(OmnigraphError):
        applied(second)

    assert (latest(elsewhere).version, ids(latest(elsewhere))) == (1, ["a", "b", "c"])


@every_stage
def test_a_write_staged_on_a_version_that_is_no_longer_newest_is_refused(table, stage):
    stale = staged_by(stage, table)
    applied(stage_append(table, rows("y")))

    with pytest.raises(TableConflictError) as refused:
        applied(stale)
    assert refused.value.code is ErrorCode.TABLE_HEAD_MOVED
    assert refused.value.retryable


def test_an_append_that_lance_put_on_top_of_another_is_refused_with_both_versions(table, store):
    stale = stage_append(table, rows("x"))
    applied(stage_append(table, rows("y")))

    with pytest.raises(TableConflictError) as refused:
        applied(stale)
    details = refused.value.details
    assert (details["expected"], details["actual"]) == (2, 3)
    assert details["location"] == LOCATION
    assert "expected version 2, got 3" in refused.value.message
    # Lance let it through: it is a head beyond the pin, for recovery to judge by its author.
    assert author_of(latest(store)) == AUTHOR


@every_stage
def test_a_write_staged_before_a_restore_is_refused(table, store, stage):
    stale = staged_by(stage, table)
    restored = restore(table, 1, AUTHOR)

    with pytest.raises(TableConflictError):
        applied(stale)
    assert latest(store).version == restored.version == 2
    assert numbers(latest(store)) == numbers(table)


@every_stage
def test_a_write_staged_after_a_restore_lands(table, stage):
    restored = restore(table, 1, AUTHOR)

    assert applied(staged_by(stage, restored)).version == 3


def test_a_staged_write_is_applied_once(table, store):
    staged = stage_append(table, rows("x"))
    applied(staged)
    with pytest.raises(TableConflictError):
        applied(staged)

    assert author_of(latest(store)) == AUTHOR


def test_a_restore_brings_back_the_rows_and_their_row_ids(table, store, elsewhere):
    changed = applied(stage_upsert(table, rows("ax", n=1)))
    changed = applied(stage_delete(changed, ids=["b"]))
    restored = restore(changed, 1, AUTHOR)

    assert restored.version == 4
    assert numbers(restored) == numbers(latest(elsewhere)) == {"a": 0, "b": 0, "c": 0}
    assert row_ids(restored) == row_ids(table)
    assert numbers(store.tables.open(LOCATION, ref=None, version=3)) == {"a": 1, "c": 0, "x": 1}


def test_a_restore_brings_back_the_columns(table):
    changed = applied(stage_added(table, [NEW]))

    assert restore(changed, 1, AUTHOR).schema.equals(table.schema)


def test_rows_written_after_a_restore_do_not_take_row_ids_that_were_seen(table):
    changed = applied(stage_append(table, rows("xyz")))
    seen = set(row_ids(changed).values())
    restored = restore(changed, 1, AUTHOR)

    assert row_ids(applied(stage_append(restored, rows("w"))))["w"] not in seen


@pytest.mark.usefixtures("table")
def test_a_restore_on_a_ref_leaves_main_alone(store):
    fork = store.refs.create(LOCATION, "draft", source=None, version=1)
    fork = applied(stage_delete(fork, ids=["a"]))
    restored = restore(fork, 1, AUTHOR)

    assert (restored.version, ids(latest(store, ref="draft"))) == (3, ["a", "b", "c"])
    assert latest(store).version == 1


# Who wrote a version.


@every_stage
def test_every_write_names_its_author(table, elsewhere, stage):
    author = Authorship(OperationId(SystemClock().ulid()), OperationKind.MERGE)
    apply(staged_by(stage, table), author)

    assert author_of(latest(elsewhere)) == author
    assert author_of(elsewhere.tables.open(LOCATION, ref=None, version=1)) == AUTHOR


def test_a_restore_names_its_author(table, elsewhere):
    author = Authorship(OperationId(SystemClock().ulid()), OperationKind.RECOVERY)
    restore(table, 1, author)

    assert author_of(latest(elsewhere)) == author


def test_a_write_on_a_ref_names_its_author(table, store, elsewhere):
    fork = store.refs.create(table.address.location, "draft", source=None, version=1)
    author = Authorship(OperationId(SystemClock().ulid()), OperationKind.MUTATION)
    apply(stage_append(fork, rows("x")), author)

    assert author_of(latest(elsewhere, ref="draft")) == author


def test_what_others_wrote_has_no_author(table, store):
    lance.dataset(store.tables.uri(LOCATION)).delete("id = 'a'")

    assert author_of(latest(store)) is None
    assert author_of(table) == AUTHOR


def test_the_start_of_a_ref_has_no_author(table, store):
    fork = store.refs.create(table.address.location, "draft", source=None, version=1)

    assert author_of(fork) is None


def test_a_foreign_compaction_that_lance_cannot_read_back_has_no_author(local):
    applied(stage_indexes(in_fragments(local, "abc", "x"), [IndexSpec("id")]))
    dataset = lance.dataset(local.tables.uri(LOCATION))
    dataset.optimize.compact_files()

    assert author_of(latest(local)) is None
    assert ids(latest(local)) == ["a", "b", "c", "x"]


def test_a_crash_right_after_the_commit_leaves_it_with_its_author(table, store):
    staged = stage_append(table, rows("x"))
    with arm(Failpoint.APPLY_AFTER_COMMIT), pytest.raises(SimulatedCrash):
        applied(staged)

    assert (latest(store).version, author_of(latest(store))) == (2, AUTHOR)
