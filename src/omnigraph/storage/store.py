"""The store: the objects, tables and refs below one root, with their common meter."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from typing import NoReturn, Self

from omnigraph.storage.meter import Meter
from omnigraph.storage.objects import Objects
from omnigraph.storage.refs import Refs
from omnigraph.storage.roots import Root
from omnigraph.storage.tables import Tables


@dataclass(frozen=True, slots=True)
class Store:
    """One graph's storage. Opening it touches nothing."""

    root: Root
    meter: Meter
    objects: Objects
    tables: Tables
    refs: Refs

    @classmethod
    def open(cls, uri: str | PathLike[str]) -> Self:
        """The storage below a graph URI."""
        root = Root.parse(uri)
        meter = Meter()
        objects = Objects(root, meter)
        tables = Tables(root, objects, meter)
        return cls(root, meter, objects, tables, Refs(tables, objects, meter))

    def __reduce__(self) -> NoReturn:
        message = "a Store cannot be pickled; ship a TableAddress and open it there"
        raise TypeError(message)
