"""CSV files: rows whose fields are text, with the number of the line that each begins at."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
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
from omnigraph.load.positions import position
from omnigraph.load.readers.batches import SplitBatch, with_positions
from omnigraph.load.readers.opening import open_file, translate_errors
from omnigraph.load.shaping.batches import Shaping
from omnigraph.load.shaping.columns import known_columns, shape_columns
from omnigraph.load.shaping.lines import refused_line
from omnigraph.load.sources import FileInput
from omnigraph.load.splits import FileSplit

_CSV_BLOCK_BYTES: Final = 4 << 20


def read_csv(
    shaping: Shaping, number: int, split: FileSplit, *, access_hint: str
) -> Iterator[SplitBatch]:
    """Read and shape a file.

    Raises:
        InvalidInputError: it is not what its name says, or has columns that no property takes.
        StorageError: it could not be read.
    """
    source = split.file
    assert source.type_name is not None, "a file of columns has rows of one type"
    with open_file(source, access_hint=access_hint) as (stream, _):
        names = _read_header(stream, source)
    known_columns(shaping, shaping.catalog.type_named(source.type_name), names, source.name)
    rows = _CsvRows(number)
    with (
        open_file(source, access_hint=access_hint) as (stream, file),
        _locate_decoding_errors(source),
        translate_errors(source.name),
    ):
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
            placed = rows.with_positions(batch)
            if placed.num_rows:
                shaped = shape_columns(shaping, source.type_name, placed, notation=Notation.TEXT)
                yield SplitBatch(shaped, file.tell())
    for place, text, reason in rows.refused_rows():
        at = position(number, place)
        yield SplitBatch(refused_line(shaping, at, text, reason), source.byte_count)


def _read_header(stream: Any, source: FileInput) -> list[str]:
    text = io.TextIOWrapper(io.BufferedReader(_RawStream(stream)), encoding="utf-8-sig", newline="")
    try:
        return next(csv.reader(text))
    except StopIteration:
        message = f"{source.name} is empty"
        raise InvalidInputError(message, hint="the first line names the columns") from None
    except UnicodeDecodeError as cause:
        raise _encoding_error(source) from cause
    except csv.Error as cause:
        message = f"the first line of {source.name} names no columns: {cause}"
        raise InvalidInputError(message, hint="write their names with commas between") from cause


@contextmanager
def _locate_decoding_errors(source: FileInput) -> Iterator[None]:
    """Name the line that is not UTF-8 in the error."""
    try:
        yield
    except InvalidInputError as refusal:
        if "UTF8" in refusal.message:
            raise _encoding_error(source) from refusal
        raise


def _encoding_error(source: FileInput) -> InvalidInputError:
    """An error that names the first line that is not UTF-8; the file is read again for it."""
    message = f"{source.name} is not UTF-8"
    with open_file(source) as (stream, _):
        for number, line in enumerate(io.BufferedReader(_RawStream(stream)), 1):
            try:
                line.decode()
            except UnicodeDecodeError as cause:
                at = cause.start
                message = f"line {number} of {message}: its byte {at + 1} is {line[at]:#04x}"
                break
    return InvalidInputError(message, hint="save it as UTF-8")


class _RawStream(io.RawIOBase):
    """An Arrow stream, for Python's readers of text."""

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
    """Counts the lines of a CSV file, of which some are blank and some are refused."""

    number: int
    next_row: int = 2
    more_lines: int = 0
    """Lines that quoted fields of the rows so far have beyond the first."""
    refused: dict[int, tuple[str, str]] = field(default_factory=dict)
    lines: dict[int, int] = field(default_factory=dict)
    """The lines of rows that are refused."""

    def refuse(self, row: Any) -> str:
        columns = "1 column" if row.actual_columns == 1 else f"{row.actual_columns} columns"
        reason = f"it has {columns}, and the first line has {row.expected_columns}"
        if row.text.count('"') % 2:
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
        inside[passed - self.next_row] = [self.refused[row][0].count("\n") for row in passed]
        lines = np.arange(self.next_row, end) + self.more_lines + np.cumsum(inside) - inside
        self.lines.update(zip(passed.tolist(), lines[passed - self.next_row].tolist(), strict=True))
        positions = pa.array(position(self.number, 1) - 1 + lines[rows - self.next_row])
        self.more_lines += int(inside.sum())
        self.next_row = end
        placed = with_positions(batch, positions)
        blank = np.ones(batch.num_rows, dtype=np.bool_)
        for column in batch.columns:
            blank &= column.is_null().to_numpy(zero_copy_only=False)
        return placed.filter(pa.array(~blank)) if blank.any() else placed

    def refused_rows(self) -> Iterator[tuple[int, str, str]]:
        for row, (text, reason) in sorted(self.refused.items()):
            yield self.lines.get(row, row + self.more_lines), text, reason


def _count_breaks(batch: pa.RecordBatch) -> npt.NDArray[np.int64]:
    """How many line breaks the fields of each row have."""
    counts = np.zeros(batch.num_rows, dtype=np.int64)
    for column in batch.columns:
        if pc.any(pc.match_substring(column, "\n")).as_py():
            counts += pc.fill_null(pc.count_substring(column, "\n"), 0).to_numpy()
    return counts
