"""Refs: Lance's native branches of one table, made safe to create and delete."""

from __future__ import annotations

import time
from copy import copy
from typing import Final
from urllib.parse import unquote

from omnigraph.errors import (
    AlreadyExistsError,
    ErrorCode,
    InvalidNameError,
    NotFoundError,
    StorageError,
)
from omnigraph.storage.forks import REF_SUFFIX, REFS_FOLDER
from omnigraph.storage.objects import Objects
from omnigraph.storage.tables import REF_FOLDER, Table, Tables
from omnigraph.storage.translate import translate_errors

_DELETES_MAX: Final = 5
_LOOKS_MAX: Final = 50
_LOOK_SECONDS: Final = 0.02


class Refs:
    """The refs of every table below one root."""

    def __init__(self, tables: Tables, objects: Objects) -> None:
        self._tables = tables
        self._objects = objects

    def list(self, location: str) -> tuple[str, ...]:
        """The names of the table's refs, main left out, sorted; one request."""
        # Lance's own listing makes two requests per branch; the file names hold all the names.
        paths = self._objects.list(f"{location}/{REFS_FOLDER}")
        files = [path.rpartition("/")[2] for path in paths]
        return tuple(
            sorted(unquote(f.removesuffix(REF_SUFFIX)) for f in files if f.endswith(REF_SUFFIX))
        )

    def exists(self, location: str, name: str) -> bool:
        """Whether the table has a ref of this name."""
        return name in self.list(location)

    def create(self, location: str, name: str, *, source: str | None, version: int) -> Table:
        """Start a ref at one version of another; copies no data.

        Raises:
            AlreadyExistsError: the table has that ref. It is untouched.
            InvalidNameError: a ref above or below it by path exists: deleting `review` while
                `review/x` exists would leave a readable zombie (docs/substrate.md, Branches of a
                table). Nothing was created.
            StorageError: the source is gone, storage failed, or a killed writer's files are in the
                way (`reclaim`). The ref does not exist.
        """
        self._require_path_free(location, name)
        return self.start(location, name, source=source, version=version)

    def start(self, location: str, name: str, *, source: str | None, version: int) -> Table:
        """Like `create`, for a name that the caller just minted: no other ref can collide."""
        self.mint(location, name, source=source, version=version)
        return self._tables.open(location, ref=name, version=version)

    def mint(self, location: str, name: str, *, source: str | None, version: int) -> None:
        """Like `start`, for callers that do not need the table at once."""
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

        Raises:
            NotFoundError: the table has no such ref.
            StorageError: other refs build on it, or storage failed.
        """
        for _ in range(_DELETES_MAX):
            if not self.exists(location, name):
                message = f"{self._tables.uri(location)} has no ref {name}"
                raise NotFoundError(message, code=ErrorCode.NOT_FOUND)
            try:
                return self._delete(location, name)
            except StorageError as failure:
                # Lance reads every ref before and after it deletes a name, and fails if any of
                # them is deleted meanwhile.
                if not self.exists(location, name):
                    return self.reclaim(location, name)
                last = failure
        raise last

    def _delete(self, location: str, name: str) -> None:
        uri = self._tables.uri(location)
        # A handle of its own, as in `mint`.
        with translate_errors("opening", uri):
            own = self._tables.main(location).checkout_version((None, None))
        with translate_errors(f"deleting the ref {name} of", uri):
            own.branches.delete(name)

    def reclaim(self, location: str, name: str) -> None:
        """Delete the files that a killed create or delete left under a name that no ref holds.

        Lance writes a ref's files before its name and deletes them after it, so a kill in between
        leaves files that block the name. A creator that is still running looks the same: callers
        exclude it first.

        Raises:
            AlreadyExistsError: the table has that ref, or one below it. It is untouched.
        """
        for other in self.list(location):
            if other == name or other.startswith(f"{name}/"):
                message = f"{self._tables.uri(location)} has a ref {other}: it is not a leftover"
                raise AlreadyExistsError(message, code=ErrorCode.REF_EXISTS)
        for path in self._objects.list(f"{location}/{REF_FOLDER}/{name}"):
            self._objects.delete(path)

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
        for other in self.list(location):
            if other.startswith(f"{name}/") or name.startswith(f"{other}/"):
                message = f"a ref {name} cannot stand beside {other}: one lies below the other"
                raise InvalidNameError(message, hint="choose a name that shares no path with it")
