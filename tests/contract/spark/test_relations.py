"""Relations: the pinned rows of a table, on any ref, whatever its fragments."""

import pickle

import pyarrow as pa
import pytest

from omnigraph.engine.spark.counting import COUNT
from omnigraph.engine.spark.relations import (
    ReadTask,
    given_frame,
    pack,
    read_fragments,
    table_frame,
)
from omnigraph.limits import SPARK_BATCH_BYTES_MAX, SPARK_PARTITION_ROWS_MAX
from omnigraph.storage import filters
from omnigraph.storage.staging import stage_append, stage_delete, stage_upsert
from omnigraph.storage.tables import ROW_ADDRESS, ROW_ID
from tests.contract.spark.builders import every_type, stored
from tests.support.tables import LOCATION, applied, create, in_fragments, latest, row_ids, rows


def ids(frame) -> list[str]:
    return sorted(frame.toArrow()["id"].to_pylist())


def test_the_rows_of_a_table_are_read(spark, store):
    found = table_frame(spark, create(store, "abc", n=7), ["n", "id"]).toArrow()

    assert found.column_names == ["n", "id"]
    assert found.sort_by("id").to_pylist() == [{"n": 7, "id": each} for each in "abc"]


def test_a_frame_stays_at_its_version_while_the_head_moves_on(spark, store):
    table = create(store, "abc")
    frame = table_frame(spark, table, ["id"])

    applied(stage_delete(table, ids=["a"]))

    assert ids(frame) == ["a", "b", "c"]
    assert ids(table_frame(spark, latest(store), ["id"])) == ["b", "c"]


def test_several_fragments_with_deletions_are_read(spark, store):
    table = in_fragments(store, "abc", "de", "f", "ghi")
    table = applied(stage_delete(table, ids=["b", "f", "g", "h", "i"]))
    table = applied(stage_upsert(table, rows("ax", n=3)))

    assert ids(table_frame(spark, table, ["id"])) == ["a", "c", "d", "e", "x"]


def test_a_branch_has_its_own_rows(spark, store):
    main = create(store, "abc")
    store.refs.create(LOCATION, "draft", source=None, version=main.version)
    draft = applied(stage_append(latest(store, ref="draft"), rows("d")))
    applied(stage_append(main, rows("xyz")))
    draft = applied(stage_delete(draft, ids=["a"]))

    assert draft.address.ref == "draft"
    assert ids(table_frame(spark, draft, ["id"])) == ["b", "c", "d"]
    assert ids(table_frame(spark, latest(store), ["id"])) == ["a", "b", "c", "x", "y", "z"]


def test_a_table_without_rows_keeps_its_columns(spark, store):
    never = table_frame(spark, create(store), ["n", "id"])
    no_longer = applied(stage_delete(applied(stage_append(latest(store), rows("a"))), ids=["a"]))

    for frame in (never, table_frame(spark, no_longer, ["n", "id"])):
        assert (frame.columns, frame.count()) == (["n", "id"], 0)
        assert frame.toArrow().schema.field("n").type == pa.int64()


def test_rows_are_counted_by_their_values_in_each_task(spark, store):
    table = applied(stage_append(create(store, "abcd", n=7), rows("ef", n=3)))
    table = applied(stage_delete(table, ids=["b"]))

    frame = table_frame(spark, table, ["n"], counted=True)

    assert frame.columns == ["n", COUNT]
    assert sorted(map(tuple, frame.collect())) == [(3, 2), (7, 3)]


def test_without_columns_the_rows_are_counted_and_nothing_is_read(spark, store):
    table = applied(stage_delete(in_fragments(store, "abc", "de"), ids=["a"]))

    frame = table_frame(spark, table, [])

    assert (frame.columns, frame.count()) == ([], 4)
    assert "MapInArrow" not in frame._jdf.queryExecution().toString()


def test_row_ids_can_be_read(spark, store):
    table = in_fragments(store, "ab", "c")

    found = table_frame(spark, table, ["id", ROW_ID, ROW_ADDRESS]).toArrow().to_pylist()

    assert {each["id"]: int(each[ROW_ID]) for each in found} == row_ids(table)
    assert {int(each[ROW_ADDRESS]) >> 32 for each in found} == {0, 1}


def test_a_filter_is_answered_by_lance(spark, store):
    table = in_fragments(store, "abc", "de")

    frame = table_frame(spark, table, ["n"], filter_text=filters.text_in("id", ["a", "e", "?"]))

    assert frame.count() == 2


def test_columns_that_may_not_be_null_stay_so(spark, store):
    schema = table_frame(spark, create(store, "a"), ["id", "n"]).schema

    assert [field.nullable for field in schema] == [False, True]


def test_a_task_is_small_and_travels(store):
    table = in_fragments(store, "abc", "de")
    task = ReadTask(table.address, ("id",), ((0,), (1,)))

    travelled = pickle.loads(pickle.dumps(task))
    batches = read_fragments(travelled, iter([pa.record_batch({"id": [1]})]))

    assert travelled == task
    assert len(pickle.dumps(task)) < 1_000
    assert pa.Table.from_batches(batches)["id"].to_pylist() == ["d", "e"]


def test_a_fragment_is_streamed_in_batches_of_bounded_size(store):
    width, count = 500_000, 60
    wide = pa.table({"id": [str(n) for n in range(count)], "x": ["y" * width] * count})
    task = ReadTask(stored(store, wide).address, ("x",), ((0,),))

    batches = list(read_fragments(task, iter([pa.record_batch({"id": [0]})])))

    assert sum(batch.num_rows for batch in batches) == count
    assert max(batch.nbytes for batch in batches) <= 2 * SPARK_BATCH_BYTES_MAX


def test_blobs_are_streamed_in_batches_of_bounded_size(store):
    rows = every_type()
    schema = pa.schema([rows.schema.field("id"), rows.schema.field("c12")])
    count, width = 40, 1 << 20
    wide = pa.table([[str(n) for n in range(count)], [b"z" * width] * count], schema=schema)
    task = ReadTask(stored(store, wide).address, ("c12",), ((0,),))

    batches = list(read_fragments(task, iter([pa.record_batch({"id": [0]})])))

    assert sum(batch.num_rows for batch in batches) == count
    assert max(batch.nbytes for batch in batches) <= 2 * SPARK_BATCH_BYTES_MAX


@pytest.mark.parametrize(
    ("row_counts", "cores", "groups"),
    [
        ([], 4, ()),
        ([0], 4, ((0,),)),
        ([1] * 5, 4, ((0, 1, 2, 3, 4),)),
        ([SPARK_PARTITION_ROWS_MAX] * 3, 1, ((0,), (1,), (2,))),
        ([SPARK_PARTITION_ROWS_MAX * 9, 1, 1], 1, ((0,), (1, 2))),
        ([100_000] * 8, 2, ((0, 1), (2, 3), (4, 5), (6, 7))),
    ],
)
def test_fragments_are_packed_by_their_rows(row_counts, cores, groups):
    assert pack(row_counts, cores) == groups


def test_given_rows_without_columns_are_counted(spark):
    frame = given_frame(spark, pa.table({"x": [1, 2, 3]}).select([]))

    assert (frame.columns, frame.count()) == ([], 3)


def test_given_rows_may_be_none(spark):
    found = given_frame(spark, every_type().slice(0, 0)).toArrow()

    assert found.num_rows == 0
    assert found.num_columns == every_type().num_columns


def test_wide_given_rows_are_sent_in_bounded_parts(spark):
    wide = pa.table({"x": pa.array(["y" * 1_000_000] * 60)})

    frame = given_frame(spark, wide)

    assert frame.rdd.getNumPartitions() >= 60_000_000 // SPARK_BATCH_BYTES_MAX
    assert frame.selectExpr("sum(length(x)) AS n").toArrow()["n"].to_pylist() == [60_000_000]
