"""Ids we mint: commits, operations, tables. All are ULIDs, so they sort by age."""

from __future__ import annotations

from typing import NewType, Self

from omnigraph.clock import is_ulid
from omnigraph.errors import InvalidNameError


class CommitId(str):
    """The id of one graph commit."""

    __slots__ = ()

    @classmethod
    def parse(cls, text: str) -> Self:
        """Check a commit id that came from outside.

        Raises:
            InvalidNameError: the text is not a ULID.
        """
        if not is_ulid(text):
            message = f"{text[:100]!r} is not a commit id"
            raise InvalidNameError(message, hint="commit ids are 26 characters; see 'commit list'")
        return cls(text)


OperationId = NewType("OperationId", str)
"""One attempt to write; recovery uses it to prove whose commit a table version is."""

TableId = NewType("TableId", str)
"""One Lance dataset: stable across renames of its type, new after a drop and re-add."""
