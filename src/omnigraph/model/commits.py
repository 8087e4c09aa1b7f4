"""Commits: one immutable row of lineage each, and the validation of actors and messages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, Self

from omnigraph.errors import InvalidParameterError
from omnigraph.limits import ACTOR_LENGTH_MAX, MESSAGE_LENGTH_MAX
from omnigraph.model.arguments import misfit_error, require_text
from omnigraph.model.brief import brief
from omnigraph.model.ids import CommitId
from omnigraph.model.names import BranchName
from omnigraph.model.streams import StreamBatch
from omnigraph.wording import format_instant

RECOVERY_ACTOR: Final = "omnigraph:recovery"
MAINTENANCE_ACTOR: Final = "omnigraph:maintenance"
RESERVED_ACTOR_PREFIX: Final = "omnigraph:"
"""Actors of Omnigraph itself; a caller may not use them."""

_ACTOR_HINT: Final = "actors are one line of text, such as a name or an address"
_SURROGATE: Final = re.compile(r"[\ud800-\udfff]")


class OperationKind(StrEnum):
    """The kind of a write, as recorded in its commit, its table transactions and its sidecar."""

    INIT = "init"
    MUTATION = "mutation"
    LOAD = "load"
    MERGE = "merge"
    SCHEMA_APPLY = "schema_apply"
    INDEX = "index"
    OPTIMIZE = "optimize"
    EMBED = "embed"
    RECOVERY = "recovery"
    IMPORT = "import"
    """Ends an import of another graph, which is visible from then on; makes no commit."""
    END = "end"
    """Ends a branch, so that nothing more is published on its ref; makes no commit."""
    LEGACY = "legacy"
    """A commit of a Rust release, which did not record what it did."""


MAINTENANCE_KINDS: Final = frozenset({OperationKind.INDEX, OperationKind.OPTIMIZE})
"""Writes that change how rows are stored, and no row."""

SAME_ROWS_KINDS: Final = MAINTENANCE_KINDS | {OperationKind.RECOVERY}
"""Commits with the rows of their parent. A recovery restores them; what it rolls forward has the
kind of the write."""


_INTERNAL: Final = frozenset({"ref", "generation"})
"""Fields of a commit that are bookkeeping."""


@brief
@dataclass(frozen=True, slots=True)
class Commit:
    """One point of a graph's history.

    Attributes:
        manifest_version: The version of the branch's manifest that made this commit visible.
        parent: The commit before it on its branch; None for the first commit of a graph.
        merged_parent: The tip of the branch that a merge brought in.
        schema_digest: The identity of its schema; names an object of `manifest.schemas`.
        ref: The ref of the manifest that it was made on, which no other branch ever has; None for
            main's, and for a commit of another branch that an earlier release made.
        generation: One more than the highest of its parents', so that every ancestor has a lower
            one; None for a commit that an earlier release made.
        same_rows_as: For maintenance and recoveries, the newest commit before it of another kind:
            no row differs.
        stream: The batch of a stream that it made visible; None for any other write.
    """

    commit_id: CommitId
    branch: BranchName
    manifest_version: int
    parent: CommitId | None
    merged_parent: CommitId | None
    actor: str | None
    created_at: datetime
    operation: OperationKind
    message: str | None
    schema_digest: str
    ref: str | None = None
    generation: int | None = None
    same_rows_as: CommitId | None = None
    stream: StreamBatch | None = None

    @property
    def rows_from(self) -> CommitId:
        """The commit that made the rows what they are: itself, unless it changed none."""
        return self.same_rows_as or self.commit_id

    @property
    def is_maintenance(self) -> bool:
        """Whether it changed how rows are stored, and no row."""
        return self.operation in MAINTENANCE_KINDS

    @property
    def has_known_ref(self) -> bool:
        """Whether `ref` is known to be the ref the commit was made on."""
        return self.ref is not None or self.branch.is_main

    def to_json(self) -> dict[str, Any]:
        """The public fields as plain values that JSON can represent."""
        fields = {name: value for name, value in asdict(self).items() if name not in _INTERNAL}
        return {**fields, "created_at": format_instant(self.created_at)}

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Self:
        """A commit from its public fields; the others are not known."""
        parent, merged, same = (
            None if fields[name] is None else CommitId(fields[name])
            for name in ("parent", "merged_parent", "same_rows_as")
        )
        return cls(
            CommitId(fields["commit_id"]),
            BranchName(fields["branch"]),
            fields["manifest_version"],
            parent,
            merged,
            fields["actor"],
            datetime.fromisoformat(fields["created_at"]),
            OperationKind(fields["operation"]),
            fields["message"],
            fields["schema_digest"],
            same_rows_as=same,
        )

    @property
    def parents(self) -> tuple[CommitId, ...]:
        """The parents that exist, first parent first."""
        parents = (self.parent, self.merged_parent)
        return tuple(parent for parent in parents if parent is not None)


def require_actor(actor: str | None) -> str | None:
    """An actor that a caller may use.

    Raises:
        InvalidParameterError: it is not a text, or is empty, too long, not printable or reserved.
    """
    if actor is None:
        return None
    if not require_text(actor, "actor").strip():
        message = f"the actor {actor!r} is blank"
        raise InvalidParameterError(message, hint=_ACTOR_HINT, name="actor")
    if len(actor) > ACTOR_LENGTH_MAX:
        message = f"the actor has {len(actor)} characters; the limit is {ACTOR_LENGTH_MAX}"
        raise InvalidParameterError(message, hint=_ACTOR_HINT, name="actor")
    if not actor.isprintable():
        message = f"the actor {actor!r} has a character that cannot be printed"
        raise InvalidParameterError(message, hint=_ACTOR_HINT, name="actor")
    if actor.startswith(RESERVED_ACTOR_PREFIX):
        message = f"the actor {actor!r} is reserved"
        hint = f"actors that start with {RESERVED_ACTOR_PREFIX!r} are Omnigraph's own"
        raise InvalidParameterError(message, hint=hint, name="actor")
    return actor


def require_message(message: str | None) -> str | None:
    """A valid commit message.

    Raises:
        InvalidParameterError: it is not a text, or too long.
    """
    if message is None:
        return None
    if (lone := _SURROGATE.search(require_text(message, "message"))) is not None:
        place = lone.start() + 1
        fault = f"the message has {lone[0]!r} at character {place}, which is not valid Unicode"
        raise InvalidParameterError(fault, hint="write the message in UTF-8", name="message")
    if len(message) > MESSAGE_LENGTH_MAX:
        fault = f"the message has {len(message)} characters; the limit is {MESSAGE_LENGTH_MAX}"
        hint = "say in a line or two what the commit does, and where to read on"
        raise InvalidParameterError(fault, hint=hint, name="message")
    return message


def require_commits(commits: object) -> tuple[Commit, ...]:
    """Several commits.

    Raises:
        InvalidParameterError: it is something else.
    """
    if isinstance(commits, Iterable):
        some = tuple(commits)
        if all(isinstance(each, Commit) for each in some):
            return some
    raise misfit_error(commits, "commits", "commits of this graph")
