"""Gaps: the version numbers that a cleanup has freed, for those who count on from one they know.

On a local disk the newest version of a table is found by looking for the next numbers. A number
that is missing is the end, unless a cleanup removed it: so a cleanup first announces how far it
removes versions, and who has counted looks here afterwards.
"""

from __future__ import annotations

import sys
from functools import lru_cache
from pathlib import Path
from typing import Final

from omnigraph.limits import PINNED_TABLES_MAX
from omnigraph.storage.objects import Objects
from omnigraph.storage.roots import Root

_FILE: Final = "_removed_versions"
"""The file in the folder of a ref with the highest version that was removed."""


class Gaps:
    """The gaps of every table below one root; object stores list their newest versions first."""

    def __init__(self, root: Root, objects: Objects) -> None:
        self._root = root
        self._objects = objects

    def announce(self, folder: str, version: int) -> None:
        """Make known that versions of a ref up to this one are about to be removed.

        Args:
            folder: The folder of the ref below the root.
        """
        path, data = f"{folder}/{_FILE}", str(version).encode()
        # On condition: of two cleanups at once, the higher number must stay.
        while self._root.is_local and version > self.highest(folder):
            stored = self._objects.read(path)
            if stored is None:
                self._objects.put_if_absent(path, data)
            else:
                self._objects.update(path, data, expecting=stored.tag)

    def highest(self, folder: str) -> int:
        """The highest version that was removed, or is about to be; 0 if none was."""
        try:
            return int(_path(self._root.uri, folder).read_bytes())
        except FileNotFoundError:
            return 0
        except ValueError:
            # Somebody damaged it: any version may be missing.
            return sys.maxsize


@lru_cache(maxsize=PINNED_TABLES_MAX)
def _path(root: str, folder: str) -> Path:
    """The file of a ref; to take a path apart takes longer than to look for the file."""
    return Path(f"{root}/{folder}/{_FILE}")
