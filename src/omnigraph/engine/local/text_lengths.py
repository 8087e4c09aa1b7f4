"""Text statistics by data file: how many words each text has, and how many texts have each word.

Relevance needs both of the texts of a version. Lance does not know lengths, and to count the texts
of a word takes a call. Index runs of the local engine store these statistics
(`maintenance/text_lengths.py`); what they did not store is counted once by each process. A data
file never changes, so a commit adds what it adds.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa

from omnigraph.choices import Analyzer
from omnigraph.limits import TRIED_ARRAY_FILES_MAX
from omnigraph.search.analysis import analyse_column
from omnigraph.search.bm25 import TextStatistics
from omnigraph.search.words import count_texts
from omnigraph.storage import filters
from omnigraph.storage.array_files import (
    StoredArrays,
    array_path,
    find_arrays,
    read_arrays,
    write_arrays,
)
from omnigraph.storage.columns import deleted_offsets, fragment_files
from omnigraph.storage.pieces import FragmentFiles
from omnigraph.storage.places import offsets_of
from omnigraph.storage.tables import ROW_ADDRESS, Table, TableAddress

KEPT_TEXT_LENGTHS_BYTES_MAX: Final = 256 << 20
"""Bytes that an engine keeps in memory of the numbers of words of texts, four for each row."""

MEASURED_TEXTS_MAX: Final = 1 << 20
"""Texts whose words are counted for a mean length; that of more texts is estimated from these."""

OUTDATED_TEXTS_SHARE_MAX: Final = 1 / 64
"""Share of the texts of a file that were deleted since they were counted, for counts to be used."""


_NO_TEXT: Final = -1
_KINDS: Final = "words"
_VERSIONS_MAX: Final = 64
_NO_ROWS: Final = np.zeros(0, np.uint32)

_Key: TypeAlias = tuple[Analyzer, int, str]
"""An analyzer, the number of a column's field, and the path of a data file that has the column."""


@dataclass(frozen=True, slots=True)
class TextColumn:
    """A column of texts, analysed in one way."""

    name: str
    analyzer: Analyzer


_VersionKey: TypeAlias = tuple[TableAddress, TextColumn, frozenset[int]]


@dataclass(frozen=True, slots=True, eq=False)
class FileTexts:
    """The texts of one data file.

    Attributes:
        lengths: The number of words of the text of each row; -1 without a text.
        terms: Every different token, sorted, and `counts`, how many texts have it.
    """

    lengths: np.ndarray
    terms: pa.LargeStringArray
    counts: np.ndarray

    @property
    def byte_count(self) -> int:
        """The memory that it takes."""
        return int(self.lengths.nbytes + self.terms.nbytes + self.counts.nbytes)

    def count_having(self, term: str) -> int:
        """How many texts have a token."""
        at = bisect_left(range(len(self.terms)), term, key=lambda place: self.terms[place].as_py())
        is_there = at < len(self.terms) and self.terms[at].as_py() == term
        return int(self.counts[at]) if is_there else 0


@dataclass(frozen=True, eq=False)
class VersionTexts:
    """The texts of some fragments of a version.

    Attributes:
        files: What is known of which texts have a word.
        outdated: The same of files of which many texts were deleted since.
        uncounted: The fragments of these, and of files of which nothing is known.
        is_complete: Whether something is known of every file.
    """

    texts: int
    tokens: int
    files: tuple[FileTexts, ...]
    outdated: tuple[FileTexts, ...]
    uncounted: frozenset[int]
    is_complete: bool

    @cached_property
    def vocabulary(self) -> tuple[str, ...] | None:
        """Every token of the texts, and some of deleted texts; None if that is unknown."""
        if not self.is_complete:
            return None
        every = (term for file in (*self.files, *self.outdated) for term in file.terms.to_pylist())
        return tuple(dict.fromkeys(every))

    def statistics(self, terms: Iterable[str]) -> TextStatistics:
        """Their statistics; frequencies without those of `uncounted`."""
        having = {term: sum(file.count_having(term) for file in self.files) for term in terms}
        return TextStatistics(self.texts, self.tokens, having)


class TextLengths:
    """The statistics of texts that an engine keeps; threads may share it."""

    def __init__(self) -> None:
        self._kept: OrderedDict[_Key, FileTexts] = OrderedDict()
        self._versions: OrderedDict[_VersionKey, VersionTexts] = OrderedDict()
        self._byte_count = 0
        self._lock = threading.Lock()

    def measure(
        self,
        table: Table,
        column: TextColumn,
        fragment_ids: frozenset[int],
        check: Callable[[], None] = lambda: None,
    ) -> VersionTexts:
        """The texts of some fragments.

        Args:
            check: Called before each fragment that is read; may raise.
        """
        key = table.address, column, fragment_ids
        with self._lock:
            if (known := self._versions.get(key)) is not None:
                self._versions.move_to_end(key)
                return known
        found = self._measure(table, column, fragment_ids, check)
        with self._lock:
            self._versions[key] = found
            while len(self._versions) > _VERSIONS_MAX:
                self._versions.popitem(last=False)
        return found

    def store(self, table: Table, column: TextColumn, fragment_ids: Iterable[int]) -> None:
        """Write the statistics of the texts of some fragments to a file next to the indexes."""
        files = self._read(table, column, list(fragment_files(table, fragment_ids)), None)
        names: dict[str, str] = {}
        arrays: dict[str, np.ndarray] = {}
        for place, (path, file) in enumerate(files.items()):
            names[path] = name = f"n{place}"
            _, offsets, data = file.terms.buffers()
            arrays[f"{name}.lengths"], arrays[f"{name}.counts"] = file.lengths, file.counts
            arrays[f"{name}.offsets"] = np.frombuffer(offsets, np.int64, len(file.terms) + 1)
            arrays[f"{name}.terms"] = np.frombuffer(data or b"", np.uint8)
        path = array_path(table.address, _kind(table, column))
        write_arrays(table, path, StoredArrays({"names": names}, arrays))

    def lacks(self, table: Table, column: TextColumn, fragment_ids: Iterable[int]) -> bool:
        """Whether the statistics of some of these fragments are not in files, or are outdated."""
        fragments = list(fragment_files(table, fragment_ids))
        stored = _find_stored(table, column)
        deleted = deleted_offsets(table, fragments)
        for fragment in fragments:
            path = _path(table, column, fragment)
            gone = deleted.get(fragment.fragment_id, _NO_ROWS)
            if path is not None and (path not in stored or not _is_current(stored[path], gone)):
                return True
        return False

    def _measure(
        self,
        table: Table,
        column: TextColumn,
        fragment_ids: frozenset[int],
        check: Callable[[], None],
    ) -> VersionTexts:
        fragments = list(fragment_files(table, sorted(fragment_ids)))
        known = self._read(table, column, fragments, MEASURED_TEXTS_MAX, check)
        deleted = deleted_offsets(table, fragments)
        texts = tokens = 0
        files: list[FileTexts] = []
        outdated: list[FileTexts] = []
        uncounted: set[int] = set()
        unmeasured: list[int] = []
        for fragment in fragments:
            path = _path(table, column, fragment)
            if path is None:
                continue
            if path not in known:
                unmeasured.append(fragment.fragment_id)
                continue
            gone = deleted.get(fragment.fragment_id, _NO_ROWS)
            left = np.delete(known[path].lengths, gone)
            left = left[left != _NO_TEXT]
            texts += len(left)
            tokens += int(left.sum(dtype=np.int64))
            if _is_current(known[path], gone):
                files.append(known[path])
            else:
                outdated.append(known[path])
                uncounted.add(fragment.fragment_id)
        if unmeasured:
            has_text = filters.is_not_null(column.name)
            rows = table.read([ROW_ADDRESS], filter_text=has_text, fragment_ids=unmeasured).num_rows
            tokens += round(rows * tokens / max(texts, 1))
            texts += rows
        return VersionTexts(
            texts,
            tokens,
            tuple(files),
            tuple(outdated),
            frozenset({*uncounted, *unmeasured}),
            is_complete=not unmeasured,
        )

    def _read(
        self,
        table: Table,
        column: TextColumn,
        fragments: list[FragmentFiles],
        most: int | None,
        check: Callable[[], None] = lambda: None,
    ) -> dict[str, FileTexts]:
        """The statistics by the path of the data file: from memory, from files, or counted."""
        found: dict[str, FileTexts] = {}
        missing: dict[str, FragmentFiles] = {}
        for fragment in fragments:
            path = _path(table, column, fragment)
            if path is None:
                continue
            known = self._find(table, column, path)
            if known is None:
                missing[path] = fragment
            else:
                found[path] = known
        if missing:
            stored = _find_stored(table, column)
            found |= {path: stored[path] for path in missing if path in stored}
        count = 0
        for path, fragment in missing.items():
            if path not in found and (most is None or count < most):
                check()
                found[path] = _count_words(table, column, fragment)
                count += fragment.physical_rows
            if path in found:
                self._keep(table, column, path, found[path])
        return found

    def _find(self, table: Table, column: TextColumn, path: str) -> FileTexts | None:
        with self._lock:
            return self._kept.get((column.analyzer, _field(table, column), path))

    def _keep(self, table: Table, column: TextColumn, path: str, texts: FileTexts) -> None:
        with self._lock:
            key = column.analyzer, _field(table, column), path
            if key not in self._kept:
                self._kept[key] = texts
                self._byte_count += texts.byte_count
            while self._byte_count > KEPT_TEXT_LENGTHS_BYTES_MAX:
                _, oldest = self._kept.popitem(last=False)
                self._byte_count -= oldest.byte_count


def _is_current(texts: FileTexts, gone: np.ndarray) -> bool:
    """Whether its counts are still right, or nearly: few texts were deleted since."""
    deleted = np.count_nonzero(texts.lengths[gone] != _NO_TEXT)
    return bool(deleted <= OUTDATED_TEXTS_SHARE_MAX * len(texts.lengths))


def _find_stored(table: Table, column: TextColumn) -> Mapping[str, FileTexts]:
    """The statistics in the files of the nearest versions."""
    found: dict[str, FileTexts] = {}
    for _, file in find_arrays(table, _kind(table, column))[:TRIED_ARRAY_FILES_MAX]:
        content = read_arrays(table, file.path)
        if content is not None:
            names = content.facts["names"].items()
            found = {path: _parse(content.arrays, name) for path, name in names} | found
    return found


def _parse(arrays: Mapping[str, np.ndarray], name: str) -> FileTexts:
    offsets, data = arrays[f"{name}.offsets"], arrays[f"{name}.terms"]
    terms = pa.LargeStringArray.from_buffers(
        len(offsets) - 1, pa.py_buffer(offsets), pa.py_buffer(data)
    )
    return FileTexts(arrays[f"{name}.lengths"], terms, arrays[f"{name}.counts"])


def _count_words(table: Table, column: TextColumn, fragment: FragmentFiles) -> FileTexts:
    lengths = np.full(fragment.physical_rows, _NO_TEXT, np.int32)
    having: Counter[str] = Counter()
    for batch in table.scan([column.name, ROW_ADDRESS], fragment_ids=[fragment.fragment_id]):
        tokens = analyse_column(column.analyzer, batch.column(0))
        offsets = offsets_of(batch.column(1).to_numpy()).astype(np.int64)
        lengths[offsets] = np.where(tokens.present, tokens.lengths, _NO_TEXT)
        counts = count_texts(tokens).tolist()
        having.update(dict(zip(tokens.terms, counts, strict=True)))
    terms = sorted(having)
    counts = np.array([having[term] for term in terms], np.int64)
    return FileTexts(lengths, pa.array(terms, pa.large_string()), counts)


def _path(table: Table, column: TextColumn, fragment: FragmentFiles) -> str | None:
    """The data file with the texts; None where the column was added later, and is all null."""
    field = _field(table, column)
    return next((path for path, fields in fragment.files if field in fields), None)


def _field(table: Table, column: TextColumn) -> int:
    return table.fact(("field number", column.name), lambda: _find_field(table, column.name))


def _find_field(table: Table, name: str) -> int:
    return next(each.id() for each in table.handle.lance_schema.fields() if each.name() == name)


def _kind(table: Table, column: TextColumn) -> str:
    return f"{_KINDS}{_field(table, column)}{column.analyzer.value}"
