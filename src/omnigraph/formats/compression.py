"""Compression: what packs a file, in both directions, and the suffix that says so."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final


class Compression(StrEnum):
    """What a file is packed with, as Arrow calls it."""

    GZIP = "gzip"
    ZSTD = "zstd"


_SUFFIXES: Final[Mapping[Compression, str]] = {Compression.GZIP: ".gz", Compression.ZSTD: ".zst"}


def compression_of(path: str) -> Compression | None:
    """What a file's name says.

    >>> compression_of("people.jsonl.zst"), compression_of("people.jsonl")
    (<Compression.ZSTD: 'zstd'>, None)
    """
    return next((each for each, suffix in _SUFFIXES.items() if path.endswith(suffix)), None)


def suffix_of(compression: Compression | None) -> str:
    """How the name of a file ends that is packed so; nothing where it is not packed."""
    return "" if compression is None else _SUFFIXES[compression]
