"""Pages of indexes of ids in memory: the addresses of the rows that an index has for an id."""

from __future__ import annotations

import threading
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pyarrow as pa
from lance.file import LanceFileReader

from omnigraph.limits import KEPT_KEY_PAGES_BYTES_MAX

_SEGMENTS_MAX: Final = 256
"""Segments of indexes whose outlines stay in memory."""


@dataclass(frozen=True, slots=True)
class _Outline:
    """Where the ids of a segment are: the pages in the order of their ids, which are ascending.

    Attributes:
        lows: The lowest id of each page, and `highs` the highest.
        numbers: The number of each page in the file.
        page_rows: How many ids a page has, but for the last one.
    """

    reader: Any
    lows: list[str]
    highs: list[str]
    numbers: list[int]
    page_rows: int

    def pages_of(self, id_: str) -> Iterator[int]:
        """The numbers of the pages that may have an id."""
        first = bisect_left(self.highs, id_)
        yield from self.numbers[first : bisect_right(self.lows, id_)]


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
        page = _read_page(outline, number)
        with self._lock:
            if key not in self._pages:
                self._pages[key] = page
                self._byte_count += page.byte_count
            while self._byte_count > KEPT_KEY_PAGES_BYTES_MAX:
                _, dropped = self._pages.popitem(last=False)
                self._byte_count -= dropped.byte_count
        return page


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
    return _Outline(
        LanceFileReader(f"{folder}/page_data.lance"),
        lows,
        highs,
        pages["page_idx"].to_pylist(),
        int(facts[b"batch_size"]),
    )


def _read_page(outline: _Outline, number: int) -> _Page:
    start = number * outline.page_rows
    count = min(outline.page_rows, outline.reader.num_rows() - start)
    # In one batch: of several, each takes a while by itself.
    rows = outline.reader.read_range(start, count, batch_size=count).to_table().combine_chunks()
    return _Page(rows["values"].chunk(0), rows["ids"].to_numpy())
