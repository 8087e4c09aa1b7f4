"""Lines of JSON: in files, in ranges of them, in streams, and as a driver spooled them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from typing import Any, Final, assert_never

import numpy as np
import pyarrow as pa

from omnigraph.errors import LimitExceededError
from omnigraph.integrity.deltas import POSITION
from omnigraph.limits import LOAD_BLOCK_BYTES
from omnigraph.load.positions import positions
from omnigraph.load.readers.batches import SplitBatch
from omnigraph.load.readers.opening import UnpackingStream, open_file
from omnigraph.load.shaping.batches import Shaping
from omnigraph.load.shaping.lines import TEXT, shape_lines
from omnigraph.load.splits import FileSplit, LineRangeSplit, SpooledSplit, StreamSplit

LOAD_LINE_BYTES_MAX: Final = 512 << 20
"""The longest line; an input with a longer one is not a file of lines."""


_NEWLINE: Final = 10
_MARK: Final = b"\xef\xbb\xbf"
_TAIL_BYTES: Final = 1 << 12
"""How much is read at a time to find the end of a range's last line."""

LinesSplit = FileSplit | LineRangeSplit | StreamSplit | SpooledSplit


def read_lines(
    shaping: Shaping, number: int, split: LinesSplit, *, access_hint: str
) -> Iterator[SplitBatch]:
    """Read and shape lines."""
    name, type_name = _names(split)
    with _open_lines(split, access_hint) as (stream, bytes_read):
        for batch in line_batches(stream, number, name):
            shaped = shape_lines(shaping, batch, type_name=type_name)
            yield SplitBatch(shaped, bytes_read(), batch.num_rows)


def _names(split: LinesSplit) -> tuple[str, str | None]:
    match split:
        case FileSplit(file=file) | LineRangeSplit(file=file):
            return file.name, file.type_name
        case StreamSplit(input=source):
            return source.name, None
        case SpooledSplit(name=name):
            return name, None
        case _:
            assert_never(split)


@contextmanager
def _open_lines(split: LinesSplit, access_hint: str) -> Iterator[tuple[Any, Callable[[], int]]]:
    """The text of a split, and how many bytes of it were read so far."""
    match split:
        case FileSplit(file=file):
            with open_file(file, access_hint=access_hint) as (stream, raw):
                yield stream, raw.tell
        case LineRangeSplit(file=file):
            with open_file(file, access_hint=access_hint) as (_, raw):
                lines = _RangeStream(raw, split)
                yield lines, lambda: lines.bytes_read
        case StreamSplit(input=source):
            unpacked = UnpackingStream(source.stream, source.name)
            yield unpacked, lambda: unpacked.bytes_read
        case SpooledSplit():
            data = split.spool.take(split.path)
            # An empty line before it, as in `_RangeStream`.
            text = BytesIO(data if split.is_first else b"\n" + data)
            yield text, text.tell
        case _:
            assert_never(split)


def line_batches(stream: Any, number: int, name: str) -> Iterator[pa.RecordBatch]:
    """The lines of a text, with their newlines, in batches of about `LOAD_BLOCK_BYTES`.

    A line that is not UTF-8 is null.

    Args:
        stream: Anything with `read`, which returns bytes.
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
            lines = _split_lines(whole)
            yield pa.record_batch({POSITION: positions(number, place, len(lines)), TEXT: lines})
            place += len(lines)
        if not block:
            return


def _split_lines(data: bytes) -> pa.Array:
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
        return pa.array([_decode(line) for line in raw.to_pylist()], pa.utf8())
    return lines


def _decode(line: bytes) -> str | None:
    try:
        return line.decode()
    except UnicodeDecodeError:
        return None


class _RangeStream:
    """The lines that begin within a range of a file's bytes, as one text.

    Unless the range is the file's first, an empty line is put before them: a byte order mark is
    then recognised at the beginning of a file only.
    """

    def __init__(self, file: pa.NativeFile, split: LineRangeSplit) -> None:
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
        """More of the text; no bytes at its end."""
        while self._left:
            data = self._read_file(min(size, self._left))
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
        data = self._read_file(_TAIL_BYTES)
        end = data.find(b"\n")
        self._has_ended = end >= 0 or not data
        return data[: end + 1] if end >= 0 else data

    def _read_file(self, size: int) -> bytes:
        data: bytes = self._file.read(size)
        self.bytes_read += len(data)
        return data
