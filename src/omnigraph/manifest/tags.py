"""Tags: small objects, each a name for one commit (docs/decisions/0014).

A tag says where its commit was made: the commit can be read by it even after its branch was
deleted, and `cleanup` keeps what it names.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import Final

from omnigraph.errors import (
    AlreadyExistsError,
    ErrorCode,
    InvalidNameError,
    StorageError,
    TagNotFoundError,
)
from omnigraph.manifest.layout import TAGS
from omnigraph.model.ids import CommitId
from omnigraph.model.names import BranchName, TagName
from omnigraph.model.tags import Tag
from omnigraph.storage.store import Store

_SHOWN_MAX: Final = 10
"""Tags that an error lists; there may be thousands."""

_SUFFIX: Final = ".json"
_SLASH: Final = "="
"""Replaces the slash of a tag's name in a file name; no tag's name contains it."""


@dataclass(frozen=True, slots=True)
class TagSurvey:
    """Every tag whose record can be read.

    Attributes:
        unreadable: By name, the errors of the records that cannot be read.
    """

    tags: tuple[Tag, ...]
    unreadable: Mapping[TagName, StorageError]


class Tags:
    """The tags of one graph."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def names(self) -> tuple[TagName, ...]:
        """The names of all tags, sorted; one request."""
        return tuple(sorted(self._list_names()))

    def _list_names(self) -> Iterator[TagName]:
        for path in self._store.objects.list(TAGS):
            if (name := tag_of(path)) is not None:
                yield name

    def exists(self, name: str) -> bool:
        """Whether a tag has this name; one request."""
        return self._store.objects.exists(tag_path(name))

    def find(self, name: TagName) -> Tag:
        """A tag by its name; one request if it exists."""
        stored = self._store.objects.read(tag_path(name))
        if stored is None:
            raise self.not_found_error(name)
        return _decode(name, stored.data)

    def not_found_error(self, name: str) -> TagNotFoundError:
        """The error for a name that no tag has."""
        known = self.names()
        message = f"the graph {self._store.root.uri} has no tag {name}"
        near = get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]}?" if near else _list_known(known)
        return TagNotFoundError(message, hint=hint)

    def survey(self) -> TagSurvey:
        """Every tag, sorted by name; reads each record."""
        tags: list[Tag] = []
        unreadable: dict[TagName, StorageError] = {}
        for name in self.names():
            try:
                tags.append(self.find(name))
            except TagNotFoundError:
                # It was deleted after `names` listed it.
                continue
            except StorageError as failure:
                unreadable[name] = failure
        return TagSurvey(tuple(tags), unreadable)

    def list(self) -> tuple[Tag, ...]:
        """Every tag, sorted by name; reads each record."""
        survey = self.survey()
        for failure in survey.unreadable.values():
            raise failure
        return survey.tags

    def put(self, tag: Tag) -> None:
        """Give a commit its name: from then on the tag exists."""
        data = _encode(tag)
        if self._store.objects.put_if_absent(tag_path(tag.name), data):
            return
        # A lost response may have been retried, so the stored record decides.
        stored = self._store.objects.read(tag_path(tag.name))
        if stored is None or stored.data != data:
            raise self._taken_error(tag.name)

    def _taken_error(self, name: TagName) -> AlreadyExistsError:
        message = f"the graph {self._store.root.uri} already has a tag {name}"
        hint = f"choose another name, or 'omnigraph tag delete {name} --confirm' first"
        return AlreadyExistsError(message, hint=hint, code=ErrorCode.TAG_EXISTS)

    def withdraw(self, tag: Tag) -> None:
        """Delete this very tag; another one of its name is untouched."""
        stored = self._store.objects.read(tag_path(tag.name))
        if stored is not None and stored.data == _encode(tag):
            self._store.objects.delete(tag_path(tag.name))

    def delete(self, name: TagName) -> None:
        """Delete the tag of a name, whether or not its record can be read."""
        if not self.exists(name):
            raise self.not_found_error(name)
        self._store.objects.delete(tag_path(name))


def _list_known(names: Sequence[TagName]) -> str:
    if not names:
        return "it has no tags"
    more = f" and {len(names) - _SHOWN_MAX} more" if len(names) > _SHOWN_MAX else ""
    return f"it has {', '.join(names[:_SHOWN_MAX])}{more}"


def tag_of(path: str) -> TagName | None:
    """The tag whose record is at a path below `TAGS`; None if it is no record.

    >>> tag_of("__tags/release=1.json"), tag_of("__tags/.DS_Store")
    ('release/1', None)
    """
    stem = path.removeprefix(f"{TAGS}/").removesuffix(_SUFFIX)
    if "/" in stem or not path.endswith(_SUFFIX):
        return None
    with suppress(InvalidNameError):
        return TagName.parse(stem.replace(_SLASH, "/"))
    return None


def tag_path(name: str) -> str:
    """The path of a tag's record below the graph's root.

    >>> tag_path("release/1")
    '__tags/release=1.json'
    """
    return f"{TAGS}/{name.replace('/', _SLASH)}{_SUFFIX}"


def _encode(tag: Tag) -> bytes:
    record = {
        "format": 1,
        "commit_id": tag.commit_id,
        "created_at": tag.created_at.isoformat(),
        "actor": tag.actor,
        "message": tag.message,
        "branch": tag.branch,
        "ref": tag.ref,
        "manifest_version": tag.manifest_version,
        "tag_id": tag.tag_id,
    }
    return json.dumps(record, indent=1).encode()


def _decode(name: TagName, data: bytes) -> Tag:
    try:
        record = json.loads(data)
        return Tag(
            name,
            commit_id=CommitId.parse(record["commit_id"]),
            created_at=datetime.fromisoformat(record["created_at"]).astimezone(UTC),
            actor=record["actor"],
            message=record["message"],
            branch=BranchName.parse(record["branch"]),
            ref=record["ref"],
            manifest_version=int(record["manifest_version"]),
            tag_id=str(record["tag_id"]),
        )
    except (ValueError, KeyError, TypeError) as cause:
        message = f"the record of tag {name}, {tag_path(name)}, cannot be read"
        hint = f"'omnigraph tag delete {name} --confirm' deletes it; then create it again"
        raise StorageError(message, hint=hint, code=ErrorCode.CORRUPTED) from cause
