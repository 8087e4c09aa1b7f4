"""Reading: the inputs of a load in this process, a batch at a time, each read once."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Final, assert_never

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv

from omnigraph.errors import ErrorCode, InvalidInputError, LimitExceededError, StorageError
from omnigraph.formats.compression import Compression, suffix_of
from omnigraph.limits import LOAD_BATCH_ROWS, LOAD_BLOCK_BYTES, LOAD_LINE_BYTES_MAX
from omnigraph.pipeline.columns import Written
from omnigraph.pipeline.positions import POSITION, position, positions
from omnigraph.pipeline.shape import (
    TEXT,
    Shaped,
    Shaping,
    known_columns,
    refused_line,
    shape_columns,
    shape_lines,
    shape_values,
)
from omnigraph.pipeline.sources import (
    FileInput,
    Form,
    FrameInput,
    Input,
    MemoryInput,
    StreamInput,
)

_NEWLINE: Final = 10
_MARK: Final = b"\xef\xbb\xbf"
_MAGIC: Final = {b"\x1f\x8b": Compression.GZIP, b"\x28\xb5\x2f\xfd": Compression.ZSTD}


@dataclass(frozen=True, slots=True)
class Piece:
    """Some rows, shaped, and how many bytes of the input were read so far, if it has any."""

    shaped: Shaped
    bytes_read: int


def read_input(shaping: Shaping, number: int, source: Input) -> Iterator[Piece]:
    """Read and shape one input, from beginning to end.

    Args:
        number: Its place among the inputs of the load.

    Raises:
        InvalidInputError: it is not what its name says, or has columns that no property takes.
        StorageError: it could not be read.
    """
    match source:
        case FileInput():
            yield from _FILES[source.form](shaping, number, source)
        case StreamInput():
            stream = Unpacked(source.stream)
            for batch in line_batches(stream, number, source.name):
                yield Piece(shape_lines(shaping, batch), stream.bytes_read)
        case MemoryInput():
            yield from _memory(shaping, number, source)
        case FrameInput():
            message = f"the rows of {source.type_name} are Spark's, and only Spark can load them"
            raise InvalidInputError(message, hint="load them with the engine spark")
        case _:
            assert_never(source)


def _line_file(shaping: Shaping, number: int, source: FileInput) -> Iterator[Piece]:
    with _opened(source) as (stream, file):
        for batch in line_batches(stream, number, source.name):
            yield Piece(shape_lines(shaping, batch, type_name=source.type_name), file.tell())


def line_batches(stream: Any, number: int, name: str) -> Iterator[pa.RecordBatch]:
    """The lines of a text, with their newlines, in batches of about `LOAD_BLOCK_BYTES`.

    A line that is not UTF-8 is null.

    Args:
        stream: Anything with `read`, which gives bytes.

    Raises:
        LimitExceededError: a line is longer than any may be.
    """
    rest, place = b"", 1
    while True:
        block = stream.read(LOAD_BLOCK_BYTES)
        if place == 1 and not rest:
            block = block.removeprefix(_MARK)
        data = rest + block if rest else block
        cut = len(data) if not block else data.rfind(b"\n") + 1
        if len(data) - cut > LOAD_LINE_BYTES_MAX:
            message = f"a line of {name} has more than {LOAD_LINE_BYTES_MAX:,} bytes"
            raise LimitExceededError(message, hint="a graph file has one row on each line")
        whole, rest = data[:cut], data[cut:]
        if whole:
            lines = _split(whole)
            yield pa.record_batch({POSITION: positions(number, place, len(lines)), TEXT: lines})
            place += len(lines)
        if not block:
            return


def _split(data: bytes) -> pa.Array:
    """The lines of a text, without copying it."""
    if not data.endswith(b"\n"):
        data += b"\n"
    ends = np.flatnonzero(np.frombuffer(data, np.uint8) == _NEWLINE) + 1
    offsets = np.concatenate([[0], ends]).astype(np.int32)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    lines = pa.Array.from_buffers(pa.utf8(), len(ends), buffers)
    try:
        lines.validate(full=True)
    except pa.ArrowInvalid:
        raw = pa.Array.from_buffers(pa.binary(), len(ends), buffers)
        return pa.array([_decoded(each) for each in raw.to_pylist()], pa.utf8())
    return lines


def _decoded(line: bytes) -> str | None:
    try:
        return line.decode()
    except UnicodeDecodeError:
        return None


def _parquet_file(shaping: Shaping, number: int, source: FileInput) -> Iterator[Piece]:
    # Imported here: most loads need none of it.
    import pyarrow.parquet as pq

    assert source.type_name is not None, "a file of columns has rows of one type"
    require_bytes(source)
    with _opened(source) as (stream, _), _translating(source.name):
        file = pq.ParquetFile(stream)
        type_ = shaping.catalog.type_named(source.type_name)
        columns = known_columns(shaping, type_, file.schema_arrow.names, source.name)
        batches = file.iter_batches(batch_size=LOAD_BATCH_ROWS, columns=columns)
        total = max(1, file.metadata.num_rows)
        done = 0
        for shaped in _columns(shaping, number, source.type_name, batches):
            done += LOAD_BATCH_ROWS
            yield Piece(shaped, source.byte_count * min(done, total) // total)


def require_bytes(source: FileInput) -> None:
    """Refuse a Parquet file that is empty: one without rows is not.

    Raises:
        InvalidInputError: it is.
    """
    if not source.byte_count:
        message = f"{source.name} is empty, and so no Parquet file"
        raise InvalidInputError(message, hint="write it again; one without rows has its columns")


def _columns(
    shaping: Shaping, number: int, type_name: str, batches: Any, *, first: int = 1
) -> Iterator[Shaped]:
    for batch in batches:
        if not batch.num_rows:
            continue
        placed = _placed(batch, positions(number, first, batch.num_rows))
        first += batch.num_rows
        yield shape_columns(shaping, type_name, placed, written=Written.VALUES)


def _placed(batch: pa.RecordBatch, found: pa.Array) -> pa.RecordBatch:
    fields = [pa.field(POSITION, pa.int64()), *batch.schema]
    return pa.RecordBatch.from_arrays([found, *batch.columns], schema=pa.schema(fields))


def _csv_file(shaping: Shaping, number: int, source: FileInput) -> Iterator[Piece]:
    assert source.type_name is not None, "a file of columns has rows of one type"
    with _opened(source) as (stream, _):
        names = _header(stream, source)
    known_columns(shaping, shaping.catalog.type_named(source.type_name), names, source.name)
    rows = _CsvRows(number)
    with _opened(source) as (stream, file), _decoding(source), _translating(source.name):
        reader = pcsv.open_csv(
            stream,
            # One thread, so that a row that is refused has its number.
            read_options=pcsv.ReadOptions(use_threads=False, block_size=_CSV_BLOCK_BYTES),
            parse_options=pcsv.ParseOptions(
                newlines_in_values=True,
                ignore_empty_lines=False,
                invalid_row_handler=rows.refuse,
            ),
            convert_options=pcsv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.utf8()),
                # An empty field is null, and a quoted one an empty text.
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
                null_values=[""],
            ),
        )
        for batch in reader:
            placed = rows.placed(batch)
            if placed.num_rows:
                shaped = shape_columns(shaping, source.type_name, placed, written=Written.TEXT)
                yield Piece(shaped, file.tell())
    for place, text, reason in rows.refused():
        at = position(number, place)
        yield Piece(refused_line(shaping, at, text, reason), source.byte_count)


_CSV_BLOCK_BYTES: Final = 4 << 20


def _header(stream: Any, source: FileInput) -> list[str]:
    text = io.TextIOWrapper(io.BufferedReader(_Raw(stream)), encoding="utf-8-sig", newline="")
    try:
        return next(csv.reader(text))
    except StopIteration:
        message = f"{source.name} is empty"
        raise InvalidInputError(message, hint="the first line names the columns") from None
    except UnicodeDecodeError as cause:
        raise _not_utf8(source) from cause
    except csv.Error as cause:
        message = f"the first line of {source.name} names no columns: {cause}"
        raise InvalidInputError(message, hint="write their names with commas between") from cause


@contextmanager
def _decoding(source: FileInput) -> Iterator[None]:
    """Say of a text that is not UTF-8 where that is."""
    try:
        yield
    except InvalidInputError as refusal:
        if "UTF8" in refusal.message:
            raise _not_utf8(source) from refusal
        raise


def _not_utf8(source: FileInput) -> InvalidInputError:
    """Names the first line that is not UTF-8; the file is read again for it."""
    message = f"{source.name} is not UTF-8"
    with _opened(source) as (stream, _):
        for number, line in enumerate(io.BufferedReader(_Raw(stream)), 1):
            try:
                line.decode()
            except UnicodeDecodeError as cause:
                at = cause.start
                message = f"line {number} of {message}: its byte {at + 1} is {line[at]:#04x}"
                break
    return InvalidInputError(message, hint="save it as UTF-8")


class _Raw(io.RawIOBase):
    """A stream of Arrow, for Python's readers of text."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._stream.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


@dataclass(slots=True)
class _CsvRows:
    """Keeps count of the lines of a CSV file, of which some are blank and some are refused."""

    number: int
    next_row: int = 2
    more_lines: int = 0
    """Lines that quoted fields of the rows so far have beyond the first."""
    wrong: dict[int, tuple[str, str]] = field(default_factory=dict)
    lines: dict[int, int] = field(default_factory=dict)
    """The lines of rows that are refused."""

    def refuse(self, row: Any) -> str:
        columns = "1 column" if row.actual_columns == 1 else f"{row.actual_columns} columns"
        reason = f"it has {columns}, and the first line has {row.expected_columns}"
        if row.text.count('"') % 2:
            reason = "a quote is opened in it and never closed"
        self.wrong[row.number] = row.text, reason
        return "skip"

    def placed(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows that are not blank, each with its position."""
        refused = np.array(sorted(each for each in self.wrong if each >= self.next_row), np.int64)
        rows = np.arange(self.next_row, self.next_row + batch.num_rows + len(refused))
        rows = rows[~np.isin(rows, refused)][: batch.num_rows]
        end = int(rows[-1]) + 1 if len(rows) else self.next_row
        inside = np.zeros(end - self.next_row, dtype=np.int64)
        inside[rows - self.next_row] = _breaks(batch)
        passed = refused[refused < end]
        inside[passed - self.next_row] = [self.wrong[each][0].count("\n") for each in passed]
        lines = np.arange(self.next_row, end) + self.more_lines + np.cumsum(inside) - inside
        self.lines.update(zip(passed.tolist(), lines[passed - self.next_row].tolist(), strict=True))
        found = pa.array(position(self.number, 1) - 1 + lines[rows - self.next_row])
        self.more_lines += int(inside.sum())
        self.next_row = end
        placed = _placed(batch, found)
        blank = np.ones(batch.num_rows, dtype=np.bool_)
        for each in batch.columns:
            blank &= each.is_null().to_numpy(zero_copy_only=False)
        return placed.filter(pa.array(~blank)) if blank.any() else placed

    def refused(self) -> Iterator[tuple[int, str, str]]:
        for row, (text, reason) in sorted(self.wrong.items()):
            yield self.lines.get(row, row + self.more_lines), text, reason


def _breaks(batch: pa.RecordBatch) -> npt.NDArray[np.int64]:
    """How many line breaks the fields of each row have."""
    found = np.zeros(batch.num_rows, dtype=np.int64)
    for each in batch.columns:
        if pc.any(pc.match_substring(each, "\n")).as_py():
            found += pc.fill_null(pc.count_substring(each, "\n"), 0).to_numpy()
    return found


def _memory(shaping: Shaping, number: int, source: MemoryInput) -> Iterator[Piece]:
    rows = source.rows
    if isinstance(rows, Sequence):
        for first in range(0, len(rows), LOAD_BATCH_ROWS):
            part: list[Mapping[str, Any]] = list(rows[first : first + LOAD_BATCH_ROWS])
            places = positions(number, first + 1, len(part))
            yield Piece(shape_values(shaping, source.type_name, part, places), 0)
        return
    with _translating(f"the rows of {source.type_name}"):
        for shaped in _columns(shaping, number, source.type_name, _arrow_batches(rows)):
            yield Piece(shaped, 0)


def _arrow_batches(rows: Any) -> Iterator[pa.RecordBatch]:
    if isinstance(rows, pa.RecordBatch):
        rows = pa.Table.from_batches([rows])
    elif type(rows).__module__.partition(".")[0] == "pandas":
        rows = pa.Table.from_pandas(rows, preserve_index=False)
    if isinstance(rows, pa.Table):
        # Chunks of columns need not lie alike; whole columns are cut in one way.
        yield from rows.combine_chunks().to_batches(max_chunksize=LOAD_BATCH_ROWS)
    else:
        yield from pa.RecordBatchReader.from_stream(rows)


_FILES: Final = {
    Form.LINES: _line_file,
    Form.CSV: _csv_file,
    Form.PARQUET: _parquet_file,
}


class Unpacked:
    """A stream that is unpacked if its first bytes say so."""

    def __init__(self, stream: BinaryIO) -> None:
        self._source = _Counted(stream)
        first = self._source.peek(4)
        codec = next((each for magic, each in _MAGIC.items() if first.startswith(magic)), None)
        self._stream: Any = self._source
        if codec is not None:
            file = pa.PythonFile(self._source, mode="r")
            self._stream = pa.CompressedInputStream(file, codec.value)

    @property
    def bytes_read(self) -> int:
        """How much of the stream was read, before it was unpacked."""
        return self._source.bytes_read

    def read(self, size: int) -> bytes:
        """Some more of what it holds; nothing at its end."""
        data: bytes = self._stream.read(size)
        return data


class _Counted:
    """A stream whose first bytes can be looked at; it may give fewer bytes than asked for."""

    closed = False

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._peeked = b""
        self.bytes_read = 0

    def peek(self, size: int) -> bytes:
        while len(self._peeked) < size and (more := self._stream.read(size - len(self._peeked))):
            self._peeked += more
        return self._peeked

    def read(self, size: int = -1) -> bytes:
        data = self._peeked or self._stream.read(size)
        self._peeked = b""
        self.bytes_read += len(data)
        return data

    def close(self) -> None:
        """It belongs to the caller."""


@contextmanager
def _opened(source: FileInput) -> Iterator[tuple[Any, pa.NativeFile]]:
    """The contents of a file, and the file itself, which knows how far it was read."""
    try:
        with pa.OSFile(source.path, "rb") as file:
            if source.compression is None:
                yield file, file
                return
            with pa.CompressedInputStream(file, source.compression.value) as stream:
                yield stream, file
    except pa.ArrowInvalid as cause:
        raise _unpackable(source, cause) from cause
    except OSError as cause:
        if isinstance(cause, FileNotFoundError | PermissionError) or cause.errno is not None:
            message = f"{source.name} cannot be read: {cause.strerror or cause}"
            raise StorageError(message, hint="check the file and its permissions") from cause
        # Arrow says so when a compressed file is cut off or is none.
        raise _unpackable(source, cause) from cause


def _unpackable(source: FileInput, cause: BaseException) -> InvalidInputError:
    if source.compression is None:
        return _unreadable(source.name, cause)
    message = f"{source.name} cannot be unpacked: it is not {source.compression}, or not whole"
    hint = (
        f"pack it again, or take {suffix_of(source.compression)} from its name if it is not packed"
    )
    return InvalidInputError(message, hint=hint)


@contextmanager
def _translating(name: str) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as cause:
        raise _unreadable(name, cause) from cause


def _unreadable(name: str, cause: BaseException) -> InvalidInputError:
    first = (str(cause).splitlines() or ["no reason given"])[0]
    message = f"{name} is not what its name says: {first[:300]}"
    hint = "check that it is whole, in UTF-8, and of the kind that its name says"
    return InvalidInputError(message, hint=hint, code=ErrorCode.INVALID_INPUT)
