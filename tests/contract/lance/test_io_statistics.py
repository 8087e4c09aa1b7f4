"""Reads and writes are counted, so cost can be tested without a clock."""

from collections.abc import Callable

import lance
import pytest
from lance import LanceDataset, LanceOperation
from lance.fragment import write_fragments

from tests.contract.lance.builders import (
    SCHEMA,
    append,
    commit,
    create,
    fragments_of,
    keys_of,
    rows,
    staged,
)


@pytest.fixture
def on_s3(s3_bucket: str) -> LanceDataset:
    """A table of one fragment on S3, with nothing counted yet."""
    return fresh(create(f"s3://{s3_bucket}/table", "a"))


@pytest.fixture
def on_disk(uri: str) -> LanceDataset:
    """A table of one fragment on local disk, with nothing counted yet."""
    return fresh(create(uri, "a"))


def fresh(dataset: LanceDataset) -> LanceDataset:
    opened = lance.dataset(dataset.uri)
    counted(opened)
    return opened


def counted(dataset: LanceDataset) -> tuple[int, int]:
    """Reads and writes since this was last asked."""
    statistics = dataset.io_stats_incremental()
    return statistics.read_iops, statistics.write_iops


def cost(dataset: LanceDataset, action: Callable[[], object]) -> tuple[int, int]:
    counted(dataset)
    action()
    return counted(dataset)


def publish(head: LanceDataset) -> LanceDataset:
    fragments = [*staged(head, "state"), *fragments_of(head)[1:], *staged(head, "commit")]
    return commit(head, LanceOperation.Overwrite(SCHEMA, fragments))


def test_the_counters_are_four_and_count_bytes_too(on_disk):
    staged(on_disk, "b")
    statistics = on_disk.io_stats_incremental()

    assert (statistics.read_iops, statistics.read_bytes) == (0, 0)
    assert statistics.write_iops == 1
    assert statistics.written_bytes > 0


def test_counts_start_again_each_time_they_are_asked_for(on_disk):
    staged(on_disk, "b")

    assert counted(on_disk) == (0, 1)
    assert counted(on_disk) == (0, 0)


def test_a_snapshot_of_the_counters_resets_nothing(on_disk):
    staged(on_disk, "b")

    assert on_disk.io_stats_snapshot().write_iops == on_disk.io_stats_snapshot().write_iops
    assert counted(on_disk) == (0, 1)


def test_a_checkout_counts_on_its_parents_counter(on_disk):
    child = on_disk.checkout_version(1)
    counted(on_disk)
    keys_of(child)

    reads, _ = counted(on_disk)
    assert reads > 0
    assert counted(child) == (0, 0)


def test_an_independent_open_has_a_counter_of_its_own(on_disk):
    other = fresh(on_disk)
    keys_of(other)

    assert counted(on_disk) == (0, 0)


def test_a_commit_counts_once_on_the_passed_and_the_returned_handle(on_disk):
    landed = commit(on_disk, append(on_disk, "b"))

    _, writes = counted(landed)
    assert writes > 0
    assert counted(on_disk) == (0, 0)


def test_fragments_written_by_uri_are_not_counted(on_disk):
    assert cost(on_disk, lambda: write_fragments(rows("b"), on_disk.uri, mode="append")) == (0, 0)


def test_opening_the_latest_version_on_s3_costs_two_reads(on_s3):
    assert counted(lance.dataset(on_s3.uri)) == (2, 0)


def test_opening_a_given_version_on_s3_costs_two_reads(on_s3):
    assert counted(lance.dataset(on_s3.uri, version=1)) == (2, 0)


def test_asking_for_the_latest_version_on_s3_costs_one_read(on_s3):
    assert cost(on_s3, lambda: on_s3.latest_version) == (1, 0)


def test_asking_for_the_latest_version_on_disk_is_not_counted(on_disk):
    assert cost(on_disk, lambda: on_disk.latest_version) == (0, 0)


def test_writing_a_fragment_on_s3_costs_one_write(on_s3):
    assert cost(on_s3, lambda: staged(on_s3, "b")) == (0, 1)


def test_an_append_on_s3_costs_one_read_and_two_writes(on_s3):
    operation = append(on_s3, "b")

    assert cost(on_s3, lambda: commit(on_s3, operation)) == (1, 2)


def test_an_append_on_disk_costs_one_write_more_for_the_version_hint(on_disk):
    operation = append(on_disk, "b")

    assert cost(on_disk, lambda: commit(on_disk, operation)) == (1, 3)


def test_reading_one_small_fragment_costs_one_read(on_s3):
    assert cost(on_s3, lambda: on_s3.get_fragments()[0].to_table()) == (1, 0)


def test_a_publish_on_s3_costs_no_read_and_four_writes(on_s3):
    assert cost(on_s3, lambda: publish(on_s3)) == (0, 4)


def test_a_publish_on_disk_costs_no_read_and_five_writes(on_disk):
    assert cost(on_disk, lambda: publish(on_disk)) == (0, 5)


def test_a_publish_costs_the_same_after_a_long_history(on_disk):
    head = on_disk
    for _ in range(30):
        head = publish(head)

    assert cost(head, lambda: publish(head)) == (0, 5)


def test_creating_a_branch_on_s3_costs_four_reads_and_three_writes(on_s3):
    assert cost(on_s3, lambda: on_s3.create_branch("draft", 1)) == (4, 3)


def test_creating_a_branch_costs_the_same_after_a_long_history(on_s3):
    head = on_s3
    for _ in range(20):
        head = publish(head)
    head = fresh(head)

    assert cost(head, lambda: head.create_branch("draft", head.version)) == (4, 3)


@pytest.mark.parametrize(("block_bytes", "reads"), [(1 << 20, 1), (None, 3)])
def test_a_file_smaller_than_a_block_is_fetched_in_one_read(on_s3, block_bytes, reads):
    keys = [f"key {number:06}" for number in range(20_000)]
    commit(on_s3, append(on_s3, *keys))
    opened = lance.dataset(on_s3.uri, block_size=block_bytes)
    second = opened.get_fragments()[1:]
    size = second[0].metadata.files[0].file_size_bytes
    assert size is not None
    assert 64 << 10 < size < 1 << 20

    def read() -> None:
        opened.scanner(columns=["key"], fragments=second, limit=1).to_table()

    assert cost(opened, read)[0] >= reads
    if block_bytes is not None:
        assert cost(opened, read) == (reads, 0)
