"""Folders that an export is written into, on a disk or in a bucket, by any number of processes.

A file appears complete under its name, or not at all, and a task that runs twice writes the same
rows under the same name twice. Folders are small and can be sent to any process.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

import pyarrow as pa

from omnigraph.errors import StorageError
from omnigraph.storage.meter import Meter
from omnigraph.storage.objects import Objects
from omnigraph.storage.roots import Root

_UNFINISHED: Final = ".unfinished-"


class ExportFolder(Protocol):
    """Where the files of one export are written."""

    @property
    def spill_directory(self) -> Path | None:
        """Where rows may wait that do not fit in memory; the system's own place when None."""
        ...

    def to_name(self, stem: str, suffix: str) -> str:
        """The name of a file, below the folder."""
        ...

    def write(self, name: str) -> AbstractContextManager[pa.NativeFile]:
        """A stream into a file; if the block fails, there is no such file."""
        ...


@dataclass(frozen=True, slots=True)
class DiskFolder:
    """A directory that driver and workers share, and that is renamed when it is complete."""

    path: str

    @property
    def spill_directory(self) -> Path:
        """The directory itself: it has room, if there is any."""
        return Path(self.path)

    def to_name(self, stem: str, suffix: str) -> str:
        """The name of a file, below the folder."""
        return f"{stem}{suffix}"

    @contextmanager
    def write(self, name: str) -> Iterator[pa.NativeFile]:
        """A stream into a file that gets its name at the end of the block."""
        if not Path(self.path).is_dir():
            message = f"a worker does not see the directory {self.path} that the driver made"
            raise StorageError(message, hint="export to a directory that all machines share")
        target = Path(self.path, name)
        target.parent.mkdir(exist_ok=True)
        # Two attempts of a task may run at once.
        unfinished = target.with_name(f"{_UNFINISHED}{os.getpid()}-{threading.get_ident()}")
        try:
            with pa.OSFile(str(unfinished), "wb") as file:
                yield file
            unfinished.replace(target)
        finally:
            unfinished.unlink(missing_ok=True)

    def settle(self, files: Iterable[str]) -> None:
        """Delete what killed tasks have left."""
        for unfinished in Path(self.path).rglob(f"{_UNFINISHED}*"):
            unfinished.unlink(missing_ok=True)
        for name in files:
            if not Path(self.path, name).is_file():
                message = f"a worker wrote {name} where the driver does not see it"
                hint = "export to a directory that all machines share"
                raise StorageError(message, hint=hint)


@dataclass(frozen=True, slots=True)
class BucketFolder:
    """A folder of a bucket. The names of its files have the id of the run that writes them.

    So no run, however late, replaces a file of another one.
    """

    root: Root
    name: str
    run_id: str

    @property
    def spill_directory(self) -> None:
        """The system's own place."""
        return

    @property
    def objects(self) -> Objects:
        """The objects beside the folder."""
        return Objects(self.root, Meter())

    def to_name(self, stem: str, suffix: str) -> str:
        """The name of a file, below the folder."""
        return f"{stem}.{self.run_id}{suffix}"

    @contextmanager
    def write(self, name: str) -> Iterator[pa.NativeFile]:
        """A stream into an object that is stored at the end of the block."""
        with self.objects.write(f"{self.name}/{name}") as stream:
            yield stream
