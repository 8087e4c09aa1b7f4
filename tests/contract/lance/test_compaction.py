"""Compaction in parts: Lance's task writes files, and we commit them with numbers of our own."""

import dataclasses
import json

import lance
import pyarrow as pa
import pytest
from lance import LanceDataset, LanceOperation
from lance.commit import CommitConflictError
from lance.fragment import FragmentMetadata, RowIdSequence, write_fragments
from lance.optimize import Compaction, CompactionTask

from tests.contract.lance.builders import append, commit, create, delete, index, restore

VERSION = "_row_last_updated_at_version"


@pytest.fixture
def base(anywhere: str) -> LanceDataset:
    """Five fragments of a row each, of which the fourth lost its row."""
    dataset = create(anywhere)
    for key in "abcde":
        dataset = commit(dataset, append(dataset, key))
    return commit(dataset, delete(dataset, "d"))


def options() -> dict[str, object]:
    """The options of a task of a plan of Lance's own."""
    rows = pa.table({"x": [1, 2]})
    tiny = lance.write_dataset(rows, "memory://", max_rows_per_file=1, enable_stable_row_ids=True)
    [task] = Compaction.plan(tiny, options={"target_rows_per_fragment": 100}).tasks
    return dict(json.loads(task.json())["options"])  # type: ignore[attr-defined]


def rewrite(dataset: LanceDataset, fragment_ids: list[int]) -> LanceOperation.RewriteGroup:
    """Fragments of our choice, rewritten, with the number 9."""
    chosen = [each.metadata for each in dataset.get_fragments() if each.fragment_id in fragment_ids]
    facts = {
        "task": {"fragments": [each.to_json() for each in chosen]},
        "read_version": dataset.version,
        "options": options(),
    }
    task = CompactionTask.from_json(json.dumps(facts))  # type: ignore[attr-defined]
    [new] = task.execute(dataset).new_fragments
    return LanceOperation.RewriteGroup(chosen, [dataclasses.replace(new, id=9)])


def stored(dataset: LanceDataset) -> dict[str, int]:
    """By key, the row id of each row."""
    found = dataset.to_table(columns=["key", "_rowid"]).to_pylist()
    return {row["key"]: row["_rowid"] for row in found}


def test_a_task_made_of_a_text_rewrites_the_fragments_that_it_names(base):
    group = rewrite(base, [0, 2])
    after = commit(base, LanceOperation.Rewrite([group], []))

    assert base.version + 1 == after.version
    assert set(after.fragment_ids()) == {1, 4, 9}
    assert stored(after) == stored(base)


def test_row_versions_of_a_rewritten_fragment_can_be_set(base):
    group = rewrite(base, [0, 1, 2])
    [new] = group.new_fragments
    # Runs in protobuf: one row at version 2, two at version 300.
    runs = [10, 8, 10, 4, 10, 2, 16, 1, 16, 2, 10, 9, 10, 4, 10, 2, 16, 2, 16, 0xAC, 2]
    facts = {**new.to_json(), "last_updated_at_version_meta": {"inline": runs}}
    group = dataclasses.replace(
        group, new_fragments=[FragmentMetadata.from_json(json.dumps(facts))]
    )
    after = commit(base, LanceOperation.Rewrite([group], []))

    versions = {row["key"]: row[VERSION] for row in after.to_table(["key", VERSION]).to_pylist()}
    assert versions == {"a": 2, "b": 300, "c": 300, "e": 6}


def test_rewritten_rows_may_be_in_another_order_with_their_row_ids_as_a_list(base):
    ids = stored(base)
    keys = ["c", "a", "b"]
    rows = base.to_table(filter="key in ('a', 'b', 'c')").to_pydict()
    order = [rows["key"].index(key) for key in keys]
    columns = {name: [values[place] for place in order] for name, values in rows.items()}
    table = pa.table(columns, schema=base.schema)
    [new] = write_fragments(table, base, mode="append", enable_stable_row_ids=True)
    listed = RowIdSequence([ids[key] for key in keys]).to_inline_metadata()
    chosen = [each.metadata for each in base.get_fragments() if each.fragment_id in (0, 1, 2)]
    new = dataclasses.replace(new, id=9, row_id_meta=listed)
    group = LanceOperation.RewriteGroup(chosen, [new])
    after = commit(base, LanceOperation.Rewrite([group], []))

    assert stored(after) == ids
    assert after.to_table(columns=["key"])["key"].to_pylist() == ["e", *keys]
    taken = after._take_rows([ids["a"], ids["e"]], columns=["key"])
    assert taken["key"].to_pylist() == ["a", "e"]
    # A later write goes on after the highest one.
    again = commit(after, append(after, "f"))
    assert len(set(stored(again).values())) == 5


def test_row_ids_and_versions_are_read_without_any_data_file(base):
    fresh = lance.dataset(base.uri)
    fresh.io_stats_incremental()

    rows = fresh.to_table(["_rowid", "_rowaddr", VERSION])

    assert rows.num_rows == 4
    assert fresh.io_stats_incremental().read_iops == 0


def test_a_segment_built_on_a_detached_version_serves_the_published_one(base):
    operation = LanceOperation.Rewrite([rewrite(base, [0, 1, 2, 4])], [])
    detached = LanceDataset.commit(
        base, operation, read_version=base.version, max_retries=4, detached=True
    )
    segment = index(detached, fragment_ids=[9])

    after = commit(base, operation)
    after = commit(after, LanceOperation.CreateIndex([segment], []))

    [description] = after.describe_indices()
    assert set(description.segments[0].fragment_ids) == {9}
    assert [after.count_rows(f"key = '{key}'") for key in "abcde"] == [1, 1, 1, 0, 1]


def test_a_rewrite_is_fenced_by_a_restore(base):
    operation = LanceOperation.Rewrite([rewrite(base, [0, 1])], [])
    commit(base, restore(base))

    with pytest.raises(CommitConflictError):
        commit(base, operation)


def test_a_rewrite_with_a_number_that_was_used_meanwhile_is_bad_input(base):
    group = rewrite(base, [0, 1])
    number = max(base.fragment_ids()) + 1
    taken = [dataclasses.replace(each, id=number) for each in group.new_fragments]
    commit(base, append(base, "f"))

    with pytest.raises(OSError, match="two fragments with id"):
        commit(
            base,
            LanceOperation.Rewrite([LanceOperation.RewriteGroup(group.old_fragments, taken)], []),
        )
