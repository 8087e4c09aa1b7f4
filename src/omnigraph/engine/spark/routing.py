"""Routing: each row to the partition whose number it has.

Spark 4.1 has a function for it. Spark 4.0 only hashes, so there a row gets a value whose hash
selects the partition.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

_KEY: Final = "@key"
_MASK: Final = 0xFFFFFFFF
_SEED: Final = 42
"""With which Spark hashes what it partitions by."""


def route(frame: DataFrame, count: int, column: str) -> DataFrame:
    """The rows in `count` partitions, each in the one with the number in an integer column."""
    if hasattr(DataFrame, "repartitionById"):
        return frame.repartitionById(count, column)
    keys = sql.array(*(sql.lit(key) for key in partition_keys(count)))
    keyed = frame.withColumn(_KEY, sql.element_at(keys, sql.col(f"`{column}`") + 1))
    return keyed.repartition(count, _KEY).drop(_KEY)


def partition_keys(count: int) -> list[int]:
    """An integer for each of `count` partitions that Spark hashes to it.

    >>> [hash_integer(key) % 3 for key in partition_keys(3)]
    [0, 1, 2]
    """
    keys: dict[int, int] = {}
    number = 0
    # About count * log(count) numbers are tried: each partition is as likely as the others.
    while len(keys) < count:
        keys.setdefault(hash_integer(number) % count, number)
        number += 1
    return [keys[place] for place in range(count)]


def hash_integer(number: int) -> int:
    """The hash by which Spark partitions an integer: Murmur3 with 32 bits, signed.

    >>> hash_integer(0), hash_integer(1)
    (933211791, -559580957)
    """
    mixed = _rotate((number & _MASK) * 0xCC9E2D51 & _MASK, 15) * 0x1B873593 & _MASK
    value = (_rotate(_SEED ^ mixed, 13) * 5 + 0xE6546B64) & _MASK
    # The length of an integer, in bytes.
    value ^= 4
    value = (value ^ value >> 16) * 0x85EBCA6B & _MASK
    value = (value ^ value >> 13) * 0xC2B2AE35 & _MASK
    value ^= value >> 16
    return value - (1 << 32) if value >> 31 else value


def _rotate(value: int, bits: int) -> int:
    return (value << bits | value >> 32 - bits) & _MASK
