"""Pinned reads: one table at one (ref, version), its columns, its rows, its fragments."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, NoReturn, TypeVar

import lance
import pyarrow as pa
from lance import LanceDataset, LanceScanner
from lance.fragment import FragmentMetadata, LanceFragment

from omnigraph.clock import is_ulid
from omnigraph.errors import ErrorCode, NotFoundError, StorageError
from omnigraph.limits import PINNED_TABLES_MAX
from omnigraph.model.tables import TablePin
from omnigraph.storage.forks import Forks
from omnigraph.storage.gaps import Gaps
from omnigraph.storage.meter import Meter
from omnigraph.storage.objects import Objects
from omnigraph.storage.pieces import Pieces
from omnigraph.storage.roots import Root
from omnigraph.storage.shared_files import with_shared_files_in
from omnigraph.storage.streams import translate_stream
from omnigraph.storage.translate import translate_errors
from omnigraph.storage.values import KnownFragments, Values

FETCHED_WHOLE_BYTES_MAX: Final = 64 << 10
"""Data files of a fragment of which every column is read if one is: it takes the same requests.

On S3, this is `READ_BLOCK_BYTES`."""

METADATA_CACHE_BYTES_MAX: Final = 128 << 20
INDEX_CACHE_BYTES_MAX: Final = 1 << 30
"""Versions and files that Lance remembers for a graph handle, and pages of indexes."""

PROBED_VERSIONS_MAX: Final = 16
"""Versions above the newest known one that are looked for one by one before all are listed."""

READ_BLOCK_BYTES: Final = 1 << 20
"""Smaller files, and the ends of larger ones, are fetched in one request.

So are internal tables everywhere, and on S3 tables of types: there, so much takes less time to send
than a request to be answered."""

LOOKED_UP_WHOLE_BYTES_MAX: Final = 8 << 20
"""Data files on S3 that a lookup fetches whole, in one request: an index takes more than ten, most
of them one after the other, and the next lookup takes none."""

REMOTE_OPENS_MAX: Final = 8
"""Tables on S3 that are opened at once."""


KEY: Final = "id"
"""The column that identifies a row in every node and edge table."""

ROW_ID: Final = "_rowid"
"""Stable across updates and compaction: the identity of a row."""

ROW_ADDRESS: Final = "_rowaddr"
"""Fragment id in the upper 32 bits, physical offset in the lower: where a row is in one version."""

ROW_VERSION: Final = "_row_last_updated_at_version"
"""A version that is not below the one that wrote the row, nor above the one that moved it last."""

REF_FOLDER: Final = "tree"
"""The folder where Lance keeps each ref's own files, below the ref's name."""

Fragment = FragmentMetadata
"""One fragment's metadata: which files, which deletions, which row ids. Opaque outside storage."""

Fact = TypeVar("Fact")


@dataclass(frozen=True, slots=True)
class TableAddress:
    """All that another process needs to open the same pinned table; this is what tasks carry."""

    root: Root
    location: str
    ref: str | None
    version: int

    @property
    def uri(self) -> str:
        """The URI of the dataset, whatever the ref."""
        return self.root.table_uri(self.location)

    @property
    def folder(self) -> str:
        """The folder below the root for files written through a handle of this ref."""
        return ref_folder(self.location, self.ref)

    def __str__(self) -> str:
        return f"{self.uri}{f'@{self.ref}' if self.ref else ''} v{self.version}"


@dataclass(frozen=True, slots=True)
class Table:
    """One table at one version of one ref: every read sees exactly those rows.

    Attributes:
        handle: Lance's dataset, for `storage` and for engines that scan it; it must not be used to
            write, and its `uri` is that of main whatever the ref (docs/substrate.md, Branches of a
            table).
        owner: The tables it was opened by, which hold the caches.
        known: By column, which fragments `storage.lookups` need not read.
        ignores_indexes: Whether its rows are found by scans alone.
    """

    address: TableAddress
    handle: LanceDataset
    owner: Tables = field(repr=False, compare=False)
    known: dict[str, KnownFragments] = field(default_factory=dict, repr=False, compare=False)
    ignores_indexes: bool = False
    _facts: dict[Hashable, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def version(self) -> int:
        """The pinned version."""
        return self.address.version

    @property
    def schema(self) -> pa.Schema:
        """The columns, with their nullability and metadata."""
        return self.fact("schema", lambda: self.handle.schema)

    def fragments(self) -> tuple[Fragment, ...]:
        """The fragments' metadata, in table order. Reads nothing."""
        return tuple(fragment.metadata for fragment in self.handle.get_fragments())

    def data_paths(self) -> Iterator[str]:
        """The paths of its data files below the root. Reads nothing."""
        root = f"{self.address.root.uri}/"
        folders = {number: base.path for number, base in self.handle.base_paths().items()}
        own = f"{root}{self.address.folder}"
        for fragment in self.fragments():
            for file in fragment.files:
                folder = own if file.base_id is None else folders[file.base_id]
                yield f"{folder.removeprefix(root)}/data/{file.path}"

    def shared_refs(self) -> frozenset[str]:
        """The other refs of the table that it shares files with, main left out. Reads nothing."""
        folder = f"{self.address.uri}/{REF_FOLDER}/"
        shared = (base.path for base in self.handle.base_paths().values())
        return frozenset(p.removeprefix(folder) for p in shared if p.startswith(folder))

    def index_folder(self, uuid: str, base_id: int | None) -> str:
        """The folder with the files of a segment of an index: here, or where this was forked from.

        Args:
            base_id: Which of the tables that it shares files with has it; None if this one does.
        """
        folder = f"{self.address.root.uri}/{self.address.folder}"
        if base_id is not None:
            folder = self.handle.base_paths()[base_id].path
        return f"{folder}/_indices/{uuid}"

    def successor(
        self, version: int, handle: LanceDataset, *, changed: Iterable[int] | None = None
    ) -> Table:
        """The version that a transaction made from this one, later opened without a request.

        Args:
            changed: The fragments that the transaction changed or removed, if it only added others;
                values of the rest stay known. None where all fragments may have changed.
        """
        known: dict[str, KnownFragments] = {}
        if changed is not None:
            stale = tuple(changed)
            known = {column: part.without(stale) for column, part in self.known.copy().items()}
        address = replace(self.address, version=version)
        table = Table(address, self.owner.at_home(address, handle), self.owner, known)
        self.owner.follow(self, table)
        return table

    def count_bytes(self) -> int:
        """The size of the data files. Reads nothing, not even the fragments' metadata."""
        return self._summary("total_files_size")

    def count_fragments(self) -> int:
        """How many fragments it has. Reads nothing."""
        return self._summary("total_fragments")

    def count_deleted_rows(self) -> int:
        """How many rows of its fragments are deleted. Reads nothing."""
        return self._summary("total_deletion_file_rows")

    def _summary(self, name: str) -> int:
        summary = self.fact("summary", lambda: self.handle.get_version()["metadata"])
        return int(summary[name])

    def fact(self, name: Hashable, find: Callable[[], Fact]) -> Fact:
        """What is true of this version, found once: a version does not change.

        Lance makes such things anew whenever it is asked for them.
        """
        if name not in self._facts:
            self._facts[name] = find()
        known: Fact = self._facts[name]
        return known

    def without_indexes(self) -> Table:
        """The same rows, of which none is found by an index."""
        return replace(self, ignores_indexes=True)

    def count_rows(self, filter_text: str | None = None) -> int:
        """How many rows match; without a filter the metadata has the count."""
        with self.translate_errors("counting rows of"):
            if filter_text is None:
                return int(self.handle.count_rows())
            uses_indexes = not self.ignores_indexes
            scanner = self.handle.scanner(filter=filter_text, use_scalar_index=uses_indexes)
            return int(scanner.count_rows())

    def count_indexed(self, filter_text: str) -> int:
        """How many rows match, of those that the filter's indexes cover. Reads no other rows."""
        with self.translate_errors("counting rows of"):
            return int(self.handle.scanner(filter=filter_text, fast_search=True).count_rows())

    def open_fragments(self, fragment_ids: Iterable[int]) -> list[LanceFragment]:
        """Those of these fragments that the table has, for a scan. Reads nothing."""
        candidates = (self.handle.get_fragment(id_) for id_ in fragment_ids)
        return [fragment for fragment in candidates if fragment is not None]

    def scan(
        self,
        columns: Sequence[str] | None = None,
        *,
        filter_text: str | None = None,
        fragments: Sequence[int] | None = None,
        fragment_ids: Iterable[int] | None = None,
        indexed_only: bool = False,
    ) -> pa.RecordBatchReader:
        """Stream the matching rows of the named columns.

        Args:
            columns: All columns when None; `ROW_ID` and `ROW_ADDRESS` may be named too.
            filter_text: Built with `storage.filters`; scalar indexes are used where possible.
            fragments: Positions in `fragments()`; only these are opened.
            fragment_ids: The same by id, which costs nothing for the other fragments.
            indexed_only: Leave out the fragments that the filter's index does not cover.
        """
        with self.translate_errors("reading"):
            reader = self._scanner(
                columns, filter_text, fragments, fragment_ids, indexed_only=indexed_only
            ).to_reader()
        return translate_stream(reader, "reading", str(self.address))

    def read(
        self,
        columns: Sequence[str] | None = None,
        *,
        filter_text: str | None = None,
        fragments: Sequence[int] | None = None,
        fragment_ids: Iterable[int] | None = None,
        indexed_only: bool = False,
    ) -> pa.Table:
        """Like `scan`, with all rows in memory."""
        with self.translate_errors("reading"):
            return self._scanner(
                columns, filter_text, fragments, fragment_ids, indexed_only=indexed_only
            ).to_table()

    def _scanner(
        self,
        columns: Sequence[str] | None,
        filter_text: str | None,
        fragments: Sequence[int] | None,
        fragment_ids: Iterable[int] | None,
        *,
        indexed_only: bool,
    ) -> LanceScanner:
        chosen = None if fragment_ids is None else self.open_fragments(fragment_ids)
        if fragments is not None:
            available = self.handle.get_fragments()
            chosen = [available[position] for position in fragments]
        return self.handle.scanner(
            columns=None if columns is None else list(columns),
            filter=filter_text,
            fragments=chosen,
            fast_search=indexed_only,
            use_scalar_index=not self.ignores_indexes,
            blob_handling="all_binary",
        )

    def take(self, places: Sequence[int], columns: Sequence[str]) -> pa.Table:
        """The rows at these positions, not counting deleted rows."""
        with self.translate_errors("reading"):
            return self.handle.take(list(places), columns=list(columns))

    def translate_errors(self, action: str) -> AbstractContextManager[None]:
        """Re-raise Lance's errors during an action on this table as ours."""
        return translate_errors(action, str(self.address))

    def __reduce__(self) -> NoReturn:
        # A pickled branch handle looks for the branch's files in main (docs/substrate.md, Branches
        # of a table).
        message = "a Table cannot be pickled; ship its TableAddress and open it there"
        raise TypeError(message)


class Tables:
    """Opens the tables below one root; keeps one handle per table and shares Lance's caches.

    Attributes:
        values: The values of small fragments, for `storage.lookups`.
        pieces: The columns of fragments in memory, for `storage.columns`.
        forks: Where refs started, for `storage.pairs`.
        objects: The objects below the same root.
    """

    def __init__(self, root: Root, objects: Objects, meter: Meter) -> None:
        self._root = root
        self._objects = self.objects = objects
        self._meter = meter
        # Every version that is written or read stays there: Lance's own limits are 1 and 6 GB.
        self._session = lance.Session(  # type: ignore[attr-defined]  # missing from __all__
            index_cache_size_bytes=INDEX_CACHE_BYTES_MAX,
            metadata_cache_size_bytes=METADATA_CACHE_BYTES_MAX,
        )
        self._handles: dict[str, LanceDataset] = {}
        self._ref_handles: dict[tuple[str, str], LanceDataset] = {}
        self._adopted: set[tuple[str, str]] = set()
        self._pinned: dict[TableAddress, Table] = {}
        self._newest: dict[tuple[str, str | None], int] = {}
        self._lock = threading.Lock()
        self.values = Values()
        self.pieces = Pieces()
        self.forks = Forks(objects)
        self.gaps = Gaps(root, objects)

    @property
    def whole_bytes_max(self) -> int:
        """The size of data files that are fetched whole in one request."""
        return FETCHED_WHOLE_BYTES_MAX if self._root.is_local else READ_BLOCK_BYTES

    @property
    def lookup_bytes_max(self) -> int:
        """The size of data files that a lookup fetches whole, rather than asking an index."""
        return FETCHED_WHOLE_BYTES_MAX if self._root.is_local else LOOKED_UP_WHOLE_BYTES_MAX

    def in_large_blocks(self, table: Table) -> Table:
        """The same version, of which files of `lookup_bytes_max` are fetched in one request."""
        return table.fact("in large blocks", lambda: self._open_in_large_blocks(table))

    def _open_in_large_blocks(self, table: Table) -> Table:
        address = table.address
        if self._root.is_local or not (address.ref is None or is_minted(address.ref)):
            return table
        with translate_errors("opening", str(address)):
            # One request: the session has read the version.
            handle = lance.dataset(
                self.uri(address.folder),
                version=address.version,
                session=self._session,
                block_size=LOOKED_UP_WHOLE_BYTES_MAX,
            )
        self._meter.watch_new_ref(handle)
        return replace(table, handle=handle)

    def uri(self, location: str) -> str:
        """The URI of the dataset at `location`."""
        return self._root.table_uri(location)

    def address(self, location: str, *, ref: str | None, version: int) -> TableAddress:
        """The address of one version of a table; nothing is opened."""
        return TableAddress(self._root, location, ref, version)

    def exists(self, location: str) -> bool:
        """Whether a table was ever committed at `location`; staged files alone do not count."""
        return self._objects.holds_any(f"{ref_folder(location, None)}/_versions")

    def has_version(self, location: str, *, ref: str | None, version: int) -> bool:
        """Whether this ref has a version of this number, readable or not; used after a failed read.

        A ref has the version it started at and those made on it; lower ones are its source's.
        """
        paths = self._objects.list(f"{ref_folder(location, ref)}/_versions")
        # Old tables count up.
        names = {_version_file(version), f"{version}.manifest"}
        return any(path.rpartition("/")[2] in names for path in paths)

    def open(self, location: str, *, ref: str | None, version: int) -> Table:
        """The table pinned at exactly this version of this ref."""
        address = self.address(location, ref=ref, version=version)
        if ref is None or is_minted(ref):
            with self._lock:
                pinned = self._pinned.get(address)
            if pinned is not None:
                return pinned
        with translate_errors("opening", str(address)):
            handle = self._check_out(location, ref, version)
        return self._pin(address, handle)

    def _check_out(self, location: str, ref: str | None, version: int | None) -> LanceDataset:
        """A handle of a version of a ref, or of its newest one; both take two requests.

        The first handle of a ref is opened in the ref's own folder, so that a reader of a branch
        opens nothing of main. Only refs with minted names have a folder that is theirs for ever.
        """
        base = self._base(location, ref)
        if base is not None:
            return base.checkout_version((ref, version))
        if ref is None or is_minted(ref):
            return self._open_folder(location, ref, version)
        return self.main(location).checkout_version((ref, version))

    def _base(self, location: str, ref: str | None) -> LanceDataset | None:
        """A handle that others of this ref can be checked out from, if there is one."""
        with self._lock:
            main = self._handles.get(location)
            if main is not None or ref is None or (location, ref) in self._adopted:
                return main
            return self._ref_handles.get((location, ref))

    def _open_folder(self, location: str, ref: str | None, version: int | None) -> LanceDataset:
        """The first handle of a ref, which later ones are checked out from."""
        uri = self.uri(ref_folder(location, ref))
        place = "" if version is None else f" v{version}"
        try:
            with translate_errors("opening", f"{uri}{place}"):
                handle = lance.dataset(
                    uri,
                    version=version,
                    session=self._session,
                    block_size=self._block_bytes(location),
                )
        except StorageError as failure:
            # Looked for only now: the first request of a reader is one that every reader needs.
            if self.exists(location):
                raise
            message = f"the table at {self.uri(location)} does not exist"
            hint = "its files may be gone: see 'omnigraph check'"
            raise NotFoundError(message, hint=hint, code=ErrorCode.NOT_FOUND) from failure
        if ref is not None:
            self._meter.watch_new_ref(handle)
            self._keep_ref_handle(location, ref, handle)
            return handle
        self._meter.watch(handle)
        with self._lock:
            self._handles.setdefault(location, handle)
        return handle

    def _block_bytes(self, location: str) -> int | None:
        # Internal tables are small and read whole; tables of types are also read row by row.
        is_whole = location.startswith("__") or not self._root.is_local
        return READ_BLOCK_BYTES if is_whole else None

    def open_pin(self, pin: TablePin) -> Table:
        """The table at exactly the version that a snapshot pins."""
        return self.open(pin.location, ref=pin.ref, version=pin.version)

    def open_pins(self, pins: Iterable[TablePin]) -> None:
        """Open tables at once where each takes its time, so that opening them again takes none."""
        if self._root.is_local:
            return
        with self._lock:
            missing = [pin for pin in pins if self._pin_address(pin) not in self._pinned]
        if len(missing) > 1:
            # Imported here: readers of local disks start without it.
            from concurrent.futures import ThreadPoolExecutor

            with ThreadPoolExecutor(min(len(missing), REMOTE_OPENS_MAX)) as pool:
                list(pool.map(self.open_pin, missing))

    def _pin_address(self, pin: TablePin) -> TableAddress:
        return self.address(pin.location, ref=pin.ref, version=pin.version)

    def adopt(self, location: str, ref: str, handle: LanceDataset) -> None:
        """Open the first version of a ref later through the handle that made it."""
        self._keep_ref_handle(location, ref, handle, adopted=True)
        address = self.address(location, ref=ref, version=handle.version)
        table = Table(address, self.at_home(address, handle), self)
        self._remember(table)
        self._see(address)

    def _pin(self, address: TableAddress, handle: LanceDataset) -> Table:
        """The table already pinned at this address, or a new one, pinned from now on."""
        with self._lock:
            pinned = self._pinned.get(address)
        # A version of main never changes. A ref that another program made may be deleted and
        # created again, so its versions are distinguished by their creation times.
        if pinned is not None and pinned.handle.get_version() == handle.get_version():
            return pinned
        with translate_errors("opening", str(address)):
            table = Table(address, self.at_home(address, handle), self)
        self._remember(table)
        return table

    def at_home(self, address: TableAddress, handle: LanceDataset) -> LanceDataset:
        """A handle of the same version that finds its shared files, wherever the graph was made."""
        if address.ref is None:
            return handle
        home = with_shared_files_in(
            handle,
            uri=address.uri,
            location=address.location,
            folder_uri=self.uri(address.folder),
            session=self._session,
            block_size=self._block_bytes(address.location),
        )
        if home is not handle:
            self._meter.watch_new_ref(home)
        return home

    def _remember(self, table: Table) -> None:
        with self._lock:
            self._pinned.pop(table.address, None)
            while len(self._pinned) >= PINNED_TABLES_MAX:
                del self._pinned[next(iter(self._pinned))]
            self._pinned[table.address] = table

    def follow(self, before: Table, after: Table) -> None:
        """Pin a version that was just made from another one, instead of the other one."""
        with self._lock:
            # Readers of the older version hold it already: a long series of writes pins only one.
            self._pinned.pop(before.address, None)
        self._remember(after)
        self._see(after.address)

    def open_latest(self, location: str, *, ref: str | None) -> Table:
        """The table at the newest version of this ref, read from storage, never from a cache."""
        if (adopted := self._open_adopted(location, ref)) is not None:
            return adopted
        newest = self._probe_head(location, ref)
        if newest is not None:
            return self.open(location, ref=ref, version=newest)
        with translate_errors("opening", self.uri(location)):
            handle = self._check_out(location, ref, None)
        address = self.address(location, ref=ref, version=handle.version)
        self._see(address)
        return self._pin(address, handle)

    def _open_adopted(self, location: str, ref: str | None) -> Table | None:
        """The newest version of a ref that was created here, as long as it only moved here.

        Its handles share no caches with the others, which would read its newest version again.
        """
        if ref is None or (location, ref) not in self._adopted:
            return None
        version = self.head_version(location, ref=ref)
        with self._lock:
            pinned = self._pinned.get(self.address(location, ref=ref, version=version))
            if pinned is None:
                self._adopted.discard((location, ref))
        return pinned

    def head_version(self, location: str, *, ref: str | None) -> int:
        """The newest version of this ref, read from storage in one request; nothing is opened."""
        newest = self._probe_head(location, ref)
        if newest is not None:
            return newest
        if ref is None:
            handle = self.main(location)
        else:
            with self._lock:
                known = self._ref_handles.get((location, ref))
            if known is None:
                opened = self.open_latest(location, ref=ref)
                self._keep_ref_handle(location, ref, opened.handle)
                return opened.version
            handle = known
        with translate_errors("finding the newest version of", self.uri(location)):
            newest = int(handle.latest_version)
        self._see(self.address(location, ref=ref, version=newest))
        return newest

    def _probe_head(self, location: str, ref: str | None) -> int | None:
        """The newest version of a ref on a local disk, if it is hardly newer than one seen before.

        Versions are numbered without gaps, but for those that a cleanup made, which it announces.
        Looking for the next few files takes the same time in any history, where Lance lists all of
        them; on S3, it lists the newest ones first.
        """
        if not self._root.is_local:
            return None
        with self._lock:
            newest = self._newest.get((location, ref))
        if newest is None:
            return None
        folder = f"{self._root.uri}/{ref_folder(location, ref)}"
        with translate_errors("finding the newest version of", self.uri(location)):
            # A cleanup may have removed it, and old tables name their files otherwise.
            if not _has_version_file(folder, newest):
                return None
            for version in range(newest, newest + PROBED_VERSIONS_MAX):
                if not _has_version_file(folder, version + 1):
                    if newest <= self.gaps.highest(ref_folder(location, ref)):
                        return None
                    if version > newest:
                        self._see(self.address(location, ref=ref, version=version))
                    return version
        return None

    def forget(self, location: str, *, ref: str | None, versions: Collection[int]) -> None:
        """Forget versions that were removed."""
        with self._lock:
            for version in versions:
                self._pinned.pop(self.address(location, ref=ref, version=version), None)

    def _see(self, address: TableAddress) -> None:
        """Remember the newest version of a ref that this process has seen."""
        with self._lock:
            place = (address.location, address.ref)
            self._newest.pop(place, None)
            while len(self._newest) >= PINNED_TABLES_MAX:
                del self._newest[next(iter(self._newest))]
            self._newest[place] = address.version

    def _keep_ref_handle(
        self, location: str, ref: str, handle: LanceDataset, *, adopted: bool = False
    ) -> None:
        with self._lock:
            # A handle only lists its own folder, so it also serves a ref created again.
            while len(self._ref_handles) >= PINNED_TABLES_MAX:
                oldest = next(iter(self._ref_handles))
                del self._ref_handles[oldest]
                self._adopted.discard(oldest)
            self._ref_handles[location, ref] = handle
            if adopted:
                self._adopted.add((location, ref))

    def main(self, location: str) -> LanceDataset:
        """The handle that every other handle of this table is checked out from.

        It is never moved, so threads may share it.
        """
        with self._lock:
            handle = self._handles.get(location)
        return self._open_folder(location, None, None) if handle is None else handle


@lru_cache(maxsize=2 * PINNED_TABLES_MAX)
def _version_path(folder: str, version: int) -> Path:
    """The file of a version; to take a path apart takes longer than to look for the file."""
    return Path(f"{folder}/_versions/{_version_file(version)}")


def _has_version_file(folder: str, version: int) -> bool:
    try:
        _version_path(folder, version).stat()
    except FileNotFoundError:
        return False
    return True


def _version_file(version: int) -> str:
    """How Lance names the file of a version: counting down, so that the newest is listed first."""
    return f"{(1 << 64) - 1 - version:020}.manifest"


def is_minted(ref: str) -> bool:
    """Whether a ref's name consists of ids, so that no other ref ever has it."""
    return all(map(is_ulid, ref.split("/")))


def ref_folder(location: str, ref: str | None) -> str:
    """The folder below the root where a table keeps this ref's own files."""
    return f"{location}/{REF_FOLDER}/{ref}" if ref else location
