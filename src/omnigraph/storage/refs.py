"""Refs: Lance's native branches of one table, made safe to create and delete.

A ref has its own folder of versions and files. Refs with minted names are clones that are
committed there, which takes five requests; Lance's own creation takes eight to eleven, because it
also registers the name. Nothing needs that register: branch records and pins say which refs are in
use, and the folders say which there are. Older releases registered every ref.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from copy import copy
from typing import Final
from urllib.parse import unquote

from lance import LanceDataset, LanceOperation
from lance.dataset import Transaction

from omnigraph.clock import is_ulid
from omnigraph.errors import (
    AlreadyExistsError,
    ErrorCode,
    InvalidNameError,
    NotFoundError,
    StorageError,
)
from omnigraph.storage.forks import REF_SUFFIX, REFS_FOLDER
from omnigraph.storage.meter import Meter
from omnigraph.storage.objects import Objects
from omnigraph.storage.tables import REF_FOLDER, Table, Tables, is_minted, ref_folder
from omnigraph.storage.translate import translate_errors

_DELETES_MAX: Final = 5
_LOOKS_MAX: Final = 50
_LOOK_SECONDS: Final = 0.02


class Refs:
    """The refs of every table below one root."""

    def __init__(self, tables: Tables, objects: Objects, meter: Meter) -> None:
        self._tables = tables
        self._objects = objects
        self._meter = meter

    def list(self, location: str) -> tuple[str, ...]:
        """The names of the table's refs, main left out, sorted.

        A ref whose creation or deletion was interrupted is included as long as a file of it exists.
        """
        return tuple(sorted({*self.registered(location), *self._minted(location)}))

    def _minted(self, location: str) -> Iterator[str]:
        """The refs with minted names, by their folders: tables have them below their branches'."""
        for branch in self._minted_folders(f"{location}/{REF_FOLDER}"):
            if location.startswith("__"):
                yield branch
            else:
                below = self._minted_folders(f"{location}/{REF_FOLDER}/{branch}")
                yield from (f"{branch}/{name}" for name in below)

    def _minted_folders(self, prefix: str) -> Iterator[str]:
        names = (folder.rpartition("/")[2] for folder in self._objects.folders(prefix))
        return filter(is_ulid, names)

    def registered(self, location: str) -> tuple[str, ...]:
        """The names that Lance has registered, sorted; one request."""
        # Lance's own listing makes two requests per branch; the file names hold all the names.
        paths = self._objects.list(f"{location}/{REFS_FOLDER}")
        files = [path.rpartition("/")[2] for path in paths]
        return tuple(
            sorted(unquote(f.removesuffix(REF_SUFFIX)) for f in files if f.endswith(REF_SUFFIX))
        )

    def exists(self, location: str, name: str) -> bool:
        """Whether the table has a ref of this name; one request if the name was minted."""
        if is_minted(name):
            return self._objects.holds_any(f"{ref_folder(location, name)}/_versions")
        return name in self.registered(location)

    def create(self, location: str, name: str, *, source: str | None, version: int) -> Table:
        """Start a ref with a name of the caller's choice at one version of another."""
        self._require_path_free(location, name)
        self._register(location, name, source=source, version=version)
        return self._tables.open(location, ref=name, version=version)

    def start(self, location: str, name: str, *, source: str | None, version: int) -> Table:
        """Start a ref whose name ends in a minted id at one version of another; copies no data."""
        self.mint(location, name, source=source, version=version)
        return self._tables.open(location, ref=name, version=version)

    def mint(self, location: str, name: str, *, source: str | None, version: int) -> LanceDataset:
        """Start a ref under a minted name at one version of another; copies no data.

        The handle that is returned shares no caches with those of `Tables`.
        """
        uri = self._tables.uri(location)
        operation = LanceOperation.Clone(
            is_shallow=True,
            ref_name=source,
            ref_version=version,
            ref_path=self._tables.uri(ref_folder(location, source)),
            branch_name=name,
        )
        with translate_errors("creating a ref on", uri):
            handle = LanceDataset.commit(
                self._tables.uri(ref_folder(location, name)),
                Transaction(version, operation),
                max_retries=0,
                enable_stable_row_ids=True,
            )
        self._meter.watch_new_ref(handle)
        return handle

    def _register(self, location: str, name: str, *, source: str | None, version: int) -> None:
        uri = self._tables.uri(location)
        # Not a shared handle such as `Tables.open` returns: while Lance creates a ref through a
        # handle, it rejects every other call on that handle.
        with translate_errors("opening", uri):
            own = copy(self._tables.main(location))
        try:
            with translate_errors("creating a ref on", uri):
                own.create_branch(name, (source, version))
        except StorageError as failure:
            # Lance's text for this failure varies, so look at the refs instead.
            if self._appears(location, name):
                message = f"{uri} already has a ref {name}"
                raise AlreadyExistsError(message, code=ErrorCode.REF_EXISTS) from failure
            raise

    def delete(self, location: str, name: str) -> None:
        """Delete a ref and the files that only it refers to.

        Callers exclude creators of the same name first (`reclaim`).
        """
        for _ in range(_DELETES_MAX):
            if name not in self.registered(location):
                if is_minted(name) and self.exists(location, name):
                    return self.reclaim(location, name)
                message = f"{self._tables.uri(location)} has no ref {name}"
                raise NotFoundError(message, code=ErrorCode.NOT_FOUND)
            try:
                return self._delete(location, name)
            except StorageError as failure:
                # Lance reads every ref before and after it deletes a name, and fails if any of
                # them is deleted meanwhile.
                if name not in self.registered(location):
                    return self.reclaim(location, name)
                last = failure
        raise last

    def _delete(self, location: str, name: str) -> None:
        uri = self._tables.uri(location)
        # A handle of its own, as in `_register`.
        with translate_errors("opening", uri):
            own = self._tables.main(location).checkout_version((None, None))
        with translate_errors(f"deleting the ref {name} of", uri):
            own.branches.delete(name)

    def reclaim(self, location: str, name: str) -> None:
        """Delete the files under a name that is not registered, whole or left by a kill.

        Lance writes a ref's files before its name and deletes them after it, so a kill in between
        leaves files that block the name. A creator that is still running looks the same: callers
        exclude it first.
        """
        for other in self.registered(location):
            if other == name or other.startswith(f"{name}/"):
                message = f"{self._tables.uri(location)} has a ref {other}: it is not a leftover"
                raise AlreadyExistsError(message, code=ErrorCode.REF_EXISTS)
        self._objects.clear(ref_folder(location, name))

    def _appears(self, location: str, name: str) -> bool:
        """Whether the ref exists, or appears while we poll: a rival writes its files first."""
        for _ in range(_LOOKS_MAX):
            if self.exists(location, name):
                return True
            if not self._objects.holds_any(f"{location}/{REF_FOLDER}/{name}"):
                return False
            time.sleep(_LOOK_SECONDS)
        return False

    def _require_path_free(self, location: str, name: str) -> None:
        for other in self.registered(location):
            if other.startswith(f"{name}/") or name.startswith(f"{other}/"):
                message = (
                    f"ref {name} cannot exist together with {other}: one name is a path below "
                    "the other"
                )
                raise InvalidNameError(message, hint="choose a name that shares no path with it")
