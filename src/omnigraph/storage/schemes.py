"""Schemes: which texts name places in object stores."""

from __future__ import annotations

import re
from typing import Final

SCHEMES: Final = ("s3", "s3a", "gs", "abfss", "abfs", "az")
"""The schemes of object stores that files are read from, and written to."""

_REMOTE: Final = re.compile(rf"(?:{'|'.join(SCHEMES)})://")


def is_remote(text: str) -> bool:
    """Whether a text names a place in an object store.

    >>> is_remote("s3://lake/raw/a.jsonl"), is_remote("hdfs://lake/raw"), is_remote("a.jsonl")
    (True, False, False)
    """
    return _REMOTE.match(text) is not None
