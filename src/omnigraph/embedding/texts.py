"""Texts to embed: one template for rows and for queries, and digests of the texts."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import Final

import pyarrow as pa

_DIGEST_DIGITS: Final = 32
"""128 bits: two texts of a graph do not share a digest, and a note stays short."""


def join_texts(parts: Sequence[str | None]) -> str:
    r"""The text of a row: its parts in order, one below the other; empty if it has none.

    >>> join_texts(["Ada", None, " ", "wrote the first program "])
    'Ada\nwrote the first program'
    """
    return "\n".join(part for each in parts if each and (part := each.strip()))


def digest_of(text: str) -> str:
    """A digest that tells texts apart.

    >>> digest_of("a") == digest_of("b")
    False
    """
    return sha256(text.encode()).hexdigest()[:_DIGEST_DIGITS]


def texts_of(rows: pa.Table, sources: Sequence[str]) -> list[str]:
    """The text of each row, from these columns in this order."""
    columns = [rows[name].to_pylist() for name in sources]
    return [join_texts(parts) for parts in zip(*columns, strict=True)]
