"""Row versions: which commits raise them, what a compaction keeps of them, and where they are."""

import json
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any, Final

import lance
import pyarrow as pa
import pytest
from lance import LanceDataset, LanceOperation
from lance.fragment import FragmentMetadata
from lance.optimize import Compaction

from tests.contract.lance.builders import (
    add_column,
    append,
    commit,
    create,
    create_index,
    delete,
    fragments_of,
    keep_columns,
    mixed,
    overwrite,
    restore,
    staged,
    upsert,
)

VERSION: Final = "_row_last_updated_at_version"
COLUMNS: Final = ["_rowid", "_rowaddr", VERSION]


def versions(dataset: LanceDataset) -> dict[str, tuple[int, int]]:
    """By key, the row id and the row version."""
    rows = dataset.to_table(columns=["key", "_rowid", VERSION]).to_pylist()
    return {each["key"]: (each["_rowid"], each[VERSION]) for each in rows}


def compaction(dataset: LanceDataset) -> LanceOperation.Rewrite:
    """Stage all rows in as few fragments as possible, with numbers that were never used."""
    options: Any = {"target_rows_per_fragment": 1000, "materialize_deletions_threshold": 0.0}
    numbers = count(max(each.fragment_id for each in dataset.get_fragments()) + 1)
    groups = []
    for task in Compaction.plan(dataset, options).tasks:
        done: Any = task.execute(dataset)
        facts = ({**each.to_json(), "id": next(numbers)} for each in done.new_fragments)
        made = [FragmentMetadata.from_json(json.dumps(each)) for each in facts]
        groups.append(LanceOperation.RewriteGroup(done.original_fragments, made))
    assert groups
    return LanceOperation.Rewrite(groups=groups, rewritten_indices=[])


def sevens(batch: pa.RecordBatch) -> pa.RecordBatch:
    return pa.record_batch({"d": pa.array([7] * batch.num_rows)})


def filled(dataset: LanceDataset) -> LanceOperation.Merge:
    """Stage values of a new column in the first fragment; the others have nulls."""
    first, *others = dataset.get_fragments()
    fragment, schema = first.merge_columns(sevens, columns=["key"])
    return LanceOperation.Merge([fragment, *(each.metadata for each in others)], schema)


def with_rows(dataset: LanceDataset) -> LanceOperation.Merge:
    """Stage a new fragment beside those that are there, as a Merge."""
    return LanceOperation.Merge(
        [*fragments_of(dataset), *staged(dataset, "new")], dataset.lance_schema
    )


def two_fragments(dataset: LanceDataset) -> LanceDataset:
    return commit(dataset, append(dataset, "c"))


@pytest.fixture(params=["main", "branch"])
def table(request: pytest.FixtureRequest, uri: str) -> LanceDataset:
    """Rows a and b in fragment 0, row c in fragment 1; of main, or of a branch."""
    table = two_fragments(create(uri, "a", "b"))
    if request.param == "branch":
        draft = table.create_branch("draft", 2)
        table = commit(draft, upsert(draft, "c", value=1))
    return table


Stage = Callable[[LanceDataset], LanceOperation.BaseOperation]


@pytest.mark.parametrize(
    ("stage", "written"),
    [
        pytest.param(lambda table: append(table, "new"), {"new"}, id="append"),
        pytest.param(
            lambda table: mixed(table, update=("a",), insert=("new",), delete=("b",), value=9),
            {"a", "new"},
            id="update",
        ),
        pytest.param(lambda table: overwrite(table, "x", "y"), {"x", "y"}, id="overwrite"),
        pytest.param(filled, {"a", "b"}, id="values of a column"),
        pytest.param(with_rows, {"new"}, id="rows in a merge"),
        pytest.param(lambda table: delete(table, "a"), set(), id="delete"),
        pytest.param(add_column, set(), id="a column of nulls"),
        pytest.param(keep_columns, set(), id="project"),
        pytest.param(create_index, set(), id="index"),
        pytest.param(compaction, set(), id="compaction"),
    ],
)
def test_rows_that_a_commit_writes_get_its_version_and_no_others_do(
    table: LanceDataset, stage: Stage, written: set[str]
) -> None:
    before = versions(table)
    landed = commit(table, stage(table))

    after = versions(landed)
    assert {key for key, (_, version) in after.items() if version == landed.version} == written
    rest = {key: facts for key, facts in after.items() if key not in written}
    assert rest == {key: before[key] for key in rest}


def test_a_compaction_keeps_row_ids_and_row_versions_and_leaves_deleted_rows_out(table):
    for key in ("d", "e", "f"):
        table = commit(table, append(table, key))
    table = commit(table, upsert(table, "b", "e", value=5))
    table = commit(table, delete(table, "d"))
    landed = commit(table, compaction(table))

    assert len(landed.get_fragments()) == 1
    assert versions(landed) == versions(table)
    assert "d" not in versions(landed)
    values = {each["key"]: each["value"] for each in landed.to_table().to_pylist()}
    assert values == {each["key"]: each["value"] for each in table.to_table().to_pylist()}


def test_a_restore_brings_the_row_versions_back_and_uses_no_number_twice(table):
    moved = commit(table, upsert(table, "a", value=7))
    restored = commit(moved, restore(table))
    later = commit(restored, upsert(restored, "a", value=8))

    assert versions(restored) == versions(table)
    assert versions(later)["a"] == (versions(table)["a"][0], table.version + 3)


def test_two_branches_give_one_row_id_to_different_rows_but_above_their_fork(uri):
    main = create(uri, "a")
    draft = main.create_branch("draft", 1)
    main = commit(main, append(main, "ours"))
    draft = commit(draft, append(draft, "theirs"))

    assert versions(main)["ours"] == versions(draft)["theirs"] == (1, 2)
    assert versions(main)["a"] == versions(draft)["a"] == (0, 1)


def test_row_ids_addresses_and_versions_are_read_from_no_data_file(uri):
    table = two_fragments(create(uri, "a", "b"))
    table = commit(table, delete(table, "a"))
    for dataset in (table, commit(table, compaction(table))):
        expected = dataset.to_table(columns=COLUMNS)
        data = Path(uri) / "data"
        data.rename(Path(uri) / "elsewhere")
        fresh = lance.dataset(uri, version=dataset.version)
        assert fresh.to_table(columns=COLUMNS) == expected
        one = fresh.scanner(columns=COLUMNS, fragments=fresh.get_fragments()[:1]).to_table()
        assert one == expected.slice(0, one.num_rows)
        with pytest.raises(pa.ArrowInvalid, match="Not found"):
            fresh.to_table(columns=["key"])
        (Path(uri) / "elsewhere").rename(data)


def test_metadata_describes_row_ids_as_ranges_and_versions_as_runs(uri):
    def messages(dataset: LanceDataset) -> list[tuple[list[int], list[int]]]:
        facts = [each.to_json() for each in fragments_of(dataset)]
        return [
            (each["row_id_meta"]["Inline"], each["last_updated_at_version_meta"]["inline"])
            for each in facts
        ]

    table = two_fragments(create(uri, "a", "b"))
    # A range {1: start, 2: end} is the first form of a segment; zeros are left out.
    first = ([10, 4, 10, 2, 16, 2], [10, 8, 10, 4, 10, 2, 16, 2, 16, 1])
    second = ([10, 6, 10, 4, 8, 2, 16, 3], [10, 8, 10, 4, 10, 2, 16, 1, 16, 2])
    assert messages(table) == [first, second]
    table = commit(table, upsert(table, "c", "a", value=1))
    # Other ids have other forms.
    assert messages(table)[1][0][2] != 10
    assert messages(table)[1][1] == [10, 8, 10, 4, 10, 2, 16, 2, 16, 3]


def test_a_branch_file_has_the_chain_of_forks_from_main(uri):
    main = two_fragments(create(uri, "a"))
    draft = main.create_branch("draft", 2)
    draft = commit(draft, append(draft, "d"))
    draft.create_branch("a/second", ("draft", 3))

    def chain(name: str) -> list[list[Any]]:
        facts = json.loads((Path(uri) / f"_refs/branches/{name}.json").read_text())
        mapping: list[list[Any]] = facts["identifier"]["version_mapping"]
        return mapping

    (of_draft,), (inherited, own) = chain("draft"), chain("a%2Fsecond")
    assert (of_draft[0], own[0]) == (2, 3)
    assert inherited == of_draft
    assert own[1] != of_draft[1]
