"""Points of history: what a caller's text names, be it a branch, a commit or a tag."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final

from omnigraph.clock import ULID_LENGTH, is_ulid
from omnigraph.errors import (
    BranchNotFoundError,
    InvalidNameError,
    NotFoundError,
    TagNotFoundError,
)
from omnigraph.manifest.reader import Manifest
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.model.arguments import require_text
from omnigraph.model.commits import Commit
from omnigraph.model.ids import CommitId
from omnigraph.model.names import MAIN, BranchName, TagName


@dataclass(frozen=True, slots=True)
class CommitPlace:
    """A commit that a text names, and the branch to search for it first."""

    commit_id: CommitId
    near: BranchName


class Points:
    """Resolves the texts by which callers name commits. Tags stand wherever commit ids do."""

    def __init__(self, manifest: Manifest) -> None:
        self._manifest = manifest

    def locate(self, text: str, *, near: BranchName = MAIN) -> CommitPlace:
        """The commit that an id or a tag names. An id is not looked for; a tag takes one request.

        Args:
            near: The branch to search first for a commit that is named by its id.
        """
        if _is_commit_id(require_text(text, "a commit")):
            return CommitPlace(CommitId.parse(text), near)
        try:
            name = TagName.parse(text)
        except InvalidNameError as cause:
            message = f"{text[:100]!r} is neither a commit id nor the name of a tag"
            hint = self._branch_hint(text) or _HINT
            raise InvalidNameError(message, hint=hint, name=text[:100]) from cause
        try:
            tag = self._manifest.tags.find(name)
        except TagNotFoundError as missing:
            message = f"{missing.message}, and it is not a commit id: {_LENGTH}"
            alike = get_close_matches(text, self._manifest.tags.names(), n=1)
            hint = f"did you mean {alike[0]}?" if alike else self._branch_hint(text) or _HINT
            raise TagNotFoundError(message, hint=hint) from missing
        return CommitPlace(tag.commit_id, tag.branch)

    def _branch_hint(self, text: str) -> str | None:
        """The hint for who names a branch where a commit or a tag is expected."""
        if text in self._manifest.names.names():
            return f"{text} is a branch: name it as the branch, and no commit"
        return None

    def find(self, text: str, *, near: BranchName = MAIN) -> Commit:
        """The row of the commit that an id or a tag names."""
        place = self.locate(text, near=near)
        return self._manifest.find(place.commit_id, near=place.near)

    def at(self, text: str, *, near: BranchName = MAIN) -> Snapshot:
        """The graph at the commit that an id or a tag names."""
        return self._manifest.at(self.find(text, near=near))

    def at_any(self, text: str) -> Snapshot:
        """The graph at the tip of a branch, at a commit or at a tag."""
        # No branch has a name in the form of a minted id; one may be like an id in lower case.
        if is_ulid(require_text(text, "a branch, a commit or a tag")):
            return self.at(text)
        try:
            return self._manifest.current(BranchName.parse(text))
        except BranchNotFoundError as missing:
            try:
                return self.at(text)
            except (InvalidNameError, TagNotFoundError):
                raise self._nothing_error(missing, text) from missing

    def _nothing_error(self, missing: BranchNotFoundError, text: str) -> NotFoundError:
        message = f"{missing.message}, and it is neither a tag nor a commit: {_LENGTH}"
        known = [*self._manifest.names.names(), *self._manifest.tags.names()]
        near = get_close_matches(text, known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"it has {', '.join(known)}"
        return BranchNotFoundError(message, hint=hint)


_LENGTH: Final = f"ids have {ULID_LENGTH} characters"
_HINT: Final = "see 'omnigraph commit list' and 'omnigraph tag list'"


def _is_commit_id(text: str) -> bool:
    return text.isascii() and is_ulid(text.upper())
