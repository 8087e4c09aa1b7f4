"""CSV files: rows whose fields are text, with the number of the line that each begins at."""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv

from omnigraph.conversion.typed_columns import Notation
from omnigraph.errors import InvalidInputError
from omnigraph.integrity.deltas import POSITION
from omnigraph.load.dialects import UTF8, CsvDialect
from omnigraph.load.positions import position
from omnigraph.load.readers.batches import SplitBatch, named_columns, with_positions
from omnigraph.load.readers.opening import RawStream, open_file, translate_errors
from omnigraph.load.shaping.batches import Shaping
from omnigraph.load.shaping.columns import shape_columns
from omnigraph.load.shaping.lines import refused_line
from omnigraph.load.sources import FileInput
from omnigraph.load.splits import FileSplit

_CSV_BLOCK_BYTES: Final = 4 << 20
_BLOCKS_BYTES: Final = (_CSV_BLOCK_BYTES, 64 << 20, 1 << 30)
"""A row has to fit in a block; a file with a longer one is read again in larger blocks."""
_TOO_LONG: Final = "straddling"
"""What Arrow says of such a row."""
_NEWLINE: Final = ord("\n")
_BREAKS: Final = {"\n": 1, "\r": 1, "\r\n": -1}
"""The ends of lines, and how often each counts: both together are one."""


def read_csv(
    shaping: Shaping, number: int, split: FileSplit, *, access_hint: str
) -> Iterator[SplitBatch]:
    """Read and shape a file."""
    source = split.file
    assert source.type_name is not None, "a file of columns has rows of one type"
    dialect = source.dialect
    with open_file(source, access_hint=access_hint) as (stream, _):
        if dialect.header and not stream.read(1):
            return
        columns = list(dialect.header) or _read_header(stream, source)
    type_ = shaping.catalog.type_named(source.type_name)
    named = named_columns(shaping, type_, columns, source)
    last = 0
    for block_bytes in _BLOCKS_BYTES:
        rows = _CsvRows(
            number, dialect, 0 if dialect.header else sum(map(_count_text_breaks, columns))
        )
        try:
            for placed, bytes_read in _read_rows(rows, source, columns, block_bytes, access_hint):
                # A smaller block may have read some of them.
                own = placed.filter(pc.greater(placed[POSITION], last))
                if own.num_rows:
                    last = own[POSITION][-1].as_py()
                    own = own.select([POSITION, *named.values()]).rename_columns([POSITION, *named])
                    shaped = shape_columns(shaping, type_.name, own, notation=Notation.TEXT)
                    yield SplitBatch(shaped, bytes_read)
        except _RowTooLongError:
            continue
        break
    else:
        message = f"{source.name} has a row of more than {_BLOCKS_BYTES[-1]:,} bytes"
        raise InvalidInputError(message, hint="check that its quotes are closed")
    for place, text, reason in rows.refused_rows():
        at = position(number, place)
        yield SplitBatch(refused_line(shaping, at, text, reason), source.byte_count)


class _RowTooLongError(Exception):
    """A row is longer than a block."""


@contextmanager
def _find_long_rows() -> Iterator[None]:
    try:
        yield
    except pa.ArrowInvalid as cause:
        if _TOO_LONG in str(cause):
            raise _RowTooLongError from cause
        raise


def _read_rows(
    rows: _CsvRows, source: FileInput, columns: Iterable[str], block_bytes: int, access_hint: str
) -> Iterator[tuple[pa.RecordBatch, int]]:
    """The rows with their positions, and how much of the file was read with each batch."""
    dialect = source.dialect
    with (
        open_file(source, access_hint=access_hint) as (stream, file),
        _locate_decoding_errors(source),
        translate_errors(source.name),
        _find_long_rows(),
    ):
        if not dialect.is_utf8:
            stream = pa.transcoding_input_stream(stream, dialect.encoding, UTF8)
        rows.text = _CsvText(stream)
        reader = pcsv.open_csv(
            pa.PythonFile(rows.text, mode="r"),
            # One thread, so that a row that is refused has its number.
            read_options=pcsv.ReadOptions(
                use_threads=False,
                block_size=block_bytes,
                column_names=list(dialect.header),
            ),
            parse_options=pcsv.ParseOptions(
                delimiter=dialect.delimiter,
                quote_char=dialect.quote or False,
                double_quote=not dialect.escape,
                escape_char=dialect.escape or False,
                newlines_in_values=True,
                # Blank lines count as rows, so that the number of a row tells its line.
                ignore_empty_lines=False,
                invalid_row_handler=rows.refuse,
            ),
            convert_options=pcsv.ConvertOptions(
                column_types=dict.fromkeys(columns, pa.utf8()),
                # An empty field is null, and a quoted one an empty text.
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
                null_values=["", *dialect.null],
            ),
        )
        for batch in reader:
            yield rows.with_positions(batch), file.tell()


def _read_header(stream: Any, source: FileInput) -> list[str]:
    dialect = source.dialect
    encoding = "utf-8-sig" if dialect.is_utf8 else dialect.encoding
    text = io.TextIOWrapper(io.BufferedReader(RawStream(stream)), encoding=encoding, newline="")
    try:
        return next(
            csv.reader(
                _without_mark(text),
                delimiter=dialect.delimiter,
                quotechar=dialect.quote or None,
                quoting=csv.QUOTE_MINIMAL if dialect.quote else csv.QUOTE_NONE,
                doublequote=not dialect.escape,
                escapechar=dialect.escape or None,
            )
        )
    except StopIteration:
        message = f"{source.name} is empty"
        raise InvalidInputError(message, hint="the first line names the columns") from None
    except UnicodeDecodeError as cause:
        raise _encoding_error(source) from cause
    except csv.Error as cause:
        message = f"the first line of {source.name} names no columns: {cause}"
        hint = f"write their names with {dialect.delimiter!r} between"
        raise InvalidInputError(message, hint=hint) from cause


def _without_mark(lines: Iterable[str]) -> Iterator[str]:
    """The lines without a byte order mark, which encodings that name their order do not remove."""
    for number, line in enumerate(lines):
        yield line if number else line.removeprefix(codecs.BOM_UTF8.decode())


@contextmanager
def _locate_decoding_errors(source: FileInput) -> Iterator[None]:
    """Name the line that cannot be decoded in the error."""
    try:
        yield
    except InvalidInputError as refusal:
        if "UTF8" in refusal.message or isinstance(refusal.__cause__, UnicodeDecodeError):
            raise _encoding_error(source) from refusal
        raise


def _encoding_error(source: FileInput) -> InvalidInputError:
    """An error that names the first line that cannot be decoded; the file is read for it again."""
    encoding = "UTF-8" if source.dialect.is_utf8 else source.dialect.encoding
    message = f"{source.name} is not {encoding}"
    decoder = codecs.getincrementaldecoder(encoding)()
    number, line = 1, ""
    with open_file(source) as (stream, _):
        has_more = True
        while has_more:
            block = stream.read(_CSV_BLOCK_BYTES)
            has_more = bool(block)
            try:
                text = decoder.decode(block, final=not has_more)
            except UnicodeDecodeError as cause:
                number, line = _go_on(number, line, cause.object[: cause.start].decode(encoding))
                place = len(line.encode(encoding)) - len("".encode(encoding)) + 1
                byte = f"its byte {place} is {cause.object[cause.start]:#04x}"
                message = f"line {number} of {message}: {byte}"
                break
            number, line = _go_on(number, line, text)
    hint = "save it as UTF-8, or name its encoding: --csv encoding=latin-1"
    return InvalidInputError(message, hint=hint)


def _go_on(number: int, line: str, text: str) -> tuple[int, str]:
    """The number and the beginning of the line that more text ends in."""
    before, newline, last = text.rpartition("\n")
    return number + before.count("\n") + len(newline), last if newline else line + last


class _CsvText:
    """The text of a CSV file, which remembers its empty lines while it is read.

    Arrow makes rows of nulls of empty lines, as it does of lines that have only delimiters. An
    empty line within a quoted field is remembered, too; no row begins there.
    """

    closed = False

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._is_first = True
        self._ends_in_return = False
        self._is_in_line = False
        self._line_count = 0
        self._empty: list[npt.NDArray[np.int64]] = []

    def read(self, size: int = -1) -> bytes:
        """More of the text; no bytes at its end."""
        data: bytes = self._stream.read(size)
        if data:
            self._look_at(data)
        return data

    def empty_lines(self, first: int) -> npt.NDArray[np.int64]:
        """The numbers of the empty lines from a line on, as far as the text was read.

        Those before it are forgotten.
        """
        self._empty = [lines for lines in self._empty if lines[-1] >= first]
        return np.concatenate(self._empty) if self._empty else np.empty(0, dtype=np.int64)

    def _look_at(self, data: bytes) -> None:
        text = data.removeprefix(codecs.BOM_UTF8) if self._is_first else data
        if self._ends_in_return:
            text = text.removeprefix(b"\n")
        self._is_first = False
        self._ends_in_return = data.endswith(b"\r")
        if b"\r" in text:
            text = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        if b"\n\n" in text or (text.startswith(b"\n") and not self._is_in_line):
            ends = np.flatnonzero(np.frombuffer(text, np.uint8) == _NEWLINE)
            lengths = np.diff(ends, prepend=-2 if self._is_in_line else -1) - 1
            self._empty.append(self._line_count + 1 + np.flatnonzero(lengths == 0))
        self._line_count += text.count(b"\n")
        if text:
            self._is_in_line = not text.endswith(b"\n")

    def close(self) -> None:
        """Whoever opened the stream closes it."""


@dataclass(slots=True)
class _CsvRows:
    """Counts the lines of a CSV file, of which some are blank and some are refused."""

    number: int
    dialect: CsvDialect
    more_lines: int
    """Lines that quoted fields of the rows so far have beyond the first."""
    text: _CsvText = field(init=False)
    next_row: int = field(init=False)
    refused: dict[int, tuple[str, str]] = field(default_factory=dict)
    lines: dict[int, int] = field(default_factory=dict)
    """The lines of rows that are refused."""

    def __post_init__(self) -> None:
        self.next_row = 1 if self.dialect.header else 2

    def refuse(self, row: Any) -> str:
        columns = "1 column" if row.actual_columns == 1 else f"{row.actual_columns} columns"
        names = "the header" if self.dialect.header else "the first line"
        reason = f"it has {columns}, and {names} has {row.expected_columns}"
        if self.dialect.quote and row.text.count(self.dialect.quote) % 2:
            reason = "a quote is opened in it and never closed"
        self.refused[row.number] = row.text, reason
        return "skip"

    def with_positions(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows that are not blank, each with its position."""
        refused = np.array(sorted(row for row in self.refused if row >= self.next_row), np.int64)
        rows = np.arange(self.next_row, self.next_row + batch.num_rows + len(refused))
        rows = rows[~np.isin(rows, refused)][: batch.num_rows]
        end = int(rows[-1]) + 1 if len(rows) else self.next_row
        inside = np.zeros(end - self.next_row, dtype=np.int64)
        inside[rows - self.next_row] = _count_breaks(batch)
        passed = refused[refused < end]
        inside[passed - self.next_row] = [
            _count_text_breaks(self.refused[row][0]) for row in passed
        ]
        lines = np.arange(self.next_row, end) + self.more_lines + np.cumsum(inside) - inside
        self.lines.update(zip(passed.tolist(), lines[passed - self.next_row].tolist(), strict=True))
        first_line = self.next_row + self.more_lines
        lines_of_rows = lines[rows - self.next_row]
        self.more_lines += int(inside.sum())
        self.next_row = end
        placed = with_positions(batch, pa.array(position(self.number, 1) - 1 + lines_of_rows))
        blank = np.ones(batch.num_rows, dtype=np.bool_)
        for column in batch.columns:
            blank &= column.is_null().to_numpy(zero_copy_only=False)
        if not blank.any():
            return placed
        blank &= np.isin(lines_of_rows, self.text.empty_lines(first_line))
        return placed.filter(pa.array(~blank))

    def refused_rows(self) -> Iterator[tuple[int, str, str]]:
        for row, (text, reason) in sorted(self.refused.items()):
            yield self.lines.get(row, row + self.more_lines), text, reason


def _count_breaks(batch: pa.RecordBatch) -> npt.NDArray[np.int64]:
    """How many line breaks the fields of each row have."""
    counts = np.zeros(batch.num_rows, dtype=np.int64)
    for column in batch.columns:
        for text, times in _BREAKS.items():
            if pc.any(pc.match_substring(column, text)).as_py():
                counts += times * pc.fill_null(pc.count_substring(column, text), 0).to_numpy()
    return counts


def _count_text_breaks(text: str) -> int:
    return sum(times * text.count(each) for each, times in _BREAKS.items())
