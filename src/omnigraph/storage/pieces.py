"""Pieces in memory: the columns of data files that were read or written by this process.

Data files never change and their names are never reused, so a piece is valid for every version
that has its file, on any branch. Rows that a version has deleted since are filtered out.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa
from lance import LanceDataset
from lance.fragment import FragmentMetadata

from omnigraph.limits import KEPT_FRAGMENT_ROWS_MAX, LAYOUTS_MAX
from omnigraph.storage.chunks import ColumnChunk

KEPT_COLUMNS_BYTES_MAX: Final = 512 << 20
"""Columns that a graph handle keeps in memory for the next query."""

KEPT_DELETIONS_BYTES_MAX: Final = 32 << 20
"""Memory that a graph handle spends on knowing which rows of fragments are deleted."""

ASSEMBLED_REFS_MAX: Final = 16
"""Branches, and runs of small fragments, for which a graph handle keeps an assembled column."""


_PIECE_BYTES: Final = 512
"""About what Arrow and Python need for an array beside its values."""

_STALE_PIECES_MAX: Final = 1024
"""Pieces of files that a version no longer has, beyond which they are dropped."""

_PIECES_MAX: Final = 1 << 17
"""Pieces of one column, beyond which the oldest are dropped."""

DeletionsKey: TypeAlias = "tuple[int, int] | None"
"""What identifies a deletion file of a fragment; None for a fragment without one."""

RowsKey: TypeAlias = tuple[str, "tuple[int, int] | None"]
"""The live rows of a fragment, of one column or of all: data files, and the deletion file."""

ColumnKey: TypeAlias = tuple[str, int]
"""A column of a table and of all its refs: the table's location and the number of its field."""

Slot: TypeAlias = tuple["str | None", int]
"""What was assembled for a ref: all fragments, which is `WHOLE`, or a run of small ones."""

WHOLE: Final = -1


@dataclass(frozen=True, slots=True)
class FragmentFiles:
    """The files that determine the rows of a fragment.

    Attributes:
        key: What identifies its live rows.
        physical_rows: Its rows, deleted ones included.
        files: The path of each data file, and the numbers of the fields that it holds.
        byte_count: The size of the data files; None where a writer did not record it.
        has_overlays: Whether other files replace values: then nothing of it is kept.
    """

    fragment_id: int
    key: RowsKey
    physical_rows: int
    deletions: DeletionsKey
    files: tuple[tuple[str, frozenset[int]], ...]
    byte_count: int | None
    has_overlays: bool

    @classmethod
    def of(cls, fragment: FragmentMetadata) -> FragmentFiles:
        """The files of a fragment, from its metadata."""
        deletions = None
        if (file := fragment.deletion_file) is not None:
            deletions = (file.read_version, file.id)
        # Not its `path`: that builds a class at each access (docs/substrate.md, Fragments).
        files = tuple((file._path, frozenset(file.fields)) for file in fragment.files)  # noqa: SLF001
        sizes = [file.file_size_bytes for file in fragment.files]
        return cls(
            fragment.id,
            ("+".join(path for path, _ in files), deletions),
            fragment.physical_rows,
            deletions,
            files,
            None if None in sizes else sum(size or 0 for size in sizes),
            bool(fragment.overlays),
        )

    @property
    def first_path(self) -> str:
        """The path of a data file that only this fragment has."""
        return self.files[0][0]

    @property
    def is_small(self) -> bool:
        """Whether its rows are kept in memory even if those of the whole table are not."""
        return self.physical_rows <= KEPT_FRAGMENT_ROWS_MAX and not self.has_overlays

    def is_at_most(self, byte_count: int) -> bool:
        """Whether its data files are known to be no larger."""
        return self.byte_count is not None and self.byte_count <= byte_count


class Layout:
    """The fragments of one version, in the order of a scan. Reads nothing.

    Args:
        before: Another version. What they share is the same object, which is compared quickly.
    """

    def __init__(self, handle: LanceDataset, before: Layout | None = None) -> None:
        self.handle = handle
        known: dict[int, FragmentFiles] = {} if before is None else before.by_id
        fragments = (FragmentFiles.of(part.metadata) for part in handle.get_fragments())
        self.fragments = tuple(
            old if (old := known.get(new.fragment_id)) == new else new for new in fragments
        )
        self.by_id: dict[int, FragmentFiles] = {
            fragment.fragment_id: fragment for fragment in self.fragments
        }

    def paths(self) -> set[str]:
        """The paths of all data files."""
        return {path for fragment in self.fragments for path, _ in fragment.files}


@dataclass(frozen=True, slots=True)
class Piece:
    """Values of a column in one data file.

    Attributes:
        offsets: The offsets of the rows in the file, ascending; None for all rows.
    """

    values: pa.ChunkedArray
    offsets: np.ndarray | None
    byte_count: int

    @classmethod
    def of(cls, values: pa.ChunkedArray, offsets: np.ndarray | None) -> Piece:
        """A piece, with an estimate of the memory that it takes."""
        size = 0 if offsets is None else offsets.nbytes
        return cls(values, offsets, values.nbytes + size + _PIECE_BYTES)

    def without(self, deleted: np.ndarray | None, *, physical_rows: int) -> pa.ChunkedArray | None:
        """The values but those at deleted offsets; None if this piece does not have all of them."""
        if deleted is None:
            return self.values if self.offsets is None else None
        if self.offsets is None:
            is_live = np.ones(physical_rows, np.bool_)
            is_live[deleted] = False
        else:
            is_live = np.isin(self.offsets, deleted, invert=True)
            if np.count_nonzero(is_live) != physical_rows - len(deleted):
                return None
        return self.values if is_live.all() else self.values.filter(pa.array(is_live))


@dataclass(frozen=True, slots=True)
class Assembly:
    """A column of some fragments of one version, in few chunks."""

    handle: LanceDataset
    fragment_ids: tuple[int, ...]
    chunks: tuple[ColumnChunk[RowsKey], ...]
    column: pa.ChunkedArray
    byte_count: int

    @classmethod
    def of(
        cls,
        handle: LanceDataset,
        fragment_ids: tuple[int, ...],
        chunks: tuple[ColumnChunk[RowsKey], ...],
        kind: pa.DataType,
    ) -> Assembly:
        """A column from its chunks."""
        column = pa.chunked_array([array for chunk in chunks for array in chunk.arrays], kind)
        # The arrays of other chunks are those of pieces.
        joined = sum(chunk.byte_count for chunk in chunks if len(chunk.keys) > 1)
        return cls(handle, fragment_ids, chunks, column, joined + _PIECE_BYTES * len(chunks))

    def serves(self, handle: LanceDataset, fragment_ids: tuple[int, ...]) -> bool:
        """Whether it is the column of these fragments of this version."""
        return self.handle is handle and self.fragment_ids == fragment_ids


@dataclass(slots=True)
class PieceShelf:
    """What is in memory of one column. Only `Pieces` changes it."""

    pieces: dict[str, Piece] = field(default_factory=dict)
    assemblies: OrderedDict[Slot, Assembly] = field(default_factory=OrderedDict)
    byte_count: int = 0


class Pieces:
    """The pieces of a graph's tables by column; the least recently used column is dropped first.

    Threads may share it.
    """

    def __init__(self) -> None:
        self._shelves: OrderedDict[ColumnKey, PieceShelf] = OrderedDict()
        self._layouts: OrderedDict[tuple[str, str | None], Layout] = OrderedDict()
        self._deleted: OrderedDict[RowsKey, np.ndarray] = OrderedDict()
        self._bytes = 0
        self._deleted_bytes = 0
        self._lock = threading.Lock()

    def layout(self, location: str, ref: str | None, handle: LanceDataset) -> Layout:
        """The fragments of a version; the cost grows with them, and is paid once per version."""
        with self._lock:
            known = self._layouts.get((location, ref))
        if known is not None and known.handle is handle:
            return known
        layout = Layout(handle, known)
        with self._lock:
            self._layouts[location, ref] = layout
            self._layouts.move_to_end((location, ref))
            while len(self._layouts) > LAYOUTS_MAX:
                self._layouts.popitem(last=False)
        return layout

    def has_column(self, column: ColumnKey) -> bool:
        """Whether this process reads the column."""
        with self._lock:
            return column in self._shelves

    def find(self, column: ColumnKey, path: str) -> Piece | None:
        """The values of a column in a data file, if they are in memory."""
        with self._lock:
            shelf = self._shelves.get(column)
            return None if shelf is None else shelf.pieces.get(path)

    def keep(self, column: ColumnKey, path: str, piece: Piece) -> None:
        """Keep the values of a column in a data file."""
        with self._lock:
            shelf = self._shelf(column)
            old = shelf.pieces.pop(path, None)
            if len(shelf.pieces) >= _PIECES_MAX:
                old = shelf.pieces.pop(next(iter(shelf.pieces)))
            shelf.pieces[path] = piece
            self._grow(column, piece.byte_count - (0 if old is None else old.byte_count))

    def assembly(self, column: ColumnKey, slot: Slot) -> Assembly | None:
        """What was assembled of a column last."""
        with self._lock:
            shelf = self._shelf(column)
            if slot in shelf.assemblies:
                shelf.assemblies.move_to_end(slot)
            return shelf.assemblies.get(slot)

    def keep_assembly(self, column: ColumnKey, slot: Slot, assembly: Assembly) -> None:
        """Keep a column of a version, for the next reader of it or of a later version."""
        with self._lock:
            shelf = self._shelf(column)
            old = shelf.assemblies.pop(slot, None)
            shelf.assemblies[slot] = assembly
            self._grow(column, assembly.byte_count - (0 if old is None else old.byte_count))
            while len(shelf.assemblies) > ASSEMBLED_REFS_MAX:
                _, dropped = shelf.assemblies.popitem(last=False)
                self._grow(column, -dropped.byte_count)

    def prune(self, location: str, layout: Layout) -> None:
        """Drop pieces of columns that mostly have files which the newest version does not."""
        most = 2 * len(layout.fragments) + _STALE_PIECES_MAX
        with self._lock:
            crowded = {
                column: shelf
                for column, shelf in self._shelves.items()
                if column[0] == location and len(shelf.pieces) > most
            }
            paths = layout.paths() if crowded else set()
            for column, shelf in crowded.items():
                for path in shelf.pieces.keys() - paths:
                    self._grow(column, -shelf.pieces.pop(path).byte_count)

    def deleted(self, fragment: FragmentFiles) -> np.ndarray | None:
        """The deleted offsets of a fragment with a deletion file, if they are in memory."""
        with self._lock:
            return self._deleted.get((fragment.first_path, fragment.deletions))

    def keep_deleted(self, fragment: FragmentFiles, offsets: np.ndarray) -> None:
        """Keep the deleted offsets of a fragment, which its deletion file has."""
        with self._lock:
            key = (fragment.first_path, fragment.deletions)
            if key not in self._deleted:
                self._deleted_bytes += offsets.nbytes + _PIECE_BYTES
            self._deleted[key] = offsets
            while self._deleted_bytes > KEPT_DELETIONS_BYTES_MAX:
                _, dropped = self._deleted.popitem(last=False)
                self._deleted_bytes -= dropped.nbytes + _PIECE_BYTES

    def _shelf(self, column: ColumnKey) -> PieceShelf:
        shelf = self._shelves.setdefault(column, PieceShelf())
        self._shelves.move_to_end(column)
        return shelf

    def _grow(self, column: ColumnKey, added: int) -> None:
        """Account for memory, and drop other columns, then this one, beyond the limit."""
        shelf = self._shelves.get(column)
        if shelf is None:
            return
        shelf.byte_count += added
        self._bytes += added
        while self._bytes > KEPT_COLUMNS_BYTES_MAX:
            _, dropped = self._shelves.popitem(last=False)
            self._bytes -= dropped.byte_count
