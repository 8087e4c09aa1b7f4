"""Splits: the parts of a load's inputs that are each read once, by one process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from omnigraph.load.positions import Origins
from omnigraph.load.routes import Route
from omnigraph.load.sources import FileInput, Inputs, MemoryInput, StreamInput


class Spool(Protocol):
    """Keeps bytes where every process can read them."""

    def put(self, name: str, data: bytes) -> str:
        """Write bytes under a name; their path."""
        ...

    def take(self, path: str) -> bytes:
        """The bytes at a path."""
        ...


@dataclass(frozen=True, slots=True)
class FileSplit:
    """A whole file, of any form. `source` is the number of its input, as in every split."""

    source: int
    file: FileInput

    @property
    def byte_count(self) -> int:
        """How many bytes there are to read, unpacked."""
        return self.file.unpacked_byte_count


@dataclass(frozen=True, slots=True)
class LineRangeSplit:
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
class RowGroupSplit:
    """Row groups of a Parquet file that follow one another; `first` is the number of a row."""

    source: int
    file: FileInput
    groups: tuple[int, ...]
    first: int
    byte_count: int


@dataclass(frozen=True, slots=True)
class StripeSplit:
    """Stripes of an ORC file that follow one another."""

    source: int
    file: FileInput
    stripes: tuple[int, ...]
    byte_count: int


@dataclass(frozen=True, slots=True)
class StreamSplit:
    """A whole stream, which only this process can read."""

    source: int
    input: StreamInput


@dataclass(frozen=True, slots=True)
class SpooledSplit:
    """Whole lines of a stream, which the driver read and spooled."""

    source: int
    name: str
    spool: Spool
    path: str
    is_first: bool
    byte_count: int


@dataclass(frozen=True, slots=True)
class MemorySplit:
    """All rows of an input that this process holds."""

    source: int
    input: MemoryInput


@dataclass(frozen=True, slots=True)
class PickledSplit:
    """Rows that the driver holds and ships: some dictionaries, or a record batch."""

    source: int
    of: str | Route
    first: int
    rows: bytes = field(repr=False)

    @property
    def byte_count(self) -> int:
        """How much there is to read."""
        return len(self.rows)


LocalSplit = FileSplit | StreamSplit | MemorySplit
"""What this process can read."""

SharedSplit = FileSplit | LineRangeSplit | RowGroupSplit | StripeSplit | SpooledSplit | PickledSplit
"""What any process can read."""

Split = LocalSplit | SharedSplit


def find_origins(
    inputs: Inputs,
    splits: Sequence[SharedSplit],
    line_counts: Mapping[int, int],
    frames: Mapping[int, int],
) -> Origins:
    """Count lines from split to split: no file is read to count its lines.

    Args:
        line_counts: How many lines were read of a split; for one that is not a file's first, the
            empty line before them counts.
        frames: The input that each partition of a DataFrame is of.
    """
    names: dict[int, str] = {}
    before: dict[int, int] = {}
    passed: dict[int, int] = {}
    sources = {number: split.source for number, split in enumerate(splits)} | dict(frames)
    for number in sorted(sources):
        source = sources[number]
        names[number] = inputs.items[source].name
        extra = 1 if number < len(splits) and _has_empty_line(splits[number]) else 0
        before[number] = passed.get(source, 0) - extra
        passed[source] = passed.get(source, 0) + max(0, line_counts.get(number, 0) - extra)
    return Origins(names, before)


def _has_empty_line(split: SharedSplit) -> bool:
    """Whether an empty line is read before those of a split, since it is not its input's first."""
    match split:
        case LineRangeSplit(start=start):
            return start > 0
        case SpooledSplit(is_first=is_first):
            return not is_first
        case _:
            return False
