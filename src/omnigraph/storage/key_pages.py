"""Pages of indexes of ids in memory: the addresses of the rows that an index has for an id.

To read a page takes several times as long as to read one more beside it. So each time that a page
of a segment is missing, twice as many are read: a single lookup reads a single page, and a handle
that looks up ids again and again soon has them all.
"""

from __future__ import annotations

import threading
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

import numpy as np
import pyarrow as pa
from lance.file import LanceFileReader

from omnigraph.limits import KEPT_KEY_PAGES_BYTES_MAX, KEY_PAGES_PER_READ_MAX
from omnigraph.storage.file_readers import FileReaders

_SEGMENTS_MAX: Final = 256
"""Segments of indexes whose outlines stay in memory."""


@dataclass(slots=True)
class _ReadAhead:
    """How much of a segment is worth reading at once.

    Attributes:
        pages_max: The pages that the next read may have.
        byte_count: The size of all that was read, whether it is still in memory or not.
    """

    pages_max: int = 1
    byte_count: int = 0

    def add(self, byte_count: int) -> None:
        """Note what one more read has returned."""
        self.byte_count += byte_count
        # A segment that does not fit into memory would never be there as a whole.
        fits = self.byte_count < KEPT_KEY_PAGES_BYTES_MAX
        self.pages_max = min(2 * self.pages_max, KEY_PAGES_PER_READ_MAX) if fits else 1


@dataclass(frozen=True, slots=True)
class _Outline:
    """Where the ids of a segment are: the pages in the order of their ids, which are ascending.

    Attributes:
        lows: The lowest id of each page, and `highs` the highest.
        numbers: The number of each page in the file.
        page_rows: How many ids a page has, but for the last one.
        row_count: How many ids there are.
    """

    readers: FileReaders
    row_count: int
    lows: list[str]
    highs: list[str]
    numbers: list[int]
    page_rows: int
    ahead: _ReadAhead = field(default_factory=_ReadAhead)

    def pages_of(self, id_: str) -> Iterator[int]:
        """The numbers of the pages that may have an id."""
        first = bisect_left(self.highs, id_)
        yield from self.numbers[first : bisect_right(self.lows, id_)]

    def pages_with(self, number: int) -> range:
        """The numbers of a page that is missing, and of those that are to be read with it.

        Ranges of one size do not overlap, so that few reads have all pages.
        """
        count = self.ahead.pages_max
        first = number // count * count
        return range(first, min(first + count, len(self.numbers)))


@dataclass(frozen=True, slots=True)
class _Page:
    ids: pa.Array
    addresses: np.ndarray

    def find(self, id_: str) -> Iterator[int]:
        """The addresses of the rows with an id, which are next to each other."""
        place = bisect_left(range(len(self.ids)), id_, key=self._id)
        while place < len(self.ids) and self._id(place) == id_:
            yield int(self.addresses[place])
            place += 1

    def _id(self, place: int) -> str:
        text: str = self.ids[place].as_py()
        return text

    @property
    def byte_count(self) -> int:
        return int(self.ids.nbytes + self.addresses.nbytes)


class KeyPages:
    """What was read of indexes of ids; threads may share it."""

    def __init__(self) -> None:
        self._outlines: OrderedDict[str, _Outline | None] = OrderedDict()
        self._pages: OrderedDict[tuple[str, int], _Page] = OrderedDict()
        self._byte_count = 0
        self._lock = threading.Lock()

    def find(self, folder: str, id_: str) -> list[int] | None:
        """The addresses that a segment has for an id; None if it has another form than expected.

        Args:
            folder: The folder with the files of the segment.
        """
        with self._lock:
            is_known = folder in self._outlines
            outline = self._outlines.get(folder)
        if not is_known:
            outline = _read_outline(folder)
            with self._lock:
                self._outlines[folder] = outline
                while len(self._outlines) > _SEGMENTS_MAX:
                    self._outlines.popitem(last=False)
        if outline is None:
            return None
        numbers = outline.pages_of(id_)
        return [
            address
            for number in numbers
            for address in self._page(folder, outline, number).find(id_)
        ]

    def _page(self, folder: str, outline: _Outline, number: int) -> _Page:
        key = folder, number
        with self._lock:
            if (known := self._pages.get(key)) is not None:
                self._pages.move_to_end(key)
                return known
            numbers = outline.pages_with(number)
        pages = dict(zip(numbers, _read_pages(outline, numbers), strict=True))
        with self._lock:
            outline.ahead.add(sum(page.byte_count for page in pages.values()))
            # What was looked for is dropped last.
            for each in sorted(pages, key=lambda each: each == number):
                self._keep((folder, each), pages[each])
        return pages[number]

    def _keep(self, key: tuple[str, int], page: _Page) -> None:
        if key not in self._pages:
            self._pages[key] = page
            self._byte_count += page.byte_count
        while self._byte_count > KEPT_KEY_PAGES_BYTES_MAX:
            _, dropped = self._pages.popitem(last=False)
            self._byte_count -= dropped.byte_count


def _read_outline(folder: str) -> _Outline | None:
    lookup = LanceFileReader(f"{folder}/page_lookup.lance")
    facts = lookup.metadata().schema.metadata or {}
    pages = lookup.read_all().to_table()
    if facts.get(b"range_partitioned", b"false") != b"false" or b"batch_size" not in facts:
        return None
    lows, highs = pages["min"].to_pylist(), pages["max"].to_pylist()
    bounds = [bound for pair in zip(lows, highs, strict=True) for bound in pair]
    if None in bounds or any(left > right for left, right in pairwise(bounds)):
        return None
    readers = FileReaders(f"{folder}/page_data.lance")
    with readers.borrow() as reader:
        row_count = reader.num_rows()
    return _Outline(
        readers,
        row_count,
        lows,
        highs,
        pages["page_idx"].to_pylist(),
        int(facts[b"batch_size"]),
    )


def _read_pages(outline: _Outline, numbers: range) -> Iterator[_Page]:
    """Pages that are next to each other in the file."""
    start = numbers.start * outline.page_rows
    count = min(len(numbers) * outline.page_rows, outline.row_count - start)
    # A batch for each page: smaller ones take a while each, and larger ones are freed as a whole.
    with outline.readers.borrow() as reader:
        rows = reader.read_range(start, count, batch_size=outline.page_rows).to_table()
    for first in range(0, count, outline.page_rows):
        page = rows.slice(first, outline.page_rows).combine_chunks()
        yield _Page(page["values"].chunk(0), page["ids"].to_numpy())
