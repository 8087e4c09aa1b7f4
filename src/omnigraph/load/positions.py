"""Positions: where in a load's inputs a row is, as one number; its origin and id follow.

A row has the same position, so the same origin and the same minted id, however often it is shaped
and in whatever process.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

import numpy as np
import pyarrow as pa

from omnigraph.clock import ULID_LENGTH, encode_ulid

PLACE_BITS: Final = 40
"""The lower bits of a position are the line or row, the upper ones the split."""

_PLACES: Final = (1 << PLACE_BITS) - 1
_LOW_DIGITS: Final = 12
_LOW_BITS: Final = 5 * _LOW_DIGITS
_DIGITS: Final = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def position(number: int, place: int) -> int:
    """The position of a row: the number of its split, from 0, and its line or row, from 1."""
    assert 0 < place <= _PLACES, "no file has so many lines"
    return number << PLACE_BITS | place


def positions(number: int, first: int, count: int) -> pa.Array:
    """The positions of rows that follow one another in a split."""
    start = position(number, first)
    return pa.array(np.arange(start, start + count, dtype=np.int64))


def place_of(position: int) -> int:
    """The line or row of a position."""
    return position & _PLACES


@dataclass(frozen=True, slots=True)
class Origins:
    """Names positions for reports: the input of each split, and its lines before the split."""

    names: Mapping[int, str]
    lines_before: Mapping[int, int] = field(default_factory=dict)

    @classmethod
    def of_inputs(cls, names: Sequence[str]) -> Origins:
        """Those of a load that reads each input as one split."""
        return cls(dict(enumerate(names)))

    def origin_of(self, position: int) -> str:
        """The input and line, or row, of a position.

        >>> Origins.of_inputs(["people.jsonl", "more.jsonl"]).origin_of(position(1, 17))
        'more.jsonl:17'
        """
        number = position >> PLACE_BITS
        return f"{self.names[number]}:{self.lines_before.get(number, 0) + place_of(position)}"


def minted_id(seed: str, position: int) -> str:
    """A ULID of its own for each position of the load that has this seed, itself a ULID.

    >>> minted_id("01ARZ3NDEKTSV4RRFFQ69G5FAV", 1)
    '01ARZ3NDEKTSV4RRFFQ69G5FAW'
    """
    return encode_ulid(_number(seed) + position)


def minted_ids(seed: str, positions: pa.Array) -> pa.Array:
    """The `minted_id` of many positions."""
    base = _number(seed)
    low = positions.to_numpy().astype(np.uint64) + np.uint64(base & ((1 << _LOW_BITS) - 1))
    carried = low >> np.uint64(_LOW_BITS)
    texts = np.empty((len(low), ULID_LENGTH), dtype=np.uint8)
    for carry in np.unique(carried).tolist():
        head = encode_ulid(((base >> _LOW_BITS) + carry) << _LOW_BITS)[:-_LOW_DIGITS]
        texts[carried == carry, :-_LOW_DIGITS] = np.frombuffer(head.encode(), np.uint8)
    digits = np.frombuffer(_DIGITS.encode(), np.uint8)
    for place in range(_LOW_DIGITS):
        texts[:, -1 - place] = digits[(low >> np.uint64(5 * place)) & np.uint64(31)]
    offsets = np.arange(0, texts.size + 1, ULID_LENGTH, dtype=np.int32)
    return pa.StringArray.from_buffers(len(low), pa.py_buffer(offsets), pa.py_buffer(texts))


@lru_cache(maxsize=8)
def _number(seed: str) -> int:
    number = 0
    for digit in seed:
        number = number << 5 | _DIGITS.index(digit)
    return number
