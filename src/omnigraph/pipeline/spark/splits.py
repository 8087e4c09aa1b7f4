"""Splits: what executors read of a load's inputs, each once, and where in them a row then stands.

A row is numbered within its split. Lines of a file that several executors read get their place in
the file when all of them have told how many lines they found: no file is read to count its lines.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from io import BytesIO
from typing import Any, Final, assert_never

import pyarrow as pa
import pyarrow.parquet as pq

from omnigraph.errors import InvalidInputError, StorageError
from omnigraph.integrity.violations import Violation
from omnigraph.limits import (
    LOAD_BATCH_ROWS,
    LOAD_COMPRESSED_FACTOR,
    LOAD_GROUP_BYTES_MAX,
    LOAD_GROUP_BYTES_MIN,
    LOAD_GROUPS_PER_CORE_MIN,
)
from omnigraph.pipeline.columns import Written
from omnigraph.pipeline.positions import POSITION, minted_id, position, positions
from omnigraph.pipeline.reading import Unpacked, line_batches, read_input, require_bytes
from omnigraph.pipeline.shape import (
    Shaped,
    Shaping,
    known_columns,
    shape_columns,
    shape_lines,
    shape_values,
)
from omnigraph.pipeline.sources import (
    FileInput,
    Form,
    FrameInput,
    Input,
    Inputs,
    MemoryInput,
    StreamInput,
)
from omnigraph.pipeline.spark.scratch import Scratch

FRAME_NUMBERS: Final = 1 << 21
"""Splits with numbers from here on are partitions of DataFrames, which nobody can count before."""

_TAIL_BYTES: Final = 1 << 12
"""What is read at a time to find the end of a range's last line."""


@dataclass(frozen=True, slots=True)
class LineSplit:
    """The lines of a file that begin within a range of its bytes."""

    source: int
    file: FileInput
    start: int
    end: int

    @property
    def byte_count(self) -> int:
        """How much there is to read."""
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class FileSplit:
    """A file that can only be read from its beginning."""

    source: int
    file: FileInput

    @property
    def byte_count(self) -> int:
        """How much there is to read, unpacked."""
        packed = self.file.compression is not None
        return self.file.byte_count * (LOAD_COMPRESSED_FACTOR if packed else 1)


@dataclass(frozen=True, slots=True)
class RowGroupSplit:
    """Row groups of a Parquet file that follow one another; `first` is the number of a row."""

    source: int
    file: FileInput
    groups: tuple[int, ...]
    first: int
    byte_count: int


@dataclass(frozen=True, slots=True)
class MemorySplit:
    """Rows that the driver was given and ships, pickled."""

    source: int
    type_name: str
    first: int
    rows: bytes = field(repr=False)

    @property
    def byte_count(self) -> int:
        """How much there is to read."""
        return len(self.rows)


@dataclass(frozen=True, slots=True)
class SpooledSplit:
    """Whole lines of a stream, which the driver read and left in scratch."""

    source: int
    name: str
    scratch: Scratch
    path: str
    is_first: bool
    byte_count: int


Split = LineSplit | FileSplit | RowGroupSplit | MemorySplit | SpooledSplit


@dataclass(frozen=True, slots=True)
class Part:
    """Some rows of a split, shaped; `lines` of them were read, `byte_count` bytes of the file."""

    shaped: Shaped
    lines: int
    byte_count: int


def plan_splits(inputs: Inputs, cores: int, scratch: Scratch) -> tuple[Split, ...]:
    """Cut the inputs into what tasks read.

    Of files, only the last bytes of Parquet are looked at. A stream is read here, to its end, since
    nobody else can.

    Raises:
        StorageError: a file cannot be read.
        InvalidInputError: a file is not what its name says.
    """
    total = sum(each.byte_count for each in inputs.each if isinstance(each, FileInput))
    size = min(LOAD_GROUP_BYTES_MAX, total // max(1, cores * LOAD_GROUPS_PER_CORE_MIN))
    size = max(LOAD_GROUP_BYTES_MIN, size)
    return tuple(
        split
        for number, each in enumerate(inputs.each)
        for split in _splits(number, each, size, scratch)
    )


def pack_splits(splits: Sequence[Split], cores: int) -> tuple[tuple[int, ...], ...]:
    """Group splits, in order, so that small files share a task and the files it writes."""
    total = sum(each.byte_count for each in splits)
    share = total // max(1, cores * LOAD_GROUPS_PER_CORE_MIN)
    bytes_max = max(LOAD_GROUP_BYTES_MIN, min(LOAD_GROUP_BYTES_MAX, share))
    groups: list[list[int]] = []
    held = 0
    for number, each in enumerate(splits):
        if not groups or held + each.byte_count > bytes_max:
            groups.append([])
            held = 0
        groups[-1].append(number)
        held += each.byte_count
    return tuple(map(tuple, groups))


def _splits(number: int, source: Input, size: int, scratch: Scratch) -> Iterator[Split]:
    match source:
        case FileInput(form=Form.LINES, compression=None):
            for start in range(0, max(1, source.byte_count), size):
                # What is appended to the file meanwhile belongs to nobody.
                yield LineSplit(number, source, start, min(start + size, source.byte_count))
        case FileInput(form=Form.PARQUET):
            yield from _row_groups(number, source, size)
        case FileInput():
            yield FileSplit(number, source)
        case MemoryInput():
            yield from _memory(number, source)
        case FrameInput():
            return
        case StreamInput():
            yield from _spooled(number, source, size, scratch)
        case _:
            assert_never(source)


def _spooled(
    number: int, source: StreamInput, size: int, scratch: Scratch
) -> Iterator[SpooledSplit]:
    stream = Unpacked(source.stream)
    rest, count = b"", 0
    while True:
        block = stream.read(size)
        data = rest + block
        cut = len(data) if not block else data.rfind(b"\n") + 1
        whole, rest = data[:cut], data[cut:]
        if whole:
            path = scratch.put(f"stream-{number}-{count}.jsonl", whole)
            yield SpooledSplit(number, source.name, scratch, path, count == 0, len(whole))
            count += 1
        if not block:
            return


def _row_groups(number: int, source: FileInput, size: int) -> Iterator[Split]:
    require_bytes(source)
    with _reading(source), pa.OSFile(source.path, "rb") as file:
        metadata = pq.read_metadata(file)
        sizes = [
            (metadata.row_group(n).total_byte_size, metadata.row_group(n).num_rows)
            for n in range(metadata.num_row_groups)
        ]
    held: list[int] = []
    held_bytes, first, row = 0, 1, 1
    for group, (byte_count, rows) in enumerate(sizes):
        if held and held_bytes + byte_count > size:
            yield RowGroupSplit(number, source, tuple(held), first, held_bytes)
            held, held_bytes, first = [], 0, row
        held.append(group)
        held_bytes += byte_count
        row += rows
    # One at least, so that the columns of a file without rows are checked too.
    yield RowGroupSplit(number, source, tuple(held), first, held_bytes)


def _memory(number: int, source: MemoryInput) -> Iterator[Split]:
    first = 1
    for rows, count in _chunks(source.rows):
        yield MemorySplit(number, source.type_name, first, pickle.dumps(rows))
        first += count


def _chunks(rows: Any) -> Iterator[tuple[Any, int]]:
    if isinstance(rows, Sequence):
        for start in range(0, len(rows), LOAD_BATCH_ROWS):
            part = [dict(each) for each in rows[start : start + LOAD_BATCH_ROWS]]
            yield part, len(part)
        return
    for batch in _batches(rows):
        if batch.num_rows:
            yield batch, batch.num_rows


def _batches(rows: Any) -> Iterator[pa.RecordBatch]:
    if isinstance(rows, pa.RecordBatch):
        rows = pa.Table.from_batches([rows])
    elif type(rows).__module__.partition(".")[0] == "pandas":
        rows = pa.Table.from_pandas(rows, preserve_index=False)
    if isinstance(rows, pa.Table):
        yield from rows.combine_chunks().to_batches(max_chunksize=LOAD_BATCH_ROWS)
    else:
        yield from pa.RecordBatchReader.from_stream(rows)


def read_split(shaping: Shaping, number: int, split: Split) -> Iterator[Part]:
    """Read and shape one split. Runs in an executor; safe to run twice.

    Rows and reports have origins of the form `number:place`, for `Origins` to resolve.

    Raises:
        InvalidInputError: a file is not what its name says.
        StorageError: it could not be read.
    """
    own = shaping_of(shaping, number)
    match split:
        case LineSplit():
            yield from _read_lines(own, split)
        case FileSplit():
            read = 0
            for piece in read_input(own, 0, split.file):
                yield Part(piece.shaped, 0, piece.bytes_read - read)
                read = piece.bytes_read
        case RowGroupSplit():
            yield from _read_row_groups(own, split)
        case MemorySplit():
            yield _read_memory(own, split)
        case SpooledSplit():
            yield from _read_spooled(own, split)
        case _:
            assert_never(split)


def read_frame(
    shaping: Shaping, number: int, type_name: str, batches: Iterable[pa.RecordBatch]
) -> Iterator[Part]:
    """Shape a partition of a DataFrame; like `read_split`."""
    own = shaping_of(shaping, number)
    first = 1
    for batch in batches:
        if batch.num_rows:
            shaped = shape_columns(own, type_name, _placed(batch, first), written=Written.VALUES)
            yield Part(shaped, batch.num_rows, 0)
            first += batch.num_rows


def shaping_of(shaping: Shaping, number: int) -> Shaping:
    """Shaping for one split: its number is the name of its rows, and its minted ids are its own."""
    seed = minted_id(shaping.seed, position(number, 1) - 1)
    return replace(shaping, names=(str(number),), seed=seed)


def _read_lines(shaping: Shaping, split: LineSplit) -> Iterator[Part]:
    with _reading(split.file), pa.OSFile(split.file.path, "rb") as file:
        stream = _Range(file, split)
        read = 0
        for batch in line_batches(stream, 0, split.file.name):
            shaped = shape_lines(shaping, batch, type_name=split.file.type_name)
            yield Part(shaped, batch.num_rows, stream.bytes_read - read)
            read = stream.bytes_read


def _read_spooled(shaping: Shaping, split: SpooledSplit) -> Iterator[Part]:
    data = split.scratch.take(split.path)
    # As before the lines of a range: what may begin a stream is found nowhere else.
    stream = BytesIO(data if split.is_first else b"\n" + data)
    for batch in line_batches(stream, 0, split.name):
        yield Part(shape_lines(shaping, batch), batch.num_rows, batch.nbytes)


class _Range:
    """The lines that begin within a range of a file's bytes, as one text.

    Unless the range is the file's first, an empty line stands before them: what may only be at the
    beginning of a file is then found nowhere else.
    """

    def __init__(self, file: pa.NativeFile, split: LineSplit) -> None:
        self._file = file
        self._left = split.byte_count
        self._is_skipping = split.start > 0
        self._has_ended = not split.byte_count
        self.bytes_read = 0
        if split.start:
            # A line that begins with the range follows a newline.
            file.seek(split.start - 1)
            self._left += 1

    def read(self, size: int) -> bytes:
        """Some more of the text; nothing at its end."""
        while self._left:
            data = self._from_file(min(size, self._left))
            self._left = self._left - len(data) if data else 0
            if self._is_skipping:
                end = data.find(b"\n")
                if end < 0:
                    continue
                self._is_skipping = False
                data = data[end:]
            self._has_ended = not self._left and data.endswith(b"\n")
            return data
        if self._has_ended or self._is_skipping:
            return b""
        # The last line may end beyond the range.
        data = self._from_file(_TAIL_BYTES)
        end = data.find(b"\n")
        self._has_ended = end >= 0 or not data
        return data[: end + 1] if end >= 0 else data

    def _from_file(self, size: int) -> bytes:
        data: bytes = self._file.read(size)
        self.bytes_read += len(data)
        return data


def _read_row_groups(shaping: Shaping, split: RowGroupSplit) -> Iterator[Part]:
    assert split.file.type_name is not None, "a file of columns has rows of one type"
    with _reading(split.file), pa.OSFile(split.file.path, "rb") as stream:
        file = pq.ParquetFile(stream)
        type_ = shaping.catalog.type_named(split.file.type_name)
        columns = known_columns(shaping, type_, file.schema_arrow.names, split.file.name)
        first = split.first
        if not split.groups:
            return
        for batch in file.iter_batches(
            LOAD_BATCH_ROWS, row_groups=list(split.groups), columns=columns
        ):
            shaped = shape_columns(
                shaping, type_.name, _placed(batch, first), written=Written.VALUES
            )
            first += batch.num_rows
            yield Part(shaped, 0, 0)
        yield Part(Shaped(), 0, split.byte_count)


def _read_memory(shaping: Shaping, split: MemorySplit) -> Part:
    rows = pickle.loads(split.rows)
    if isinstance(rows, pa.RecordBatch):
        placed = _placed(rows, split.first)
        shaped = shape_columns(shaping, split.type_name, placed, written=Written.VALUES)
    else:
        places = positions(0, split.first, len(rows))
        shaped = shape_values(shaping, split.type_name, rows, places)
    return Part(shaped, 0, split.byte_count)


def _placed(batch: pa.RecordBatch, first: int) -> pa.RecordBatch:
    fields = [pa.field(POSITION, pa.int64()), *batch.schema]
    columns = [positions(0, first, batch.num_rows), *batch.columns]
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))


@dataclass(frozen=True, slots=True)
class Origins:
    """Where the rows of each split stand in what a person gave: a name, and how far down."""

    names: Mapping[int, str]
    before: Mapping[int, int]

    @classmethod
    def of(
        cls,
        inputs: Inputs,
        splits: Sequence[Split],
        lines: Mapping[int, int],
        frames: Mapping[int, int],
    ) -> Origins:
        """Count on from split to split.

        Args:
            lines: How many lines were read of a split; for one that is not a file's first, the
                empty line before them counts.
            frames: The input that each partition of a DataFrame is of.
        """
        names: dict[int, str] = {}
        before: dict[int, int] = {}
        passed: dict[int, int] = {}
        sources = {number: each.source for number, each in enumerate(splits)} | dict(frames)
        for number in sorted(sources):
            source = sources[number]
            names[number] = inputs.each[source].name
            split = splits[number] if number < len(splits) else None
            extra = 1 if _has_empty_line(split) else 0
            before[number] = passed.get(source, 0) - extra
            passed[source] = passed.get(source, 0) + max(0, lines.get(number, 0) - extra)
        return cls(names, before)

    def resolve(self, origin: str) -> str:
        """The origin that a person knows, of one that a split gave."""
        number, _, place = origin.partition(":")
        return f"{self.names[int(number)]}:{self.before[int(number)] + int(place)}"

    def resolved(self, violation: Violation) -> Violation:
        """The violation with the origin that a person knows."""
        return replace(violation, origin=self.resolve(violation.origin))


def _has_empty_line(split: Split | None) -> bool:
    """Whether an empty line stands before those of a split."""
    match split:
        case LineSplit(start=start):
            return start > 0
        case SpooledSplit(is_first=is_first):
            return not is_first
        case _:
            return False


@contextmanager
def _reading(source: FileInput) -> Iterator[None]:
    """Re-raise what a file's reader raises as ours."""
    try:
        yield
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as cause:
        first = (str(cause).splitlines() or ["no reason given"])[0]
        message = f"{source.name} is not what its name says: {first[:300]}"
        hint = "check that it is whole, in UTF-8, and of the kind that its name says"
        raise InvalidInputError(message, hint=hint) from cause
    except OSError as cause:
        message = f"{source.name} cannot be read: {cause.strerror or cause}"
        hint = "check the file and its permissions; on a cluster, every worker must see it"
        raise StorageError(message, hint=hint) from cause
