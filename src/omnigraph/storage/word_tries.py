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


class _Layout(NamedTuple):
    """Where the parts of a node with several ways on are: their bytes, targets and what they add.

    Attributes:
        way_size: The bytes of a target, and `adds_size`, of a number that is added.
        end_at: Where the node ends, with what the end of a word adds, if one ends there.
    """

    is_end: bool
    way_count: int
    bytes_at: int
    way_size: int
    ways_at: int
    adds_size: int
    adds_at: int
    end_at: int


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

    @property
    def byte_count(self) -> int:
        """The memory that it takes."""
        return len(self._data)

    def number(self, word: str) -> int | None:
        """The number of a word; None if there is no such word."""
        address, total = self._root, 0
        for byte in word.encode():
            way = self._find_way(address, byte)
            if way is None:
                return None
            address, total = way.address, total + way.adds
        adds = self._end(address)
        return None if adds is None else total + adds

    def words(self) -> Iterator[tuple[str, int]]:
        """Every word, and its number, in the order of their bytes."""
        # Many words share their ends.
        nodes: dict[int, _Node] = {}
        waiting = [(b"", 0, self._root)]
        while waiting:
            prefix, total, address = waiting.pop()
            if address not in nodes:
                nodes[address] = self._read(address)
            node = nodes[address]
            if node.is_end:
                yield prefix.decode(), total + node.adds
            onward = sorted(node.ways, reverse=True)
            waiting += [
                (prefix + bytes([way.byte]), total + way.adds, way.address) for way in onward
            ]

    def _find_way(self, address: int, byte: int) -> _Way | None:
        """The way on from a node with this byte. Reads no other of its ways."""
        if address == 0:
            return None
        if self._data[address] & _ONE_WAY:
            way = self._read_one(address)
            return way if way.byte == byte else None
        node = self._lay_out(address)
        at = self._data.find(byte, node.bytes_at, node.bytes_at + node.way_count)
        return None if at < 0 else self._read_way(node, at - node.bytes_at)

    def _end(self, address: int) -> int | None:
        """What the end of a word adds at a node; None if no word ends there."""
        if address == 0:
            return 0
        if self._data[address] & _ONE_WAY:
            return None
        node = self._lay_out(address)
        return self._number(node.end_at, node.adds_size) if node.is_end else None

    def _read(self, address: int) -> _Node:
        if address == 0:
            return _END
        if self._data[address] & _ONE_WAY:
            return _Node(is_end=False, adds=0, ways=(self._read_one(address),))
        node = self._lay_out(address)
        # The last one is stored first.
        ways = tuple(self._read_way(node, behind) for behind in reversed(range(node.way_count)))
        return _Node(node.is_end, self._end(address) or 0, ways)

    def _read_one(self, address: int) -> _Way:
        """The way on from a node that has only one."""
        state = self._data[address]
        short = state & _LOW_BITS
        byte, at = (
            (_FREQUENT[short - 1], address) if short else (self._data[address - 1], address - 1)
        )
        if state & _NEXT:
            return _Way(byte, 0, at - 1)
        way_size, adds_size = divmod(self._data[at - 1], 16)
        way_at = at - 1 - way_size
        adds_at = way_at - adds_size
        adds = self._number(adds_at, adds_size)
        return _Way(byte, adds, self._target(way_at, way_size, adds_at))

    def _lay_out(self, address: int) -> _Layout:
        state = self._data[address]
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
        return _Layout(is_end, count, bytes_at, way_size, ways_at, adds_size, adds_at, end_at)

    def _read_way(self, node: _Layout, behind: int) -> _Way:
        """The way on that so many are stored before."""
        adds = self._number(node.adds_at + behind * node.adds_size, node.adds_size)
        target = self._target(node.ways_at + behind * node.way_size, node.way_size, node.end_at)
        return _Way(self._data[node.bytes_at + behind], adds, target)

    def _number(self, at: int, size: int) -> int:
        return int.from_bytes(self._data[at : at + size], "little")

    def _target(self, at: int, size: int, end: int) -> int:
        """Where a way leads: so far before the end of the node; 0 is where all words end."""
        distance = self._number(at, size)
        return 0 if distance == 0 else end - distance
