"""Sketches of pairs: a few bits for each pair, which say of most others that they are not there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

import numpy as np

_BITS_PER_PAIR: Final = 16
"""At least so many, so that about one of so many other pairs is taken for one that is there."""

_LOG_BITS_MIN: Final = 16
_LOG_BITS_MAX: Final = 26
"""While it is made, a sketch takes a byte for each bit."""

_MADE_BYTES_PER_PAIR: Final = 32
"""About what a pair takes while its hash is computed."""

_FACTORS: Final = np.uint32(0x9E37_79B1), np.uint32(0x85EB_CA77), np.uint32(0xC2B2_AE3D)
"""Odd numbers whose bits look random: a product of one depends on all bits of the other number."""


@dataclass(frozen=True, slots=True, eq=False)
class PairSketch:
    """A set of pairs of which no pair is missed; it may also have others.

    Attributes:
        bits: A bit for each hash, eight to a byte, the lowest first.
        capacity: How many pairs it may have before it says little.
    """

    bits: np.ndarray
    log_bits: int
    capacity: int

    @classmethod
    def of(cls, nodes: np.ndarray, neighbours: np.ndarray) -> Self:
        """The sketch of pairs, each of two whole numbers of 32 bits without a sign.

        >>> sketch = PairSketch.of(np.array([1, 2]), np.array([5, 6]))
        >>> sketch.may_have(np.array([1, 1]), np.array([5, 6])).tolist()
        [True, False]
        """
        log_bits = _log_bits(len(nodes))
        is_set = np.zeros(1 << log_bits, np.bool_)
        is_set[_hash(nodes, neighbours, log_bits)] = True
        capacity = max(2 * len(nodes), (1 << log_bits) // _BITS_PER_PAIR)
        return cls(np.packbits(is_set, bitorder="little"), log_bits, capacity)

    @staticmethod
    def count_bytes(pair_count: int) -> int:
        """About what it takes to make one of so many pairs."""
        return (1 << _log_bits(pair_count)) + _MADE_BYTES_PER_PAIR * pair_count

    def may_have(self, nodes: np.ndarray, neighbours: np.ndarray) -> np.ndarray:
        """Whether each pair may be there; where it is false, the pair is not."""
        hashes = _hash(nodes, neighbours, self.log_bits)
        found: np.ndarray = self.bits[hashes >> np.uint32(3)]
        found >>= (hashes & np.uint32(7)).astype(np.uint8)
        found &= np.uint8(1)
        return found.view(np.bool_)

    def adding(self, nodes: np.ndarray, neighbours: np.ndarray) -> Self:
        """The sketch with some more pairs."""
        hashes = _hash(nodes, neighbours, self.log_bits)
        bits = self.bits.copy()
        marks = np.left_shift(np.uint8(1), (hashes & np.uint32(7)).astype(np.uint8))
        np.bitwise_or.at(bits, hashes >> np.uint32(3), marks)
        return type(self)(bits, self.log_bits, self.capacity)


def _log_bits(pair_count: int) -> int:
    wanted = max(1, pair_count) * _BITS_PER_PAIR
    return min(max(int(wanted - 1).bit_length(), _LOG_BITS_MIN), _LOG_BITS_MAX)


def _hash(nodes: np.ndarray, neighbours: np.ndarray, log_bits: int) -> np.ndarray:
    # Products of arrays wrap, which is what mixes their bits.
    first, second, third = _FACTORS
    hashes: np.ndarray = nodes.astype(np.uint32) * first
    hashes += neighbours.astype(np.uint32, copy=False) * second
    hashes ^= hashes >> np.uint32(15)
    hashes *= third
    hashes >>= np.uint32(32 - log_bits)
    return hashes
