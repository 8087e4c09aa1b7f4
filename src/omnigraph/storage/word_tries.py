"""The words of an index of texts, and their numbers: a trie with shared ends, as Lance stores it.

It is the map of the Rust library `fst` in version 3: nodes are read backwards from their address,
and what a path through them adds up to is the number of its word. `docs/substrate.md` names the
tests that compare it with the words of indexes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from omnigraph.errors import StorageError

_VERSION: Final = 3
_FOOTER: Final = 20
"""Bytes at the end: how many words there are, the address of the root, and a checksum."""

_FREQUENT: Final = b"te/oasripcnw.hlm-du012g=:bf3y5&_4v9678k%?xCDASFIBEjPTzRNM+LOqHG"
"""Bytes that a node with one way on has a short form for, by their numbers from 1 on."""

_INDEXED_MIN: Final = 33
"""Ways on from which on a node has a table of all bytes."""

_ONE_WAY: Final = 0b1000_0000
_NEXT: Final = 0b0100_0000
_LOW_BITS: Final = 0b0011_1111


class _Way(NamedTuple):
    """A way on from a node: the byte, what it adds, and where it leads."""

    byte: int
    adds: int
    address: int


class _Node(NamedTuple):
    """A node: whether a word ends there, what that adds, and the ways on."""

    is_end: bool
    adds: int
    ways: tuple[_Way, ...]


_END: Final = _Node(is_end=True, adds=0, ways=())


class WordTrie:
    """The words of one part of an index."""

    def __init__(self, data: bytes) -> None:
        """Take the stored bytes.

        Raises:
            StorageError: they are of another version.
        """
        version = int.from_bytes(data[:8], "little")
        if version != _VERSION:
            message = f"the words of an index are stored in version {version}, not {_VERSION}"
            raise StorageError(message, hint="upgrade omnigraph")
        self._data = data
        self._root = int.from_bytes(data[-_FOOTER + 8 : -_FOOTER + 16], "little")
        self._nodes: dict[int, _Node] = {}

    @property
    def byte_count(self) -> int:
        """The memory that it takes."""
        return len(self._data)

    def number(self, word: str) -> int | None:
        """The number of a word; None if there is no such word."""
        node, total = self._node(self._root), 0
        for byte in word.encode():
            way = next((way for way in node.ways if way.byte == byte), None)
            if way is None:
                return None
            node, total = self._node(way.address), total + way.adds
        return total + node.adds if node.is_end else None

    def words(self) -> Iterator[tuple[str, int]]:
        """Every word, and its number, in the order of their bytes."""
        waiting = [(b"", 0, self._root)]
        while waiting:
            prefix, total, address = waiting.pop()
            node = self._node(address)
            if node.is_end:
                yield prefix.decode(), total + node.adds
            onward = sorted(node.ways, reverse=True)
            waiting += [
                (prefix + bytes([way.byte]), total + way.adds, way.address) for way in onward
            ]

    def _node(self, address: int) -> _Node:
        if address == 0:
            return _END
        if address not in self._nodes:
            self._nodes[address] = self._read(address)
        return self._nodes[address]

    def _read(self, address: int) -> _Node:
        state = self._data[address]
        if not state & _ONE_WAY:
            return self._read_many(address, state)
        short = state & _LOW_BITS
        byte, at = (
            (_FREQUENT[short - 1], address) if short else (self._data[address - 1], address - 1)
        )
        if state & _NEXT:
            return _Node(is_end=False, adds=0, ways=(_Way(byte, 0, at - 1),))
        way_size, adds_size = divmod(self._data[at - 1], 16)
        way_at = at - 1 - way_size
        adds_at = way_at - adds_size
        adds = self._number(adds_at, adds_size)
        return _Node(
            is_end=False, adds=0, ways=(_Way(byte, adds, self._way(way_at, way_size, adds_at)),)
        )

    def _read_many(self, address: int, state: int) -> _Node:
        is_end = bool(state & _NEXT)
        count, at = state & _LOW_BITS, address
        if not count:
            count, at = self._data[address - 1], address - 1
            # A node with one way on has another form, so this stands for all bytes.
            count = 256 if count == 1 else count
        way_size, adds_size = divmod(self._data[at - 1], 16)
        bytes_at = at - 1 - (256 if count >= _INDEXED_MIN else 0) - count
        ways_at = bytes_at - count * way_size
        adds_at = ways_at - count * adds_size
        end_at = adds_at - (adds_size if is_end else 0)
        ways = []
        for place in range(count):
            # The last one is stored first.
            behind = count - 1 - place
            target = self._way(ways_at + behind * way_size, way_size, end_at)
            adds = self._number(adds_at + behind * adds_size, adds_size)
            ways.append(_Way(self._data[bytes_at + behind], adds, target))
        return _Node(is_end, self._number(end_at, adds_size) if is_end else 0, tuple(ways))

    def _number(self, at: int, size: int) -> int:
        return int.from_bytes(self._data[at : at + size], "little")

    def _way(self, at: int, size: int, end: int) -> int:
        """Where a way leads: so far before the end of the node; 0 is where all words end."""
        distance = self._number(at, size)
        return 0 if distance == 0 else end - distance
