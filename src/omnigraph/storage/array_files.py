"""Array files: arrays of numbers that were derived from a version of a table, beside its indexes.

A file is named by the version that it was made of, and is deleted with that version. Nothing
depends on it: what is missing, damaged, or of another format is ignored, and can be made again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final
from zlib import crc32

import numpy as np

from omnigraph.storage.objects import Objects
from omnigraph.storage.tables import Table, TableAddress, ref_folder

ARRAYS_FOLDER: Final = "_arrays"
"""The folder in a ref's folder where its array files are."""

_SUFFIX: Final = ".arrays"
_NAME: Final = re.compile(rf"([0-9]+)-[0-9a-z]+{re.escape(_SUFFIX)}")
_MAGIC: Final = b"omniarr1"
_ALIGNMENT: Final = 64
_LENGTH_BYTES: Final = 8


@dataclass(frozen=True, slots=True)
class ArrayFile:
    """A file that may have arrays of a version, by its name."""

    path: str
    version: int


@dataclass(frozen=True, slots=True)
class StoredArrays:
    """The content of an array file.

    Attributes:
        facts: What the arrays were made of.
    """

    facts: Mapping[str, Any]
    arrays: Mapping[str, np.ndarray]


def array_path(address: TableAddress, kind: str) -> str:
    """The path, below the root, of the arrays of this kind that are made of a version.

    Args:
        kind: Small letters and digits.
    """
    return f"{address.folder}/{ARRAYS_FOLDER}/{address.version}-{kind}{_SUFFIX}"


def version_of(path: str) -> int | None:
    """The version that an array file was made of, by its name; None if it is not such a file.

    >>> version_of("edges/01J0/_arrays/7-topology.arrays"), version_of("_arrays/unfinished-1")
    (7, None)
    """
    match = _NAME.fullmatch(path.rpartition("/")[2])
    return None if match is None else int(match[1])


def list_arrays(objects: Objects, folder: str) -> list[ArrayFile]:
    """The array files of a ref, by its folder. One request."""
    paths = objects.list(f"{folder}/{ARRAYS_FOLDER}")
    versions = ((path, version_of(path)) for path in paths)
    return [ArrayFile(path, version) for path, version in versions if version is not None]


def find_arrays(table: Table, kind: str) -> list[tuple[str | None, ArrayFile]]:
    """The files of a kind of versions in line with one, and their refs; the nearest first.

    One request for the table's ref, and one for each ref that it came from.
    """
    address = table.address
    chain = table.owner.forks.chain(address.location, address.ref)
    if chain is None:
        return []
    # A ref has the versions of the one that it started from, up to that version.
    refs: list[str | None] = [None, *(ref for _, ref in chain)]
    ends = [*(version for version, _ in chain), None]
    found = []
    for ref, end in reversed([*zip(refs, ends, strict=True)]):
        files = list_arrays(table.owner.objects, ref_folder(address.location, ref))
        own = [
            file
            for file in files
            if file.path.endswith(f"-{kind}{_SUFFIX}") and (end is None or file.version <= end)
        ]
        own.sort(key=lambda file: abs(file.version - address.version))
        found += [(ref, file) for file in own]
    return found


def write_arrays(table: Table, path: str, content: StoredArrays) -> None:
    """Store arrays; a reader finds all of them or none."""
    table.owner.objects.put_parts(path, list(_to_parts(content)))


def read_arrays(table: Table, path: str) -> StoredArrays | None:
    """The arrays in a file; None if it does not exist, or is damaged or of another format.

    On a local disk they are mapped into memory, and no copy is made.
    """
    data = table.owner.objects.map(path)
    return None if data is None else _parse(data)


def _to_parts(content: StoredArrays) -> Iterator[bytes | memoryview]:
    places: list[dict[str, Any]] = []
    parts: list[bytes | memoryview] = []
    start = checksum = 0
    for name, array in content.arrays.items():
        data = np.ascontiguousarray(array).data.cast("B") if array.nbytes else b""
        padding = bytes(-array.nbytes % _ALIGNMENT)
        places.append({"name": name, "type": array.dtype.str, "count": len(array), "start": start})
        for part in (data, padding):
            checksum = crc32(part, checksum)
            parts.append(part)
        start += array.nbytes + len(padding)
    facts = {"facts": dict(content.facts), "arrays": places, "bytes": start, "crc32": checksum}
    header = json.dumps(facts).encode()
    first = len(_MAGIC) + 2 * _LENGTH_BYTES + len(header)
    yield _MAGIC
    yield len(header).to_bytes(_LENGTH_BYTES, "little")
    yield crc32(header).to_bytes(_LENGTH_BYTES, "little")
    yield header
    yield bytes(-first % _ALIGNMENT)
    yield from parts


def _parse(data: memoryview) -> StoredArrays | None:
    """The arrays in the bytes of a file; None if a byte is missing or not what was written."""
    start = len(_MAGIC)
    if bytes(data[:start]) != _MAGIC:
        return None
    length = int.from_bytes(data[start : start + _LENGTH_BYTES], "little")
    start += _LENGTH_BYTES
    checksum = int.from_bytes(data[start : start + _LENGTH_BYTES], "little")
    start += _LENGTH_BYTES
    header = data[start : start + length]
    if len(header) != length or crc32(header) != checksum:
        return None
    described = json.loads(bytes(header))
    start += length
    content = data[start + -start % _ALIGNMENT :]
    if len(content) != described["bytes"] or crc32(content) != described["crc32"]:
        return None
    arrays = {
        place["name"]: np.frombuffer(
            content, np.dtype(place["type"]), count=place["count"], offset=place["start"]
        )
        if place["count"]
        else np.empty(0, np.dtype(place["type"]))
        for place in described["arrays"]
    }
    return StoredArrays(described["facts"], arrays)
