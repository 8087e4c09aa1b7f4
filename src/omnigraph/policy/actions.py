"""Actions: what a policy allows or forbids, and which of them each kind of write needs."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from enum import StrEnum
from typing import Final, Self

from omnigraph.errors import InvalidParameterError
from omnigraph.model.arguments import require_text
from omnigraph.model.commits import OperationKind


class Action(StrEnum):
    """Everything that a policy can be asked about."""

    READ = "read"
    EXPORT = "export"
    MUTATE = "mutate"
    LOAD = "load"
    MERGE = "merge"
    BRANCH_CREATE = "branch_create"
    BRANCH_DELETE = "branch_delete"
    SCHEMA_APPLY = "schema_apply"
    TAG = "tag"
    MAINTAIN = "maintain"
    INVOKE = "invoke"
    ADMIN = "admin"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Validate an action from outside.

        >>> Action.parse("merge")
        <Action.MERGE: 'merge'>
        """
        name = require_text(text, "an action")
        if name in set(cls):
            return cls(name)
        known = f"the actions are {', '.join(cls)}"
        near = get_close_matches(name, list(cls), n=1)
        hint = f"did you mean {near[0]}? {known}" if near else known
        message = f"{name[:100]!r} is not a valid action"
        raise InvalidParameterError(message, hint=hint, name="action")


_WRITES_ROWS: Final = (Action.MUTATE, Action.LOAD)

ACTIONS_OF_WRITES: Final[Mapping[OperationKind, tuple[Action, ...]]] = {
    OperationKind.MUTATION: (Action.MUTATE,),
    OperationKind.LOAD: (Action.LOAD,),
    OperationKind.MERGE: (Action.MERGE,),
    OperationKind.SCHEMA_APPLY: (Action.SCHEMA_APPLY,),
    OperationKind.OPTIMIZE: (Action.MAINTAIN,),
    # Whoever writes rows may also complete what belongs to them: a load indexes what it wrote.
    OperationKind.INDEX: (Action.MAINTAIN, *_WRITES_ROWS),
    OperationKind.EMBED: (Action.MAINTAIN, *_WRITES_ROWS),
}
"""By the kind of a write, the actions of which one suffices."""
