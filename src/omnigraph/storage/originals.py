"""Tables of the Rust releases: any version of any branch, also after the graph was moved.

A branch's version names the folders of the files that it shares by absolute paths, and Lance looks
for them there: in a moved graph they do not exist, and in a copied one they are another graph's. So
a version of a branch is described once more in a scratch folder, with the same fragments and the
folders of this graph, and read there. Nothing is written to the graph.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Self

from lance import DatasetBasePath, LanceDataset, LanceOperation
from lance.fragment import DataFile, DeletionFile

from omnigraph.errors import ErrorCode, NotFoundError, StorageError
from omnigraph.storage.pairs import Pair, deletions_of, files_of
from omnigraph.storage.store import Store
from omnigraph.storage.tables import Fragment, Table, ref_folder
from omnigraph.storage.translate import translate_errors


@dataclass(frozen=True, slots=True)
class OriginalRef:
    """A registered Lance branch of a table.

    Attributes:
        source: The branch it started from; None is main.
        version: The version it started at.
    """

    name: str
    source: str | None
    version: int
    created_at: datetime


class OriginalTables:
    """Opens the tables below one root. A context: it holds a scratch folder."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._held = ExitStack()
        self._scratch = Path(self._held.enter_context(TemporaryDirectory(prefix="omnigraph-")))
        self._described = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._held.close()

    def exists(self, location: str) -> bool:
        """Whether there is a table."""
        return self._store.tables.exists(location)

    def refs(self, location: str) -> dict[str, OriginalRef]:
        """The branches of a table, by name."""
        with translate_errors("listing the branches of", self._store.tables.uri(location)):
            listed = self._store.tables.main(location).branches.list()
        return {
            name: OriginalRef(
                name,
                facts["parent_branch"],
                int(facts["parent_version"]),
                datetime.fromtimestamp(int(facts["create_at"]), UTC),
            )
            for name, facts in listed.items()
        }

    def open(self, location: str, *, ref: str | None, version: int | None = None) -> Table:
        """A version of a table, by default the newest of its branch."""
        place = f"{self._store.tables.uri(location)}{f'@{ref}' if ref else ''}"
        try:
            with translate_errors("opening", place):
                handle = self._store.tables.main(location).checkout_version((ref, version))
        except StorageError as failure:
            if version is None or version in self._versions(location, ref):
                raise
            message = f"{place} has no version {version} any more"
            code = ErrorCode.VERSION_NOT_FOUND
            raise NotFoundError(message, code=code, version=version) from failure
        number = handle.version
        if ref is not None:
            with translate_errors("describing", place):
                handle = self._describe(handle, location, ref)
        address = self._store.tables.address(location, ref=ref, version=number)
        return Table(address, handle, self._store.tables)

    def head_version(self, location: str, *, ref: str | None) -> int:
        """The newest version of a branch of a table."""
        with translate_errors("opening", self._store.tables.uri(location)):
            handle = self._store.tables.main(location).checkout_version((ref, None))
        return int(handle.version)

    def _versions(self, location: str, ref: str | None) -> set[int]:
        with translate_errors("listing the versions of", self._store.tables.uri(location)):
            newest = self._store.tables.main(location).checkout_version((ref, None))
            return {int(each["version"]) for each in newest.versions()}

    def _describe(self, handle: LanceDataset, location: str, ref: str) -> LanceDataset:
        """The same fragments, in a dataset that finds their files below this graph's root."""
        self._described += 1
        folders: dict[int | None, str] = {None: ref_folder(location, ref)}
        for number, base in handle.base_paths().items():
            below = base.path.rpartition(f"/{location}")[2]
            folders[number] = f"{location}{below}"
        # Lance keeps 0 for the folder of the dataset itself.
        numbers = {number: place for place, number in enumerate(folders, 1)}
        bases = [
            DatasetBasePath(self._store.tables.uri(folder), None, True, numbers[number])  # noqa: FBT003
            for number, folder in folders.items()
        ]
        created = LanceDataset.commit(
            str(self._scratch / str(self._described)),
            LanceOperation.Overwrite(handle.lance_schema, [], initial_bases=bases),
        )
        fragments = [_rebase(fragment.metadata, numbers) for fragment in handle.get_fragments()]
        operation = LanceOperation.Merge(fragments, handle.lance_schema)
        return LanceDataset.commit(created, operation, read_version=created.version)


def _rebase(fragment: Fragment, numbers: Mapping[int | None, int]) -> Fragment:
    """A fragment whose files are in other folders, without row ids: Lance refuses those here."""
    files = [
        DataFile(
            file.path,
            file.fields,
            file.column_indices,
            file.file_major_version,
            file.file_minor_version,
            file.file_size_bytes,
            numbers[file.base_id],
        )
        for file in fragment.files
    ]
    deletions = fragment.deletion_file
    if deletions is not None:
        deletions = DeletionFile(
            read_version=deletions.read_version,
            id=deletions.id,
            file_type=deletions.file_type,
            num_deleted_rows=deletions.num_deleted_rows,
            base_id=numbers[deletions.base_id],
        )
    return replace(
        fragment,
        files=files,
        deletion_file=deletions,
        row_id_meta=None,
        created_at_version_meta=None,
        last_updated_at_version_meta=None,
    )


def unequal_fragments(before: Table, after: Table) -> Iterator[Pair]:
    """The fragments of two versions that may hold different rows, by their files alone.

    Unlike `storage.pairs`, this asks nothing of row ids: in the Rust releases they had faults.
    """
    olds = {
        files_of(fragment): (place, fragment) for place, fragment in enumerate(before.fragments())
    }
    for place, fragment in enumerate(after.fragments()):
        was = olds.pop(files_of(fragment), None)
        if was is None:
            yield Pair(None, place)
        elif deletions_of(was[1]) != deletions_of(fragment):
            yield Pair(was[0], place)
    yield from (Pair(place, None) for place, _ in olds.values())
