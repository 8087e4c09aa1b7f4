"""Ids we mint: commits, operations, tables. All are ULIDs, so they sort by age."""

from __future__ import annotations

from typing import NewType, Self

from omnigraph.clock import ULID_LENGTH, is_ulid
from omnigraph.errors import InvalidNameError
from omnigraph.model.arguments import require_text


class CommitId(str):
    """The id of one graph commit."""

    __slots__ = ()

    @classmethod
    def parse(cls, text: str) -> Self:
        """Validate a commit id from outside, in upper or lower case.

        >>> CommitId.parse("01arz3ndektsv4rrffq69g5fav")
        '01ARZ3NDEKTSV4RRFFQ69G5FAV'
        """
        upper = require_text(text, "a commit id").upper()
        # Some letters beyond ASCII have upper cases within it.
        if not (text.isascii() and is_ulid(upper)):
            message = f"{text[:100]!r} is not a commit id"
            hint = f"commit ids have {ULID_LENGTH} characters; see 'omnigraph commit list'"
            raise InvalidNameError(message, hint=hint)
        return cls(upper)


OperationId = NewType("OperationId", str)
"""One attempt to write; recovery uses it to prove whose commit a table version is."""

TableId = NewType("TableId", str)
"""One Lance dataset: stable across renames of its type, new after a drop and re-add."""
