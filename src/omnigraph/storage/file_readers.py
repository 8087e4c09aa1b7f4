"""Readers of a Lance file that stay open, for threads to share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from lance.file import LanceFileReader


class FileReaders:
    """Readers of one file. To open one may take as long as to read from it.

    A reader serves one thread at a time: Lance refuses a second with "Already borrowed".
    There are as many as there were threads at once.
    """

    def __init__(self, path: str, columns: Sequence[str] | None = None) -> None:
        self._path = path
        self._columns = None if columns is None else list(columns)
        self._idle: list[LanceFileReader] = []

    @contextmanager
    def borrow(self) -> Iterator[LanceFileReader]:
        """A reader that no other thread has, opened if there is none. Lost if reading fails."""
        try:
            reader = self._idle.pop()
        except IndexError:
            reader = LanceFileReader(self._path, columns=self._columns)
        yield reader
        self._idle.append(reader)
