"""Planning: which splits the inputs of a load are read as, in this process or by executors."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, assert_never

from omnigraph.engine.shares import even_shares
from omnigraph.errors import InvalidInputError
from omnigraph.limits import LOAD_BATCH_ROWS
from omnigraph.load.readers.memory_rows import record_batches
from omnigraph.load.readers.opening import UnpackingStream
from omnigraph.load.sources import (
    FileInput,
    Form,
    FrameInput,
    Input,
    Inputs,
    MemoryInput,
    SparkFile,
    StreamInput,
)
from omnigraph.load.splits import (
    FileSplit,
    LineRangeSplit,
    LocalSplit,
    MemorySplit,
    PickledSplit,
    RowGroupSplit,
    SharedSplit,
    Spool,
    SpooledSplit,
    StreamSplit,
    StripeSplit,
)

LOAD_GROUP_BYTES_MIN: Final = 16 << 20
LOAD_GROUP_BYTES_MAX: Final = 256 << 20
"""Input that one Spark task reads: below, starting it costs more than its work."""

LOAD_GROUPS_PER_CORE_MIN: Final = 2
"""Tasks per core that a large enough input is cut into: the last ones even out."""

LOAD_SPLITS_PER_GROUP: Final = 4
"""About how many parts of files a Spark task reads: tasks of whole parts are that even."""

LOAD_PLANNING_THREADS: Final = 16
"""Files whose footers are read at once to plan a load on Spark."""


def plan_local(inputs: Inputs) -> tuple[LocalSplit, ...]:
    """One split for each input, with its number; rows are read in order."""
    return tuple(_whole_split(number, source) for number, source in enumerate(inputs.items))


def _whole_split(number: int, source: Input) -> LocalSplit:
    match source:
        case FileInput():
            return FileSplit(number, source)
        case StreamInput():
            return StreamSplit(number, source)
        case MemoryInput():
            return MemorySplit(number, source)
        case FrameInput():
            message = f"the rows of {source.type_name} are Spark's, and only Spark can load them"
            raise InvalidInputError(message, hint="load them with the engine spark")
        case _:
            assert_never(source)


def plan_shared(
    inputs: Inputs, cores: int, spool: Spool, *, access_hint: str
) -> tuple[SharedSplit, ...]:
    """Cut the inputs into splits for tasks; DataFrames have partitions of their own.

    Only the footers of large Parquet and ORC files are read. A stream is read here, to its end,
    since no other process can read it.

    Args:
        access_hint: What to do about a file that cannot be read.
    """
    total = sum(source.byte_count for source in inputs.items if isinstance(source, FileInput))
    # Several for each task, so that tasks can have as much to read as each other.
    size = max(LOAD_GROUP_BYTES_MIN, _group_bytes(total, cores) // LOAD_SPLITS_PER_GROUP)

    def cut(number: int, source: Input) -> tuple[SharedSplit, ...]:
        return tuple(_cut(number, source, size, spool, access_hint))

    pool = ThreadPoolExecutor(LOAD_PLANNING_THREADS)
    try:
        # To read a footer in a bucket is to wait; streams are read one after the other.
        planned = [
            pool.submit(cut, number, source) if isinstance(source, FileInput) else None
            for number, source in enumerate(inputs.items)
        ]
        return tuple(
            split
            for number, (source, future) in enumerate(zip(inputs.items, planned, strict=True))
            for split in (cut(number, source) if future is None else future.result())
        )
    finally:
        # After a failure, the others are not read.
        pool.shutdown(cancel_futures=True)


def pack_splits(splits: Sequence[SharedSplit], cores: int) -> tuple[tuple[int, ...], ...]:
    """Group splits, in order, so that small files share a task and the files it writes.

    Those that Spark reads are in no group: it makes tasks of them by itself.
    """
    numbers = [number for number, split in enumerate(splits) if not _is_spark_file(split)]
    sizes = [splits[number].byte_count for number in numbers]
    shares = even_shares(
        sizes, cores, weight_min=LOAD_GROUP_BYTES_MIN, weight_max=_group_bytes(sum(sizes), cores)
    )
    return tuple(tuple(numbers[place] for place in share) for share in shares)


def _group_bytes(total: int, cores: int) -> int:
    """How much of so many bytes a task reads at most."""
    share = total // max(1, cores * LOAD_GROUPS_PER_CORE_MIN)
    return max(LOAD_GROUP_BYTES_MIN, min(LOAD_GROUP_BYTES_MAX, share))


def _is_spark_file(split: SharedSplit) -> bool:
    return isinstance(split, FileSplit) and isinstance(split.file.path, SparkFile)


def _cut(
    number: int, source: Input, size: int, spool: Spool, access_hint: str
) -> Iterator[SharedSplit]:
    match source:
        case FileInput(path=SparkFile()):
            yield FileSplit(number, source)
        case FileInput(form=Form.LINES, compression=None):
            for start in range(0, max(1, source.byte_count), size):
                # Lines that are appended to the file meanwhile are not read.
                yield LineRangeSplit(number, source, start, min(start + size, source.byte_count))
        case FileInput(form=Form.PARQUET) if source.unpacked_byte_count > size:
            yield from _cut_row_groups(number, source, size, access_hint)
        case FileInput(form=Form.ORC) if source.unpacked_byte_count > size:
            yield from _cut_stripes(number, source, size, access_hint)
        case FileInput():
            yield FileSplit(number, source)
        case MemoryInput():
            yield from _pickle_rows(number, source)
        case FrameInput():
            return
        case StreamInput():
            yield from _spool_lines(number, source, size, spool)
        case _:
            assert_never(source)


def _spool_lines(
    number: int, source: StreamInput, size: int, spool: Spool
) -> Iterator[SpooledSplit]:
    stream = UnpackingStream(source.stream, source.name)
    rest, count = b"", 0
    while True:
        block = stream.read(size)
        data = rest + block
        cut = len(data) if not block else data.rfind(b"\n") + 1
        whole, rest = data[:cut], data[cut:]
        if whole:
            path = spool.put(f"stream-{number}-{count}.jsonl", whole)
            yield SpooledSplit(number, source.name, spool, path, count == 0, len(whole))
            count += 1
        if not block:
            return


def _cut_row_groups(
    number: int, source: FileInput, size: int, access_hint: str
) -> Iterator[RowGroupSplit]:
    # Imported here: most loads do not need it.
    from omnigraph.load.readers.parquet_files import row_group_sizes

    groups: list[int] = []
    group_bytes, first, row = 0, 1, 1
    for group, (byte_count, rows) in enumerate(row_group_sizes(source, access_hint=access_hint)):
        if groups and group_bytes + byte_count > size:
            yield RowGroupSplit(number, source, tuple(groups), first, group_bytes)
            groups, group_bytes, first = [], 0, row
        groups.append(group)
        group_bytes += byte_count
        row += rows
    # One at least, so that the columns of a file without rows are checked too.
    yield RowGroupSplit(number, source, tuple(groups), first, group_bytes)


def _cut_stripes(
    number: int, source: FileInput, size: int, access_hint: str
) -> Iterator[StripeSplit]:
    # Imported here: most loads do not need it.
    from omnigraph.load.readers.orc_files import stripe_count

    stripes = range(stripe_count(source, access_hint=access_hint))
    # Their sizes are not known beforehand; writers make them alike.
    each = source.unpacked_byte_count // max(1, len(stripes))
    step = max(1, size // max(1, each))
    for start in range(0, max(1, len(stripes)), step):
        some = tuple(stripes[start : start + step])
        yield StripeSplit(number, source, some, each * len(some))


def _pickle_rows(number: int, source: MemoryInput) -> Iterator[PickledSplit]:
    first = 1
    for rows, count in _chunks(source.rows):
        yield PickledSplit(number, source.of, first, pickle.dumps(rows))
        first += count


def _chunks(rows: Any) -> Iterator[tuple[Any, int]]:
    if isinstance(rows, Sequence):
        for start in range(0, len(rows), LOAD_BATCH_ROWS):
            part = [dict(row) for row in rows[start : start + LOAD_BATCH_ROWS]]
            yield part, len(part)
        return
    for batch in record_batches(rows):
        if batch.num_rows:
            yield batch, batch.num_rows
