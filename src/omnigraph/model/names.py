"""Names that users choose: types, branches and tags, validated once at the edge."""

from __future__ import annotations

import re
from typing import Final, Self
from urllib.parse import quote

from omnigraph.clock import is_ulid
from omnigraph.errors import ErrorCode, InvalidNameError
from omnigraph.limits import TYPE_NAME_LENGTH_MAX
from omnigraph.model.arguments import require_text

BRANCH_NAME_LENGTH_MAX: Final = 200
"""Branch names become directory names; file systems allow 255 bytes for one."""


_TYPE_NAME: Final = re.compile(r"[A-Z][A-Za-z0-9_]*")
_BRANCH_CHARACTERS: Final = re.compile(r"[\w.\-/]+")


class TypeName(str):
    """The name of a node or edge type; inside, it is already valid."""

    __slots__ = ()

    @classmethod
    def parse(cls, text: str) -> Self:
        """Validate a type name.

        >>> TypeName.parse("Person")
        'Person'
        """
        if not _TYPE_NAME.fullmatch(text) or len(text) > TYPE_NAME_LENGTH_MAX:
            message = f"{text[:200]!r} is not a type name"
            hint = (
                f"a type name is A-Z followed by letters, digits or _, "
                f"at most {TYPE_NAME_LENGTH_MAX} characters"
            )
            raise InvalidNameError(message, hint=hint, name=text)
        return cls(text)


class BranchName(str):
    """The name of a graph branch; inside, it is already valid."""

    __slots__ = ()

    @classmethod
    def parse(cls, text: str) -> Self:
        """Validate a branch name: Lance must accept it for a ref, and it must not be reserved.

        >>> BranchName.parse("review/1")
        'review/1'
        """
        require_text(text, "a branch's name")
        if wrong := _name_fault(text):
            message = f"{text[:200]!r} is not a branch name: {wrong}"
            raise InvalidNameError(message, hint=_HINT, code=ErrorCode.INVALID_NAME, name=text)
        return cls(text)

    @property
    def is_main(self) -> bool:
        """Whether this is main, which every graph has."""
        return self == MAIN

    def contains(self, other: str) -> bool:
        """Whether `other` is below this name by path, as `review/x` is below `review`.

        >>> BranchName("review").contains("review/x"), BranchName("review").contains("reviews")
        (True, False)
        """
        return other.startswith(f"{self}/")


MAIN: Final = BranchName("main")


class TagName(str):
    """The name of a tag; inside, it is already valid."""

    __slots__ = ()

    @classmethod
    def parse(cls, text: str) -> Self:
        """Validate a tag name: what a branch may be named, but nothing that reads as a commit id.

        >>> TagName.parse("release/1.0")
        'release/1.0'
        """
        require_text(text, "a tag's name")
        if wrong := _name_fault(text) or _tag_name_fault(text):
            message = f"{text[:200]!r} is not a tag name: {wrong}"
            raise InvalidNameError(message, hint=_HINT, code=ErrorCode.INVALID_NAME, name=text)
        return cls(text)


_HINT: Final = "use letters, digits, '.', '-' and '_', with '/' between parts"


def _tag_name_fault(text: str) -> str | None:
    if text == MAIN:
        return "every graph has a branch of that name"
    if text.isascii() and is_ulid(text.upper()):
        return "it has the form of a commit id"
    return None


def _name_fault(text: str) -> str | None:
    if not text:
        return "it is empty"
    if not _BRANCH_CHARACTERS.fullmatch(text):
        return "it has a character that is not allowed"
    # Lance's temporary file for a ref is named by the name quoted twice: '/' and each byte of a
    # letter beyond ASCII take five. The disk would reject a longer one with the ref half created.
    if len(quote(quote(text, safe=""))) > BRANCH_NAME_LENGTH_MAX:
        return f"as a file name it is longer than {BRANCH_NAME_LENGTH_MAX} characters"
    parts = text.split("/")
    if not all(parts):
        return "it has an empty part"
    if ".." in text:
        return "'..' is not allowed"
    if any(part.endswith(".lock") for part in parts):
        return "a part may not end in '.lock'"
    if any(part.startswith(".") for part in parts):
        return "a part may not start with '.'"
    if parts[0].startswith("-"):
        return "it starts with '-', as options do"
    if parts[0].startswith("__"):
        return "names that start with '__' are internal"
    if parts[0] == MAIN and len(parts) > 1:
        return "'main' is reserved"
    return None
