"""Compression: how a file is compressed, and the suffix of its name."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final


class Compression(StrEnum):
    """A compression, by its name in Arrow."""

    GZIP = "gzip"
    ZSTD = "zstd"


_SUFFIXES: Final[Mapping[Compression, str]] = {Compression.GZIP: ".gz", Compression.ZSTD: ".zst"}


def compression_of(path: str) -> Compression | None:
    """The compression in a file's name.

    >>> compression_of("people.jsonl.zst"), compression_of("people.jsonl")
    (<Compression.ZSTD: 'zstd'>, None)
    """
    return next((kind for kind, suffix in _SUFFIXES.items() if path.endswith(suffix)), None)


def suffix_of(compression: Compression | None) -> str:
    """The suffix of a compressed file's name; empty without compression."""
    return "" if compression is None else _SUFFIXES[compression]
