"""Text lengths: how many words each text of a table has, by data file.

Relevance needs the mean length of the texts of a version, which Lance does not know. Index runs of
the local engine store the lengths (`maintenance/text_lengths.py`); what they did not store is
counted once by each process. A data file never changes, so a commit adds what it adds.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np

from omnigraph.choices import Analyzer
from omnigraph.limits import (
    KEPT_TEXT_LENGTHS_BYTES_MAX,
    MEASURED_TEXTS_MAX,
    TRIED_ARRAY_FILES_MAX,
)
from omnigraph.search.analysis import analyse_column
from omnigraph.search.bm25 import TextStatistics
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

_NO_TEXT: Final = -1
_KINDS: Final = "words"
_SUMS_MAX: Final = 64

_Key: TypeAlias = tuple[Analyzer, int, str]
"""An analyzer, the number of a column's field, and the path of a data file that has the column."""


@dataclass(frozen=True, slots=True)
class TextColumn:
    """A column of texts, analysed in one way."""

    name: str
    analyzer: Analyzer


_SumKey: TypeAlias = tuple[TableAddress, TextColumn, frozenset[int]]


class TextLengths:
    """The lengths of texts that an engine keeps; threads may share it."""

    def __init__(self) -> None:
        self._kept: OrderedDict[_Key, np.ndarray] = OrderedDict()
        self._sums: OrderedDict[_SumKey, TextStatistics] = OrderedDict()
        self._byte_count = 0
        self._lock = threading.Lock()

    def measure(
        self,
        table: Table,
        column: TextColumn,
        fragment_ids: frozenset[int],
        check: Callable[[], None] = lambda: None,
    ) -> TextStatistics:
        """How many texts some fragments have, and how many words these have together.

        Args:
            check: Called before each fragment that is read; may raise.

        Raises:
            StorageError: the table could not be read.
        """
        key = table.address, column, fragment_ids
        with self._lock:
            if (known := self._sums.get(key)) is not None:
                return known
        found = self._measure(table, column, fragment_ids, check)
        with self._lock:
            self._sums[key] = found
            while len(self._sums) > _SUMS_MAX:
                self._sums.popitem(last=False)
        return found

    def store(self, table: Table, column: TextColumn, fragment_ids: Iterable[int]) -> None:
        """Write the lengths of the texts of some fragments to a file beside the indexes.

        Raises:
            StorageError: the table could not be read, or the file not be written.
        """
        lengths = self._read(table, column, list(fragment_files(table, fragment_ids)), None)
        names = {f"n{place}": path for place, (path, _) in enumerate(lengths.items())}
        arrays = {name: lengths[path] for name, path in names.items()}
        path = array_path(table.address, _kind(table, column))
        write_arrays(table, path, StoredArrays({"paths": names}, arrays))

    def lacks(self, table: Table, column: TextColumn, fragment_ids: Iterable[int]) -> bool:
        """Whether the lengths of some of these fragments are not in files."""
        wanted = [
            path
            for fragment in fragment_files(table, fragment_ids)
            if (path := _path(table, column, fragment)) is not None
        ]
        return not _find_stored(table, column).keys() >= set(wanted)

    def _measure(
        self,
        table: Table,
        column: TextColumn,
        fragment_ids: frozenset[int],
        check: Callable[[], None],
    ) -> TextStatistics:
        fragments = list(fragment_files(table, sorted(fragment_ids)))
        lengths = self._read(table, column, fragments, MEASURED_TEXTS_MAX, check)
        deleted = deleted_offsets(table, fragments)
        texts = tokens = 0
        others: list[int] = []
        for fragment in fragments:
            path = _path(table, column, fragment)
            if path is None:
                continue
            if path not in lengths:
                others.append(fragment.fragment_id)
                continue
            own, gone = lengths[path], deleted.get(fragment.fragment_id)
            if gone is not None:
                own = np.delete(own, gone)
            is_text = own != _NO_TEXT
            texts += int(np.count_nonzero(is_text))
            tokens += int(own[is_text].sum(dtype=np.int64))
        if others:
            has_text = filters.is_not_null(column.name)
            rows = table.read([ROW_ADDRESS], filter_text=has_text, fragment_ids=others).num_rows
            tokens += round(rows * tokens / max(texts, 1))
            texts += rows
        return TextStatistics(texts, tokens)

    def _read(
        self,
        table: Table,
        column: TextColumn,
        fragments: list[FragmentFiles],
        most: int | None,
        check: Callable[[], None] = lambda: None,
    ) -> dict[str, np.ndarray]:
        """The lengths by the path of the data file: from memory, from files, or counted."""
        found: dict[str, np.ndarray] = {}
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

    def _find(self, table: Table, column: TextColumn, path: str) -> np.ndarray | None:
        with self._lock:
            return self._kept.get((column.analyzer, _field(table, column), path))

    def _keep(self, table: Table, column: TextColumn, path: str, lengths: np.ndarray) -> None:
        with self._lock:
            key = column.analyzer, _field(table, column), path
            if key not in self._kept:
                self._kept[key] = lengths
                self._byte_count += lengths.nbytes
            while self._byte_count > KEPT_TEXT_LENGTHS_BYTES_MAX:
                _, oldest = self._kept.popitem(last=False)
                self._byte_count -= oldest.nbytes


def _find_stored(table: Table, column: TextColumn) -> Mapping[str, np.ndarray]:
    """The lengths in the files of the nearest versions."""
    found: dict[str, np.ndarray] = {}
    for _, file in find_arrays(table, _kind(table, column))[:TRIED_ARRAY_FILES_MAX]:
        content = read_arrays(table, file.path)
        if content is not None:
            paths = content.facts["paths"]
            found = {path: content.arrays[name] for name, path in paths.items()} | found
    return found


def _count_words(table: Table, column: TextColumn, fragment: FragmentFiles) -> np.ndarray:
    lengths = np.full(fragment.physical_rows, _NO_TEXT, np.int32)
    for batch in table.scan([column.name, ROW_ADDRESS], fragment_ids=[fragment.fragment_id]):
        tokens = analyse_column(column.analyzer, batch.column(0))
        offsets = offsets_of(batch.column(1).to_numpy()).astype(np.int64)
        lengths[offsets] = np.where(tokens.present, tokens.lengths, _NO_TEXT)
    return lengths


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
