"""Texts of a version by their words: what an index has of the rows that it covers and are left.

Entries of rows that were updated or deleted since are left out, so the counts are exactly those of
the version. What is read of an index stays in memory, up to a number of bytes.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from omnigraph.choices import Analyzer
from omnigraph.limits import KEPT_WORDS_BYTES_MAX
from omnigraph.schema.catalog import TextOptions
from omnigraph.storage import filters
from omnigraph.storage.columns import layout_of
from omnigraph.storage.indexes import Segment, TableIndex, find_search_index
from omnigraph.storage.pieces import RowsKey
from omnigraph.storage.places import fragment_ids_of
from omnigraph.storage.postings import WordFile, read_word_files
from omnigraph.storage.row_positions import PositionShelf
from omnigraph.storage.tables import ROW_ADDRESS, Table, TableAddress

_VERSIONS_MAX: Final = 16
"""Versions of tables of which the texts that are left stay known."""


@dataclass(frozen=True, slots=True, eq=False)
class WordPart:
    """One file of an index, of which some texts are left.

    Attributes:
        positions: The position of each text in a scan of the version; -1 if it is not left.
    """

    file: WordFile
    positions: np.ndarray

    def count(self, words: Sequence[str]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The positions of the texts that have a word, how often each has each, and their lengths.

        Raises:
            StorageError: the file could not be read.
        """
        postings = self.file.read_postings(words)
        every = np.concatenate([np.zeros(0, np.int64), *(posting.texts for posting in postings)])
        # Of texts in order, word by word, a stable sort takes hardly longer than to look at them.
        order = np.argsort(every, kind="stable")
        every = every[order]
        is_first = np.diff(every, prepend=-1) > 0
        texts = every[is_first]
        # Whoever asks looks at them word by word.
        counts = np.zeros((len(texts), len(words)), np.int64, order="F")
        word = np.repeat(np.arange(len(words)), [len(posting.texts) for posting in postings])
        often = np.concatenate([np.zeros(0, np.int64), *(posting.counts for posting in postings)])
        counts[np.cumsum(is_first) - 1, word[order]] = often[order]
        positions = self.positions[texts]
        if (positions < 0).any():
            is_left = positions >= 0
            positions, counts, texts = positions[is_left], counts[is_left], texts[is_left]
        return positions, counts, self.file.lengths[texts]


@dataclass(frozen=True, slots=True, eq=False)
class IndexedTexts:
    """The texts of a version that an index covers.

    Attributes:
        texts: How many rows that it covers have a text, and `tokens` how many words these have.
        uncovered: The fragments whose rows it does not know, in the order of a scan, and
            `uncovered_positions` where these rows are.
    """

    parts: tuple[WordPart, ...]
    texts: int
    tokens: int
    uncovered: tuple[int, ...]
    uncovered_positions: np.ndarray


def find_word_index(table: Table, column: str, analyzer: Analyzer) -> TableIndex | None:
    """The index of a column's words by this analyzer; None if there is none. Reads nothing."""
    return find_search_index(
        table,
        column,
        lambda options: isinstance(options, TextOptions) and options.analyzer is analyzer,
    )


class WordShelf:
    """What was read of indexes of texts; threads may share it."""

    def __init__(self, positions: PositionShelf) -> None:
        self._positions = positions
        self._files: OrderedDict[str, tuple[WordFile, ...]] = OrderedDict()
        self._opened: OrderedDict[tuple[TableAddress, str], IndexedTexts] = OrderedDict()
        self._counts: dict[tuple[RowsKey, int], int] = {}
        self._byte_count = 0
        self._lock = threading.Lock()

    def open(self, table: Table, index: TableIndex) -> IndexedTexts:
        """What an index has of a version.

        Raises:
            StorageError: a file of it could not be read.
        """
        assert index.spec is not None, "it is an index of texts"
        key = table.address, index.name
        with self._lock:
            if key in self._opened:
                self._opened.move_to_end(key)
                return self._opened[key]
        opened = self._read(table, index, index.spec.column)
        with self._lock:
            self._opened[key] = opened
            while len(self._opened) > _VERSIONS_MAX:
                self._opened.popitem(last=False)
        return opened

    def _read(self, table: Table, index: TableIndex, column: str) -> IndexedTexts:
        positions = self._positions.of(table)
        parts = tuple(
            WordPart(file, positions.find(file.row_ids, segment.fragment_ids))
            for segment in index.segments
            for file in self._segment(table, segment)
        )
        every = [fragment.fragment_id for fragment in layout_of(table).fragments]
        covered = index.fragments.intersection(every)
        uncovered = tuple(id_ for id_ in every if id_ not in covered)
        return IndexedTexts(
            parts,
            sum(self._count_texts(table, column, covered)),
            sum(int(part.file.lengths[part.positions >= 0].sum()) for part in parts),
            uncovered,
            positions.of_fragments(uncovered),
        )

    def _segment(self, table: Table, segment: Segment) -> tuple[WordFile, ...]:
        with self._lock:
            if segment.uuid in self._files:
                self._files.move_to_end(segment.uuid)
                return self._files[segment.uuid]
        files = tuple(read_word_files(table, segment))
        with self._lock:
            if segment.uuid not in self._files:
                self._files[segment.uuid] = files
                self._byte_count += sum(file.byte_count for file in files)
            while self._byte_count > KEPT_WORDS_BYTES_MAX and len(self._files) > 1:
                _, oldest = self._files.popitem(last=False)
                self._byte_count -= sum(file.byte_count for file in oldest)
        return files

    def _count_texts(
        self, table: Table, column: str, fragment_ids: frozenset[int]
    ) -> Iterator[int]:
        """How many rows of each fragment have a text. Texts without words are in no index."""
        fragments = [
            each for each in layout_of(table).fragments if each.fragment_id in fragment_ids
        ]
        if not table.schema.field(column).nullable:
            rows = {fragment.id: fragment.num_rows for fragment in table.fragments()}
            yield from (rows[fragment.fragment_id] for fragment in fragments)
            return
        field = next(each for each in table.handle.lance_schema.fields() if each.name() == column)
        keys = {fragment.fragment_id: (fragment.key, field.id()) for fragment in fragments}
        missing = [id_ for id_, key in keys.items() if key not in self._counts]
        if missing:
            filter_text = filters.is_not_null(column)
            found = table.read([ROW_ADDRESS], filter_text=filter_text, fragment_ids=missing)
            owners = fragment_ids_of(found[ROW_ADDRESS].to_numpy())
            for id_ in missing:
                self._counts[keys[id_]] = int(np.count_nonzero(owners == np.uint64(id_)))
        yield from (self._counts[key] for key in keys.values())
