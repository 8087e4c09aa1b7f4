"""Creation of tags: a tag is put first, and then compared with what others did meanwhile."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta

from omnigraph.clock import Clock
from omnigraph.errors import (
    AlreadyExistsError,
    BranchNotFoundError,
    ConflictError,
    ErrorCode,
    OmnigraphError,
)
from omnigraph.failpoints import Failpoint, hit
from omnigraph.limits import LEASE_SECONDS
from omnigraph.manifest.reader import Manifest
from omnigraph.model.commits import Commit
from omnigraph.model.names import BranchName, TagName
from omnigraph.model.tags import Tag


def create_tag(
    manifest: Manifest,
    clock: Clock,
    name: TagName,
    commit: Commit,
    *,
    actor: str | None = None,
    message: str | None = None,
) -> Tag:
    """Give a commit a name."""
    started = clock.now()
    # The commit's own row does not always say which ref it was made on.
    place = manifest.at(commit)
    tag = Tag(
        name,
        commit.commit_id,
        started,
        actor,
        message,
        branch=commit.branch,
        ref=place.ref,
        manifest_version=place.manifest_version,
        tag_id=clock.ulid(),
    )
    _require_no_branch(manifest, name)
    manifest.tags.put(tag)
    hit(Failpoint.TAG_AFTER_PUT)
    try:
        # Who creates a branch gives it its name first, too, and then looks for a tag: of two that
        # create both at once, at least one sees the other.
        _require_no_branch(manifest, name)
        _require_commit(manifest, clock, tag, commit)
    except OmnigraphError:
        manifest.tags.withdraw(tag)
        raise
    return tag


def _require_no_branch(manifest: Manifest, name: TagName) -> None:
    with suppress(BranchNotFoundError):
        manifest.names.find(BranchName(name))
        message = (
            f"the graph {manifest.store.root.uri} has a branch {name}; a tag cannot have the "
            "same name"
        )
        hint = "choose another name, or delete that branch first"
        raise AlreadyExistsError(message, hint=hint, code=ErrorCode.BRANCH_EXISTS)


def _require_commit(manifest: Manifest, clock: Clock, tag: Tag, commit: Commit) -> None:
    """Reject a commit that others may have removed before they could see the tag.

    Who removes commits first marks them, and reads the tags afterwards (docs/decisions/0014): a
    commit that is not marked now, and that can be read, is safe.
    """
    manifest.let_go.claim(commit)
    if clock.now() - tag.created_at > timedelta(seconds=LEASE_SECONDS):
        message = f"creating the tag {tag.name} took longer than {LEASE_SECONDS:.0f} s"
        raise ConflictError(message, hint="try again")
    manifest.at(commit)
