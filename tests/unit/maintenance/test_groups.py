"""Which fragments are rewritten together, by their sizes alone."""

import random
from dataclasses import replace

import pytest

from omnigraph.limits import (
    BYTES_PER_FILE_MAX,
    FOLD_FRAGMENTS_MIN,
    ROW_ID_BYTES_MAX,
    ROWS_PER_FILE_MAX,
)
from omnigraph.maintenance.groups import (
    FOLD_BYTES_MAX,
    FOLD_FRAGMENTS_MAX,
    FOLD_TIER_FACTOR,
    Group,
    fragments_until_fold,
    group_all,
    group_needed,
    group_stale,
    group_to_fold,
)
from omnigraph.storage.compaction import FragmentSize

ROW_BYTES = 100


def fragments(*row_counts: int, deleted: int = 0, inherited: bool = False) -> list[FragmentSize]:
    return [
        FragmentSize(number, rows, deleted, rows * ROW_BYTES, is_inherited=inherited)
        for number, rows in enumerate(row_counts)
    ]


def ids(groups: tuple[Group, ...]) -> list[list[int]]:
    return [[fragment.fragment_id for fragment in group] for group in groups]


def rewritten(before: list[FragmentSize], groups: tuple[Group, ...]) -> list[FragmentSize]:
    """What is left after the groups are rewritten: new fragments come last."""
    gone = {fragment.fragment_id for group in groups for fragment in group}
    number = max((fragment.fragment_id for fragment in before), default=0)
    after = [fragment for fragment in before if fragment.fragment_id not in gone]
    for group in groups:
        number += 1
        rows = sum(fragment.row_count for fragment in group)
        after.append(FragmentSize(number, rows, 0, sum(each.byte_count for each in group)))
    return after


FULL = ROWS_PER_FILE_MAX
CASES = {
    "nothing": ([], []),
    "one small fragment": (fragments(5), []),
    "two small ones": (fragments(5, 6), [[0, 1]]),
    "full ones stay": (fragments(FULL, 5, FULL, 6), [[1, 3]]),
    "a file is not overfilled": (fragments(*[FULL // 3] * 4), [[0, 1, 2]]),
    "worn alone": (fragments(FULL * 3 // 4, deleted=FULL // 4), [[0]]),
    "a few deleted rows stay": (fragments(FULL * 3 // 4, deleted=5), []),
}


@pytest.mark.parametrize(("sizes", "expected"), CASES.values(), ids=CASES.keys())
def test_all_that_is_worth_rewriting_is_grouped(sizes, expected):
    assert ids(group_all(sizes)) == expected


def test_fragments_with_dropped_values_are_rewritten_and_no_others():
    sizes = [replace(each, is_stale=each.fragment_id % 2 == 1) for each in fragments(5, 6, 7, FULL)]
    assert ids(group_stale(sizes)) == [[1], [3]]
    assert ids(group_stale(fragments(5, 6))) == []
    assert ids(group_stale([replace(each, is_stale=True) for each in fragments(5, 6)])) == [[0, 1]]


def test_wide_rows_fill_a_file_by_their_bytes():
    wide = [FragmentSize(n, 10, 0, BYTES_PER_FILE_MAX // 3) for n in range(4)]
    assert ids(group_all(wide)) == [[0, 1, 2]]


@pytest.mark.parametrize("seed", range(200))
def test_nothing_is_left_to_group_after_a_rewrite(seed):
    draw = random.Random(seed)
    sizes = [
        FragmentSize(
            number,
            rows := draw.choice([1, 40, 9_000, FULL // 5, FULL // 3, FULL * 2 // 5, FULL]),
            draw.choice([0, 0, 1, rows // 3]),
            rows * draw.choice([10, 400, 900]),
        )
        for number in range(draw.randrange(1, 30))
    ]
    after = rewritten(sizes, group_all(sizes))

    assert group_all(after) == ()
    assert sum(each.row_count for each in after) == sum(each.row_count for each in sizes)


def test_only_what_slows_queries_is_needed():
    assert group_needed(fragments(*[1] * 10)) == ()
    assert len(group_needed(fragments(*[1] * 100))) == 1
    assert len(group_needed(fragments(10, deleted=9))) == 1


def test_a_fold_waits_for_enough_fragments_of_one_size():
    few = fragments(*[1] * (FOLD_FRAGMENTS_MIN - 1), *[5_000] * 20)
    assert group_to_fold(few) == ()
    assert fragments_until_fold(few) == 1
    assert len(group_to_fold(fragments(*[1] * FOLD_FRAGMENTS_MIN, *[5_000] * 20))) == 32


def test_a_fold_leaves_what_a_branch_inherited():
    assert group_to_fold(fragments(*[1] * 100, inherited=True)) == ()


def test_a_fold_is_bounded():
    assert len(group_to_fold(fragments(*[1] * 5_000))) == FOLD_FRAGMENTS_MAX
    large = group_to_fold(fragments(*[30_000] * 40))
    assert 0 < sum(each.row_count for each in large) <= 1 << 17
    assert group_to_fold(fragments(*[FULL] * 100)) == ()

    wide = [FragmentSize(number, 100, 0, 1 << 20) for number in range(40)]
    assert sum(each.byte_count for each in group_to_fold(wide)) == FOLD_BYTES_MAX
    # A fold of each of these alone would change nothing, again and again.
    assert group_to_fold([replace(each, byte_count=9 << 20) for each in wide]) == ()


def test_many_deleted_rows_of_a_fragment_are_folded_away():
    assert ids((group_to_fold(fragments(50_000, deleted=8_000)),)) == [[0]]
    assert group_to_fold(fragments(500, deleted=100)) == ()


def test_rows_that_were_updated_are_folded_with_those_that_they_left():
    worn = FragmentSize(0, 50_000, 8_000, 50_000 * ROW_BYTES)
    others = [FragmentSize(number, 1_000, 0, 1_000 * ROW_BYTES) for number in range(1, 9)]
    assert len(group_to_fold([worn, *others])) == 9
    # Alone, where all rows are too many, or too large.
    assert group_to_fold([worn, *others, FragmentSize(9, FULL, 0, ROW_BYTES)]) == (worn,)
    assert group_to_fold([worn, FragmentSize(9, 1, 0, FOLD_BYTES_MAX)]) == (worn,)
    assert group_to_fold([replace(worn, byte_count=FOLD_BYTES_MAX + 1)]) == ()


@pytest.mark.parametrize(("commits", "rows"), [(1_000, 1), (20_000, 1), (3_000, 40)])
def test_a_series_of_small_commits_keeps_few_fragments_and_folds_seldom(commits, rows):
    """The sizes alone: each commit adds a fragment, and a fold may follow."""
    table: list[FragmentSize] = []
    written = most = number = folds = 0
    for _ in range(commits):
        number += 1
        table.append(FragmentSize(number, rows, 0, rows * ROW_BYTES))
        group = group_to_fold(table)
        if group:
            gone = {fragment.fragment_id for fragment in group}
            total = sum(fragment.row_count for fragment in group)
            number += 1
            table = [fragment for fragment in table if fragment.fragment_id not in gone]
            table.append(FragmentSize(number, total, 0, total * ROW_BYTES))
            written += total
            folds += 1
        most = max(most, len(table))

    assert sum(fragment.row_count for fragment in table) == commits * rows
    assert folds <= commits // FOLD_FRAGMENTS_MIN + 1
    assert most <= FOLD_FRAGMENTS_MIN + 4 * FOLD_TIER_FACTOR + commits * rows // (1 << 14)
    assert written <= 5 * commits * rows


def test_wide_rows_are_rewritten_more_seldom():
    ones = [FragmentSize(number, 1, 0, 60_000) for number in range(32)]
    folded = [FragmentSize(number, 32, 0, 32 * 60_000) for number in range(100, 131)]
    assert len(group_to_fold([*ones, *folded])) == 32
    assert len(group_to_fold([*ones, *fragments(*[32] * 7)])) == 32


def test_scattered_row_ids_of_a_small_table_are_gathered_with_all_of_its_rows():
    def scattered(rows: int, row_id_bytes: int) -> list[FragmentSize]:
        base = FragmentSize(0, rows, 40, rows * ROW_BYTES, row_id_bytes=3 * ROW_ID_BYTES_MAX)
        return [base, *(FragmentSize(n, 32, 0, 3_200, row_id_bytes) for n in range(1, 9))]

    # The row ids of the largest fragment alone may be as short as they can be.
    assert group_to_fold(scattered(10_000, 70)) == ()
    assert len(group_to_fold(scattered(10_000, ROW_ID_BYTES_MAX // 7))) == 9
    assert group_to_fold(scattered(1_000_000, ROW_ID_BYTES_MAX // 7)) == ()
